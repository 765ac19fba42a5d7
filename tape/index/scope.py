"""Which tapes somebody may see: every question to the index is answered as if others did not exist.

Invariant: within `hide_others` no table that names a tape has a row of one that is out of scope,
whatever is asked; what `text` and `said` find has to be joined with `phases` or `tapes` as ever.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ..text import replace_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterator
    from sqlite3 import Connection

_OF_TAPES = "SELECT * FROM main.{0} WHERE tape IN (SELECT id FROM temp.tapes)"
_VIEWS = {
    "phases": _OF_TAPES,
    "branches": _OF_TAPES,
    "labels": _OF_TAPES,
    "sums": "SELECT * FROM main.{0} WHERE phase IN (SELECT key FROM temp.phases)",
    "entries": "SELECT * FROM main.{0} WHERE phase IN (SELECT key FROM temp.phases)",
}


class TapeScope(NamedTuple):
    """Tapes of some repositories, and of some people; nothing else, so by default none."""

    repositories: tuple[str, ...] = ()
    """Patterns of `host/owner/name`, `*` being any characters; letters A to Z in any case."""
    people: tuple[str, ...] = ()
    """Emails, or names of people without one; letters A to Z in any case."""

    def build_condition(self) -> str:
        """Return a WHERE clause on the table `tapes`: without `?`, which a view cannot have."""
        parts = [
            f"lower(repository) GLOB {_quote_text(_escape_pattern(pattern).replace('[*]', '*'))}"
            for pattern in self.repositories
        ]
        for person in self.people:
            parts.append(f"lower(person) = {_quote_text(_fold_letters(person))}")
            parts.append(f"lower(person) GLOB {_quote_text(f'*<{_escape_pattern(person)}>')}")
        return " OR ".join(parts) or "0"


def _escape_pattern(text: str) -> str:
    """Return a pattern of just this text, in small letters."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in _fold_letters(text))


def _fold_letters(text: str) -> str:
    """Return a text with A to Z in small letters, as SQLite has them, and nothing else."""
    return "".join(char.lower() if char.isascii() else char for char in text)


def _quote_text(text: str) -> str:
    doubled = replace_surrogates(text).replace("\0", "\ufffd").replace("'", "''")
    return f"'{doubled}'"


@contextmanager
def hide_others(db: Connection, scope: TapeScope | None) -> Iterator[None]:
    """Let a connection answer from the tapes of a scope only; None is for all."""
    if scope is None:
        yield
        return
    created: list[str] = []
    try:
        db.execute(
            "CREATE TEMP VIEW tapes AS SELECT rowid, * FROM main.tapes "
            f"WHERE {scope.build_condition()}"
        )
        created.append("tapes")
        for name, selection in _VIEWS.items():
            db.execute(f"CREATE TEMP VIEW {name} AS {selection.format(name)}")
            created.append(name)
        yield
    finally:
        for name in reversed(created):
            db.execute(f"DROP VIEW temp.{name}")
