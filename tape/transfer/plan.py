"""What an export holds: which part of which phase file, and which lines of the journal.

Everything is settled when a plan is made, so a tape may be written while it is exported.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ..damage import warn_of_damage
from ..errors import Damaged, NotFound, UsageError
from ..path import Segment, require_root
from ..phase import ORIGIN, parse_phase_number
from ..refs import JOURNAL_NAME, Pin, encode_ref_line, replay_journal
from ..tape import INFO_NAME
from .shapes import ARCHIVE_VERSION, ArchiveHeader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..branches import Head
    from ..tape import Tape


class ArchivedPhase(NamedTuple):
    """One phase of the export: the lines of its segments, one after the other."""

    name: str
    segments: tuple[Segment, ...]

    def lines(self) -> Iterator[tuple[Segment, int, bytes]]:
        """Yield segment, offset and line, oldest first."""
        for segment in self.segments:
            for offset, line in segment.lines():
                yield segment, offset, line


class ArchivePlan(NamedTuple):
    """All an export holds but blobs; those are found in its lines."""

    header: ArchiveHeader
    parts: tuple[ArchivedPhase, ...]
    """The shared past of a fork first, then the phases in order of their numbers."""
    refs: tuple[bytes, ...]
    """Lines of the journal, each with its newline."""


def plan_tape(tape: Tape) -> ArchivePlan:
    """Return the plan of everything that readers of a tape see; raise Damaged, NotFound.

    Torn ends, phases never committed and blobs that no entry names are left out.
    """
    data, committed = _read_committed_journal(tape)
    past = _plan_origin(tape)
    names = tape.phases.names()
    own = [name for name in names if name in committed]
    _refuse_uncommitted(tape, [name for name in names if name not in committed])
    missing = sorted(committed.difference(own))
    if missing:
        raise Damaged(f"{missing[0]} is missing, which {JOURNAL_NAME} names", file=JOURNAL_NAME)
    parts = tuple(ArchivedPhase(name, (_plan_whole_phase(tape, name),)) for name in own)
    return ArchivePlan(_build_header(tape), (*past, *parts), tuple(_split_journal(data)))


def _refuse_uncommitted(tape: Tape, names: Sequence[str]) -> None:
    """Raise Damaged for a phase in use that no line of the journal names, as it is by now."""
    for name in names:
        with suppress(NotFound), tape.phases.open(name) as file:
            is_used = len(list(islice(file.lines(), 2))) > 1
            if is_used and name not in tape.refs().phases():
                raise Damaged(
                    f"{name} holds entries that {JOURNAL_NAME} does not name; `tape fsck` explains it",
                    file=name,
                )


def plan_path(tape: Tape, head: Head) -> ArchivePlan:
    """Return the plan of the path to an entry, with what the journal says of that path."""
    if head.phase == ORIGIN:
        raise UsageError(
            f"entry {head.entry[:12]} is of the past this tape was forked from: "
            "export the tape, or a later entry"
        )
    own: dict[str, Segment] = {}
    past: list[Segment] = []
    for segment in tape.path(head):
        if segment.source.tape == tape.id and segment.phase != ORIGIN:
            own[segment.phase] = segment
        else:
            past.append(segment)
    parts = [ArchivedPhase(ORIGIN, tuple(past))] if past else []
    parts += [ArchivedPhase(name, (own[name],)) for name in sorted(own, key=parse_phase_number)]
    refs = _iter_path_refs(tape, head, parts)
    return ArchivePlan(_build_header(tape, head.entry), tuple(parts), tuple(refs))


def _build_header(tape: Tape, path: str | None = None) -> ArchiveHeader:
    info = msgspec.json.format(tape.folder.read(INFO_NAME), indent=-1)
    return ArchiveHeader(ARCHIVE_VERSION, msgspec.Raw(info), tape.folder.name, path)


def _read_committed_journal(tape: Tape) -> tuple[bytes, set[str]]:
    """Return the bytes of the journal up to a torn end, and the phases it names."""
    data = tape.folder.read(JOURNAL_NAME)
    refs = replay_journal(data)
    if refs.damage:
        raise refs.damage[0]
    return data[: refs.size], refs.phases()


def _plan_origin(tape: Tape) -> tuple[ArchivedPhase, ...]:
    """Return the path that a fork shares with its origin, from the copy where there is one."""
    if tape.info.origin is None:
        return ()
    if tape.phases.has_origin:
        require_root(tape.source)
        return (ArchivedPhase(ORIGIN, (_plan_whole_phase(tape, ORIGIN),)),)
    try:
        return (ArchivedPhase(ORIGIN, tuple(tape.collect_shared_segments())),)
    except NotFound as error:
        raise NotFound(
            f"the tape this one was forked from is not in the store, so its past cannot be "
            f"exported: {error}"
        ) from error


def _plan_whole_phase(tape: Tape, name: str) -> Segment:
    with tape.phases.open(name) as file:
        tail = file.tail()
    branch = "" if name == ORIGIN else tape.find_branch(name)
    tape.report_torn_bytes(name, branch, tail.size - tail.end, warn_of_damage)
    return Segment(tape.source, name, tail.end)


def _split_journal(journal: bytes) -> list[bytes]:
    return [line + b"\n" for line in journal.split(b"\n")[:-1]]


def _iter_path_refs(tape: Tape, head: Head, parts: Sequence[ArchivedPhase]) -> Iterator[bytes]:
    """Yield the journal lines whose places are on the path, then those that make `head` its end.

    Of those the time is the entry's, so that the same path is the same file.
    """
    data, _ = _read_committed_journal(tape)
    lines = [(line, msgspec.json.decode(line)) for line in _split_journal(data)]
    labelled = {fields["entry"] for _, fields in lines if fields.get("entry")}
    there = _find_present(parts, labelled)
    ends = {part.name: part.segments[-1].end for part in parts if part.name != ORIGIN}
    kept = [line for line, fields in lines if _is_on_path(fields, ends, there)]
    yield from kept
    said = {"why": "import", "time": head.header.time}
    pin = Pin(head.offset, head.entry)
    newest = replay_journal(b"".join(kept)).branches.get(head.branch, [None])[-1]
    if newest is None or (newest.phase, newest.pin) not in {(head.phase, None), (head.phase, pin)}:
        yield encode_ref_line({"branch": head.branch, "phase": head.phase, "pin": pin, **said})
    yield encode_ref_line({"current": head.branch, **said})


def _is_on_path(fields: dict[str, Any], ends: dict[str, int], entries: set[str]) -> bool:
    """Tell whether what a journal line says is so on a path; which branch is current is not."""
    if "branch" in fields:
        pin, end = fields["pin"], ends.get(fields["phase"], 0)
        return bool(end) and (pin is None or pin["offset"] < end)
    if fields.get("entry"):
        return fields["entry"] in entries
    return "current" not in fields


def _find_present(parts: Sequence[ArchivedPhase], entries: set[str]) -> set[str]:
    """Return which of some entries stand in the parts."""
    begins = {b'{"id":"%b"' % entry.encode() for entry in entries}
    if not begins:
        return set()
    found = {line[:48] for part in parts for _, _, line in part.lines() if line[:48] in begins}
    return {begin[7:47].decode() for begin in found}
