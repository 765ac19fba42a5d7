"""Replay: fold a path again and prove that it says what it said before.

Two readers read every entry, one many lines at once and strictly, one line by line and loosely;
what they make of it, what repair recorded and what anchors point at has to agree. Nothing is
written. Memory grows with the path.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Raw, Struct

from .entries import (
    Anchor,
    Assistant,
    Branch,
    Context,
    Model,
    Repair,
    ToolResult,
    User,
)
from .errors import Damaged, NotFound
from .line import FORMAT, Entry, blank_named, data_holds, entry_of, is_redacted, read_header
from .payload import Unread, read_data
from .repair import Target, repair
from .view import view

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .branches import Head
    from .entries import Kept
    from .line import Header
    from .path import Segment
    from .tape import Tape

NOBODY = Target("", "", "")
"""A target that no message was written by."""
_NEXT_PROMPT = (Anchor, Branch, Context, Model, Repair, ToolResult, User)
"""What stands between two model calls: an answer behind it was given to another request."""


class Difference(Struct, frozen=True):
    """What does not agree, and the entry it was seen at; None where that has no id to be read."""

    entry: str | None
    what: str


class Replayed(Struct, frozen=True):
    """How much was folded again, and what differed."""

    entries: int
    anchors: int
    kept: int
    """Ranges that anchors keep in view."""
    repairs: int
    unanswered: int
    """Repairs left out: no answer followed, so nobody knows whom they were made for."""
    messages: int
    """Of the view at the end, repaired."""
    differences: tuple[Difference, ...]


class _Folded(NamedTuple):
    """A path as the two readers read it, oldest first."""

    strictly: list[Entry]
    loosely: list[Entry]
    """From the newest anchor on."""


def replay(tape: Tape, head: Head) -> Replayed:
    """Fold the path to a head again and compare; raise Damaged where it cannot be followed."""
    found: list[Difference] = []
    folded = _Folded([], [])
    before: Header | None = None
    count = 0
    for segment in tape.path(head):
        for header in _fold(segment, folded, found):
            count += 1
            if header is not None:
                found += _chain(before, header)
                before = header
    path = folded.strictly
    anchors = [entry for entry in path if isinstance(entry.data, Anchor)]
    found += _anchors(tape, path, anchors)
    repairs, unanswered = _repairs(tape, path, found)
    messages = _views(tape, folded, found)
    kept = sum(len(entry.data.kept) for entry in anchors if isinstance(entry.data, Anchor))
    return Replayed(count, len(anchors), kept, repairs, unanswered, messages, tuple(found))


def _fold(segment: Segment, folded: _Folded, found: list[Difference]) -> Iterator[Header | None]:
    """Read a segment both ways, entry by entry; yield what each line says of itself."""
    strictly = segment.entries(lambda _: None)
    folded.strictly.extend(strictly)
    at = 0
    gone = cache(segment.source.phases.redacted_ids)
    for offset, line in segment.lines():
        try:
            header = read_header(line)
            if not data_holds(line, header):
                line = blank_named(line, gone())  # noqa: PLW2901 (as other readers take it)
                if not is_redacted(line, header):
                    found.append(Difference(header.id, "its data does not match its hash"))
                    yield header
                    continue
            loosely = _read_loosely(segment, header, line)
        except (Damaged, ValueError, RecursionError) as error:
            found.append(Difference(None, f"{segment.phase}: byte {offset}: {error}"))
            yield None
            continue
        if isinstance(loosely.data, Anchor):
            folded.loosely.clear()
        folded.loosely.append(loosely)
        if at < len(strictly) and strictly[at].id == header.id:
            if strictly[at] != loosely:
                found.append(Difference(header.id, "the two readers read it differently"))
            at += 1
        else:
            found.append(Difference(header.id, "only one of the two readers can read it"))
        yield header


def _read_loosely(segment: Segment, header: Header, line: bytes) -> Entry:
    """Return an entry from its header and, apart from that, its data."""
    raw = Raw(line[header.data : -1].rstrip(b" "))  # blanks stand behind data that was redacted
    data = read_data(header.type, raw, segment.source.expand)
    if not isinstance(data, Unread):
        return entry_of(header, data)
    return Entry(header.id, FORMAT, header.parent_id, header.n, header.time, header.dh, data)


def _chain(before: Header | None, header: Header) -> Iterator[Difference]:
    """Yield where an entry does not follow from the one before it."""
    if before is None:
        if header.parent_id is not None or header.n != 0:
            yield Difference(header.id, "the path begins with it, but it is no root")
        return
    if header.parent_id != before.id:
        yield Difference(header.id, f"its parent is not {before.id[:12]}, the entry before it")
    if header.n != before.n + 1:
        yield Difference(header.id, f"its depth is {header.n} behind {before.n}")
    if header.time <= before.time:
        yield Difference(header.id, "its time is not later than its parent's")


def _anchors(tape: Tape, path: Sequence[Entry], anchors: Sequence[Entry]) -> Iterator[Difference]:
    """Yield what anchors say of the path before them and is not so."""
    depth = {entry.id: entry.n for entry in path} if anchors else {}
    for entry in anchors:
        assert isinstance(entry.data, Anchor)
        for name, first, last, count in _ranges(entry.data):
            if not _holds(depth, first, last, count, entry.n):
                what = f"{name} {count} entries from {first[:12]} to {last[:12]}"
                yield Difference(entry.id, f"it says that it {what}: not on the path before it")
        for kept in entry.data.kept:
            yield from _kept_run(tape, entry, kept)


def _ranges(anchor: Anchor) -> Iterator[tuple[str, str, str, int]]:
    """Yield what an anchor says of ranges on its own path; a merge speaks of other paths."""
    if anchor.kind == "merge":
        return
    if anchor.covers is not None:
        yield "covers", anchor.covers.first, anchor.covers.last, anchor.covers.count
    for kept in anchor.kept:
        yield "keeps", kept.first, kept.last, kept.count


def _holds(depth: dict[str, int], first: str, last: str, count: int, before: int) -> bool:
    """Tell whether a range lies on the path before some depth and holds so many entries."""
    if first not in depth or last not in depth:
        return False
    return depth[last] - depth[first] + 1 == count > 0 and depth[last] < before


def _kept_run(tape: Tape, entry: Entry, kept: Kept) -> Iterator[Difference]:
    wrong: list[str] = []
    try:
        tape.kept_run(kept, wrong.append)
    except (Damaged, NotFound) as error:
        yield Difference(entry.id, f"what it keeps in view cannot be read: {error}")
    for text in wrong:
        yield Difference(entry.id, f"of what it keeps in view: {text}")


def _repairs(tape: Tape, path: Sequence[Entry], found: list[Difference]) -> tuple[int, int]:
    """Repair again where a repair is recorded; return how often, and how often not."""
    since = checked = unanswered = 0
    for at, entry in enumerate(path):
        if isinstance(entry.data, Anchor):
            since = at
        if not isinstance(entry.data, Repair) or entry.data.kind != "results":
            continue
        target = _target(path, at)
        if target is None:
            unanswered += 1
            continue
        checked += 1
        before = path[since:at]
        again = repair(view(before, _kept(tape, before)), target).repair
        recorded = entry.data.injected, entry.data.dropped
        if recorded != ((again.injected, again.dropped) if again else ((), ())):
            found.append(Difference(entry.id, "repairing again mends something else"))
    return checked, unanswered


def _target(path: Sequence[Entry], at: int) -> Target | None:
    """Return whom the request behind an entry was for: who answered it."""
    for later in range(at + 1, len(path)):
        data = path[later].data
        if isinstance(data, Assistant):
            return Target(data.endpoint, data.api, data.model)
        if isinstance(data, _NEXT_PROMPT):
            return None
    return None


def _kept(tape: Tape, path: Sequence[Entry]) -> list[Entry]:
    """Return what the anchor a path begins with keeps in view, as far as it is there."""
    anchor = path[0].data if path else None
    try:
        return tape.kept(anchor, lambda _: None) if isinstance(anchor, Anchor) else []
    except (Damaged, NotFound):  # told of the anchor itself
        return []


def _views(tape: Tape, folded: _Folded, found: list[Difference]) -> int:
    """Compare the views at the end and what repair makes of them; return how many messages."""
    strictly, loosely = _from_anchor(folded.strictly), folded.loosely
    answers = [entry.data for entry in strictly if isinstance(entry.data, Assistant)]
    target = Target(answers[-1].endpoint, answers[-1].api, answers[-1].model) if answers else NOBODY
    kept = _kept(tape, strictly)
    views = view(strictly, kept), view(loosely, kept)
    repaired = [repair(one, target) for one in views]
    last = strictly[-1].id if strictly else None
    if views[0] != views[1]:
        found.append(Difference(last, "the two readers give two views"))
    if repaired[0] != repaired[1]:
        found.append(Difference(last, "the two readers give two sets of messages"))
    return len(repaired[0].messages)


def _from_anchor(path: Sequence[Entry]) -> Sequence[Entry]:
    places = (at for at in reversed(range(len(path))) if isinstance(path[at].data, Anchor))
    return path[next(places, 0) :]
