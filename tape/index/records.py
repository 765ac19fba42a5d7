"""The facts that lists show of a tape and its branches, counted line by line and resumable.

Invariant: continuing gives the same as reading again, also to the last bit of a cost.
"""

from __future__ import annotations

from contextlib import suppress
from math import fsum
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from msgspec import Struct

from ..errors import TapeError
from ..reference import is_id_prefix
from ..store.phase import ORIGIN
from ..store.refs import read_head_at
from ..text import extract_title

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..model.line import Header
    from ..store.phase import Phases
    from ..store.refs import Move, Refs
    from ..store.tape import Tape
    from .contents import CallUsage, LineContents

_ENTRY_ID_DIGITS = 40
TALLY_COLUMNS = (
    'branch, "offset", last, n, entries, time, model, answered, cost, home, cwd, moved, '
    "moved_offset, project, prompt"
)
"""Columns of `phases` that hold a Tally, in its order."""


class TapeRow(Struct, frozen=True, gc=False):
    """One tape in a list. Times are as on the tape: UTC text with microseconds."""

    id: str
    """32 hex digits."""
    folder: str
    """Name of its folder in `tapes/`."""
    title: str | None
    """The given title, or else the beginning of the first prompt; None without a prompt."""
    cwd: str
    """The current folder: cwd of the newest `start` or `meta` entry."""
    project: str | None
    created: str
    updated: str
    """Time of the newest head."""
    model: str | None
    """Of the newest answer."""
    entries: int
    """Number of its own entries, without its origin's."""
    branches: int
    cost: float | None
    """USD of all calls; None if no cost is known."""


class PhaseTally(Struct, gc=False):
    """The sums over the lines of one phase so far."""

    branch: str | None = None
    """The branch its first entry says it was written on."""
    offset: int = -1
    """Offset of the last line read, −1 before the first."""
    last: str = ""
    """Id of that line's entry."""
    n: int = 0
    """Depth of that entry."""
    entries: int = 0
    time: str = ""
    """Time of the last line."""
    model: str | None = None
    answered: str = ""
    cost: float | None = None
    home: str | None = None
    """The working folder at the start of the phase, if its first entry does not give it."""
    cwd: str | None = None
    moved: str = ""
    moved_offset: int = -1
    project: str | None = None
    prompt: str | None = None

    @property
    def place(self) -> str | None:
        """The working folder after the last line; None if unknown."""
        return self.home if self.cwd is None else self.cwd

    def add(self, offset: int, header: Header, told: LineContents) -> None:
        """Count one line."""
        self.offset, self.last, self.n, self.time = offset, header.id, header.n, header.time
        self.entries += 1
        match header.type:
            case "user" if self.prompt is None and told.words:
                self.prompt = extract_title(told.words.said)
            case "assistant" | "usage" if told.spent:
                self._add_usage(header, told.spent)
            case "start" | "meta" | "branch" | "anchor":
                self._add_place(offset, header, told)

    def _add_usage(self, header: Header, spent: CallUsage) -> None:
        if header.type == "assistant" and spent.model:
            self.model, self.answered = spent.model, header.time
        if spent.cost is not None:
            self.cost = (self.cost or 0.0) + spent.cost

    def _add_place(self, offset: int, header: Header, told: LineContents) -> None:
        if self.entries == 1:
            self.branch = told.branch
        if told.cwd is not None and header.type in ("start", "meta"):
            self.cwd, self.moved, self.moved_offset = told.cwd, header.time, offset
            self.project = self.project or told.project


class TapeRecord(NamedTuple):
    """Everything the index stores of a tape itself: its row, heads, labels and phases."""

    row: TapeRow
    branches: tuple[IndexedBranch, ...]
    labels: tuple[tuple[str, str], ...]
    """Name and entry id of each."""
    phases: dict[str, PhaseTally]


class IndexedBranch(NamedTuple):
    """The head of a branch; entry, depth and time are None if it is damaged."""

    name: str
    phase: str
    entry: str | None
    n: int | None
    time: str | None
    current: bool
    pinned: bool


def is_entry_id(text: str | None) -> TypeGuard[str]:
    """Return whether a label names an entry by its whole id."""
    return text is not None and len(text) == _ENTRY_ID_DIGITS and is_id_prefix(text)


def build_tape_record(
    tape: Tape, folder: str, refs: Refs, phases: dict[str, PhaseTally]
) -> TapeRecord:
    """Return the facts of a tape whose phases were read."""
    branches = tuple(
        build_branch_row(tape.phases, moves[-1], refs, phases) for moves in refs.branches.values()
    )
    own = {name: tally for name, tally in phases.items() if name != ORIGIN}
    row = _build_tape_row(tape, folder, refs, own, branches)
    labels = ((name, entry) for name, entry in refs.labels.items() if is_entry_id(entry))
    return TapeRecord(row, tuple(sorted(branches)), tuple(sorted(labels)), phases)


def _build_tape_row(
    tape: Tape,
    folder: str,
    refs: Refs,
    phases: dict[str, PhaseTally],
    branches: tuple[IndexedBranch, ...],
) -> TapeRow:
    tallies = [*phases.values()] or [PhaseTally()]
    costs = [tally.cost for tally in tallies if tally.cost is not None]
    return TapeRow(
        id=tape.id,
        folder=folder,
        title=refs.title or next((tally.prompt for tally in tallies if tally.prompt), None),
        cwd=max(tallies, key=lambda tally: tally.moved).cwd or "",
        project=next((tally.project for tally in tallies if tally.project), None),
        created=tape.info.created,
        updated=max((branch.time or "" for branch in branches), default="") or tape.info.created,
        model=max(tallies, key=lambda tally: tally.answered).model,
        entries=sum(tally.entries for tally in tallies),
        branches=len(refs.branches),
        cost=fsum(costs) if costs else None,
    )


def build_branch_row(
    files: Phases, move: Move, refs: Refs, phases: Mapping[str, PhaseTally]
) -> IndexedBranch:
    """Return the row of the branch that made this move last."""
    current, entry, n, time = move.branch == refs.current, None, None, None
    if move.pin is None:
        tally = phases.get(move.phase)
        if tally is not None and tally.entries:
            entry, n, time = tally.last, tally.n, tally.time
    else:
        with suppress(TapeError):  # `tape verify` reports damage; show the other branches
            pinned = read_head_at(files, move.branch, move.phase, move.pin.offset, move.pin.entry)
            entry, n, time = pinned.entry, pinned.header.n, pinned.header.time
    return IndexedBranch(move.branch, move.phase, entry, n, time, current, move.pin is not None)
