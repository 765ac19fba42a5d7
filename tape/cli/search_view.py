"""`search`: full text over all tapes.

Nothing is imported that reads tapes, but where the index has to catch up with them first.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from ..clock import read_clock, render_time
from ..errors import UsageError
from ..index.search import search_caught_up
from ..index.tape_filter import EVERY_TAPE
from ..text import SHORT, measure_width, shorten_to_width, show_controls
from .environment import find_store_home
from .listing import AGENT_COLUMNS
from .output import CountedCommand, CountType, as_json, format_examples
from .tape_facts import choose_by_facts
from .terminal import (
    NARROW_COLUMNS,
    get_columns,
    print_json_text,
    print_lines,
    print_warning,
    style_text,
)
from .timeparse import TIME_FORMS, parse_moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..index.full_text import SearchFilter
    from ..index.search import SearchMatch
    from ..index.tape_filter import TapeFilter
    from .group import GlobalOptions

HIT_LIMIT = 20
"""How many entries are shown by default."""

_TITLE_COLUMNS, _MIN_TITLE_COLUMNS = 40, 6


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
@choose_by_facts
@click.option(
    "--model",
    metavar="NAME",
    help="Only answers of matching models, and the other entries of their tapes.",
)
@click.option("--remote", metavar="NAME", help="Search all tapes at this remote: PostgreSQL only.")
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
    "-q", "--quiet", is_flag=True, help="Print nothing: the exit code says whether there is a hit."
)
@as_json
@click.pass_obj
def search(
    options: GlobalOptions,
    *,
    query: tuple[str, ...],
    types: tuple[str, ...],
    project: str | None,
    tapes: TapeFilter,
    model: str | None,
    remote: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    quiet: bool,
    as_json: bool,
) -> int:
    """Search prompts, answers, tool calls and the beginning of their results.

    Of a result that is kept beside its entry, as large ones are, 200,000 characters are searched,
    of any other the first 1,000.

    All words must match; "a phrase" matches exactly, -word excludes, word* matches a prefix, one OR
    two matches either. Everything else is literal: paths, identifiers, foo->bar. For Chinese,
    Japanese and Korean, any adjacent characters match. The best hits come first. Without words, the
    newest entries that the options leave are listed. Exits with 1 when nothing is found, as grep
    does.

    --remote searches what was pushed to a remote in PostgreSQL, pulled or not: whole words, the
    newest first. --project takes a repository there, too.

    --model takes any part of PROVIDER/MODEL; it finds the answers of matching models and the other
    entries of tapes where one answered.

    --json prints an array of {tape, title, folder, phase, offset, entry, n, time, type, branch,
    snippet, marks, score, cwd, repository, person, machine, agent, prompt}; marks are the start
    and end, in characters, of each match in the snippet, prompt is the {entry, text} that led to
    it, or null; cwd to agent are of the tape. With --remote an object has {tape, entry, time, type,
    head, title, project, person, machine}.
    """
    words, now = " ".join(query), read_clock()
    narrow: SearchFilter = {
        "types": types,
        "project": os.path.abspath(project) if project and not remote else project,
        "model": model,
        "since": parse_moment(since, now) if since else None,
        "until": parse_moment(until, now) if until else None,
        "tapes": tapes,
    }

    if remote is not None:
        if model or tapes != EVERY_TAPE:
            raise UsageError("--remote goes with --type, --project, --since and --until only")
        from .remote_search import search_remote

        return search_remote(options, remote, words, limit, narrow, is_json=as_json, is_quiet=quiet)

    def show(matches: Sequence[SearchMatch]) -> int:
        if not quiet:
            _print_hit_objects(matches) if as_json else _print_hits(matches)
            if not matches:
                print_warning(f"nothing found for {words!r}" if words else "nothing found")
        return int(not matches)

    matches = search_caught_up(find_store_home(options.store), words, limit, **narrow)
    if matches is not None:
        return show(matches)
    from ..index.library import search_entries  # most searches read no tape
    from .resolve import open_library, warn_of_left_out

    with open_library(options) as opened:
        matches = search_entries(*opened, words, limit=limit, **narrow)
        code = show(matches)
        return code if quiet else max(code, warn_of_left_out(opened).code)


def _print_hit_objects(hits: Sequence[SearchMatch]) -> None:
    """Print hits as a JSON array."""
    print_json_text(
        [
            {name: getattr(hit, name) for name in _OBJECT_KEYS}
            | {"prompt": hit.prompt and hit.prompt._asdict()}
            for hit in hits
        ]
    )


_OBJECT_KEYS = (
    "tape", "title", "folder", "phase", "offset", "entry", "n", "time", "type", "branch",
    "snippet", "marks", "score", "cwd", "repository", "person", "machine", "agent",
)  # fmt: skip


def _render_heading(hit: SearchMatch, wide: int | None) -> str:
    """Return where a hit is, in a row of `wide` columns: the title gives way, then the time."""
    place = f"{hit.tape[:SHORT]}@{hit.entry[:SHORT]}"
    facts = [render_time(hit.time), shorten_to_width(hit.agent or "–", AGENT_COLUMNS), hit.type]
    if wide is not None and wide < NARROW_COLUMNS:
        del facts[0]
    rest = "  ".join(["", *facts])
    room = _TITLE_COLUMNS if wide is None else wide - len(place) - measure_width(rest) - 2
    heading = f"{style_text(place, fg='yellow')}{rest}"
    if hit.title and room >= _MIN_TITLE_COLUMNS:
        heading += f"  {shorten_to_width(hit.title, min(room, _TITLE_COLUMNS))}"
    return heading


def _print_hits(hits: Sequence[SearchMatch]) -> None:
    """Print hits, each with an excerpt and its marks, and the prompt that led to it."""
    lines, wide = [], get_columns()
    for hit in hits:
        lines.append(_render_heading(hit, wide if sys.stdout.isatty() else None))
        text, at = "    ", 0
        for start, end in hit.marks:
            text += show_controls(hit.snippet[at:start])
            text += style_text(show_controls(hit.snippet[start:end]), bold=True)
            at = end
        lines.append(text + show_controls(hit.snippet[at:]))
        if hit.prompt is not None:
            prompt = f"prompt {hit.prompt.entry[:SHORT]}: {hit.prompt.text}"
            question = shorten_to_width(prompt, wide - 4)
            lines.append(f"    {style_text(question, dim=True)}")
    print_lines(lines)
