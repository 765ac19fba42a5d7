"""A list of tapes in pages, narrowed by exact values, with what all of them say and cost; SQL.

A facet is something that each tape has one value of, or none. The counts beside the values of one
are of the tapes that all other choices leave: so a choice never hides its alternatives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from ..text import replace_surrogates
from .reader import TAPE_COLUMNS, TapeRow, to_tape_row

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from sqlite3 import Connection

Facet = Literal["agent", "project", "repository", "person", "machine", "model", "day"]

_VALUES: dict[Facet, str] = {
    "agent": "agent",
    "project": "coalesce(project, cwd)",
    "repository": "repository",
    "person": "person",
    "machine": "machine",
    "model": "model",
    "day": "substr(updated, 1, 10)",
}
FACETS: tuple[Facet, ...] = tuple(_VALUES)


class TapeChoice(NamedTuple):
    """Which tapes are meant: those with all these values, that say these words."""

    values: Mapping[Facet, str]
    """A value of some facets; "" is that of the tapes that have none."""
    words: str = ""
    """In any case of letters: in id, title, folder, repository, person, machine, agent or model."""
    spoken: Collection[str] = ()
    """Ids of tapes that are meant too where there are words: those whose talk has them."""

    def build_condition(self, besides: Facet | None = None) -> tuple[str, list[str]]:
        """Return a WHERE clause on the table `tapes`, and the values for its `?`.

        With `besides`, whatever value of that facet is chosen. `add_functions` comes before it.
        """
        conditions, values = ["folder <> ''"], list[str]()
        for facet, value in self.values.items():
            if facet == besides:
                continue
            if value:
                conditions.append(f"{_VALUES[facet]} = ?")
                values.append(replace_surrogates(value))
            else:
                conditions.append(f"coalesce({_VALUES[facet]}, '') = ''")
        if self.words:
            conditions.append(
                "(lower(hex(id)) IN (SELECT value FROM json_each(?))"
                f" OR instr(folded({_ROW_TEXT}), ?) > 0)"
            )
            ids = ",".join(f'"{tape}"' for tape in self.spoken)
            values += [f"[{ids}]", replace_surrogates(self.words).lower()]
        return " AND ".join(conditions), values


_ROW_TEXT = "lower(hex(id)) || ' ' || cwd || " + " || ".join(
    f"coalesce(' ' || {column}, '')"
    for column in ("title", "repository", "person", "machine", "agent", "model")
)


class FacetValue(NamedTuple):
    """A value, and how many tapes have it."""

    value: str
    """"" for none."""
    tapes: int


class TapeSums(NamedTuple):
    """What tapes cost together."""

    tapes: int
    entries: int
    tokens: int
    cost: float | None
    """USD; None if no cost is known."""


def add_functions(db: Connection) -> None:
    """Add the function that `TapeChoice` needs to a connection."""
    db.create_function("folded", 1, str.lower, deterministic=True)  # not only A to Z


def select_tapes_after(
    db: Connection, choice: TapeChoice, limit: int, after: tuple[str, str] | None = None
) -> list[TapeRow]:
    """Return the newest tapes, at most `limit`, of those after a time and an id in that order."""
    add_functions(db)
    where, values = choice.build_condition()
    if after is not None:
        where += " AND (updated, id) < (?, ?)"
    rows = db.execute(
        f"SELECT {TAPE_COLUMNS} FROM tapes WHERE {where} ORDER BY updated DESC, id DESC LIMIT ?",
        (*values, *((after[0], bytes.fromhex(after[1])) if after else ()), limit),
    )
    return [to_tape_row(*row) for row in rows]


def select_sums(db: Connection, choice: TapeChoice) -> TapeSums:
    """Return how many tapes there are, and what they cost."""
    add_functions(db)
    where, values = choice.build_condition()
    row = db.execute(
        "SELECT count(*), CAST(total(entries) AS INTEGER), CAST(total(tokens) AS INTEGER), "
        f"sum(cost) FROM tapes WHERE {where}",
        values,
    ).fetchone()
    return TapeSums(*row)


def select_facet(db: Connection, choice: TapeChoice, facet: Facet, limit: int) -> list[FacetValue]:
    """Return the commonest values of a facet, days newest first, and always the chosen one."""
    add_functions(db)
    where, values = choice.build_condition(besides=facet)
    order = "1 DESC" if facet == "day" else "2 DESC, 1"
    value = f"coalesce({_VALUES[facet]}, '')"
    listed = [
        FacetValue(*row)
        for row in db.execute(
            f"SELECT {value}, count(*) FROM tapes WHERE {where} "
            f"GROUP BY 1 ORDER BY {order} LIMIT ?",
            (*values, limit),
        )
    ]
    chosen = choice.values.get(facet)
    if chosen is None or any(each.value == chosen for each in listed):
        return listed
    where, values = choice.build_condition()
    (tapes,) = db.execute(f"SELECT count(*) FROM tapes WHERE {where}", values).fetchone()
    return [*listed, FacetValue(chosen, tapes)]
