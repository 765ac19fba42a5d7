"""Branches that somebody works on elsewhere: what was written on them here continues beside them.

Such a branch goes back to where the remote has it, and its end here becomes a branch of its own,
`main.<machine>`, as where both copies of a tape moved it (`unite.journal`). No entry is touched.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ..errors import Busy
from ..store.locks import hold_lock_in
from ..store.refs import JOURNAL_NAME, Pin, decode_ref_line, find_head, read_head_at, replay_journal
from ..unite.journal import KeptEnd, choose_end_name, name_machines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..store.refs import Head, Move
    from ..store.replica import Replica
    from ..store.tape import Tape
    from .cursor import TapeCursor
    from .leases import Lease


def set_ends_aside(
    tape: Tape, known: TapeCursor, holders: Mapping[str, Lease], replica: Replica | None
) -> tuple[KeptEnd, ...]:
    """Move the ends of held branches aside that are not where the remote has them.

    `known` is what it has. Raises Busy for such a branch that is being written here as well.
    """
    refs = tape.refs()
    own = tape.folder.read(JOURNAL_NAME)[: refs.size].split(b"\n")[:-1]
    lines = {parsed.h: line for line in own if (parsed := decode_ref_line(line)) is not None}
    there = replay_journal(b"".join(lines[h] + b"\n" for h in known.journal if h in lines))
    machine = name_machines(replica, None)[0]
    ends: list[KeptEnd] = []
    decisions: list[dict[str, Any]] = []
    with ExitStack() as locks:
        for branch in sorted({*holders} & {*refs.branches} & {*there.branches}):
            move = there.branches[branch][-1]
            base = _find_base(tape, move, known)
            if base is None or find_head(refs, tape.phases, branch).entry == base.entry:
                continue
            try:
                locks.enter_context(hold_lock_in(tape.folder, branch, wait=0))
            except Busy as error:
                raise Busy(
                    f"{holders[branch].holder} works on {branch}, and so does a program here: "
                    "push again when that has ended"
                ) from error
            refs = tape.refs()
            end = find_head(refs, tape.phases, branch)
            heads = {name: find_head(refs, tape.phases, name) for name in refs.branches}
            other = choose_end_name(branch, end, machine, [heads])
            ends.append(KeptEnd(branch, other))
            decisions.append(_build_pin(other, end))
            if move.pin is None and _is_whole(
                tape, move.phase, known
            ):  # whoever holds it continues there
                decisions.append({**_build_pin(branch, base), "pin": None})
            else:
                decisions.append(_build_pin(branch, base))
        if decisions:
            for head in decisions:
                tape.phases.sync(head["phase"])
            with tape.notify_projection(), tape.journal.open_moves() as moves:
                moves.adopt((), decisions)
    return tuple(ends)


def _find_base(tape: Tape, move: Move, known: TapeCursor) -> Head | None:
    """Return the entry at which the remote has a branch; None for one that has none there."""
    if move.pin is not None:
        return read_head_at(tape.phases, move.branch, move.phase, move.pin.offset, move.pin.entry)
    with tape.phases.open(move.phase) as file:
        last = next(iter(file.read_lines_back(known.sizes.get(move.phase, 0))), None)
    return None if last is None else read_head_at(tape.phases, move.branch, move.phase, last[0])


def _is_whole(tape: Tape, phase: str, known: TapeCursor) -> bool:
    """Return whether the remote has all that is here of a phase."""
    with tape.phases.open(phase) as file:
        return file.size() == known.sizes.get(phase)


def _build_pin(branch: str, head: Head) -> dict[str, Any]:
    pin = Pin(head.offset, head.entry)
    return {"branch": branch, "phase": head.phase, "pin": pin, "why": "unite"}
