"""Checking the journal: every line, the head of every move, and which branches depend on a line."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ..branches import find_head, read_head_at
from ..errors import TapeError
from ..path import read_base
from ..payload import JSON_ERRORS, describe_missing_blob
from ..phase import ENTRIES, ORIGIN
from ..refs import JOURNAL_NAME, Pin, Refs, check_ref_name
from .finding import FindingKind, build_damage, build_note, check_time
from .tails import describe_tail

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

    def check_lines(self) -> Iterator[Finding]:
        """Check every line of the journal."""
        self._bases = dict(self._read_bases())
        try:
            self.refs = self._tape.refs()
            data = self._tape.folder.read(JOURNAL_NAME)
        except (TapeError, OSError) as error:
            yield build_damage(FindingKind.JOURNAL, JOURNAL_NAME, f"cannot be read: {error}")
            return
        for bad in self.refs.damage:
            start = bad.offset or 0
            line = data.count(b"\n", 0, start) + 1
            message = "its hash does not match its bytes"
            yield build_damage(
                FindingKind.JOURNAL_LINE, JOURNAL_NAME, message, line=line, offset=start
            )
        yield from _check_journal_times(data)
        yield from self._check_tail(data)
        if self.refs.current not in self.refs.branches:
            message = f"the current branch {self.refs.current!r} does not exist"
            yield build_damage(FindingKind.CURRENT, JOURNAL_NAME, message)

    def _check_tail(self, data: bytes) -> Iterator[Finding]:
        start, folder = self.refs.size, self._tape.folder
        if self._tape.refs().size == start and start < len(data):
            line = data.count(b"\n", 0, start) + 1
            on = tuple(self.refs.branches)
            yield describe_tail(folder, JOURNAL_NAME, "refs", start, len(data), line, on)

    def _read_bases(self) -> Iterator[tuple[str, Place]]:
        for name in self._names:
            try:
                first = self._tape.phases.first(name, describe_missing_blob)
                base = read_base(first) if first else None
            except (TapeError, OSError, ValueError):
                continue  # reported when the phase's lines are read
            if base is not None:
                yield name, base

    def check_moves(self, branches: Mapping[str, str]) -> Iterator[Finding]:
        """Check that every move points at an entry; `branches` maps each phase to its branch."""
        for branch, moves in self.refs.branches.items():
            for ago, move in enumerate(reversed(moves)):
                wrong = self._explain_wrong_move(move, ago, branches)
                if wrong:
                    where = f"branch {branch!r}" + (f" {ago} moves ago" if ago else "")
                    on = () if ago else (branch,)
                    yield build_damage(FindingKind.HEAD, JOURNAL_NAME, f"{where}: {wrong}", on=on)

    def _explain_wrong_move(self, move: Move, ago: int, branches: Mapping[str, str]) -> str:
        try:
            check_ref_name("branch", move.branch)
            if move.pin is not None:
                read_head_at(
                    self._tape.phases, move.branch, move.phase, move.pin.offset, move.pin.entry
                )
            elif ago == 0:
                find_head(self.refs, self._tape.phases, move.branch)
            elif not self._tape.phases.folder.has(move.phase):
                return f"its phase {move.phase!r} does not exist"
        except (TapeError, OSError) as error:
            return f"it has no head: {error}"
        if move.pin is None and branches.get(move.phase, move.branch) != move.branch:
            return f"{move.phase} is the phase of another branch, and no entry is pinned"
        return ""

    def find_uncommitted(self, sizes: Mapping[str, int]) -> Iterator[Finding]:
        """Yield findings for phases that no ref names; `sizes` is the number of lines in each."""
        for name in self._find_unnamed():
            if sizes[name] > 1:
                message = (
                    f"{sizes[name]} entries that {JOURNAL_NAME} does not name; readers ignore them"
                )
                yield build_damage(FindingKind.UNNAMED, f"phases/{name}/{ENTRIES}", message)
            else:
                message = "started but never committed: readers ignore it"
                yield build_note(FindingKind.UNCOMMITTED, f"phases/{name}", message)

    def _find_unnamed(self) -> list[str]:
        """Return phases without a ref, by the journal read again: a writer may have appended."""
        if not self.list_named_phases().issuperset(self._names):
            with suppress(TapeError, OSError):  # reported already
                self.refs = self._tape.refs()
        named = self.list_named_phases()
        return [name for name in self._names if name not in named]

    def list_named_phases(self) -> set[str]:
        """Return the phases that refs name."""
        return {move.phase for moves in self.refs.branches.values() for move in moves}

    def find_branches_over(self, phase: str, offset: int = 0) -> tuple[str, ...]:
        """Return the branches whose path includes the line at `offset` of a phase."""
        heads = {branch: moves[-1] for branch, moves in self.refs.branches.items()}
        return tuple(
            branch
            for branch, head in heads.items()
            if offset < self._find_path_ends(head.phase, head.pin).get(phase, 0)
        )

    def _find_path_ends(self, phase: str, pin: Pin | None) -> dict[str, float]:
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


class _TimedJournalLine(Struct):
    time: str


def _check_journal_times(data: bytes) -> Iterator[Finding]:
    """Yield a finding for each journal line with an invalid time; unreadable lines are skipped."""
    start = 0
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        with suppress(*JSON_ERRORS):
            for kind, message in check_time(msgspec.json.decode(line, type=_TimedJournalLine).time):
                yield build_damage(kind, JOURNAL_NAME, message, line=number, offset=start)
        start += len(line) + 1
