"""Replay: read a path again, in two ways, and prove that both give what was recorded (tape.md §6).

    compared                               with
    each entry read strictly, in runs      the same entry read loosely, line by line
    each header                            the header before it: parent, depth, time
    what anchors cover and keep            the path before them
    each recorded repair                   the repair of the view it was made of
    the view and messages at the end       those of the other reading

Nothing is written. Memory grows with the path.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Raw, Struct

from ..context.repair import repair
from ..context.view import Target, view
from ..errors import Damaged, NotFound
from ..model.entries import Anchor, Assistant, Branch, Context, Model, Repair, ToolResult, User
from ..model.line import (
    FORMAT,
    Entry,
    Unread,
    blank_redacted_data,
    build_entry,
    decode_payload,
    has_valid_data,
    is_data_redacted,
    read_header,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from ..model.line import Header
    from ..store.path import Segment
    from ..store.refs import Head
    from ..store.tape import Tape

NOBODY = Target("", "", "")
"""A target that wrote none of the messages."""
_NEXT_PROMPT = (Anchor, Branch, Context, Model, Repair, ToolResult, User)
"""Types between two model calls: an answer behind one of them was given to another request."""


class ReplayDifference(Struct, frozen=True):
    """A difference, and the entry where it was found; None if its id cannot be read."""

    entry: str | None
    what: str


class ReplayResult(Struct, frozen=True):
    """How much was replayed, and what differed."""

    entries: int
    anchors: int
    kept: int
    """Number of ranges that anchors keep in view."""
    repairs: int
    unanswered: int
    """Repairs left out: no answer followed, so their target is unknown."""
    messages: int
    """Number of messages of the final view, repaired."""
    differences: tuple[ReplayDifference, ...]


class _TwoReadings(NamedTuple):
    """A path as the two readers read it, oldest first."""

    strictly: list[Entry]
    loosely: list[Entry]
    """The entries from the newest anchor on."""


def replay_path(tape: Tape, head: Head) -> ReplayResult:
    """Replay the path to a head and compare; raise Damaged where it cannot be followed."""
    differences: list[ReplayDifference] = []
    readings = _TwoReadings([], [])
    before: Header | None = None
    count = 0
    for segment in tape.path(head):
        for header in _read_both_ways(segment, readings, differences):
            count += 1
            if header is not None:
                differences += _compare_chain(before, header)
                before = header
    path = readings.strictly
    anchors = [entry for entry in path if isinstance(entry.data, Anchor)]
    differences += _check_anchors(tape, path, anchors)
    repairs, unanswered = _check_repairs(tape, path, differences)
    messages = _compare_views(tape, readings, differences)
    kept_count = sum(len(entry.data.kept) for entry in anchors if isinstance(entry.data, Anchor))
    return ReplayResult(
        count, len(anchors), kept_count, repairs, unanswered, messages, tuple(differences)
    )


def _read_both_ways(
    segment: Segment, readings: _TwoReadings, differences: list[ReplayDifference]
) -> Iterator[Header | None]:
    """Read a segment in both ways, entry by entry; yield the header of each line."""
    strictly = segment.entries(lambda _: None)
    readings.strictly.extend(strictly)
    at = 0
    gone = cache(segment.source.phases.read_redacted_ids)
    for offset, line in segment.lines():
        try:
            header = read_header(line)
            if not has_valid_data(line, header):
                line = blank_redacted_data(line, gone())  # noqa: PLW2901 (as other readers take it)
                if not is_data_redacted(line, header):
                    differences.append(
                        ReplayDifference(header.id, "its data does not match its hash")
                    )
                    yield header
                    continue
            loosely = _read_entry_loosely(segment, header, line)
        except (Damaged, ValueError, RecursionError) as error:
            differences.append(ReplayDifference(None, f"{segment.phase}: byte {offset}: {error}"))
            yield None
            continue
        if isinstance(loosely.data, Anchor):
            readings.loosely.clear()
        readings.loosely.append(loosely)
        if at < len(strictly) and strictly[at].id == header.id:
            if strictly[at] != loosely:
                differences.append(
                    ReplayDifference(header.id, "the two readers read it differently")
                )
            at += 1
        else:
            differences.append(
                ReplayDifference(header.id, "only one of the two readers can read it")
            )
        yield header


def _read_entry_loosely(segment: Segment, header: Header, line: bytes) -> Entry:
    """Return an entry decoded from its header and, separately, its data."""
    raw = Raw(line[header.data : -1].rstrip(b" "))  # spaces follow redacted data
    data = decode_payload(header.type, raw, segment.source.expand)
    if not isinstance(data, Unread):
        return build_entry(header, data)
    return Entry(header.id, FORMAT, header.parent_id, header.n, header.time, header.dh, data)


def _compare_chain(before: Header | None, header: Header) -> Iterator[ReplayDifference]:
    """Yield the differences where an entry does not follow the one before it."""
    if before is None:
        if header.parent_id is not None or header.n != 0:
            yield ReplayDifference(header.id, "the path begins with it, but it is not a root")
        return
    if header.parent_id != before.id:
        yield ReplayDifference(
            header.id, f"its parent is not {before.id[:12]}, the entry before it"
        )
    if header.n != before.n + 1:
        yield ReplayDifference(header.id, f"its depth is {header.n} after {before.n}")
    if header.time <= before.time:
        yield ReplayDifference(header.id, "its time is not later than its parent's")


def _check_anchors(
    tape: Tape, path: Sequence[Entry], anchors: Sequence[Entry]
) -> Iterator[ReplayDifference]:
    """Yield the wrong claims of anchors about the path before them.

    What a merge covers and picks is of another path; later anchors may keep the same picks.
    """
    depth = {entry.id: entry.n for entry in path} if anchors else {}
    picked: set[str] = set()
    for entry in anchors:
        assert isinstance(entry.data, Anchor)
        anchor = entry.data
        for name, first, last, count in _list_path_ranges(anchor, picked):
            begin, end = depth.get(first, -1), depth.get(last, entry.n)
            if begin < 0 or end >= entry.n or not end - begin + 1 == count > 0:
                what = f"{name} {count} entries from {first[:12]} to {last[:12]}"
                yield ReplayDifference(entry.id, f"it {what}, which are not on the path before it")
        for kept_range in anchor.kept:
            wrong: list[str] = []
            try:
                entries = tape.read_kept_range(kept_range, wrong.append)
                if anchor.kind == "merge":
                    picked |= {entry.id for entry in entries if entry.id not in depth}
            except (Damaged, NotFound) as error:
                yield ReplayDifference(
                    entry.id, f"the entries it keeps in view cannot be read: {error}"
                )
            for text in wrong:
                yield ReplayDifference(entry.id, f"in the entries it keeps in view: {text}")


def _list_path_ranges(
    anchor: Anchor, picked: AbstractSet[str]
) -> Iterator[tuple[str, str, str, int]]:
    """Yield what an anchor says of its own path: covers or keeps, first, last, count."""
    if anchor.kind == "merge":
        return
    if (covers := anchor.covers) is not None:
        yield "covers", covers.first, covers.last, covers.count
    for kept_range in anchor.kept:
        if not {kept_range.first, kept_range.last} <= picked:
            yield "keeps", kept_range.first, kept_range.last, kept_range.count


def _check_repairs(
    tape: Tape, path: Sequence[Entry], differences: list[ReplayDifference]
) -> tuple[int, int]:
    """Recompute recorded repairs; return how many were compared, and how many were not."""
    since = checked = unanswered = 0
    for at, entry in enumerate(path):
        if isinstance(entry.data, Anchor):
            since = at
        if not isinstance(entry.data, Repair) or entry.data.kind != "results":
            continue
        target = _find_request_target(path, at)
        if target is None:
            unanswered += 1
            continue
        checked += 1
        before = path[since:at]
        again = repair(view(before, _read_kept_entries(tape, before)), target).repair
        recorded = entry.data.injected, entry.data.dropped
        if recorded != ((again.injected, again.dropped) if again else ((), ())):
            differences.append(
                ReplayDifference(entry.id, "the recomputed repair differs from the recorded one")
            )
    return checked, unanswered


def _find_request_target(path: Sequence[Entry], at: int) -> Target | None:
    """Return the target of the request after an entry: the model that answered it."""
    for later in range(at + 1, len(path)):
        data = path[later].data
        if isinstance(data, Assistant):
            return Target(data.endpoint, data.api, data.model)
        if isinstance(data, _NEXT_PROMPT):
            return None
    return None


def _read_kept_entries(tape: Tape, path: Sequence[Entry]) -> list[Entry]:
    """Return the entries that a path's first anchor keeps in view, as far as they exist."""
    anchor = path[0].data if path else None
    try:
        return tape.kept(anchor, lambda _: None) if isinstance(anchor, Anchor) else []
    except (Damaged, NotFound):  # reported for the anchor itself
        return []


def _compare_views(tape: Tape, readings: _TwoReadings, differences: list[ReplayDifference]) -> int:
    """Compare the views at the end and what repair makes of them; return how many messages."""
    path, loosely = readings.strictly, readings.loosely
    anchors = (at for at in reversed(range(len(path))) if isinstance(path[at].data, Anchor))
    strictly = path[next(anchors, 0) :]
    answers = [entry.data for entry in strictly if isinstance(entry.data, Assistant)]
    target = Target(answers[-1].endpoint, answers[-1].api, answers[-1].model) if answers else NOBODY
    kept_entries = _read_kept_entries(tape, strictly)
    views = view(strictly, kept_entries), view(loosely, kept_entries)
    repaired = [repair(view, target) for view in views]
    last = strictly[-1].id if strictly else None
    if views[0] != views[1]:
        differences.append(ReplayDifference(last, "the two readers give different views"))
    if repaired[0] != repaired[1]:
        differences.append(ReplayDifference(last, "the two readers give different messages"))
    return len(repaired[0].messages)
