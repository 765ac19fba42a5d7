"""From findings to repair actions: what can be repaired without guessing; pure.

    finding                                        action
    tape.json differs from the start entry         WriteInfo
    a damaged or missing journal                   WriteJournal
    a torn tail of the journal                     CutJournal
    a phase in use that the journal does not name  NamePhase
    a current branch that does not exist           SetCurrent
    a damaged end of a phase that nothing needs    CutTail
    a tail in quarantine that no entry names       RecordTail
    a damaged blob                                 QuarantineBlob
    an interrupted redaction                       CompleteRedaction
    a leftover of a crash                          DiscardLeftover

Actions are in the order of execution: the journal first, because no writer opens a damaged one. A
lost pin, title or label cannot be rebuilt: the old line stays readable in quarantine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import msgspec
from msgspec import Struct

from ..store.phase import ENTRIES
from ..store.refs import JOURNAL_NAME, MAIN_BRANCH, encode_ref_line, replay_journal
from .finding import FindingKind, parse_kept_phase
from .inspection import get_finding_phase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..store.refs import Refs
    from .finding import Finding
    from .inspection import InspectedPhase, Inspection


_ACTION_ID_DIGITS = 12


class WriteInfo(Struct, frozen=True, tag="tape.json", gc=False):
    """Write tape.json again from the start entry."""


class WriteJournal(Struct, frozen=True, tag="journal", gc=False):
    """Replace the journal by one with its good lines, and new lines for these phases."""

    phases: tuple[str, ...]


class CutJournal(Struct, frozen=True, tag="journal-tail", gc=False):
    """Move the bytes after the journal's last good line to quarantine."""

    end: int
    size: int


class NamePhase(Struct, frozen=True, tag="name-phase", gc=False):
    """Write the journal line of a phase again, from its first entry."""

    phase: str
    branch: str


class SetCurrent(Struct, frozen=True, tag="current", gc=False):
    """Make an existing branch the current one."""

    branch: str


class CutTail(Struct, frozen=True, tag="tail", gc=False):
    """Move the bytes after a phase's last good line to quarantine."""

    phase: str
    branch: str
    end: int
    size: int


class RecordTail(Struct, frozen=True, tag="record", gc=False):
    """Append the missing repair entry for a tail in quarantine."""

    phase: str
    branch: str
    kept: str
    """Name in quarantine."""


class QuarantineBlob(Struct, frozen=True, tag="blob", gc=False):
    """Move a blob whose bytes do not match its name to quarantine."""

    file: str


class CompleteRedaction(Struct, frozen=True, tag="redaction", gc=False):
    """Complete an interrupted redaction; this cannot be undone."""

    entries: tuple[str, ...]
    """Ids of the entries it still has to overwrite."""


class DiscardLeftover(Struct, frozen=True, tag="leftover", gc=False):
    """Move a leftover of an interrupted write to the trash."""

    path: str
    """Path inside the store."""


StructureAction = WriteInfo | WriteJournal | CutJournal | NamePhase | SetCurrent
"""Actions on tape.json and on the journal."""
RepairAction = (
    StructureAction | CutTail | RecordTail | QuarantineBlob | CompleteRedaction | DiscardLeftover
)


def describe_action(action: RepairAction) -> str:
    """Return a sentence that says what an action will do."""
    match action:
        case CutTail(phase, _, end, size):
            return (
                f"move the last {size - end} bytes of phases/{phase}/{ENTRIES} "
                f"to quarantine/{phase}.{end}, and record this in a repair entry"
            )
        case RecordTail(_, branch, quarantined):
            return f"append a repair entry to {branch} that describes quarantine/{quarantined}"
        case QuarantineBlob(file):
            return f"move {file} to quarantine; readers then show a placeholder"
        case CompleteRedaction(entries):
            ids = ", ".join(entry[:_ACTION_ID_DIGITS] for entry in entries)
            of = f"overwrite the data of {ids}" if entries else "complete a redaction"
            return f"{of}, as a redact entry says: this cannot be undone"
        case DiscardLeftover(path):
            return f"move {path} to the store's trash"
        case _:
            return _describe_structure_action(action)


def _describe_structure_action(action: StructureAction) -> str:
    match action:
        case WriteInfo():
            return "copy tape.json to quarantine and write it again from the start entry"
        case WriteJournal(phases):
            new = f", and one for each of {', '.join(phases)}" if phases else ""
            return (
                f"copy {JOURNAL_NAME} to quarantine and replace it by one with its good lines{new}"
            )
        case CutJournal(end, size):
            return f"move the last {size - end} bytes of {JOURNAL_NAME} to quarantine/refs.{end}"
        case NamePhase(phase, branch):
            line = f"write the line of {phase} into {JOURNAL_NAME} again"
            return f"{line}, which makes it {branch}'s newest"
        case SetCurrent(branch):
            return f"make {branch} the current branch"
        case _:
            assert_never(action)


class _JournalLineTime(Struct, gc=False):
    time: str


_JOURNAL_LINE_TIME = msgspec.json.Decoder(_JournalLineTime)


def find_lost_phases(facts: Inspection) -> list[InspectedPhase]:
    """Return the phases that lost their journal line.

    A phase with a single entry may never have been committed. It counts only as the start of the
    tape, or where journal lines are damaged and naming it removes no later entry from its branch.
    """
    named = facts.refs.phases()
    damaged = facts.journal is None or bool(facts.refs.damage)

    def is_safe_to_name(phase: InspectedPhase) -> bool:
        moves = facts.refs.branches.get(phase.branch)
        if not moves or phase.base is None:
            return True
        pin, newest = moves[-1].pin, facts.phases.get(moves[-1].phase)
        head = pin.entry if pin is not None else newest and newest.last
        return head == phase.base.entry

    return [
        phase
        for name, phase in facts.phases.items()
        if name not in named
        and (phase.several or phase.why == "start" or (damaged and is_safe_to_name(phase)))
    ]


def rebuild_journal(journal: bytes, lost: Sequence[InspectedPhase]) -> bytes:
    """Return a journal of the good lines in order, with new lines for the lost phases.

    A new line replaces a damaged one: the first that has no older good line after it. A last line
    makes an existing branch current where the journal's current branch does not exist.

        journal        1 main 10:00   2 (damaged)   3 try 10:20   4 (damaged)
        lost phases    a, begun 10:10                b, begun 10:30
        rebuilt        1 main 10:00   a 10:10        3 try 10:20   b 10:30

    Phase a fits the first gap, because the next good line is younger. Phase b does not: line 3 is
    older than b, and so b fills the last gap.
    """
    # After the last line break there is a torn line or nothing; neither is a line.
    lines = journal.split(b"\n")[:-1]
    places = [at for at, line in enumerate(lines) if not _is_good_line(line)] or [len(lines)]

    def is_begun_before(phase: InspectedPhase, at: int) -> bool:
        later = next(filter(_is_good_line, lines[at:]), None)
        return later is not None and phase.time < _JOURNAL_LINE_TIME.decode(later).time

    new: dict[int, list[bytes]] = {}
    for phase in lost:
        place = next((at for at in places if is_begun_before(phase, at)), places[-1])
        new.setdefault(place, []).append(encode_journal_line(phase))
    parts = []
    for at, line in enumerate([*lines, b""]):
        parts += new.get(at, [])
        parts += [line + b"\n"] if _is_good_line(line) else []
    rebuilt = b"".join(parts)
    refs = replay_journal(rebuilt)
    branch = choose_current(rebuilt, refs)
    if branch is None:
        return rebuilt
    time = max((phase.time for phase in lost), default=refs.branches[branch][-1].time)
    return rebuilt + encode_ref_line({"current": branch, "why": "switch", "time": time})


def _is_good_line(line: bytes) -> bool:
    return replay_journal(line + b"\n").size > 0


def encode_journal_line(phase: InspectedPhase) -> bytes:
    """Return the journal line of a phase, built from its first entry."""
    fields = {"branch": phase.branch, "phase": phase.name, "pin": None}
    return encode_ref_line({**fields, "why": phase.why, "time": phase.time})


def choose_current(journal: bytes, refs: Refs) -> str | None:
    """Return the branch to make current if the journal's one does not exist; else None."""
    names_current = any(
        b'","current":"' in line for line in journal.split(b"\n")[:-1] if _is_good_line(line)
    )
    if not refs.branches or (names_current and refs.current in refs.branches):
        return None
    return MAIN_BRANCH if MAIN_BRANCH in refs.branches else list(refs.branches)[-1]


def plan_repairs(findings: Sequence[Finding], facts: Inspection) -> tuple[RepairAction, ...]:
    """Return the actions of a repair, in order."""
    bad = [finding for finding in findings if finding.level != "note"]
    starts = [phase.begin for phase in facts.phases.values() if phase.why == "start"]
    recorded = [(getattr(start, "tape", ""), getattr(start, "origin", None)) for start in starts]
    has_wrong_info = len(recorded) == 1 and recorded[0] != (facts.info.id, facts.info.origin)
    is_unreadable = any(finding.kind is FindingKind.INFO_UNREADABLE for finding in bad)
    is_unredacted = any(finding.kind is FindingKind.REDACTION for finding in findings)
    # tape.json and the journal first: the actions after them open branches by their names. What
    # cannot be undone comes after all that moves bytes to quarantine.
    return (
        *([WriteInfo()] if has_wrong_info or is_unreadable else []),
        *_plan_journal(bad, facts),
        *_plan_tails(bad, facts),
        *filter(None, (plan_record(finding, facts) for finding in findings)),
        *(QuarantineBlob(finding.file) for finding in bad if finding.kind is FindingKind.BLOB),
        *([CompleteRedaction(facts.unfinished)] if is_unredacted else []),
        *(DiscardLeftover(path) for path in facts.leftovers),
    )


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
    """Yield the cuts of unneeded tails; damage with good lines after it is not a tail.

    A tail is needed where a branch, a phase or a tape continues from an entry in it.
    """
    committed = facts.refs.phases() | {phase.name for phase in find_lost_phases(facts)}
    for name in sorted(facts.phases.keys() & committed):
        phase = facts.phases[name]
        end, size = phase.tail.end, phase.tail.size
        here = [
            finding
            for finding in bad
            if finding.offset is not None and get_finding_phase(finding) == name
        ]
        if not any((finding.offset or 0) >= end for finding in here):
            continue
        needed = {*facts.list_tapes_over(name, end)}
        for other in facts.phases.values():
            base = other.base
            if base is not None and base.phase == name and base.offset >= end:
                needed.add(other.name)
        for finding in bad:
            if get_finding_phase(finding) == name and (finding.offset or 0) >= end:
                needed.update(finding.depends)
        # The branch itself is no reason to keep its tail: it goes on from the last good line.
        if _is_newest_phase(facts, phase):
            needed.discard(phase.branch)
        if size > end and not needed:
            yield CutTail(name, phase.branch, end, size)


def plan_record(finding: Finding, facts: Inspection) -> RecordTail | None:
    """Return the missing repair entry of a tail; None where no writer can append it."""
    file_name = finding.file.rpartition("/")[2]
    phase = facts.phases.get(parse_kept_phase(file_name))
    if (
        finding.kind is not FindingKind.UNRECORDED
        or phase is None
        or not _is_newest_phase(facts, phase)
    ):
        return None
    return RecordTail(phase.name, phase.branch, file_name)


def _is_newest_phase(facts: Inspection, phase: InspectedPhase) -> bool:
    """Return whether the branch ends in this phase, so that opening it cuts the tail."""
    moves = facts.refs.branches.get(phase.branch, ())
    return not moves or (moves[-1].phase == phase.name and moves[-1].pin is None)
