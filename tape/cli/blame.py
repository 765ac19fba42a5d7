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
    outside the tapes (in an editor, or by a command), or was there before. What the tapes of this
    checkout do not explain may come from another one of its repository, whose tapes count too.

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
        blame_of_file = blamed(store, index, Path(get_current_folder()) / file, print_warning, show)
    first, last = parse_range(part, len(blame_of_file.lines))
    if as_json:
        print_json(
            [
                _build_range_fields(line_range)
                for line_range in _clip_ranges(blame_of_file.ranges, first, last)
            ]
        )
        return
    print_lines(
        format_ranges(blame_of_file, first, last)
        if grouped
        else format_blamed_lines(blame_of_file, first, last, with_prompt)
    )
    nobody = sum(
        line_range.last - line_range.first + 1
        for line_range in _clip_ranges(blame_of_file.ranges, first, last)
        if line_range.by is None
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
                "path": noted.path,
                "lines": noted.lines,
                "tape": noted.session.tape,
                "entry": noted.entry,
                "tool": noted.session.tool,
                "session": noted.session.id,
                "model": noted.session.model,
                "mixed": noted.is_mixed,
            }
            for noted in done.noted
        ]
        print_json({"commit": done.commit, "added": done.added, "noted": rows})
        return
    if not done.noted:
        print_lines([f"no tape explains a line of {done.commit[:12]}: nothing was written"])
        return
    known = sum(len(noted.lines) for noted in done.noted)
    files = format_count(len({noted.path for noted in done.noted}), "file")
    print_lines(
        [
            f"{done.commit[:12]}: {known} of {format_count(done.added, 'new line')} in {files}",
            f"written to {LOG_REF} and {TRACE_REF}; `git push origin 'refs/notes/*'` shares them",
        ]
    )


def parse_range(text: str, count: int) -> tuple[int, int]:
    """Return the first and last line number that `-L` selects in a file of `count` lines."""
    match = _RANGE_PATTERN.match(text)
    if match is None:
        raise UsageError(f"-L {text!r} is not a range of lines: write 40,60 or 40,+20 or 40,")
    first = int(match[1] or 1)
    last = count if match[4] is None else int(match[4]) + (first - 1 if match[3] else 0)
    if text and not 1 <= first <= min(last, count):
        raise UsageError(f"-L {text}: the file has {format_count(count, 'line')}")
    return first, min(last, count)


def _clip_ranges(
    ranges: list[BlamedRange[ChangeCause]], first: int, last: int
) -> Iterator[BlamedRange[ChangeCause]]:
    """Yield the parts of the ranges that lie between two lines."""
    for line_range in ranges:
        if line_range.first <= last and line_range.last >= first:
            yield line_range._replace(
                first=max(line_range.first, first), last=min(line_range.last, last)
            )


def _build_range_fields(line_range: BlamedRange[ChangeCause]) -> dict[str, object]:
    by = line_range.by
    return {
        "first": line_range.first,
        "last": line_range.last,
        "tape": by and by.tape,
        "branch": by and by.branch,
        "entry": by and by.entry,
        "time": by and by.time,
        "model": by and by.model,
        "prompt": by and by.prompt,
        "op": by and by.op,
        "certain": None if by is None else line_range.doubt is None,
        "why": line_range.doubt,
    }


def format_blamed_lines(
    blamed_file: BlamedFile, first: int, last: int, with_prompt: bool
) -> Iterator[str]:
    """Yield each line of a file after its origin; an origin that repeats is dimmed."""
    wide = len(str(last))
    columns = (_format_range_entry, _format_range_tape, _format_range_time)
    for line_range in _clip_ranges(blamed_file.ranges, first, last):
        for line in range(line_range.first, line_range.last + 1):
            head = " ".join(column(line_range) for column in columns)
            if with_prompt:
                prompt_text = (line_range.by and line_range.by.prompt) or ""
                prompt = shorten_to_width(prompt_text, _PROMPT_COLUMNS)
                head += f"  {prompt}{' ' * (_PROMPT_COLUMNS - measure_width(prompt))}"
            looks = {"fg": "yellow"} if line == line_range.first else {"dim": True}
            text = show_controls(blamed_file.lines[line - 1])
            yield f"{style_text(head, **looks)} {line:>{wide}}) {text}".rstrip()


_MIN_PROMPT_COLUMNS = 20


def format_ranges(blamed_file: BlamedFile, first: int, last: int) -> list[str]:
    """Return the ranges as a table; the prompt takes the columns that are left."""
    rows = [
        (
            f"{line_range.first}-{line_range.last}"
            if line_range.last > line_range.first
            else str(line_range.first),
            _format_range_entry(line_range),
            f"{_format_range_tape(line_range)}:{line_range.by.branch}" if line_range.by else "",
            _format_range_time(line_range),
            line_range.by.op if line_range.by else "",
            shorten_to_width(line_range.by.model or "–", 30) if line_range.by else "",
        )
        for line_range in _clip_ranges(blamed_file.ranges, first, last)
    ]
    prompts = [
        (line_range.by and line_range.by.prompt) or ""
        for line_range in _clip_ranges(blamed_file.ranges, first, last)
    ]
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


def _format_range_entry(line_range: BlamedRange[ChangeCause]) -> str:
    """Return the short id of an entry, one digit less after a mark for an uncertain origin."""
    if line_range.by is None:
        return _NO_ENTRY
    if line_range.doubt is None:
        return line_range.by.entry[:SHORT]
    return ("^" if line_range.is_older else "?") + line_range.by.entry[: SHORT - 1]


def _format_range_tape(line_range: BlamedRange[ChangeCause]) -> str:
    return line_range.by.tape[:SHORT] if line_range.by else " " * SHORT


def _format_range_time(line_range: BlamedRange[ChangeCause]) -> str:
    return render_time(line_range.by.time)[:16] if line_range.by else " " * 16
