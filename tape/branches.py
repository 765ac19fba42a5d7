"""Branches: their heads, and the one-line moves that fork, rewind and pin (tape.md §4).

A fork is one journal line with a pin; the folder comes with the first append. Its cost does not
depend on the size of the history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from . import disk
from .entries import Place
from .errors import Damaged, NotFound, UsageError
from .line import Header, read_header
from .refs import Move, Moves, Pin, Refs, check_ref_name

if TYPE_CHECKING:
    from .phase import Phases


class Head(NamedTuple):
    """The entry at the end of a branch, or any entry on it."""

    branch: str
    phase: str
    offset: int
    """Offset of the first byte of its line."""
    end: int
    """Offset after its newline: the path includes this phase up to here."""
    header: Header
    pinned: bool = False
    """True if the next append must open a new phase."""
    torn: int = 0
    """Number of bytes after `end` that are not a complete line."""

    @property
    def entry(self) -> str:
        """Id of the entry."""
        return self.header.id

    @property
    def place(self) -> Place:
        """The place of the entry."""
        return Place(phase=self.phase, offset=self.offset, entry=self.header.id)


def find_head(refs: Refs, phases: Phases, branch: str, *, moves_ago: int = 0) -> Head:
    """Return the head of a branch, or its head `moves_ago` ref lines ago."""
    moves = refs.branches.get(branch)
    if not moves:
        raise NotFound(f"no branch {branch!r}; there are: {', '.join(refs.branches)}")
    if moves_ago >= len(moves):
        times = "once" if len(moves) == 1 else f"{len(moves)} times"
        raise NotFound(f"branch {branch!r} has moved {times}, not {moves_ago + 1} times")
    return _find_moved_head(phases, moves[-1 - moves_ago])


def _find_moved_head(phases: Phases, move: Move) -> Head:
    if move.pin is not None:
        return read_head_at(phases, move.branch, move.phase, move.pin.offset, move.pin.entry)
    with phases.open(move.phase) as file:
        tail = file.tail()
    if tail.header is None:
        raise Damaged(f"{move.phase}: it has no valid entry", file=move.phase, offset=0)
    return Head(
        move.branch, move.phase, tail.offset, tail.end, tail.header, torn=tail.size - tail.end
    )


def read_head_at(
    phases: Phases, branch: str, phase: str, offset: int, entry: str | None = None
) -> Head:
    """Return a head at the entry line at `offset`; raise Damaged if `entry` is not there."""
    with phases.open(phase) as file:
        line = file.line_at(offset)
    header = read_header(line)
    if entry is not None and header.id != entry:
        raise Damaged(
            f"{phase}: byte {offset} should hold entry {entry[:12]}", file=phase, offset=offset
        )
    return Head(branch, phase, offset, offset + len(line) + 1, header, pinned=True)


def fork_branch(
    moves: Moves, phases: Phases, base: Head, name: str | None, why: str = "fork"
) -> str:
    """Start a branch at `base` with one journal line and return its name."""
    name = (
        choose_branch_name(moves.refs, "fork") if name is None else check_ref_name("branch", name)
    )
    if name in moves.refs.branches:
        raise UsageError(f"branch {name!r} already exists; choose another --name")
    pin_branch(moves, phases, name, base, why)
    return name


def pin_branch(moves: Moves, phases: Phases, name: str, to: Head, why: str) -> None:
    """Point a branch at an entry of its tape; the lock of an existing branch must be held."""
    read_head_at(phases, name, to.phase, to.offset, to.entry)  # the entry must be in this tape
    sync_base_phase(phases, to.phase)
    moves.branch(name, to.phase, Pin(to.offset, to.entry), why)


def switch_branch(moves: Moves, name: str) -> None:
    """Make `name` the current branch."""
    if name not in moves.refs.branches:
        raise NotFound(f"no branch {name!r}; there are: {', '.join(moves.refs.branches)}")
    if name != moves.refs.current:
        moves.current(name)


def choose_branch_name(refs: Refs, stem: str, separator: str = "-", first: int = 1) -> str:
    """Return `stem`, separator and the lowest number no branch ever had."""
    stem, k = stem[:40].rstrip("."), first  # a name may not have two dots in a row
    while f"{stem}{separator}{k}" in refs.branches:
        k += 1
    return f"{stem}{separator}{k}"


def sync_base_phase(phases: Phases, phase: str) -> None:
    """Sync the file of a phase that a new phase is based on."""
    if phases.folder.durable:
        with phases.open(phase) as file:
            disk.sync_file(file.fd)
