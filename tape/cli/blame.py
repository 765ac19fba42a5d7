"""`blame`: which entry, tape and prompt last changed each line of a file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..blame.commit import LOG_REF, TRACE_REF, write_notes
from ..blame.history import blame_file as blamed
from ..clock import render_time
from ..errors import UsageError
from ..text import SHORT, format_count, measure_width, shorten_to_width, show_controls
from .environment import get_current_folder
from .output import as_json, format_examples, print_json
from .resolve import open_library
from .terminal import (
    format_table,
    get_columns,
    print_lines,
    print_warning,
    show_progress,
    style_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..blame.history import BlamedFile, ChangeCause
    from ..blame.replay import BlamedRange
    from .group import GlobalOptions

_RANGE_PATTERN = re.compile(r"([0-9]{1,9})?(?:(,)(\+)?([0-9]{1,9})?)?\Z")
_NO_ENTRY = "-" * SHORT
_PROMPT_COLUMNS = 32
"""Columns for a prompt beside a line."""


@click.command(
    epilog=format_examples(
        "tape blame src/auth.py",
        "tape blame src/auth.py -L 40,60 --prompt",
        "tape blame src/auth.py --ranges",
        "tape blame src/auth.py --json",
    )
)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "-L",
    "part",
    metavar="A,B",
    default="",
    help="Show only lines A to B; also A,+COUNT or A, or ,B.",
)
@click.option("--prompt", "with_prompt", is_flag=True, help="Show the prompt beside each line.")
@click.option("--ranges", "grouped", is_flag=True, help="Show one line per range, with its prompt.")
@click.option("--notes", metavar="COMMIT", help="Note on a git commit who wrote its new lines.")
@as_json
@click.pass_obj
def blame(
    options: GlobalOptions,
    file: Path | None,
    part: str,
    with_prompt: bool,
    grouped: bool,
    notes: str | None,
    as_json: bool,
) -> None:
    """Show which entry of which tape last changed each line of FILE, from edits on all branches.

    Each line reads: entry, tape, time, number, text. `^` before an entry: it wrote the whole
    file and the earlier content is unknown, so the line may be older. `?`: it is unknown whether
    that call ran, or only part of its text is still there. A line without an entry was changed
    outside the tapes (in an editor, or by a command), or was there before.

    --json prints an array of {first, last, tape, branch, entry, time, model, prompt, op, certain,
    why}; for lines that no tape explains all but the first two are null.

    --notes writes two git notes of COMMIT, for tools that read them: git-ai's log 3.0.0 in
    refs/notes/ai, and Agent Trace 0.1.0 in refs/notes/agent-trace. They say which lines that it
    adds are from which session and call, with no word of a prompt. A note of another program is
    never replaced. --json prints {commit, added, noted [{path, lines, tape, entry, tool, session,
    model, mixed}]}.
    """
    if notes is not None:
        if file is not None or part or with_prompt or grouped:
            raise UsageError("--notes is about a whole commit: give no FILE, and no other option")
        _write_notes(options, notes, as_json=as_json)
        return
    if file is None:
        raise click.UsageError("Missing argument 'FILE'.")
    with open_library(options) as (store, index), show_progress("tapes read:") as show:
        found = blamed(store, index, Path(get_current_folder()) / file, print_warning, show)
    first, last = parse_range(part, len(found.lines))
    if as_json:
        print_json([_build_range_fields(one) for one in _clip_ranges(found.ranges, first, last)])
        return
    print_lines(
        format_ranges(found, first, last)
        if grouped
        else format_blamed_lines(found, first, last, with_prompt)
    )
    nobody = sum(
        one.last - one.first + 1
        for one in _clip_ranges(found.ranges, first, last)
        if one.by is None
    )
    if nobody:
        lines, verb = format_count(nobody, "line"), "is" if nobody == 1 else "are"
        print_warning(
            f"{lines} of {last - first + 1} {verb} not explained by any tape: "
            "changed outside, or there before"
        )


def _write_notes(options: GlobalOptions, commit: str, *, as_json: bool) -> None:
    """Write the notes of a commit, and say what they hold."""
    folder = get_current_folder()
    with open_library(options) as (store, index), show_progress("tapes read:") as show:
        done = write_notes(store, index, folder, commit, print_warning, show)
    if as_json:
        rows = [
            {
                "path": one.path,
                "lines": one.lines,
                "tape": one.session.tape,
                "entry": one.entry,
                "tool": one.session.tool,
                "session": one.session.id,
                "model": one.session.model,
                "mixed": one.is_mixed,
            }
            for one in done.noted
        ]
        print_json({"commit": done.commit, "added": done.added, "noted": rows})
        return
    if not done.noted:
        print_lines([f"no tape explains a line of {done.commit[:12]}: nothing was written"])
        return
    known = sum(len(one.lines) for one in done.noted)
    files = format_count(len({one.path for one in done.noted}), "file")
    print_lines(
        [
            f"{done.commit[:12]}: {known} of {format_count(done.added, 'new line')} in {files}",
            f"written to {LOG_REF} and {TRACE_REF}; `git push origin 'refs/notes/*'` shares them",
        ]
    )


def parse_range(text: str, count: int) -> tuple[int, int]:
    """Return the first and last line number that `-L` selects in a file of `count` lines."""
    asked = _RANGE_PATTERN.match(text)
    if asked is None:
        raise UsageError(f"-L {text!r} is not a range of lines: write 40,60 or 40,+20 or 40,")
    first = int(asked[1] or 1)
    last = count if asked[4] is None else int(asked[4]) + (first - 1 if asked[3] else 0)
    if text and not 1 <= first <= min(last, count):
        raise UsageError(f"-L {text}: the file has {format_count(count, 'line')}")
    return first, min(last, count)


def _clip_ranges(
    ranges: list[BlamedRange[ChangeCause]], first: int, last: int
) -> Iterator[BlamedRange[ChangeCause]]:
    """Yield the parts of the ranges that lie between two lines."""
    for one in ranges:
        if one.first <= last and one.last >= first:
            yield one._replace(first=max(one.first, first), last=min(one.last, last))


def _build_range_fields(one: BlamedRange[ChangeCause]) -> dict[str, object]:
    by = one.by
    return {
        "first": one.first,
        "last": one.last,
        "tape": by and by.tape,
        "branch": by and by.branch,
        "entry": by and by.entry,
        "time": by and by.time,
        "model": by and by.model,
        "prompt": by and by.prompt,
        "op": by and by.op,
        "certain": None if by is None else one.doubt is None,
        "why": one.doubt,
    }


def format_blamed_lines(
    found: BlamedFile, first: int, last: int, with_prompt: bool
) -> Iterator[str]:
    """Yield each line of a file after its origin; an origin that repeats is dimmed."""
    wide = len(str(last))
    for one in _clip_ranges(found.ranges, first, last):
        for line in range(one.first, one.last + 1):
            head = f"{_format_range_entry(one)} {_format_range_tape(one)} {_format_range_time(one)}"
            if with_prompt:
                told = (one.by and one.by.prompt) or ""
                prompt = shorten_to_width(told, _PROMPT_COLUMNS)
                head += f"  {prompt}{' ' * (_PROMPT_COLUMNS - measure_width(prompt))}"
            looks = {"fg": "yellow"} if line == one.first else {"dim": True}
            text = show_controls(found.lines[line - 1])
            yield f"{style_text(head, **looks)} {line:>{wide}}) {text}".rstrip()


_MIN_PROMPT_COLUMNS = 20


def format_ranges(found: BlamedFile, first: int, last: int) -> list[str]:
    """Return the ranges as a table; the prompt takes the columns that are left."""
    rows = [
        (
            f"{one.first}-{one.last}" if one.last > one.first else str(one.first),
            _format_range_entry(one),
            f"{_format_range_tape(one)}:{one.by.branch}" if one.by else "",
            _format_range_time(one),
            one.by.op if one.by else "",
            shorten_to_width(one.by.model or "–", 30) if one.by else "",
        )
        for one in _clip_ranges(found.ranges, first, last)
    ]
    prompts = [(one.by and one.by.prompt) or "" for one in _clip_ranges(found.ranges, first, last)]
    if not rows:
        return []
    least = "." * _MIN_PROMPT_COLUMNS
    heading, *lines = format_table(
        [(*row, least) for row in rows],
        right=(0,),
        headings=("LINES", "ENTRY", "TAPE", "TIME", "OP", "MODEL", "PROMPT"),
        optional=("MODEL", "OP", "TIME", "TAPE"),
    )
    room = max(get_columns() - max(map(measure_width, lines)), 0) + len(least)
    return [
        heading,
        *(
            (
                line.removesuffix(least) + style_text(shorten_to_width(prompt, room), bold=True)
            ).rstrip()
            for line, prompt in zip(lines, prompts, strict=True)
        ),
    ]


def _format_range_entry(one: BlamedRange[ChangeCause]) -> str:
    """Return the short id of an entry, one digit less after a mark for an uncertain origin."""
    if one.by is None:
        return _NO_ENTRY
    if one.doubt is None:
        return one.by.entry[:SHORT]
    return ("^" if one.is_older else "?") + one.by.entry[: SHORT - 1]


def _format_range_tape(one: BlamedRange[ChangeCause]) -> str:
    return one.by.tape[:SHORT] if one.by else " " * SHORT


def _format_range_time(one: BlamedRange[ChangeCause]) -> str:
    return render_time(one.by.time)[:16] if one.by else " " * 16
