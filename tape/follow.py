"""Following a branch that somebody else writes: each entry it gains, once, in order, without locks.

Invariant: what is yielded depends on what was written, never on when somebody looked. Only whole
lines that verify count, and such a line is never cut back. A phase is left when a line of the
journal says where the branch went: by then it holds all it will ever get.
"""

from __future__ import annotations

import os
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Self

from .branches import Head, at, head_of
from .errors import Damaged, NewerFormat, NotFound
from .line import decode, verify
from .path import base_of
from .payload import missing_blob
from .refs import REFS, fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .entries import Place
    from .line import Entry, Header
    from .path import Source
    from .phase import PhaseFile
    from .refs import Move
    from .tape import Tape

SHORTEST, LONGEST = 0.05, 0.25
"""Seconds between two looks: right after something came, and when nothing has for a while."""


class Gained(NamedTuple):
    """An entry the branch gained."""

    source: Source
    head: Head
    """Where it stands; its `place` is what `follow` may go on after."""
    line: bytes
    """Its line as it stands, verified, without the newline."""

    def entry(self) -> Entry:
        """Decode it, with the whole text of blobs; raise Damaged when it is not an entry's JSON."""
        return decode(self.line, self.source.expand)


class Moved(NamedTuple):
    """The branch went to another entry: what it gains next comes after that one.

    Entries that were yielded before stay on the tape, as history beside the path.
    """

    head: Head
    """The entry it went to."""
    why: str
    """What the journal says: undo, rewind, go-on, …"""


def follow(
    tape: Tape,
    branch: str | None = None,
    after: Place | None = None,
    *,
    skipped: Callable[[str], None] = lambda _: None,
) -> Follower:
    """Begin to follow a branch from where it stands now, or from right after an entry.

    None is the branch that is current now. `after` is the last entry you have: one that stands in a
    phase of the branch, or that it was pinned at. A damaged line is told to `skipped` and left out.
    Raises NotFound when there is no such branch, or when it never stood at `after`.
    """
    refs = tape.refs()
    name = refs.current if branch is None else branch
    if after is None:
        head, since = head_of(refs, tape.phases, name), refs.branches[name][-1:]
    else:
        since = _moves_since(after, name, refs.branches.get(name, ()))
        head = at(tape.phases, name, after.phase, after.offset, after.entry)
    return Follower(tape, head, since, refs.size, skipped)


def _moves_since(place: Place, branch: str, moves: tuple[Move, ...]) -> tuple[Move, ...]:
    """Return the move that first brought a branch to an entry or into its phase, and all later.

    The first, because what came behind it is new to whoever has this entry and no later one.
    """
    for number, (phase, pin) in enumerate((move.phase, move.pin) for move in moves):
        if phase == place.phase and (pin is None or pin.entry == place.entry):
            return moves[number:]
    raise NotFound(f"branch {branch!r} never stood at entry {place.entry[:12]}")


class Follower:
    """A branch being followed. A context manager; closing it lets go of the file it reads.

    It works through descriptors, so the tape's folder may be renamed or moved meanwhile.
    """

    def __init__(
        self,
        tape: Tape,
        head: Head,
        moves: Sequence[Move],
        read: int,
        skipped: Callable[[str], None],
    ) -> None:
        self.head = head
        """The entry it began after."""
        self._tape, self._source, self._skipped = tape, tape.source, skipped
        self._at, self._end = head, head.end
        self._file: PhaseFile | None = None
        self._moves, self._read = deque(moves), read
        self._left = {head.phase: (head, head.end)}

    def live(self, sleep: Callable[[float], object] = time.sleep) -> Iterator[Gained | Moved]:
        """Yield what the branch gains as it comes, without end; `sleep` waits for seconds."""
        pause = SHORTEST
        while True:
            pause = min(pause * 1.5, LONGEST)
            for found in self.poll():
                pause = SHORTEST
                yield found
            sleep(pause)

    def poll(self) -> Iterator[Gained | Moved]:
        """Yield what came since the last poll; one that is dropped half way loses nothing.

        Raises Damaged where the branch cannot be followed any further, NewerFormat where a later
        version went on.
        """
        self._moves += self._new_moves()
        yield from self._drained()
        while self._moves:
            moved = self._went(self._moves[0])
            self._moves.popleft()
            if moved is not None:
                yield moved
            yield from self._drained()

    def _new_moves(self) -> tuple[Move, ...]:
        """Return the moves of the branch that the journal gained.

        Its size alone tells whether it did: a whole line of it is never taken back.
        """
        folder = self._tape.folder
        if os.stat(REFS, dir_fd=folder.fd, follow_symlinks=False).st_size == self._read:
            return ()
        with os.fdopen(folder.file(REFS), "rb") as file:
            file.seek(self._read)
            refs = fold(file.read())
        self._read += refs.size
        return refs.branches.get(self.head.branch, ())

    def _drained(self) -> Iterator[Gained]:
        """Yield the entries of the phase the branch is in, from where reading stopped.

        A line that does not verify is torn, or not yet whole, until one behind it does.
        """
        file = self._file
        if file is None or self._is_read(file):
            return
        bad: list[str] = []
        for offset, line in file.lines(self._end):
            place = f"{file.name}: line at byte {offset}"
            try:
                header = _verified(file, line)
            except Damaged as error:
                bad.append(f"{place} skipped: {error}")
                continue
            if self._end > 0 and header.n <= self._at.header.n:
                bad.append(f"{place} skipped: it is repeated or out of order")
                continue
            if not self._follows(header, len(bad)):
                bad.append(f"{place} does not follow from the one before it: lines are missing")
            for text in bad:
                self._skipped(text)
            bad.clear()
            self._end = offset + len(line) + 1
            self._at = Head(self.head.branch, file.name, offset, self._end, header)
            yield Gained(self._source, self._at, line)

    def _follows(self, header: Header, left_out: int) -> bool:
        """Tell whether nothing but so many lines is missing between the last entry and this one.

        The first line of a phase follows from one in another file, which `_base` looks at.
        """
        if self._end == 0:
            return True
        last = self._at.header
        return header.n == last.n + left_out + 1 if left_out else header.parent_id == last.id

    def _is_read(self, file: PhaseFile) -> bool:
        size = file.size()
        if size < self._end:
            raise Damaged(
                f"{file.name}: it has {size} bytes, but {self._end} were there: "
                "whole lines were taken away",
                file=file.name,
                offset=size,
            )
        return size == self._end

    def _went(self, move: Move) -> Moved | None:
        """Go where a journal line says; return a notice unless the branch stood there."""
        self._leave()
        to, end = self._destination(move)
        if move.pin is None:
            self._file = self._tape.phases.open(move.phase)
        stood, self._at, self._end = self._at, to, end
        return None if to.entry == stood.entry else Moved(to, move.why)

    def _leave(self) -> None:
        if self._file is not None:
            self._left[self._file.name] = self._at, self._end
            self.close()

    def _destination(self, move: Move) -> tuple[Head, int]:
        """Return the entry a move leads to, and the byte of its phase from which to read on."""
        if move.pin is not None:
            pinned = self._found(move.phase, move.pin.offset, move.pin.entry)
            return pinned, pinned.end
        if move.phase in self._left:
            return self._left[move.phase]
        return self._base(move.phase), 0

    def _base(self, phase: str) -> Head:
        """Return the entry a phase begins after."""
        first = self._tape.phases.first(phase, missing_blob)
        if first is None:
            raise Damaged(f"{phase}: it has no first entry", file=phase, offset=0)
        base = base_of(first)
        if base is None or base.tape not in (None, self._tape.id):
            return self._at
        return self._found(base.phase, base.offset, base.entry)

    def _found(self, phase: str, offset: int, entry: str) -> Head:
        return at(self._tape.phases, self.head.branch, phase, offset, entry)

    def close(self) -> None:
        """Let go of the file; doing so twice is fine."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _verified(file: PhaseFile, line: bytes) -> Header:
    try:
        return verify(line)
    except NewerFormat as error:
        raise NewerFormat(f"{file.name}: {error}") from error
