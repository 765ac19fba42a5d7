"""`search`: full text over all tapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from ..clock import read_clock
from ..index import search_entries as search_in
from .call import open_library, warn_of_left_out
from .hits import HIT_LIMIT, parse_search_options, print_hits, warn_of_no_hits
from .out import CountType, as_json, format_examples, print_json
from .since import TIME_FORMS

if TYPE_CHECKING:
    from .group import GlobalOptions


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
