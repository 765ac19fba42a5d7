"""`ls` and `search`: the tapes of a store, and full text over all of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec.structs import asdict

from ..clock import read_clock
from ..index.library import list_tapes
from ..index.library import search_entries as search_in
from .list_view import TAPE_LIMIT, print_tapes
from .output import CountType, as_json, format_examples, print_json
from .resolve import open_library, warn_of_left_out
from .search_view import HIT_LIMIT, parse_search_options, print_hits, warn_of_no_hits
from .terminal import print_warning
from .timeparse import TIME_FORMS, parse_moment

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..index.library import Library
    from ..index.tables import TapeRow
    from .group import GlobalOptions


_SORTS: dict[str, Callable[[TapeRow], Any]] = {
    "updated": lambda row: row.updated,
    "created": lambda row: row.created,
    "title": lambda row: (row.title or "").casefold(),
    "entries": lambda row: row.entries,
    "branches": lambda row: row.branches,
    "cost": lambda row: row.cost or 0.0,
}


@click.command(
    epilog=format_examples(
        "tape ls",
        "tape ls --since 2d --project .",
        "tape ls --since 2026-11-01 --until 2026-12-01",
        "tape ls --all --sort cost --json",
    )
)
@click.option(
    "--all", "every", is_flag=True, help=f"List all tapes, not only the newest {TAPE_LIMIT}."
)
@click.option("--project", metavar="FOLDER", help="Only tapes of this folder or below.")
@click.option("--since", metavar="TIME", help=f"Only tapes used since: {TIME_FORMS} (UTC).")
@click.option("--until", metavar="TIME", help="Only tapes last used before this time.")
@click.option("-n", "--limit", type=CountType(), metavar="N", help="At most N tapes.")
@click.option(
    "--sort",
    type=click.Choice(list(_SORTS)),
    default="updated",
    show_default=True,
    help="Largest or newest first; titles by the alphabet.",
)
@as_json
@click.pass_obj
def ls(
    options: GlobalOptions,
    every: bool,
    project: str | None,
    since: str | None,
    until: str | None,
    limit: int | None,
    sort: str,
    as_json: bool,
) -> int:
    """List tapes, newest first: short id, age, title, model, entries, branches, cost.

    Unreadable tapes are named on standard error; exits with 1 when the system refused to read one.

    --json prints an array of {id, path, folder, title, cwd, project, created, updated, model,
    entries, branches, cost}.
    """
    most = limit if limit is not None else None if every else TAPE_LIMIT
    wanted = TapeFilter(
        project=os.path.abspath(project) if project else None,  # noqa: PTH100 (as tapes keep it)
        since=parse_moment(since, read_clock()) if since else "",
        until=parse_moment(until, read_clock()) if until else None,
        sort=sort,
    )
    with open_library(options) as opened:
        chosen = select_tapes(opened, wanted, most)
        shown = chosen[:most]
        if as_json:
            tapes = opened.store.tapes.absolute()
            rows = [{"id": row.id, "path": str(tapes / row.folder), **asdict(row)} for row in shown]
            print_json(rows)
            return warn_of_left_out(opened).code
        told = [(r.id, r.updated, r.title, r.model, r.entries, r.branches, r.cost) for r in shown]
        cut = len(chosen) > len(shown) and limit is None
        print_tapes(told, cut=cut, first="newest" if sort == "updated" else "first")
        lacking = warn_of_left_out(opened)
        if not chosen and not lacking.tapes:
            print_warning("no tape to list; `tape new` makes one")
        return lacking.code


class TapeFilter(NamedTuple):
    """Which tapes are listed, and in what order."""

    project: str | None = None
    """Absolute path of a folder."""
    since: str = ""
    """Tape time, included; `until` is excluded."""
    until: str | None = None
    sort: str = "updated"


def select_tapes(opened: Library, wanted: TapeFilter, most: int | None) -> list[TapeRow]:
    """Return the tapes that match, in order; one more than `most` if there are more."""
    if wanted == TapeFilter():
        return list_tapes(*opened, limit=None if most is None else most + 1)
    chosen = list_tapes(*opened)
    if wanted.project is not None:
        above = f"{wanted.project.rstrip('/')}/"
        chosen = [
            row
            for row in chosen
            if any(f"{place}/".startswith(above) for place in (row.cwd, row.project or row.cwd))
        ]
    chosen = [
        row
        for row in chosen
        if wanted.since <= row.updated and (wanted.until is None or row.updated < wanted.until)
    ]
    return sorted(chosen, key=_SORTS[wanted.sort], reverse=wanted.sort != "title")


@click.command(
    epilog=format_examples(
        "tape search login page",
        "tape search '\"connection refused\" -redis' --since 1w",
        "tape search src/auth/login.py:42 --type tool.result --project .",
        "tape search 'timeout OR deadline*' -n 5 --json",
    )
)
@click.argument("query", nargs=-1, required=True)
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only entries of this type.")
@click.option("--project", metavar="FOLDER", help="Only tapes of this folder or below.")
@click.option(
    "--model",
    metavar="NAME",
    help="Only answers of matching models, and the other entries of their tapes.",
)
@click.option("--since", metavar="TIME", help=f"Only entries since this time: {TIME_FORMS}.")
@click.option("--until", metavar="TIME", help="Only entries before this time.")
@click.option(
    "-n",
    "--limit",
    type=CountType(1),
    default=HIT_LIMIT,
    show_default=True,
    metavar="N",
    help="At most N entries.",
)
@as_json
@click.pass_obj
def search(
    options: GlobalOptions,
    *,
    query: tuple[str, ...],
    types: tuple[str, ...],
    project: str | None,
    model: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    as_json: bool,
) -> int:
    """Search prompts, answers, tool calls and the beginning of their results.

    All words must match; "a phrase" matches exactly, -word excludes, word* matches a prefix, one OR
    two matches either. Everything else is literal: paths, identifiers, foo->bar. For Chinese,
    Japanese and Korean, any adjacent characters match. The best hits come first.

    --model takes any part of PROVIDER/MODEL; it finds the answers of matching models and the other
    entries of tapes where one answered.

    --json prints an array of {tape, title, folder, phase, offset, entry, n, time, type, branch,
    snippet, marks, score}; marks are the start and end, in characters, of each match in the
    snippet.
    """
    told = {"project": project, "model": model, "since": since, "until": until}
    given = {name: text for name, text in told.items() if text is not None}
    with open_library(options) as opened:
        narrow = parse_search_options(read_clock(), given)
        matches = search_in(*opened, " ".join(query), types=types, limit=limit, **narrow)
        if as_json:
            print_json([asdict(match) for match in matches])
        else:
            print_hits([(match, match.snippet, match.marks) for match in matches])
        if not matches:
            warn_of_no_hits(" ".join(query))
        return warn_of_left_out(opened).code
