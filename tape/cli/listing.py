"""`ls` and `search`: the tapes of a store, and full text over all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..clock import read_clock
from ..index.library import list_tapes
from ..index.library import search_entries as search_in
from .list_view import (
    SORTS,
    TAPE_LIMIT,
    count_needed,
    find_first_project,
    may_have_moved,
    print_tape_objects,
    print_tapes,
    select_tapes,
)
from .output import CountedCommand, CountType, as_json, format_examples
from .resolve import (
    get_current_folder,
    open_library,
    warn_of_left_out,
    warn_of_moved_project,
)
from .search_view import (
    HIT_LIMIT,
    parse_search_options,
    print_hit_objects,
    print_hits,
    warn_of_no_hits,
)
from .terminal import print_warning
from .timeparse import TIME_FORMS

if TYPE_CHECKING:
    from .group import GlobalOptions


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
    "--here", is_flag=True, help="Only tapes of this repository; outside of one, of this folder."
)
@click.option("--project", metavar="FOLDER", help="Only tapes of this folder or below.")
@click.option("--since", metavar="TIME", help=f"Only tapes used since: {TIME_FORMS}.")
@click.option("--until", metavar="TIME", help="Only tapes last used before this time.")
@click.option("-n", "--limit", type=CountType(), metavar="N", help="At most N tapes.")
@click.option(
    "--sort",
    type=click.Choice(list(SORTS)),
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
    since: str | None,
    until: str | None,
    limit: int | None,
    sort: str | None,
    as_json: bool,
) -> int:
    """List tapes, newest first: short id, age, folder, title, model, entries, branches, cost.

    Those of this repository, or folder, come before the others; not with --sort and --json. A
    narrow terminal gets fewer columns.

    Unreadable tapes are named on standard error; exits with 1 when the system refused to read one.

    --json prints an array of {id, path, folder, title, cwd, project, created, updated, model,
    entries, branches, cost}.
    """
    most = limit if limit is not None else None if every else TAPE_LIMIT
    told = {"project": project, "since": since, "until": until, "sort": sort}
    given = {name: text for name, text in told.items() if text}
    given |= {name: "" for name, is_given in (("here", here), ("json", as_json)) if is_given}
    first = find_first_project(given)
    if here and first is None:
        get_current_folder()  # raises
    if limit is not None:
        given["limit"] = str(limit)
    needed = count_needed(given, most)
    with open_library(options) as opened:
        found = list_tapes(*opened, limit=None if needed < 0 else needed)
        if first is not None and len(found) == needed:  # there may be older ones
            found = list_tapes(*opened)
        chosen = select_tapes(found, given, read_clock(), first)
        if as_json:
            print_tape_objects(chosen[:most], str(opened.store.tapes.absolute()))
            return warn_of_left_out(opened).code
        print_tapes(chosen, most, given)
        if first is not None and may_have_moved(found, first):
            warn_of_moved_project(opened)
        lacking = warn_of_left_out(opened)
        if not chosen and not lacking.tapes:
            print_warning("no tape to list; `tape new` makes one")
        return lacking.code


@click.command(
    cls=CountedCommand,
    epilog=format_examples(
        "tape search login page",
        "tape search '\"connection refused\" -redis' --since 1w",
        "tape search src/auth/login.py:42 --type tool.result --project .",
        "tape search 'timeout OR deadline*' -n 5 --json",
        "tape search --type user --since 1d",
    ),
)
@click.argument("query", nargs=-1)
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
@click.option(
    "-q", "--quiet", is_flag=True, help="Print nothing; exit with 1 when nothing is found."
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
    quiet: bool,
    as_json: bool,
) -> int:
    """Search prompts, answers, tool calls and the beginning of their results.

    All words must match; "a phrase" matches exactly, -word excludes, word* matches a prefix, one OR
    two matches either. Everything else is literal: paths, identifiers, foo->bar. For Chinese,
    Japanese and Korean, any adjacent characters match. The best hits come first. Without words, the
    newest entries that the options leave are listed.

    --model takes any part of PROVIDER/MODEL; it finds the answers of matching models and the other
    entries of tapes where one answered.

    --json prints an array of {tape, title, folder, phase, offset, entry, n, time, type, branch,
    snippet, marks, score, prompt}; marks are the start and end, in characters, of each match in
    the snippet, prompt is the {entry, text} that led to it, or null.
    """
    told = {"project": project, "model": model, "since": since, "until": until}
    given = {name: text for name, text in told.items() if text is not None}
    with open_library(options) as opened:
        narrow = parse_search_options(read_clock(), given)
        matches = search_in(*opened, " ".join(query), types=types, limit=limit, **narrow)
        if quiet:
            return int(not matches)
        hits = [(match, match.snippet, match.marks, match.prompt) for match in matches]
        print_hit_objects(hits) if as_json else print_hits(hits)
        if not matches:
            warn_of_no_hits(" ".join(query))
        return warn_of_left_out(opened).code
