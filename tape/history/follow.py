"""Following a branch that another process writes: each new entry, once, in order, without locks.

Invariant: the yielded entries depend on what was written, never on the time of a poll. Only whole
lines that verify count, and such a line is never removed. One poll:

    1. read the new lines of the journal: moves of the branch
    2. yield the new entries of the phase it is in
    3. for each move: leave the phase, which is complete by then; continue
         at a pin          after that entry, with nothing to read until the next move
         in a known phase  where reading left it
         in a new phase    at its first line, after the entry it is forked from
       and yield a notice, unless the branch was there already; then 2 again
"""

from __future__ import annotations

import os
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Self

from ..errors import Damaged, NewerFormat, NotFound
from ..model.line import decode_line, describe_missing_blob, verify_line
from ..store.path import read_base
from ..store.refs import JOURNAL_NAME, Head, find_head, read_head_at, replay_journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..model.entries import Place
    from ..model.line import Entry
    from ..store.path import Source
    from ..store.phase import PhaseFile
    from ..store.refs import Move
    from ..store.tape import Tape

SHORTEST, LONGEST = 0.05, 0.25
"""Seconds between polls: right after a new entry, and after a while without one."""


class Gained(NamedTuple):
    """A new entry of the branch."""

    source: Source
    head: Head
    """The entry's head; its `place` can be passed to `follow` as `after`."""
    line: bytes
    """Its line as stored, verified, without the newline."""

    def entry(self) -> Entry:
        """Return the decoded entry, with the whole text of blobs; raise Damaged if invalid."""
        return decode_line(self.line, self.source.expand)


class Moved(NamedTuple):
    """The branch moved to another entry: its next entries come after that one.

    Entries that were yielded before stay on the tape, but are no longer on the path.
    """

    head: Head
    """The entry it moved to."""
    why: str
    """The reason in the journal: undo, rewind, go-on, …"""


def follow(
    tape: Tape,
    branch: str | None = None,
    after: Place | None = None,
    *,
    skipped: Callable[[str], None] = lambda _: None,
) -> Follower:
    """Follow a branch from its head, or from the entry `after`.

    None is the current branch. `after` is the last entry the caller has: in a phase of the branch,
    or one that it was pinned at. A damaged line is reported to `skipped` and left out. Raises
    NotFound if there is no such branch, or if it never was at `after`.
    """
    refs = tape.refs()
    name = refs.current if branch is None else branch
    if after is None:
        head, since = find_head(refs, tape.phases, name), refs.branches[name][-1:]
    else:
        moves = refs.branches.get(name, ())
        came = (  # from the first time on: all behind it is new to a caller whose last entry it is
            number
            for number, move in enumerate(moves)
            if move.phase == after.phase and (move.pin is None or move.pin.entry == after.entry)
        )
        first = next(came, None)
        if first is None:
            raise NotFound(f"branch {name!r} was never at entry {after.entry[:12]}")
        since = moves[first:]
        head = read_head_at(tape.phases, name, after.phase, after.offset, after.entry)
    return Follower(tape, head, since, refs.size, skipped)


class Follower:
    """A branch being followed. A context manager; closing it closes the file it reads.

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
        """The entry it started after."""
        self._tape, self._source, self._skipped = tape, tape.source, skipped
        self._at, self._end = head, head.end
        self._file: PhaseFile | None = None
        self._moves, self._read = deque(moves), read
        self._left = {head.phase: (head, head.end)}
        self._changes = tape.folder.follow()

    def live(self, sleep: Callable[[float], object] = time.sleep) -> Iterator[Gained | Moved]:
        """Yield new entries and moves as they come, without end; `sleep` waits for seconds."""
        pause = SHORTEST
        while True:
            pause = min(pause * 1.5, LONGEST)
            for event in self.poll():
                pause = SHORTEST
                yield event
            sleep(pause)

    def poll(self) -> Iterator[Gained | Moved]:
        """Yield entries and moves since the last poll; an abandoned iteration loses nothing.

        Raises Damaged if the branch cannot be followed any further, NewerFormat if a later version
        continued it.
        """
        changes, file = self._tape.folder.follow(), self._file
        if changes != self._changes:  # the tape was archived or unpacked: read on there
            if file is not None:
                file.close()
                self._file = self._tape.phases.open(file.name)
            self._changes = changes
        self._moves += self._read_new_moves()
        yield from self._read_gained()
        while self._moves:
            moved = self._apply_move(self._moves[0])
            self._moves.popleft()
            if moved is not None:
                yield moved
            yield from self._read_gained()

    def _read_new_moves(self) -> tuple[Move, ...]:
        """Return the new moves of the branch in the journal.

        Its size shows whether there are any: a whole line of it is never removed.
        """
        folder = self._tape.folder
        if folder.stat(JOURNAL_NAME).st_size == self._read:
            return ()
        with os.fdopen(folder.file(JOURNAL_NAME), "rb") as file:
            file.seek(self._read)
            refs = replay_journal(file.read())
        self._read += refs.size
        return refs.branches.get(self.head.branch, ())

    def _read_gained(self) -> Iterator[Gained]:
        """Yield the new entries of the phase the branch is in.

        A line that does not verify is torn, or incomplete, until one after it verifies.
        """
        file = self._file
        if file is None or self._is_at_end(file):
            return
        bad: list[str] = []
        for offset, line in file.lines(self._end):
            place = f"{file.name}: line at byte {offset}"
            try:
                header = verify_line(line)
            except NewerFormat as error:
                raise NewerFormat(f"{file.name}: {error}") from error
            except Damaged as error:
                bad.append(f"{place} skipped: {error}")
                continue
            last = self._at.header
            if self._end > 0 and header.n <= last.n:
                bad.append(f"{place} skipped: it is repeated or out of order")
                continue
            is_next = header.n == last.n + len(bad) + 1 if bad else header.parent_id == last.id
            if self._end > 0 and not is_next:  # the first line follows one in another file
                bad.append(f"{place} does not follow from the one before it: lines are missing")
            for text in bad:
                self._skipped(text)
            bad.clear()
            self._end = offset + len(line) + 1
            self._at = Head(self.head.branch, file.name, offset, self._end, header)
            yield Gained(self._source, self._at, line)

    def _is_at_end(self, file: PhaseFile) -> bool:
        size = file.size()
        if size < self._end:
            raise Damaged(
                f"{file.name}: it has {size} bytes, but had {self._end}: whole lines were removed",
                file=file.name,
                offset=size,
            )
        return size == self._end

    def _apply_move(self, move: Move) -> Moved | None:
        """Follow a move of the journal; return a notice unless the branch was there already."""
        if self._file is not None:
            self._left[self._file.name] = self._at, self._end
            self.close()
        if move.pin is not None:
            to = self._read_head(move.phase, move.pin.offset, move.pin.entry)
            end = to.end
        else:
            left = self._left.get(move.phase)
            to, end = left or (self._read_phase_base(move.phase), 0)
            self._file = self._tape.phases.open(move.phase)
        before, self._at, self._end = self._at, to, end
        return None if to.entry == before.entry else Moved(to, move.why)

    def _read_phase_base(self, phase: str) -> Head:
        """Return the entry a phase begins after."""
        first = self._tape.phases.first(phase, describe_missing_blob)
        if first is None:
            raise Damaged(f"{phase}: it has no first entry", file=phase, offset=0)
        base = read_base(first)
        if base is None or base.tape not in (None, self._tape.id):
            return self._at
        return self._read_head(base.phase, base.offset, base.entry)

    def _read_head(self, phase: str, offset: int, entry: str) -> Head:
        return read_head_at(self._tape.phases, self.head.branch, phase, offset, entry)

    def close(self) -> None:
        """Close the file; closing twice is allowed."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
