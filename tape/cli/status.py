"""`status`: where you are, in a few lines: tape, branch, head, and what was left unfinished."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import Struct

from ..clock import render_time
from ..history.entry_lines import decode_legible, iter_lines, read_work_folder
from ..model.entries import Assistant, ToolResult, ToolStart, User, select_tool_calls
from ..model.line import describe_blob_head
from ..store.leftovers import find_tape_leftovers
from ..store.locks import is_lock_held
from ..text import SHORT, format_count, to_single_line
from .output import as_json, format_examples, print_json, ref
from .resolve import open_ref
from .terminal import format_table, print_lines, style_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..store.refs import Head
    from ..store.tape import Tape
    from .group import GlobalOptions


class UnansweredCall(Struct, frozen=True):
    """A call without a result."""

    call_id: str
    name: str
    started: bool
    """Whether its tool began, so that it may have done its work."""


class TapeStatus(Struct, frozen=True):
    """Where a tape stands, as `status --json` prints it."""

    tape: str
    title: str | None
    cwd: str
    branch: str
    current: bool
    branches: int
    entry: str
    n: int
    time: str
    type: str
    writing: bool
    """Whether a process is writing the branch now."""
    calls: tuple[UnansweredCall, ...]
    torn_bytes: int
    """Bytes behind the head that are no complete entry."""
    leftovers: tuple[str, ...]
    """Unfinished files that a killed program left in the tape's folder."""


@click.command(epilog=format_examples("tape status", "tape status 3f2a --json"))
@ref
@as_json
@click.pass_obj
def status(options: GlobalOptions, ref: str, as_json: bool) -> None:
    """Show the state of a tape: branch, head, and what was left unfinished.

    Nothing waits to be committed: every entry is recorded as it happens. Unfinished are calls
    without a result, and what a killed program left. --json prints {tape, title, cwd, branch,
    current, branches, entry, n, time, type, writing, calls, torn_bytes, leftovers}.
    """
    with open_ref(options, ref) as place:
        state = read_status(place.tape, place.head or place.tape.head(place.branch))
    print_json(state) if as_json else print_lines(describe_status(state))


def read_status(tape: Tape, head: Head) -> TapeStatus:
    """Return the state of a tape at a head."""
    refs, at = tape.refs(), head.header
    return TapeStatus(
        tape=tape.id,
        title=tape.title(),
        cwd=read_work_folder(tape, head)[0],
        branch=head.branch,
        current=head.branch == refs.current,
        branches=len(refs.branches),
        entry=at.id,
        n=at.n,
        time=at.time,
        type=at.type,
        writing=is_lock_held(tape.folder, head.branch),
        calls=tuple(find_unanswered_calls(tape, head)),
        torn_bytes=head.torn,
        leftovers=tuple(leftover.path for leftover in find_tape_leftovers(tape)),
    )


def find_unanswered_calls(tape: Tape, head: Head) -> list[UnansweredCall]:
    """Return the calls of the newest answer that have no result; none before a later prompt."""
    answered, started = set[str](), set[str]()
    for step in decode_legible(iter_lines(tape.path(head), back=True), describe_blob_head):
        match step.entry.data:
            case ToolResult(call_id=call):
                answered.add(call)
            case ToolStart(call_id=call):
                started.add(call)
            case User():
                return []
            case Assistant(content=content):
                calls = select_tool_calls(content)
                return [
                    UnansweredCall(call.id, call.name, call.id in started)
                    for call in calls
                    if call.id not in answered
                ]
            case _:
                pass
    return []


def describe_status(status: TapeStatus) -> Iterator[str]:
    """Yield a status as text."""
    others = f"; {format_count(status.branches, 'branch')}" if status.branches > 1 else ""
    is_current = "" if status.current else ", not the current one"
    facts = [
        ("tape", f"{status.tape[:SHORT]}  {status.title or '–'}"),
        ("folder", status.cwd or "–"),
        ("branch", f"{status.branch}{is_current}{others}"),
        (
            "head",
            f"{status.entry[:SHORT]}  {status.type} {status.n}, {render_time(status.time)}",
        ),
    ]
    yield from format_table([(style_text(k, bold=True), to_single_line(v)) for k, v in facts])
    left = [*_describe_leftovers(status)]
    if status.writing:
        yield f"a process is writing {status.branch} now"
    elif not left:
        yield "nothing was left unfinished"
    yield from map(to_single_line, left)


def _describe_leftovers(status: TapeStatus) -> Iterator[str]:
    for call in status.calls:
        outcome = "its outcome is unknown" if call.started else "it never ran"
        yield (
            f"no result yet: {call.name} {call.call_id}"
            if status.writing
            else (f"no result: {call.name} {call.call_id}; {outcome}")
        )
    if status.torn_bytes and not status.writing:
        count_text = format_count(status.torn_bytes, "byte")
        yield f"incomplete: {count_text} behind the head; the next writer moves them to quarantine"
    for path in status.leftovers:
        yield f"unfinished: {path}; `tape gc` removes it"
