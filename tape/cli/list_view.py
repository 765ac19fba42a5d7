"""A list of tapes as text, and the fast path of `tape ls`.

Nothing slow is imported: neither click nor the store.
"""

from __future__ import annotations

import os
from contextlib import suppress

from ..clock import format_age, parse_timestamp, read_clock
from ..errors import UsageError
from ..folders import locate_repository
from ..index.reader import fetch_newest_tapes
from ..text import SHORT, shorten_to_width, show_controls, to_single_line
from .arguments import parse_plain_arguments
from .terminal import (
    align_column,
    can_colour,
    drop_columns,
    get_columns,
    join_columns,
    open_pager,
    print_json_text,
    print_lines,
    print_warning,
    style_text,
)

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..index.reader import TapeRow

TAPE_LIMIT = 50
"""How many tapes are shown by default."""

SORTS: dict[str, Callable[[TapeRow], Any]] = {
    "updated": lambda row: row.updated,
    "created": lambda row: row.created,
    "title": lambda row: (row.title or "").casefold(),
    "entries": lambda row: row.entries,
    "branches": lambda row: row.branches,
    "cost": lambda row: row.cost or 0.0,
}
"""The orders of a list, and what each compares."""

_FILTERS = ("project", "since", "until", "sort")
_NAMED_OPTIONS = {
    **{f"--{name}": name for name in ("store", "limit", *_FILTERS)},
    "-n": "limit",
}
_TITLE_COLUMNS, _LEAST_TITLE_COLUMNS = 60, 12
_MODEL_COLUMNS, _LEAST_MODEL_COLUMNS = 30, 12
_FOLDER_COLUMNS, _LEAST_FOLDER_COLUMNS = 24, 10


def answer_at_once(arguments: Sequence[str], home: str) -> bool:
    """Run `tape ls` with these arguments from the index alone; return whether it could.

    It cannot when the index is missing or has to catch up, when there is no tape to list, or when
    click has to read the arguments: then it prints nothing.
    """
    given = parse_plain_arguments(arguments, {"--all", "--here", "--json", "--utc"}, _NAMED_OPTIONS)
    if given is None or given[0]:
        return False
    options = dict(given[1])
    home = options.get("store", home)
    if "json" in options and ".." in home.split("/"):  # only pathlib prints it as it is
        return False
    most = int(options["limit"]) if "limit" in options else None if "all" in options else TAPE_LIMIT
    try:
        first = find_first_project(options)
        found = fetch_newest_tapes(home, count_needed(options, most), first)
        chosen = select_tapes(found or [], options, read_clock(), first)
    except (UsageError, OSError):  # OSError: the current folder was removed
        return False
    has_hint = first is not None and "json" not in options and may_have_moved(chosen, first)
    if not chosen or has_hint or ("here" in options and first is None):
        return False
    if "json" in options:
        print_tape_objects(chosen[:most], os.path.join(os.path.abspath(home), "tapes"))  # noqa: PTH100, PTH118 (at once)
        return True
    with open_pager():
        print_tapes(chosen, most, options)
    return True


def find_first_project(options: Mapping[str, str]) -> str | None:
    """Return the project whose tapes come first, or alone with the option `here`.

    It is the repository of the current folder, else the folder; None where that was removed, or the
    options give another order.
    """
    if "here" in options or options.keys().isdisjoint(("json", "sort")):
        with suppress(OSError):
            here = os.getcwd()  # noqa: PTH109 (a str is what a tape keeps)
            return locate_repository(here) or here
    return None


def count_needed(options: Mapping[str, str], most: int | None) -> int:
    """Return how many of the newest tapes have to be read to list `most` of them; −1 means all."""
    return -1 if most is None or not options.keys().isdisjoint(_FILTERS) else most + 1


def select_tapes(
    found: Sequence[TapeRow], options: Mapping[str, str], time: int, first: str | None = None
) -> list[TapeRow]:
    """Return the tapes, newest first in `found`, that match the options, in the order of --sort.

    The options are texts as typed; a project matches by the folder that its tapes work in now. By
    default the tapes of the project `first` come before the others. Raises UsageError for an
    invalid time or order.
    """
    chosen = list(found)
    if "project" in options:
        chosen = _select_in_project(chosen, options["project"])
    if "here" in options and first is not None:
        chosen = _select_in_project(chosen, first)
    if "since" in options or "until" in options:
        from .timeparse import parse_moment  # noqa: PLC0415 (most lists name no time)

        since = parse_moment(options["since"], time) if "since" in options else ""
        until = parse_moment(options["until"], time) if "until" in options else "~"
        chosen = [row for row in chosen if since <= row.updated < until]
    sort = options.get("sort", "updated")
    if sort not in SORTS:
        raise UsageError(f"no order is called {sort!r}")
    if sort != "updated":
        chosen.sort(key=SORTS[sort], reverse=sort != "title")
    elif first is not None and "sort" not in options and "json" not in options:
        ours = {row.id for row in _select_in_project(chosen, first)}
        chosen.sort(key=lambda row: row.id not in ours)
    return chosen


def _select_in_project(found: Sequence[TapeRow], project: str) -> list[TapeRow]:
    """Return the tapes that work in a folder or below, or in a project there."""
    root = os.path.abspath(project).rstrip("/") + "/"  # noqa: PTH100 (as tapes keep it)
    return [
        row
        for row in found
        if any(f"{place}/".startswith(root) for place in (row.cwd, row.project or row.cwd))
    ]


def may_have_moved(found: Sequence[TapeRow], project: str) -> bool:
    """Return whether none of some tapes is of a project, and the folder of one of them is gone."""
    places = {row.project or row.cwd for row in found}
    inside = f"{project.rstrip('/')}/"
    if any(f"{place}/".startswith(inside) for place in places):
        return False
    return any(place and not os.path.isdir(place) for place in places)  # noqa: PTH112 (at once)


def print_tape_objects(shown: Sequence[TapeRow], tapes: str) -> None:
    """Print tapes as a JSON array; `tapes` is the absolute path of their folders' folder."""
    print_json_text(
        [
            {"id": row.id, "path": os.path.join(tapes, row.folder)}  # noqa: PTH118 (at once)
            | {name: getattr(row, name) for name in _OBJECT_KEYS}
            for row in shown
        ]
    )


_OBJECT_KEYS = (
    *("folder", "title", "cwd", "project", "created", "updated", "model", "entries"),
    *("branches", "cost"),
)


def print_tapes(chosen: Sequence[TapeRow], most: int | None, options: Mapping[str, str]) -> None:
    """Print at most so many tapes as a table, and warn if more were left out without --limit."""
    shown = chosen[:most]
    if shown:  # in one write: a pipe's reader wakes up once
        print_lines(["\n".join(format_tapes(shown, read_clock(), get_columns()))])
    if len(chosen) > len(shown) and "limit" not in options:
        print_warning(f"these are the first {len(shown)}; --all lists every tape")


def format_tapes(shown: Sequence[TapeRow], time: int, wide: int) -> list[str]:
    """Return tapes as a table with a heading, cut so that a row fits.

    Titles and folders get shorter first; where that is not enough, columns are left out.
    """
    if not shown:
        return []
    ages = [format_age(time - parse_timestamp(row.updated)) for row in shown]
    room = min(max(wide // 4, _LEAST_MODEL_COLUMNS), _MODEL_COLUMNS)
    models = {name: format_model(name or "–", room) for name in {row.model for row in shown}}
    room = min(max(wide // 5, _LEAST_FOLDER_COLUMNS), _FOLDER_COLUMNS)
    places = {cwd: format_folder(cwd, room) for cwd in {row.cwd for row in shown}}
    costs = ["–" if row.cost is None else f"${row.cost:.2f}" for row in shown]
    columns: dict[str, Sequence[str]] = {
        "ID": align_column(["ID", *(row.id[:SHORT] for row in shown)]),
        "AGE": align_column(["AGE", *ages], right=True),
        "FOLDER": align_column(["FOLDER", *(places[row.cwd] for row in shown)]),
        "TITLE": [" " * _LEAST_TITLE_COLUMNS],
        "MODEL": align_column(["MODEL", *(models[row.model] for row in shown)]),
        "ENTRIES": align_column(["ENTRIES", *(str(row.entries) for row in shown)], right=True),
        "BRANCHES": align_column(["BRANCHES", *(str(row.branches) for row in shown)], right=True),
        "COST": align_column(["COST", *costs], right=True),
    }
    room = drop_columns(columns, wide, ("BRANCHES", "COST", "ENTRIES", "MODEL", "FOLDER"))
    room = min(room + _LEAST_TITLE_COLUMNS, _TITLE_COLUMNS)
    titles = ["TITLE", *(shorten_to_width(row.title or "–", room) for row in shown)]
    columns["TITLE"] = align_column(titles)
    first, *rest = join_columns(columns.values())
    if can_colour():
        rest = [style_text(row[:SHORT], fg="yellow") + row[SHORT:] for row in rest]
    return [style_text(first, dim=True), *rest]


def format_model(name: str, columns: int) -> str:
    """Return PROVIDER/MODEL, without the provider where there is no room for it."""
    if len(name) > columns:
        name = name.rpartition("/")[2]
    return shorten_to_width(name, columns)


def format_folder(folder: str, columns: int) -> str:
    """Return a folder from the current one if it is below, else from the home folder; cut left."""
    with suppress(OSError):  # the current folder was removed
        here = os.getcwd()  # noqa: PTH109 (a str is what a tape keeps)
        home = os.path.expanduser("~")  # noqa: PTH111 (at once)
        if folder == here:
            return "."
        if here != "/" and folder.startswith(f"{here}/"):
            folder = folder[len(here) + 1 :]
        elif home != "/" and f"{folder}/".startswith(f"{home}/"):
            folder = f"~{folder[len(home) :]}"
    shown = show_controls(to_single_line(folder or "–"))
    return shorten_to_width(shown[::-1], columns)[::-1]
