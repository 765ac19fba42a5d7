"""The union of two copies of one tape.

Order, so that a kill at any point loses nothing: blobs, the missing ends of phases, whole new
phases in `.unite/`, and the journal lines that name them beside those. With these the union is
decided: the next writer completes it, if need be. Before them the next union begins again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..errors import UsageError
from ..store.redaction import MARK_NAME, RedactionMark, complete_redaction, resume_redaction
from ..store.refs import JOURNAL_NAME, UNITE_FOLDER
from ..store.tape_folder import is_archived
from .journal import name_machines, plan_journal, read_side
from .phases import PhaseCopier, PhasePair, pair_phases

if TYPE_CHECKING:
    from ..store.replica import Replica
    from ..store.tape import Tape
    from .journal import JournalPlan, KeptEnd


class TapeUnion(NamedTuple):
    """What a union brought to the tape here."""

    entries: int
    """Number of entries."""
    phases: tuple[str, ...]
    """New phases."""
    moves: int
    """Number of journal lines: moves of branches, labels, titles."""
    kept: tuple[KeptEnd, ...]
    """Branches that moved in both copies, and the branches of their other ends."""
    lost: tuple[str, ...]
    """Hashes of blobs that the new entries name and the other copy does not have."""


def unite_tapes(
    here: Tape, there: Tape, other: Replica | None = None, *, keeps_theirs: bool = False
) -> TapeUnion:
    """Bring everything of `there`, another copy of the same tape, to `here`.

    `other` is the copy of the store that `there` is in; with `keeps_theirs` a branch that moved in
    both copies stays where it is there. Only `here` changes. Raises UsageError for
    two tapes, Busy while a branch here is being written, Damaged where the other copy does not
    verify, TapeError where both copies hold different entries at one place; nothing changes then.
    """
    if here.id != there.id:
        raise UsageError(f"{there.folder.name} is a copy of tape {there.id[:8]}, not {here.id[:8]}")
    machines = name_machines(here.replica(), other)
    theirs = read_side(there, machines[1])  # first: what is written there meanwhile is left out
    ends = {head.phase: head.end for head in theirs.heads.values() if not head.pinned}

    def compare() -> tuple[list[PhasePair], JournalPlan]:
        pairs = pair_phases(here, there, ends)
        ours = read_side(here, machines[0])
        plan = plan_journal(ours, theirs, pairs, keeps_theirs=keeps_theirs)
        return [pair for pair in pairs.values() if pair.there > (pair.here or 0)], plan

    if is_archived(here.folder):  # its locks are taken for something new only: they unpack it
        missing, plan = compare()
        if not missing and not plan.lines and not plan.decisions:
            return TapeUnion(0, (), 0, plan.kept, ())
    with here.hold_all_locks(), here.notify_projection(), here.journal.open_moves() as moves:
        if here.folder.has(MARK_NAME):  # a union, or a redaction, was interrupted
            resume_redaction(here)
        missing, plan = compare()
        if not missing and not plan.lines and not plan.decisions:
            return TapeUnion(0, (), 0, plan.kept, ())
        redacted = here.phases.read_redacted_ids() if missing else frozenset()
        copier = PhaseCopier(here, there, redacted)
        mark = None
        if missing and there.phases.read_redacted_ids() - redacted:
            mark = RedactionMark.place_mark(here.folder)  # a kill from here on: resumed by a writer
        lines = moves.encode_union(plan.lines, plan.decisions)
        new = _copy_phases(here, copier, missing, lines)
        if new:
            moves.complete_union()
        else:
            moves.append_lines(lines)
        if mark is not None:
            with mark:
                complete_redaction(here)
                mark.remove()
    return TapeUnion(
        copier.entries,
        new,
        len(plan.lines) + len(plan.decisions),
        plan.kept,
        tuple(sorted(copier.lost)),
    )


def _copy_phases(
    here: Tape, copier: PhaseCopier, missing: list[PhasePair], lines: bytes
) -> tuple[str, ...]:
    """Copy what is missing, and return the names of the new phases.

    Those are in `.unite/`, with the lines that name them: see `Moves.complete_union`.
    """
    new = tuple(pair.name for pair in missing if pair.here is None)
    if here.folder.has(UNITE_FOLDER):  # of a union that was killed before it was decided
        here.folder.remove(UNITE_FOLDER)
    for pair in missing:
        if pair.here is not None:
            copier.lengthen_phase(pair)
    if new:
        with here.folder.make(UNITE_FOLDER) as aside:
            for pair in missing:
                if pair.here is None:
                    copier.build_phase(aside, pair)
            aside.write_whole(JOURNAL_NAME, lines, f".{JOURNAL_NAME}")
            aside.sync()
        here.folder.sync()
    return new
