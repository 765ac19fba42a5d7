"""From findings to actions: what can be repaired without guessing; pure.

Actions are in the order of execution: the journal first, because no writer opens a damaged one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..refs import REFS, fold
from ..verify import Kind, kept_phase
from .actions import (
    Action,
    CompleteRedaction,
    CutJournal,
    CutTail,
    Discard,
    NamePhase,
    RecordTail,
    SetBlobAside,
    SetCurrent,
    WriteInfo,
    WriteJournal,
)
from .facts import phase_of
from .journal import line_of, lost_phases, stand_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..verify import Finding
    from .facts import Facts, Phase


def plan(findings: Sequence[Finding], facts: Facts) -> tuple[Action, ...]:
    """Return the actions of a repair, in order."""
    bad = [finding for finding in findings if finding.level != "note"]
    return (
        *_info(bad, facts),
        *_journal(bad, facts),
        *_tails(bad, facts),
        *_records(findings, facts),
        *_blobs(bad),
        *_redactions(findings, facts),
        *(Discard(path) for path in facts.leftovers),
    )


def _info(bad: Iterable[Finding], facts: Facts) -> Iterator[Action]:
    starts = [phase.begin for phase in facts.phases.values() if phase.why == "start"]
    told = [(getattr(start, "tape", ""), getattr(start, "origin", None)) for start in starts]
    unreadable = any(finding.kind is Kind.INFO_UNREADABLE for finding in bad)
    if unreadable or (len(told) == 1 and told[0] != (facts.info.id, facts.info.origin)):
        yield WriteInfo()


def _journal(bad: Iterable[Finding], facts: Facts) -> Iterator[Action]:
    lost = lost_phases(facts)
    if facts.journal is None or facts.refs.damage:
        yield WriteJournal(tuple(phase.name for phase in lost))
        return
    if any(finding.file == REFS and finding.kind is Kind.TORN for finding in bad):
        yield CutJournal(facts.refs.size, len(facts.journal))
    yield from (NamePhase(phase.name, phase.branch) for phase in lost)
    named = facts.journal[: facts.refs.size] + b"".join(map(line_of, lost))
    current = stand_in(named, fold(named))
    if current is not None:
        yield SetCurrent(current)


def _tails(bad: Iterable[Finding], facts: Facts) -> Iterator[Action]:
    """Yield the cuts of unneeded tails; damage with good lines after it is not a tail."""
    committed = facts.refs.phases() | {phase.name for phase in lost_phases(facts)}
    ends: dict[str, int] = {}
    for finding in bad:
        name = phase_of(finding)
        if name and finding.offset is not None:
            ends[name] = max(ends.get(name, 0), finding.offset)
    for name in sorted(ends.keys() & facts.phases.keys() & committed):
        if ends[name] >= facts.phases[name].tail.end:
            yield from _tail(bad, facts, facts.phases[name])


def _tail(bad: Iterable[Finding], facts: Facts, phase: Phase) -> Iterator[Action]:
    """Yield the cut of a tail, unless a branch or a tape continues from an entry in it."""
    end, size = phase.tail.end, phase.tail.size
    needed = {*facts.tapes_over(phase.name, end), *_begun_in(facts, phase)}
    for finding in bad:
        if phase_of(finding) == phase.name and (finding.offset or 0) >= end:
            needed.update(finding.depends)
    if _goes_on(facts, phase):
        needed.discard(phase.branch)
    if size > end and not needed:
        yield CutTail(phase.name, phase.branch, end, size)


def _begun_in(facts: Facts, phase: Phase) -> Iterator[str]:
    """Yield the phases whose base is in a phase's tail."""
    for other in facts.phases.values():
        base = other.base
        if base is not None and base.phase == phase.name and base.offset >= phase.tail.end:
            yield other.name


def _records(findings: Iterable[Finding], facts: Facts) -> Iterator[Action]:
    """Yield the missing repair entries of torn tails, where the branch is still in that phase."""
    for finding in findings:
        action = record(finding, facts)
        if action is not None:
            yield action


def record(finding: Finding, facts: Facts) -> RecordTail | None:
    """Return the missing repair entry of a tail; None where no writer can append it."""
    kept = finding.file.rpartition("/")[2]
    phase = facts.phases.get(kept_phase(kept))
    if finding.kind is not Kind.UNRECORDED or phase is None or not _goes_on(facts, phase):
        return None
    return RecordTail(phase.name, phase.branch, kept)


def _goes_on(facts: Facts, phase: Phase) -> bool:
    """Return whether the branch ends in this phase, so that opening it cuts the tail."""
    moves = facts.refs.branches.get(phase.branch, ())
    return not moves or (moves[-1].phase == phase.name and moves[-1].pin is None)


def _blobs(bad: Iterable[Finding]) -> Iterator[Action]:
    for finding in bad:
        if finding.kind is Kind.BLOB:
            yield SetBlobAside(finding.file)


def _redactions(findings: Iterable[Finding], facts: Facts) -> Iterator[Action]:
    if any(finding.kind is Kind.REDACTION for finding in findings):
        yield CompleteRedaction(facts.unfinished)
