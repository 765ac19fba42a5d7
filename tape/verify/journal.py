"""Checking the journal: every line, the head of every move, and which branches depend on a line."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ..branches import at, head_of
from ..errors import TapeError
from ..path import base_of
from ..payload import UNREADABLE, missing_blob
from ..phase import ENTRIES, ORIGIN
from ..refs import REFS, Pin, Refs, checked_name
from .finding import Kind, damage, note, odd_time
from .tails import tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..entries import Place
    from ..refs import Move
    from ..tape import Tape
    from .finding import Finding


class JournalCheck:
    """Checks refs.jsonl of one tape, and the phases it names."""

    def __init__(self, tape: Tape, names: Sequence[str]) -> None:
        self._tape, self._names = tape, names
        self.refs = Refs({}, {})
        self._bases: dict[str, Place] = {}

    def lines(self) -> Iterator[Finding]:
        """Check every line of the journal."""
        self._bases = dict(self._read_bases())
        try:
            self.refs = self._tape.refs()
            data = self._tape.folder.read(REFS)
        except (TapeError, OSError) as error:
            yield damage(Kind.JOURNAL, REFS, f"cannot be read: {error}")
            return
        for bad in self.refs.damage:
            start = bad.offset or 0
            line = data.count(b"\n", 0, start) + 1
            message = "its hash does not match its bytes"
            yield damage(Kind.JOURNAL_LINE, REFS, message, line=line, offset=start)
        yield from _times(data)
        yield from self._tail(data)
        if self.refs.current not in self.refs.branches:
            message = f"the current branch {self.refs.current!r} does not exist"
            yield damage(Kind.CURRENT, REFS, message)

    def _tail(self, data: bytes) -> Iterator[Finding]:
        start, folder = self.refs.size, self._tape.folder
        if self._tape.refs().size == start and start < len(data):
            line = data.count(b"\n", 0, start) + 1
            on = tuple(self.refs.branches)
            yield tail(folder, REFS, "refs", start, len(data), line, on)

    def _read_bases(self) -> Iterator[tuple[str, Place]]:
        for name in self._names:
            try:
                first = self._tape.phases.first(name, missing_blob)
                base = base_of(first) if first else None
            except (TapeError, OSError, ValueError):
                continue  # reported when the phase's lines are read
            if base is not None:
                yield name, base

    def moves(self, branches: Mapping[str, str]) -> Iterator[Finding]:
        """Check that every move points at an entry; `branches` maps each phase to its branch."""
        for branch, moves in self.refs.branches.items():
            for ago, move in enumerate(reversed(moves)):
                wrong = self._wrong_move(move, ago, branches)
                if wrong:
                    where = f"branch {branch!r}" + (f" {ago} moves ago" if ago else "")
                    on = () if ago else (branch,)
                    yield damage(Kind.HEAD, REFS, f"{where}: {wrong}", on=on)

    def _wrong_move(self, move: Move, ago: int, branches: Mapping[str, str]) -> str:
        try:
            checked_name("branch", move.branch)
            if move.pin is not None:
                at(self._tape.phases, move.branch, move.phase, move.pin.offset, move.pin.entry)
            elif ago == 0:
                head_of(self.refs, self._tape.phases, move.branch)
            elif not self._tape.phases.folder.has(move.phase):
                return f"its phase {move.phase!r} does not exist"
        except (TapeError, OSError) as error:
            return f"it has no head: {error}"
        if move.pin is None and branches.get(move.phase, move.branch) != move.branch:
            return f"{move.phase} is the phase of another branch, and no entry is pinned"
        return ""

    def uncommitted(self, sizes: Mapping[str, int]) -> Iterator[Finding]:
        """Yield findings for phases that no ref names; `sizes` is the number of lines in each."""
        for name in self._unnamed():
            if sizes[name] > 1:
                message = f"{sizes[name]} entries that {REFS} does not name; readers ignore them"
                yield damage(Kind.UNNAMED, f"phases/{name}/{ENTRIES}", message)
            else:
                message = "started but never committed: readers ignore it"
                yield note(Kind.UNCOMMITTED, f"phases/{name}", message)

    def _unnamed(self) -> list[str]:
        """Return phases without a ref, by the journal read again: a writer may have appended."""
        if not self.named().issuperset(self._names):
            with suppress(TapeError, OSError):  # reported already
                self.refs = self._tape.refs()
        named = self.named()
        return [name for name in self._names if name not in named]

    def named(self) -> set[str]:
        """Return the phases that refs name."""
        return {move.phase for moves in self.refs.branches.values() for move in moves}

    def over(self, phase: str, offset: int = 0) -> tuple[str, ...]:
        """Return the branches whose path includes the line at `offset` of a phase."""
        heads = {branch: moves[-1] for branch, moves in self.refs.branches.items()}
        return tuple(
            branch
            for branch, head in heads.items()
            if offset < self._ends(head.phase, head.pin).get(phase, 0)
        )

    def _ends(self, phase: str, pin: Pin | None) -> dict[str, float]:
        """Return the phases of a path, each with the offset after which the path leaves it."""
        ends: dict[str, float] = {}
        end = math.inf if pin is None else pin.offset + 1
        while phase not in ends:
            ends[phase] = end
            base = self._bases.get(phase)
            if base is None:
                break
            is_own = base.tape in (None, self._tape.id)
            phase, end = (base.phase, base.offset + 1) if is_own else (ORIGIN, math.inf)
        return ends


class _Timed(Struct):
    time: str


def _times(data: bytes) -> Iterator[Finding]:
    """Yield a finding for each journal line with an invalid time; unreadable lines are skipped."""
    start = 0
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        with suppress(*UNREADABLE):
            for kind, message in odd_time(msgspec.json.decode(line, type=_Timed).time):
                yield damage(kind, REFS, message, line=number, offset=start)
        start += len(line) + 1
