"""`ls`: the tapes of a store."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..clock import micros, now, stamp
from ..errors import UsageError
from ..index import rows
from ..render import SHORT, fitted
from .call import library
from .out import as_json, columns, document, examples, say, table, warn

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..index import Library, TapeRow
    from .group import Options

LIMIT = 50
"""Tapes that are shown unless all are wanted."""

_AGO = re.compile(r"([0-9]{1,6})([smhdwy])\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "y": 31_557_600}
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?\Z")
_SORTS: dict[str, Callable[[TapeRow], Any]] = {
    "updated": lambda row: row.updated,
    "created": lambda row: row.created,
    "entries": lambda row: row.entries,
    "branches": lambda row: row.branches,
    "cost": lambda row: row.cost or 0.0,
}


@click.command(
    epilog=examples("tape ls", "tape ls --since 2d --project .", "tape ls --all --sort cost --json")
)
@click.option("--all", "every", is_flag=True, help=f"All tapes, not the newest {LIMIT}.")
@click.option("--project", metavar="FOLDER", help="Only tapes of this folder or below.")
@click.option("--since", metavar="TIME", help="Only tapes used since: 2h, 3d, 2026-11-21 (UTC).")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most N tapes.")
@click.option(
    "--sort",
    type=click.Choice(list(_SORTS)),
    default="updated",
    show_default=True,
    help="Largest or newest first.",
)
@as_json
@click.pass_obj
def ls(
    options: Options,
    every: bool,
    project: str | None,
    since: str | None,
    limit: int | None,
    sort: str,
    as_json: bool,
) -> None:
    """List tapes, newest first.

    --json prints an array of {id, path, folder, title, cwd, project, created, updated, model,
    entries, branches, cost}.
    """
    most = limit if limit is not None else None if every else LIMIT
    with library(options) as opened:
        chosen = listed(opened, project, since, sort, most)
        shown = chosen[:most]
        if as_json:
            tapes = opened.store.tapes.absolute()
            document([_fields(row, str(tapes / row.folder)) for row in shown])
            return
    say(lines(shown, now(), columns()))
    if not chosen:
        warn("no tape to list; `tape new` makes one")
    elif len(chosen) > len(shown) and limit is None:
        warn(f"these are the newest {len(shown)}; --all lists every tape")


def listed(
    opened: Library, project: str | None, since: str | None, sort: str, most: int | None
) -> list[TapeRow]:
    """Return the tapes that were asked for, in order; one more than `most` if there are more."""
    if project is None and since is None and sort == "updated":
        return rows(*opened, limit=None if most is None else most + 1)
    oldest = since_when(since) if since else ""
    root = os.path.abspath(project) if project else None  # noqa: PTH100 (as tapes keep it)
    chosen = [row for row in rows(*opened) if row.updated >= oldest and _is_below(row, root)]
    return sorted(chosen, key=_SORTS[sort], reverse=True)


def since_when(text: str) -> str:
    """Return the time a text means, as it stands on a tape: an age such as 2d, or a UTC date."""
    ago = _AGO.match(text)
    if ago:
        return stamp(max(now() - int(ago[1]) * _SECONDS[ago[2]] * 1_000_000, 0))
    if _DATE.match(text):
        return text.replace(" ", "T")
    raise UsageError(f"--since {text!r} is no time: write 30m, 2h, 3d, 1w or 2026-11-21")


def _is_below(row: TapeRow, root: str | None) -> bool:
    places = (row.cwd, row.project or row.cwd)
    return root is None or any(f"{place}/".startswith(f"{root.rstrip('/')}/") for place in places)


def _fields(row: TapeRow, path: str) -> dict[str, object]:
    fields: dict[str, object] = msgspec.structs.asdict(row)
    return {"id": fields.pop("id"), "path": path, **fields}


def lines(shown: list[TapeRow], time: int, wide: int) -> list[str]:
    """Return tapes as a table with a heading; titles give way so that a row fits."""
    if not shown:
        return []
    cells = [
        (
            row.id[:SHORT],
            age(time - micros(row.updated)),
            fitted(row.title or "–", 60),
            fitted(row.model or "–", 30),
            str(row.entries),
            str(row.branches),
            "–" if row.cost is None else f"${row.cost:.2f}",
        )
        for row in shown
    ]
    heading = ("ID", "AGE", "TITLE", "MODEL", "ENTRIES", "BRANCHES", "COST")
    over = max(map(len, table([heading, *cells], _RIGHT))) - wide
    if over > 0:
        room = max(max(len(row[2]) for row in cells) - over, 12)
        cells = [(*row[:2], fitted(row[2], room), *row[3:]) for row in cells]
    return table([heading, *cells], _RIGHT)


_RIGHT = (1, 4, 5, 6)


def age(passed: int) -> str:
    """Return microseconds as people say how long ago something was."""
    seconds = max(passed, 0) // 1_000_000
    for unit in ("y", "w", "d", "h", "m"):
        if seconds >= _SECONDS[unit]:
            return f"{seconds // _SECONDS[unit]}{unit}"
    return f"{seconds}s"
