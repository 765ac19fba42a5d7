"""`search`: full text over all tapes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from ..clock import now
from ..index import search as search_in
from ..text import SHORT, fitted, visible
from .call import library
from .out import as_json, document, examples, say, style, warn
from .since import FORMS, moment_of

if TYPE_CHECKING:
    from ..index.matching import Match
    from .group import Options

LIMIT = 20
"""Entries that are shown unless more are wanted."""
_TITLE = 40


@click.command(
    epilog=examples(
        "tape search login page",
        "tape search '\"connection refused\" -redis' --since 1w",
        "tape search src/auth/login.py:42 --type tool.result --project .",
        "tape search 'timeout OR deadline*' -n 5 --json",
    )
)
@click.argument("query", nargs=-1, required=True)
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only entries of this type.")
@click.option("--project", metavar="FOLDER", help="Only tapes of this folder or below.")
@click.option("--model", metavar="NAME", help="Only answers of such a model, and what led to them.")
@click.option("--since", metavar="TIME", help=f"Only entries since: {FORMS}.")
@click.option("--until", metavar="TIME", help="Only entries before.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    default=LIMIT,
    show_default=True,
    metavar="N",
    help="At most N entries.",
)
@as_json
@click.pass_obj
def search(
    options: Options,
    *,
    query: tuple[str, ...],
    types: tuple[str, ...],
    project: str | None,
    model: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Find words in prompts, answers, tool calls and the beginning of their results.

    All words have to be there; "a phrase" as it stands, -word must not be there, word* may go on,
    one OR two is either. All else means itself: paths, identifiers, foo->bar. Of Chinese, Japanese
    and Korean any characters that stand together are found. The best hits come first.

    --model takes any part of PROVIDER/MODEL, and shows the answers of such models and what else
    stands in tapes where one answered.

    --json prints an array of {tape, title, folder, phase, offset, entry, n, time, type, branch,
    snippet, marks, score}; marks are the starts and ends, in characters, of what was found.
    """
    time = now()
    with library(options) as opened:
        matches = search_in(
            *opened,
            " ".join(query),
            types=types,
            project=os.path.abspath(project) if project else None,  # noqa: PTH100 (as tapes keep it)
            model=model,
            since=moment_of(since, time) if since else None,
            until=moment_of(until, time) if until else None,
            limit=limit,
        )
    if as_json:
        document([asdict(match) for match in matches])
    else:
        say(line for match in matches for line in lines(match))
    if not matches:
        warn(f"nothing found for {' '.join(query)!r}")


def lines(match: Match) -> list[str]:
    """Return a hit as text: where it is, and what was found there."""
    place = style(f"{match.tape[:SHORT]}@{match.entry[:SHORT]}", fg="yellow")
    title = f"  {fitted(match.title, _TITLE)}" if match.title else ""
    return [f"{place}  {match.time[:16]}Z  {match.type}{title}", f"    {_emphasised(match)}"]


def _emphasised(match: Match) -> str:
    parts: list[str] = []
    at = 0
    for start, end in match.marks:
        found = style(visible(match.snippet[start:end]), bold=True)
        parts += [visible(match.snippet[at:start]), found]
        at = end
    return "".join([*parts, visible(match.snippet[at:])])
