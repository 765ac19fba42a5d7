"""The last turns of a session that is continued: what they looked like, and how they ended.

They are read from the tape and drawn as their events were, by the same screen.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tape.errors import TapeError
from tape.files.changes import list_file_changes
from tape.files.states import is_same_version
from tape.model.entries import (
    Anchor,
    Assistant,
    Error,
    Text,
    ToolResult,
    User,
    join_texts,
    select_tool_calls,
)
from tape.model.line import decode_line, read_type
from tape.text import format_count

from ...agent import events
from ...checkpoints.restore import look_at_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tape.model.line import Entry

    from ...agent.recorder import Recorder
    from .lines import StyledLine
    from .screen import Screen

_MAX_PATHS = 5


def read_last_turns(recorder: Recorder, turns: int) -> list[Entry]:
    """Return the entries of a branch from its Nth newest prompt on; damaged ones are left out."""
    entries: list[Entry] = []
    if turns < 1:
        return entries
    tape = recorder.tape
    for segment in tape.walk_path_back(recorder.head()):
        for _, line in segment.read_checked_lines_back(lambda _: None):
            entries.append(decode_line(line))
            turns -= read_type(line) == User.entry_type
            if not turns:
                return entries[::-1]
    return entries[::-1]


def render_last_turns(
    screen: Screen, entries: Sequence[Entry], columns: int
) -> Iterator[StyledLine]:
    """Yield the lines of some turns, as they stood on the screen, and how the last one ended."""
    for entry in entries:
        match entry.data:
            case User(content=content):
                yield from screen.prompt(join_texts(content))
            case Error(message=message):
                yield from screen.remark(message, "error")
            case Anchor(kind=kind):
                yield from screen.remark(f"{kind} · tape show {entry.id[:8]}")
            case data:
                for event in _build_events(entry, data):
                    yield from screen.show(event, columns)
    screen.clear_run()
    if why := _describe_interruption(entries):
        yield from screen.remark(why)


def _build_events(entry: Entry, data: object) -> Iterator[events.Event]:
    """Yield the events that an answer or a result had, whole texts at once."""
    match data:
        case Assistant(content=content, stop_reason=reason, usage=usage):
            for place, block in enumerate(content):
                if isinstance(block, Text):
                    yield events.MessageUpdate(part="text", block=place, delta=block.text)
            yield events.MessageEnd(
                entry=entry.id, content=content, stop_reason=reason, usage=usage
            )
        case ToolResult(call_id=call_id, name=name):
            yield events.ToolExecutionStart(call_id=call_id, name=name, status="running")
            yield events.ToolExecutionEnd(
                call_id=call_id,
                name=name,
                content=data.content,
                is_error=data.is_error,
                duration_ms=data.duration_ms,
                status="error" if data.is_error else "completed",
                details=data.details,
            )
        case _:
            pass


def _describe_interruption(entries: Sequence[Entry]) -> str:
    """Return how the last turn was cut short; empty where it ended by itself."""
    turns = [e for e in entries if isinstance(e.data, User | Assistant | ToolResult | Error)]
    match turns[-1].data if turns else None:
        case Assistant(content=content) if calls := select_tool_calls(content):
            return f"interrupted: {format_count(len(calls), 'call')} without a result"
        case Assistant(partial=True):
            return "interrupted in the middle of this answer"
        case User() | ToolResult():
            return "interrupted before the answer"
        case _:
            return ""


def describe_changed_files(recorder: Recorder, folder: str) -> str:
    """Return which files are not as the session left them; empty where all are.

    It reads the whole path and those files: call it in a thread.
    """
    try:
        changes = list_file_changes(recorder.tape.entries(recorder.head(), skipped=lambda _: None))
    except (TapeError, OSError):  # the session can be continued all the same
        return ""
    left = {change.path: change.after for change in changes if change.environment is None}
    changed = [
        os.path.relpath(path, folder)
        for path, version in left.items()
        if (version is None or version.digest) and not is_same_version(look_at_file(path), version)
    ]
    rest = f" and {len(changed) - _MAX_PATHS} more" if len(changed) > _MAX_PATHS else ""
    return f"changed since: {', '.join(changed[:_MAX_PATHS])}{rest}" if changed else ""
