"""Picks: entries of other branches that a merge keeps in view, as ranges of their files.

A pick is widened until no call is cut from its results:

| picked | in view already | kept |
|---|---|---|
| a prompt, or an answer without calls | no | it |
| an answer with calls, or a result | no | from the answer to the last result of its calls |
| a result | its answer, with results of its own | nothing |
| anything | it | nothing |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..errors import UsageError
from ..model.entries import Anchor, Assistant, ToolResult, select_tool_calls
from ..model.line import decode_line, describe_missing_blob, read_header, read_id, read_type
from ..store.path import Segment
from ..store.phase import ORIGIN
from ..store.refs import read_head_at
from ..text import SHORT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..model.entries import KeptRange
    from ..store.refs import Head
    from ..store.tape import Tape

_SENT_TYPES = frozenset({"user", "assistant", "tool.result", "context"})
"""Entry types that a model is sent."""


class PickedLine(NamedTuple):
    """A line of a pick and where it is."""

    segment: Segment
    offset: int
    line: bytes


def choose_picks(
    tape: Tape, picks: Sequence[Head], in_view: set[str], skipped: Callable[[str], None]
) -> tuple[tuple[str, ...], list[list[PickedLine]], tuple[str, ...]]:
    """Return the ids of the picks, the lines that each brings, oldest first, and the notes."""
    names = tuple(dict.fromkeys(pick.entry for pick in picks))
    batches: list[list[PickedLine]] = []
    notes: list[str] = []
    seen = {*in_view}
    for pick in {pick.entry: pick for pick in picks}.values():
        short = pick.entry[:8]
        if pick.entry in seen:
            notes.append(f"{short} is in view already")
            continue
        batch = _read_picked_lines(tape, pick, skipped)
        if read_id(batch[0].line) in seen:  # its answer, which has results of its own there
            notes.append(f"{short} is the result of a call that is in view already")
            continue
        new = [picked for picked in batch if read_id(picked.line) not in seen]
        if len(batch) > 1:
            notes.append(
                f"{short} was widened to {len(batch)} entries: a call comes with its results"
            )
        elif pick.header.type not in _SENT_TYPES:
            notes.append(f"{short} is of type {pick.header.type}, which no model is sent")
        seen.update(read_id(picked.line) for picked in new)
        batches.append(new)
    batches.sort(key=lambda batch: (read_header(batch[0].line).time, read_header(batch[0].line).n))
    return names, batches, tuple(notes)


def _read_picked_lines(tape: Tape, pick: Head, skipped: Callable[[str], None]) -> list[PickedLine]:
    """Return the lines from the call of a pick to its last result; of other entries its own."""
    entry = tape.entry(pick)
    back = _walk_lines_back(tape, pick)
    lines = [next(back)]
    if isinstance(entry.data, ToolResult):
        call = entry.data.call_id
        for picked in back:
            lines.insert(0, picked)
            if read_type(picked.line) == Assistant.entry_type:
                answer = decode_line(picked.line, picked.segment.source.expand).data
                calls = select_tool_calls(answer.content) if isinstance(answer, Assistant) else ()
                if any(pending.id == call for pending in calls):
                    return _follow_results(tape, pick, lines, {call.id for call in calls})
        skipped(f"{pick.entry[:8]} is the result of a call that is not on its path")
        return lines[-1:]
    if isinstance(entry.data, Assistant) and (calls := select_tool_calls(entry.data.content)):
        return _follow_results(tape, pick, lines, {call.id for call in calls})
    return lines


def _walk_lines_back(tape: Tape, head: Head) -> Iterator[PickedLine]:
    """Yield the lines of the path to a head, newest first."""
    for segment in tape.walk_path_back(head):
        for offset, line in [*segment.lines()][::-1]:
            yield PickedLine(segment, offset, line)


def _follow_results(
    tape: Tape, pick: Head, lines: list[PickedLine], calls: set[str]
) -> list[PickedLine]:
    """Return the lines from an answer on to the last result of its calls.

    They end where the phase of the pick ends, or with the next answer or prompt: calls without a
    result until then have none.
    """
    with tape.phases.open(pick.phase) as file:
        end = file.tail().end
    after = Segment(tape.source, pick.phase, end, pick.end)
    later = [PickedLine(after, offset, line) for offset, line in after.lines()]
    last = len(lines)
    for place, picked in enumerate((*lines, *later), 1):
        kind = read_type(picked.line)
        if place > len(lines) and kind in {"user", "assistant"}:
            break
        if kind == ToolResult.entry_type:
            data = decode_line(picked.line, picked.segment.source.expand).data
            if isinstance(data, ToolResult) and data.call_id in calls:
                last = max(last, place)
    return [*lines, *later][:last]


def group_ranges(tape: Tape, lines: Sequence[PickedLine]) -> Iterator[KeptRange]:
    """Yield lines as ranges, each of lines that follow each other in one file."""
    run: list[PickedLine] = []
    for line in lines:
        if run and (
            line.segment.phase != run[-1].segment.phase
            or line.segment.source.tape != run[-1].segment.source.tape
            or line.offset != run[-1].offset + len(run[-1].line) + 1
        ):
            yield _build_picked_range(tape, run)
            run = []
        run.append(line)
    if run:
        yield _build_picked_range(tape, run)


def _build_picked_range(tape: Tape, run: Sequence[PickedLine]) -> KeptRange:
    first, last = run[0], run[-1]
    return tape.build_kept_range(first.segment, first.offset, first.line, last.line, len(run))


def find_foreign_entries(tape: Tape, head: Head, anchor: Anchor) -> set[str]:
    """Return the ids of the entries that an anchor on the path to a head keeps of other paths.

    Nothing but a merge picks such; a later compaction may keep them.
    """
    path = [*tape.walk_path_back(head)]
    is_copied = any(segment.phase == ORIGIN for segment in path)
    foreign: set[str] = set()
    for kept_range in anchor.kept:
        is_there = is_copied and not tape.phases.folder.has(kept_range.phase)
        if not is_there and not _is_on_path(kept_range, path):
            foreign.update(map(read_id, tape.read_kept_lines(kept_range)[0]))
    return foreign


def list_picked_ends(tape: Tape, segment: Segment) -> list[Head]:
    """Return the newest entry of each range of this tape that a phase's anchor keeps in view."""
    anchor = segment.source.phases.first(segment.phase, describe_missing_blob)
    ends = []
    for kept_range in anchor.data.kept if anchor and isinstance(anchor.data, Anchor) else ():
        if kept_range.tape in {None, tape.id} and tape.phases.folder.has(kept_range.phase):
            lines, _ = tape.read_kept_lines(kept_range)
            offset = kept_range.offset + sum(len(line) + 1 for line in lines[:-1])
            branch = tape.find_branch(kept_range.phase)
            ends.append(
                read_head_at(tape.phases, branch, kept_range.phase, offset, kept_range.last)
            )
    return ends


def require_own_picks(past: Sequence[Segment]) -> None:
    """Raise UsageError if a merge on a path to copy picked entries that are not on it."""
    for segment in past:
        first = segment.source.phases.first(segment.phase, describe_missing_blob)
        for kept_range in first.data.kept if first and isinstance(first.data, Anchor) else ():
            if segment.phase != ORIGIN and not _is_on_path(kept_range, past):
                raise UsageError(
                    f"{segment.phase} of tape {segment.source.tape[:SHORT]}, in the shared past, "
                    f"keeps entries of {kept_range.phase} in view: a copy of the past lacks them, "
                    "so this tape needs that one"
                )


def _is_on_path(kept_range: KeptRange, path: Sequence[Segment]) -> bool:
    """Return whether a range is on a path; one without a tape may be in any of them."""
    return any(
        kept_range.phase == segment.phase
        and kept_range.offset < segment.end
        and kept_range.tape in {None, segment.source.tape}
        for segment in path
    )
