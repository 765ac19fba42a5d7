"""Rebuilding the journal from its good lines and from the phases that lost their line; pure.

A lost pin, title or label cannot be rebuilt: the old line stays readable in quarantine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ..refs import MAIN_BRANCH, encode_ref_line, replay_journal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..refs import Refs
    from .facts import InspectedPhase, Inspection


class _JournalLineTime(Struct, gc=False):
    time: str


def find_lost_phases(facts: Inspection) -> list[InspectedPhase]:
    """Return the phases that lost their journal line.

    A phase with a single entry may never have been committed. It counts only as the start of the
    tape, or where journal lines are damaged and naming it removes no later entry from its branch.
    """
    named = facts.refs.phases()
    damaged = facts.journal is None or bool(facts.refs.damage)
    return [
        phase
        for name, phase in facts.phases.items()
        if name not in named
        and (phase.several or phase.why == "start" or (damaged and _is_safe_to_name(facts, phase)))
    ]


def _is_safe_to_name(facts: Inspection, phase: InspectedPhase) -> bool:
    moves = facts.refs.branches.get(phase.branch)
    if not moves or phase.base is None:
        return True
    if moves[-1].pin is not None:
        return moves[-1].pin.entry == phase.base.entry
    stands = facts.phases.get(moves[-1].phase)
    return stands is not None and stands.last == phase.base.entry


def rebuild_journal(journal: bytes, lost: Sequence[InspectedPhase]) -> bytes:
    """Return a journal of the good lines in order, with new lines for the lost phases.

    A new line replaces a damaged one: the first that has no older good line after it.
    """
    lines = journal.split(b"\n")[:-1]
    places = [at for at, line in enumerate(lines) if not _is_good_line(line)] or [len(lines)]
    new: dict[int, list[bytes]] = {}
    for phase in lost:
        place = next((at for at in places if _is_begun_before(phase, lines[at:])), places[-1])
        new.setdefault(place, []).append(encode_journal_line(phase))
    parts = []
    for at, line in enumerate([*lines, b""]):
        parts += new.get(at, [])
        parts += [line + b"\n"] if _is_good_line(line) else []
    return _add_current(b"".join(parts), lost)


def _is_good_line(line: bytes) -> bool:
    return replay_journal(line + b"\n").size > 0


def _is_begun_before(phase: InspectedPhase, behind: Iterable[bytes]) -> bool:
    """Return whether a phase began before the next good line was written."""
    later = next((line for line in behind if _is_good_line(line)), None)
    return later is not None and phase.time < msgspec.json.decode(later, type=_JournalLineTime).time


def encode_journal_line(phase: InspectedPhase) -> bytes:
    """Return the journal line of a phase, built from its first entry."""
    fields = {"branch": phase.branch, "phase": phase.name, "pin": None}
    return encode_ref_line({**fields, "why": phase.why, "time": phase.time})


def _add_current(journal: bytes, lost: Sequence[InspectedPhase]) -> bytes:
    """Return the journal with a current branch that exists."""
    refs = replay_journal(journal)
    branch = choose_current(journal, refs)
    if branch is None:
        return journal
    time = max((phase.time for phase in lost), default=refs.branches[branch][-1].time)
    return journal + encode_ref_line({"current": branch, "why": "switch", "time": time})


def choose_current(journal: bytes, refs: Refs) -> str | None:
    """Return the branch to make current if the journal's one does not exist; else None."""
    says = any(
        b'","current":"' in line for line in journal.split(b"\n")[:-1] if _is_good_line(line)
    )
    if not refs.branches or (says and refs.current in refs.branches):
        return None
    return MAIN_BRANCH if MAIN_BRANCH in refs.branches else list(refs.branches)[-1]
