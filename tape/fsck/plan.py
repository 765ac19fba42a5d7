"""From findings to actions: what can be repaired without guessing; pure.

Actions are in the order of execution: the journal first, because no writer opens a damaged one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..refs import JOURNAL_NAME, replay_journal
from ..verify import FindingKind, parse_kept_phase
from .actions import (
    CompleteRedaction,
    CutJournal,
    CutTail,
    DiscardLeftover,
    NamePhase,
    QuarantineBlob,
    RecordTail,
    RepairAction,
    SetCurrent,
    WriteInfo,
    WriteJournal,
)
from .facts import get_finding_phase
from .journal import choose_current, encode_journal_line, find_lost_phases

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..verify import Finding
    from .facts import InspectedPhase, Inspection


def plan_repairs(findings: Sequence[Finding], facts: Inspection) -> tuple[RepairAction, ...]:
    """Return the actions of a repair, in order."""
    bad = [finding for finding in findings if finding.level != "note"]
    return (
        *_plan_info(bad, facts),
        *_plan_journal(bad, facts),
        *_plan_tails(bad, facts),
        *_plan_records(findings, facts),
        *_plan_blobs(bad),
        *_plan_redactions(findings, facts),
        *(DiscardLeftover(path) for path in facts.leftovers),
    )


def _plan_info(bad: Iterable[Finding], facts: Inspection) -> Iterator[RepairAction]:
    starts = [phase.begin for phase in facts.phases.values() if phase.why == "start"]
    told = [(getattr(start, "tape", ""), getattr(start, "origin", None)) for start in starts]
    unreadable = any(finding.kind is FindingKind.INFO_UNREADABLE for finding in bad)
    if unreadable or (len(told) == 1 and told[0] != (facts.info.id, facts.info.origin)):
        yield WriteInfo()


def _plan_journal(bad: Iterable[Finding], facts: Inspection) -> Iterator[RepairAction]:
    lost = find_lost_phases(facts)
    if facts.journal is None or facts.refs.damage:
        yield WriteJournal(tuple(phase.name for phase in lost))
        return
    if any(finding.file == JOURNAL_NAME and finding.kind is FindingKind.TORN for finding in bad):
        yield CutJournal(facts.refs.size, len(facts.journal))
    yield from (NamePhase(phase.name, phase.branch) for phase in lost)
    named = facts.journal[: facts.refs.size] + b"".join(map(encode_journal_line, lost))
    current = choose_current(named, replay_journal(named))
    if current is not None:
        yield SetCurrent(current)


def _plan_tails(bad: Iterable[Finding], facts: Inspection) -> Iterator[RepairAction]:
    """Yield the cuts of unneeded tails; damage with good lines after it is not a tail."""
    committed = facts.refs.phases() | {phase.name for phase in find_lost_phases(facts)}
    ends: dict[str, int] = {}
    for finding in bad:
        name = get_finding_phase(finding)
        if name and finding.offset is not None:
            ends[name] = max(ends.get(name, 0), finding.offset)
    for name in sorted(ends.keys() & facts.phases.keys() & committed):
        if ends[name] >= facts.phases[name].tail.end:
            yield from _plan_tail(bad, facts, facts.phases[name])


def _plan_tail(
    bad: Iterable[Finding], facts: Inspection, phase: InspectedPhase
) -> Iterator[RepairAction]:
    """Yield the cut of a tail, unless a branch or a tape continues from an entry in it."""
    end, size = phase.tail.end, phase.tail.size
    needed = {*facts.list_tapes_over(phase.name, end), *_list_phases_begun_in(facts, phase)}
    for finding in bad:
        if get_finding_phase(finding) == phase.name and (finding.offset or 0) >= end:
            needed.update(finding.depends)
    if _is_newest_phase(facts, phase):
        needed.discard(phase.branch)
    if size > end and not needed:
        yield CutTail(phase.name, phase.branch, end, size)


def _list_phases_begun_in(facts: Inspection, phase: InspectedPhase) -> Iterator[str]:
    """Yield the phases whose base is in a phase's tail."""
    for other in facts.phases.values():
        base = other.base
        if base is not None and base.phase == phase.name and base.offset >= phase.tail.end:
            yield other.name


def _plan_records(findings: Iterable[Finding], facts: Inspection) -> Iterator[RepairAction]:
    """Yield the missing repair entries of torn tails, where the branch is still in that phase."""
    for finding in findings:
        action = plan_record(finding, facts)
        if action is not None:
            yield action


def plan_record(finding: Finding, facts: Inspection) -> RecordTail | None:
    """Return the missing repair entry of a tail; None where no writer can append it."""
    kept = finding.file.rpartition("/")[2]
    phase = facts.phases.get(parse_kept_phase(kept))
    if (
        finding.kind is not FindingKind.UNRECORDED
        or phase is None
        or not _is_newest_phase(facts, phase)
    ):
        return None
    return RecordTail(phase.name, phase.branch, kept)


def _is_newest_phase(facts: Inspection, phase: InspectedPhase) -> bool:
    """Return whether the branch ends in this phase, so that opening it cuts the tail."""
    moves = facts.refs.branches.get(phase.branch, ())
    return not moves or (moves[-1].phase == phase.name and moves[-1].pin is None)


def _plan_blobs(bad: Iterable[Finding]) -> Iterator[RepairAction]:
    for finding in bad:
        if finding.kind is FindingKind.BLOB:
            yield QuarantineBlob(finding.file)


def _plan_redactions(findings: Iterable[Finding], facts: Inspection) -> Iterator[RepairAction]:
    if any(finding.kind is FindingKind.REDACTION for finding in findings):
        yield CompleteRedaction(facts.unfinished)
