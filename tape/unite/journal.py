"""What the union of two copies of a tape says of branches, labels, title and current branch.

Lines of the two journals are united by their hash `h`. What both moved is decided so that both
copies come to the same, in whichever order they are united:

| in both copies | the union |
|---|---|
| a branch that one of them moved | is where that one moved it |
| a branch that both moved | is at the newer of the two ends (time of the entry, then id) |
| a label, the title, the current branch | the newest line counts (time, then `h`) |

Where the other copy is the one that everybody shares, its end of a branch that both moved counts.
The other end of a branch that both moved becomes a branch of its own, `main.<machine>`, so nothing
is dropped. A branch moved if its head is not where the lines and entries that both copies share
leave it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..store.refs import (
    JOURNAL_NAME,
    Move,
    Pin,
    Refs,
    decode_ref_line,
    find_head,
    replay_journal,
)
from ..store.replica import build_machine_slug

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..store.refs import Head, RefLine
    from ..store.replica import Replica
    from ..store.tape import Tape
    from .phases import PhasePair

_MAX_NAME = 48
_WHY = "unite"


class Side(NamedTuple):
    """One of the two copies: its journal and the heads of its branches."""

    lines: tuple[bytes, ...]
    """The good lines of its journal, without their newlines."""
    refs: Refs
    heads: Mapping[str, Head]
    machine: str
    """What its ends are called when both moved a branch."""


class KeptEnd(NamedTuple):
    """A branch that moved in both copies, and the branch that its other end became."""

    branch: str
    other: str


class JournalPlan(NamedTuple):
    """What to append to the journal here."""

    lines: tuple[bytes, ...]
    """Lines that only the other copy has."""
    decisions: tuple[dict[str, Any], ...]
    """Fields of the lines that decide what both moved."""
    kept: tuple[KeptEnd, ...]


def read_side(tape: Tape, machine: str) -> Side:
    """Return the journal and the heads of a tape; raise Damaged where a head cannot be read."""
    refs = tape.refs()
    if refs.damage:
        raise refs.damage[0]
    data = tape.folder.read(JOURNAL_NAME)[: refs.size]
    heads = {name: find_head(refs, tape.phases, name) for name in refs.branches}
    return Side(tuple(data.split(b"\n")[:-1]), refs, heads, machine)


def name_machines(here: Replica | None, there: Replica | None) -> tuple[str, str]:
    """Return what the ends of two copies are called, never the same."""
    names = [build_machine_slug(one.machine) if one else "other" for one in (here, there)]
    if names[0] == names[1]:
        marks = [one.id[:4] if one else "0" for one in (here, there)]
        names = [f"{name}-{mark}" for name, mark in zip(names, marks, strict=True)]
    return names[0], names[1]


def plan_journal(
    here: Side, there: Side, pairs: Mapping[str, PhasePair], *, keeps_theirs: bool = False
) -> JournalPlan:
    """Return what to append here so that the journal says what both say.

    With `keeps_theirs` a branch that both moved is at their end.
    """
    own = {*here.lines}
    lines = tuple(line for line in there.lines if line not in own)
    theirs = {*there.lines}
    # Earlier unions appended lines in another order to each: either may be what they agreed on.
    shared = (
        _replay_lines(line for line in here.lines if line in theirs),
        _replay_lines(line for line in there.lines if line in own),
    )
    after = _replay_lines((*here.lines, *lines))
    kept: list[KeptEnd] = []
    decisions: list[dict[str, Any]] = []
    for name in sorted({*here.refs.branches, *there.refs.branches}):
        move, other = _decide_branch(name, here, there, shared, pairs, keeps_theirs=keeps_theirs)
        if other is not None:
            kept.append(KeptEnd(name, other.branch))
            decisions += _restate_move(other, after)
        decisions += _restate_move(move, after)
    decisions += _decide_names((*here.lines, *lines), after)
    return JournalPlan(lines, tuple(decisions), tuple(kept))


def _replay_lines(lines: Iterable[bytes]) -> Refs:
    return replay_journal(b"".join(line + b"\n" for line in lines))


def _decide_branch(
    name: str,
    here: Side,
    there: Side,
    shared: tuple[Refs, Refs],
    pairs: Mapping[str, PhasePair],
    *,
    keeps_theirs: bool,
) -> tuple[Move, Move | None]:
    """Return where a branch is in the union, and the branch for its other end if it has two."""
    ours, theirs = here.heads.get(name), there.heads.get(name)
    if theirs is None or (ours is not None and ours.entry == theirs.entry):
        return here.refs.branches[name][-1], None
    if ours is None:
        return there.refs.branches[name][-1], None
    bases = [refs.branches[name][-1] for refs in shared if name in refs.branches]
    we_moved = not any(_is_at(ours, base, pairs) for base in bases)
    they_moved = not any(_is_at(theirs, base, pairs) for base in bases)
    if we_moved != they_moved:
        return (here if we_moved else there).refs.branches[name][-1], None
    first, second = (ours, here), (theirs, there)
    if keeps_theirs or _rank_head(theirs) > _rank_head(ours):
        first, second = second, first
    other = _pin_head(
        choose_end_name(name, second[0], second[1].machine, (here.heads, there.heads)), second[0]
    )
    pair = pairs.get(theirs.phase)
    if keeps_theirs and pair is not None and (pair.here or 0) <= pair.there:
        return there.refs.branches[name][-1], other  # it may grow: a pin would leave that behind
    return _pin_head(name, first[0]), other


def _is_at(head: Head, base: Move, pairs: Mapping[str, PhasePair]) -> bool:
    """Return whether a head is where a move left it, by the entries that both copies share."""
    if base.pin is not None:
        return head.entry == base.pin.entry
    pair = pairs.get(base.phase)
    return pair is not None and (head.phase, head.end) == (base.phase, pair.shared)


def _rank_head(head: Head) -> tuple[str, str]:
    return head.header.time, head.entry


def _pin_head(name: str, head: Head) -> Move:
    return Move(name, head.phase, Pin(head.offset, head.entry), _WHY, "")


def choose_end_name(
    name: str, head: Head, machine: str, known: Sequence[Mapping[str, Head]]
) -> str:
    """Return the name of the branch for an end: main.laptop, or with a number if that is taken.

    `known` are the heads of the branches that there are.
    """
    stem, number = f"{name[: _MAX_NAME - len(machine) - 6].rstrip('.-_')}.{machine}", 2
    free = stem
    while any(free in heads and heads[free].entry != head.entry for heads in known):
        free, number = f"{stem}.{number}", number + 1
    return free


def _restate_move(move: Move, after: Refs) -> list[dict[str, Any]]:
    """Return the line that moves a branch there; none if it is there without."""
    moves = after.branches.get(move.branch)
    if moves and (moves[-1].phase, moves[-1].pin) == (move.phase, move.pin):
        return []
    return [{"branch": move.branch, "phase": move.phase, "pin": move.pin, "why": _WHY}]


def _decide_names(lines: Sequence[bytes], after: Refs) -> list[dict[str, Any]]:
    """Return the lines that restate labels, title and current branch where the newest is not last.

    `after` is the state after all lines, in file order.
    """
    newest: dict[str, RefLine] = {}
    for line in map(decode_ref_line, lines):
        if line is None or line.branch is not None:
            continue
        key = "title" if line.title is not None else "current"
        key = key if line.label is None else f"label {line.label}"
        if key not in newest or (line.time, line.h) > (newest[key].time, newest[key].h):
            newest[key] = line
    decisions: list[dict[str, Any]] = []
    for line in newest.values():
        if line.label is not None:
            if after.labels.get(line.label) != line.entry:
                decisions.append({"label": line.label, "entry": line.entry, "why": _WHY})
        elif line.title is not None:
            if after.title != line.title:
                decisions.append({"title": line.title, "why": _WHY})
        elif line.current is not None and after.current != line.current:
            decisions.append({"current": line.current, "why": _WHY})
    return decisions
