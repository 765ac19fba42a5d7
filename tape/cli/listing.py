"""`ls`: the tapes of a store, those of this project first.

Nothing is imported that reads tapes, but where the index has to catch up with them first.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import click

from ..clock import format_age, parse_timestamp, read_clock
from ..index.reader import ARCHIVE_SUFFIX, fetch_newest_tapes
from ..index.tape_filter import FACTS
from ..places.checkout import find_checkout
from ..text import SHORT, measure_width, shorten_to_width, show_controls, to_single_line
from .environment import find_store_home, get_current_folder
from .output import CountedCommand, CountType, as_json, format_examples
from .tape_facts import choose_by_facts
from .terminal import (
    align_column,
    can_colour,
    drop_columns,
    get_columns,
    join_columns,
    print_json_array,
    print_lines,
    print_warning,
    style_text,
)
from .timeparse import TIME_FORMS, parse_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from ..index.reader import TapeRow
    from ..index.tape_filter import Checkout, TapeFilter
    from .group import GlobalOptions

TAPE_LIMIT = 50
"""How many tapes are shown by default."""

_SORTS: dict[str, Callable[[TapeRow], Any]] = {
    "updated": lambda row: row.updated,
    "created": lambda row: row.created,
    "title": lambda row: (row.title or "").casefold(),
    "entries": lambda row: row.entries,
    "branches": lambda row: row.branches,
    "cost": lambda row: row.cost or 0.0,
}
"""The orders of a list, and what each compares."""

_TITLE_COLUMNS, _MIN_TITLE_COLUMNS = 60, 12
_MODEL_COLUMNS, _MIN_MODEL_COLUMNS = 30, 12
_FOLDER_COLUMNS, _MIN_FOLDER_COLUMNS = 24, 10
AGENT_COLUMNS = 11


@click.command(
    cls=CountedCommand,
    epilog=format_examples(
        "tape ls",
        "tape ls --since 2d --project .",
        "tape ls --since 2026-11-01 --until 2026-12-01",
        "tape ls --all --sort cost --json",
    ),
)
@click.option(
    "--all", "every", is_flag=True, help=f"List all tapes, not only the newest {TAPE_LIMIT}."
)
@click.option(
    "--here",
    is_flag=True,
    help="Only tapes of this repository, in other checkouts too; outside of one, of this folder.",
)
@click.option("--project", metavar="FOLDER", help="Only tapes of this folder or below.")
@choose_by_facts
@click.option("--since", metavar="TIME", help=f"Only tapes used since: {TIME_FORMS}.")
@click.option("--until", metavar="TIME", help="Only tapes last used before this time.")
@click.option("-n", "--limit", type=CountType(), metavar="N", help="At most N tapes.")
@click.option(
    "--sort",
    type=click.Choice(list(_SORTS)),
    help="Largest or newest first; titles by the alphabet.",
)
@as_json
@click.pass_obj
def ls(
    options: GlobalOptions,
    *,
    every: bool,
    here: bool,
    project: str | None,
    tapes: TapeFilter,
    since: str | None,
    until: str | None,
    limit: int | None,
    sort: str | None,
    as_json: bool,
) -> int:
    """List tapes, newest first: id, age, folder, title, agent, model, entries, branches, cost.

    Those of this repository, in whatever checkout, or of this folder come before the others; not
    with --sort and --json. A narrow terminal gets fewer columns.

    Unreadable tapes are named on standard error; exits with 1 when the system refused to read one.

    --json prints an array of {id, path, folder, title, cwd, project, created, updated, model,
    entries, branches, cost, provider, tokens, input_tokens, output_tokens, git_branch, mode,
    todos, repository, person, machine, agent, archived}. Cost and tokens are of all calls
    on the tape; input_tokens are those not cached.
    """
    max_rows = limit if limit is not None else None if every else TAPE_LIMIT
    now = read_clock()
    choice = _Choice(
        project=project,
        since=parse_moment(since, now) if since else "",
        until=parse_moment(until, now) if until else "",
        sort=sort,
        here=here,
        first=_find_checkout_here(here=here) if here or not (sort or as_json) else None,
        tapes=tapes,
    )
    home = find_store_home(options.store)

    def show(rows: list[TapeRow]) -> bool:
        chosen = _choose_tapes(rows, choice, in_order=as_json)
        if as_json:
            _print_tape_objects(chosen[:max_rows], home)
            return True
        _print_tapes(chosen, max_rows, warns=limit is None)
        if choice.first is not None and _may_have_moved(rows, choice.first.root):
            _warn_of_moved_project(options)
        return bool(chosen)

    is_filtered = bool(project or since or until or sort)
    needed = None if max_rows is None or is_filtered else max_rows + 1
    newest = fetch_newest_tapes(home, needed, choice.first, choice.tapes)
    if newest is not None:
        is_shown, code = show(newest), 0
    else:
        is_shown, code = _list_after_catching_up(options, needed, choice, show)
    if not is_shown:
        agents = " or ".join(tapes.agents)
        why = f" by {agents}; `tape stats --by agent` lists the agents" if agents else ""
        print_warning(f"no tape to list{why or '; `tape new` makes one'}")
    return code


class _Choice(NamedTuple):
    """Which tapes are listed, and in what order."""

    project: str | None
    """A folder: only tapes that work there or below."""
    since: str
    until: str
    """Times as on a tape: those last used from `since` on and before `until`; "" for any."""
    sort: str | None
    """A key of `_SORTS`; None for the newest first, those of `first` before the others."""
    here: bool
    """Only tapes of `first`."""
    first: Checkout | None
    """This project."""
    tapes: TapeFilter
    """What the tapes have to say of themselves."""


def _find_checkout_here(*, here: bool) -> Checkout | None:
    """Return the repository of the current folder, else the folder; None where that was removed.

    Raises NotFound instead with `here`.
    """
    folder = get_current_folder(is_needed=here)
    return find_checkout(folder, os.environ) if folder else None


def _list_after_catching_up(
    options: GlobalOptions,
    limit: int | None,
    choice: _Choice,
    show: Callable[[list[TapeRow]], bool],
) -> tuple[bool, int]:
    """Show the tapes of an index that has to catch up with them first, or of no index.

    Returns whether any tape is shown, or named as left out, and the exit code.
    """
    from ..index.library import list_newest_tapes  # most lists read no tape
    from .resolve import open_library, warn_of_left_out

    with open_library(options) as opened:
        is_shown = show(list_newest_tapes(*opened, limit, choice.first, choice.tapes))
        lacking = warn_of_left_out(opened)
        return is_shown or bool(lacking.tapes), lacking.code


def _warn_of_moved_project(options: GlobalOptions) -> None:
    from .resolve import open_library, warn_of_moved_project

    with open_library(options) as opened:
        warn_of_moved_project(opened)


def _choose_tapes(rows: Sequence[TapeRow], choice: _Choice, *, in_order: bool) -> list[TapeRow]:
    """Return the chosen tapes of those found, newest first, in the order to show them.

    With `in_order` those of this project stay among the others.
    """
    chosen = list(rows)
    if choice.project:
        chosen = select_in_project(chosen, choice.project)
    if choice.here and choice.first is not None:
        chosen = _select_of_checkout(chosen, choice.first)
    if choice.since or choice.until:
        until = choice.until or "~"
        chosen = [row for row in chosen if choice.since <= row.updated < until]
    if choice.sort not in (None, "updated"):
        chosen.sort(key=_SORTS[choice.sort], reverse=choice.sort != "title")
    elif choice.first is not None and choice.sort is None and not in_order:
        ours = {row.id for row in _select_of_checkout(chosen, choice.first)}
        chosen.sort(key=lambda row: row.id not in ours)
    return chosen


def _select_of_checkout(rows: Sequence[TapeRow], checkout: Checkout) -> list[TapeRow]:
    """Return the tapes of a folder or below, and those of its repository wherever they are."""
    inside = {row.id for row in select_in_project(rows, checkout.root)}
    name = checkout.repository
    return [row for row in rows if row.id in inside or (name and row.repository == name)]


def select_in_project(rows: Sequence[TapeRow], project: str) -> list[TapeRow]:
    """Return the tapes that work in a folder or below, or in a project there."""
    root = os.path.abspath(project).rstrip("/") + "/"
    return [
        row
        for row in rows
        if any(f"{place}/".startswith(root) for place in (row.cwd, row.project or row.cwd))
    ]


def _may_have_moved(rows: Sequence[TapeRow], project: str) -> bool:
    """Return whether none of some tapes is of a project, and the folder of one of them is gone."""
    places = {row.project or row.cwd for row in rows}
    inside = f"{project.rstrip('/')}/"
    if any(f"{place}/".startswith(inside) for place in places):
        return False
    return any(place and not os.path.isdir(place) for place in places)


def _print_tape_objects(rows: Sequence[TapeRow], home: str) -> None:
    """Print tapes as a JSON array; `home` is the folder of the store."""
    import json  # only where it is asked for
    from pathlib import Path  # a twentieth of the time of `tape ls`

    tapes = str(Path(home).absolute() / "tapes")
    print_json_array(
        {"id": row.id, "path": _build_path(tapes, row)}
        | {name: getattr(row, name) for name in _OBJECT_KEYS}
        | {"todos": json.loads(row.todos) if row.todos else []}
        | {name: getattr(row, name) for name in FACTS}
        | {"archived": row.archived}
        for row in rows
    )


def _build_path(tapes: str, row: TapeRow) -> str:
    """Return the path of a tape's folder, or of its file."""
    suffix = os.fsdecode(ARCHIVE_SUFFIX) if row.archived else ""
    return os.path.join(tapes, row.folder) + suffix


_OBJECT_KEYS = (
    "folder", "title", "cwd", "project", "created", "updated", "model", "entries",
    "branches", "cost", "provider", "tokens", "input_tokens", "output_tokens", "git_branch",
    "mode",
)  # fmt: skip


def _print_tapes(chosen: Sequence[TapeRow], max_rows: int | None, *, warns: bool) -> None:
    """Print at most `max_rows` tapes as a table; `warns` tells that more were left out."""
    first_rows = chosen[:max_rows]
    if first_rows:  # in one write: a pipe's reader wakes up once
        lines = format_tapes(first_rows, read_clock(), get_columns())
        while part := [*islice(lines, _CHUNK + 1)]:
            print_lines(["\n".join(part)])
    if len(chosen) > len(first_rows) and warns:
        print_warning(f"these are the first {len(first_rows)}; --all lists every tape")


_CHUNK = 1000
"""Rows that are drawn at once."""
_RIGHT = frozenset({"AGE", "ENTRIES", "BRANCHES", "COST"})
_DROPPED = ("BRANCHES", "ENTRIES", "COST", "AGENT", "ARCHIVED", "MODEL", "FOLDER")
"""Columns that a narrow terminal leaves out, in this order."""


def format_tapes(rows: Sequence[TapeRow], time: int, wide: int) -> Iterator[str]:
    """Yield tapes as a table with a heading, cut so that a row fits.

    Titles and folders get shorter first; where that is not enough, columns are left out. Of many
    rows only some are in memory as text.
    """
    if not rows:
        return
    cells = _RowCells(rows, time, wide)
    columns: dict[str, Sequence[str]] = {}
    for name, cell in cells.columns.items():
        if name == "TITLE":
            columns[name] = [" " * _MIN_TITLE_COLUMNS]
        elif name != "ARCHIVED" or any(row.archived for row in rows):
            columns[name] = [" " * max(map(measure_width, (name, *map(cell, rows))))]
    room = drop_columns(columns, wide, _DROPPED)
    cells.title_columns = min(room + _MIN_TITLE_COLUMNS, _TITLE_COLUMNS)
    titles = max(map(measure_width, ("TITLE", *map(cells.build_title, rows))))
    columns["TITLE"] = [" " * titles]
    for begin in range(0, len(rows), _CHUNK):
        part = rows[begin : begin + _CHUNK]
        aligned = (
            align_column((width, name, *map(cells.columns[name], part)), right=name in _RIGHT)
            for name, (width,) in columns.items()
        )
        _, heading, *lines = join_columns(aligned)
        if begin == 0:
            yield style_text(heading, dim=True)
        if can_colour():
            lines = [style_text(row[:SHORT], fg="yellow") + row[SHORT:] for row in lines]
        yield from lines


class _RowCells:
    """The text of a row in each column."""

    def __init__(self, rows: Sequence[TapeRow], time: int, wide: int) -> None:
        self.title_columns = _TITLE_COLUMNS
        room = min(max(wide // 4, _MIN_MODEL_COLUMNS), _MODEL_COLUMNS)
        models = {name: format_model(name or "–", room) for name in {row.model for row in rows}}
        room = min(max(wide // 5, _MIN_FOLDER_COLUMNS), _FOLDER_COLUMNS)
        places = {cwd: format_folder(cwd, room) for cwd in {row.cwd for row in rows}}
        agents = {
            name: shorten_to_width(name or "–", AGENT_COLUMNS)
            for name in {row.agent for row in rows}
        }
        self.columns: dict[str, Callable[[TapeRow], str]] = {
            "ID": lambda row: row.id[:SHORT],
            "AGE": lambda row: format_age(time - parse_timestamp(row.updated)),
            "FOLDER": lambda row: places[row.cwd],
            "TITLE": self.build_title,
            "AGENT": lambda row: agents[row.agent],
            "MODEL": lambda row: models[row.model],
            "ENTRIES": lambda row: str(row.entries),
            "BRANCHES": lambda row: str(row.branches),
            "COST": lambda row: "–" if row.cost is None else f"${row.cost:.2f}",
            "ARCHIVED": lambda row: "yes" if row.archived else "",
        }

    def build_title(self, row: TapeRow) -> str:
        """Return the title, as long as there is room."""
        return shorten_to_width(row.title or "–", self.title_columns)


def format_model(name: str, columns: int) -> str:
    """Return PROVIDER/MODEL, without the provider where there is no room for it."""
    if len(name) > columns:
        name = name.rpartition("/")[2]
    return shorten_to_width(name, columns)


def format_folder(folder: str, columns: int) -> str:
    """Return a folder from the current one if it is below, else from the home folder; cut left."""
    with suppress(OSError):  # the current folder was removed
        here = os.getcwd()
        home = os.path.expanduser("~")
        if folder == here:
            return "."
        if here != "/" and folder.startswith(f"{here}/"):
            folder = folder[len(here) + 1 :]
        elif home != "/" and f"{folder}/".startswith(f"{home}/"):
            folder = f"~{folder[len(home) :]}"
    visible = show_controls(to_single_line(folder or "–"))
    return shorten_to_width(visible[::-1], columns)[::-1]
