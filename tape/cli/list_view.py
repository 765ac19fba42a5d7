"""A list of tapes as text, and the fast path of `tape ls`.

Nothing slow is imported: neither click nor the store.
"""

from __future__ import annotations

from ..clock import SECONDS, parse_timestamp, read_clock
from ..index.fast import fetch_newest_tapes
from ..text import SHORT, measure_width, shorten_to_width
from .terminal import (
    align_column,
    can_colour,
    get_columns,
    join_columns,
    open_pager,
    print_lines,
    print_warning,
    style_text,
)

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    ListedTape: TypeAlias = tuple[str, str, str | None, str | None, int, int, float | None]

TAPE_LIMIT = 50
"""How many tapes are shown by default."""

_TITLE_COLUMNS, _LEAST_TITLE_COLUMNS, _MODEL_COLUMNS = 60, 12, 30


def answer_at_once(arguments: Sequence[str], home: str) -> bool:
    """Run `tape ls`, with no option or --all, from the index alone; return whether it could.

    It cannot when the index is missing or has to catch up: then it prints nothing.
    """
    if list(arguments) not in ([], ["--all"]):
        return False
    most = None if arguments else TAPE_LIMIT
    found = fetch_newest_tapes(home, -1 if most is None else most + 1)
    if not found:
        return False
    with open_pager():
        print_tapes(found[:most], cut=most is not None and len(found) > most)
    return True


def print_tapes(shown: Sequence[ListedTape], *, cut: bool, first: str = "newest") -> None:
    """Print tapes, (id, updated, title, model, entries, branches, cost) each, as a table."""
    print_lines(format_tapes(shown, read_clock(), get_columns()))
    if cut:
        print_warning(f"these are the {first} {len(shown)}; --all lists every tape")


def format_tapes(shown: Sequence[ListedTape], time: int, wide: int) -> list[str]:
    """Return tapes as a table with a heading; titles are cut so that a row fits."""
    if not shown:
        return []
    ids, moments, titles, names, entries, branches, costs = zip(*shown, strict=True)
    ages = [format_age(time - parse_timestamp(moment)) for moment in moments]
    models = {name: shorten_to_width(name or "–", _MODEL_COLUMNS) for name in {*names}}
    prices = ["–" if cost is None else f"${cost:.2f}" for cost in costs]
    columns = [
        align_column(["ID", *(identity[:SHORT] for identity in ids)]),
        align_column(["AGE", *ages], right=True),
        align_column(["MODEL", *map(models.__getitem__, names)]),
        align_column(["ENTRIES", *map(str, entries)], right=True),
        align_column(["BRANCHES", *map(str, branches)], right=True),
        align_column(["COST", *prices], right=True),
    ]
    room = wide - sum(measure_width(column[0]) + 2 for column in columns)
    room = min(max(room, _LEAST_TITLE_COLUMNS), _TITLE_COLUMNS)
    columns.insert(
        2, align_column(["TITLE", *(shorten_to_width(title or "–", room) for title in titles)])
    )
    first, *rest = join_columns(columns)
    if can_colour():
        rest = [style_text(row[:SHORT], fg="yellow") + row[SHORT:] for row in rest]
    return [style_text(first, dim=True), *rest]


def format_age(passed: int) -> str:
    """Return an age in microseconds as a number with its largest unit, such as 3d."""
    seconds = max(passed, 0) // 1_000_000
    for unit in ("y", "w", "d", "h", "m"):
        if seconds >= SECONDS[unit]:
            return f"{seconds // SECONDS[unit]}{unit}"
    return f"{seconds}s"
