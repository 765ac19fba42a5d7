"""The writer: appends to one branch, from taking its lock to its last barrier (tape.md §5).

Invariant: an append is one write of one whole line; nothing is acknowledged before the barrier
that covers it; a file whose length is not as this writer left it is never written again.

| state | how it came to be | the next append |
|---|---|---|
| open file | the head is the end of its phase, or a phase was begun | one write into that file |
| no file, head pinned | opened at a pin, or `rewind` | opens a phase that begins with `branch` |
| no file, `instead_of` | the wanted branch was busy; a name is claimed | the same, on that name |
| lock released | `close`, a failed sync, or another process wrote to the file | UsageError |

A phase opens in this order, under the lock of the journal: choose the number, sync the base, write
the folder with its first entry, sync it and `phases/`, append the journal line. A crash before the
line leaves a folder that readers ignore.
"""

from __future__ import annotations

import math
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal, Protocol, Self

from msgspec.structs import replace

from ..clock import choose_entry_time, format_timestamp, parse_timestamp
from ..errors import Busy, Damaged, Overtaken, SyncFailed, TapeError, UsageError
from ..model.entries import Anchor, Branch, Payload, Place, Redact, Repair
from ..model.line import (
    Entry,
    Header,
    build_entry,
    decode_line,
    encode_line,
    encode_payload,
    normalize_payload,
)
from ..model.summary import ANCHOR_PAGE, render_anchor_page
from . import disk
from .locks import Lock
from .phase import ENTRIES, PhaseFile, choose_phase_name
from .redaction import MARK_NAME, RedactableTape, resume_redaction
from .refs import (
    JOURNAL_NAME,
    Changes,
    Head,
    choose_branch_name,
    find_head,
    is_union_decided,
    pin_branch,
    quarantine_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from .disk import Folder
    from .refs import Journal, Moves, Refs
    from .replica import Replica

Durability = Literal["entry", "barrier", "none"]
"""Sync after every entry, at barriers only, or never."""
_MAX_STEM = 38
"""Most characters of the name of a branch and of a machine, so that a number fits behind."""


class Projection(Protocol):
    """An observer of writers that keeps a derived copy: the index."""

    def on_folder_change(
        self, tapes: int, tape: str = "", folder: str = "", *, comes: bool = False
    ) -> AbstractContextManager[None]:
        """Observe what the block changes in the open folder `tapes/`, also if no tape is named.

        The named one comes to the folder of that name, or goes from there.
        """

    def on_begin(self, tape: str) -> None:
        """Record that a writer of this tape was opened, or that its journal will change."""

    def find_holder(self, tape: WritableTape, branch: str, /) -> str | None:
        """Return who works on a branch of the tape elsewhere; None if nobody is known to."""

    def on_barrier(self, tape: WritableTape, changes: Changes) -> None:
        """Process the entries that are synced by now.

        Processed changes are removed from `changes`; the rest is passed again later.
        """

    def on_move(self, tape: str, changes: Changes) -> None:
        """Record that a move of a branch, label or title is done."""

    def on_end(self, tape: WritableTape, changes: Changes | None) -> None:
        """Process the end of a writer; without `changes` anything may have changed."""

    def on_redact(self, tape: str, *, scrubs: bool) -> None:
        """Delete derived copies of redacted data; with `scrubs` all traces of them, at once."""


class WritableTape(RedactableTape, Protocol):
    """The parts of a tape that a writer needs."""

    journal: Journal
    clock: Callable[[], int]
    projection: Projection | None
    replica: Callable[[], Replica | None]


class Writer:
    """An open branch. A context manager; closing it ends with a barrier."""

    def __init__(
        self, tape: WritableTape, lock: Lock, branch: str, head: Head, durability: Durability
    ) -> None:
        self.branch = branch
        """The branch it writes; a new one if the requested branch was busy."""
        self.head = head
        """The head of the branch when it was opened."""
        self.instead_of: str | None = None
        """The busy branch that was requested, if this is a new one."""
        self.holder: str | None = None
        """Who works on that branch elsewhere, if that is why it is busy."""
        self.torn: str | None = None
        """Name in `quarantine/` of the torn tail that was cut off, if there was one."""
        self.parent = head.header.id
        """Id of the newest entry."""
        self.durability = durability
        self._tape, self._lock = tape, lock
        self._replica = tape.replica()
        self._n, self._time = head.header.n, parse_timestamp(head.header.time)
        self._at = self._time
        self._fd, self._size = -1, 0
        self._phase, self._offset = head.phase, head.offset
        self._dirty = False
        self._changes = Changes()

    @classmethod
    def open(
        cls,
        tape: WritableTape,
        branch: str | None = None,
        *,
        wait: bool = False,
        durability: Durability = "barrier",
    ) -> Self:
        """Open a branch for writing, and move a torn tail to quarantine.

        None means the current branch; if that is busy, the writer gets a new branch beside it,
        created at the first append. A named branch that is busy raises Busy, unless `wait`. A
        branch that somebody works on elsewhere, as far as the projection knows, is busy as well.
        """
        refs = tape.journal.read()
        name = refs.current if branch is None else branch
        find_head(refs, tape.phases, name)  # first, so that an unknown name creates no lock file
        instead_of = None
        try:
            lock = Lock.take_in(tape.folder, name, wait=math.inf if wait else 0)
        except Busy:
            # A branch that was named is meant; for the current one another name is as good, and two
            # sessions in one folder both work.
            if branch is not None:
                raise
            instead_of = name
            lock = _claim_branch(tape.folder, refs, name)
        try:
            if is_union_decided(tape.folder):
                with tape.journal.open_moves():  # completes it
                    pass
            refs = tape.journal.read()  # again: the branch may have moved before we had its lock
            holder = None if instead_of else _find_holder(tape, name, is_named=branch is not None)
            if holder is not None:
                instead_of = name
                lock.close()
                lock = _claim_branch(tape.folder, refs, name, _name_machine(tape))
            _refuse_uncommitted_phase(tape, refs, lock.name)
            head = find_head(refs, tape.phases, name)
            if durability != "none" and not head.pinned and instead_of is None:
                tape.journal.sync_journal()  # else opening a phase syncs it
            writer = cls(tape, lock, lock.name, head, durability)
        except BaseException:
            lock.close()
            raise
        writer.instead_of, writer.holder = instead_of, holder
        writer._start_writing()
        return writer

    def _start_writing(self) -> None:
        if self._tape.projection is not None:
            self._tape.projection.on_begin(self._tape.id)
        try:
            # A pinned or a new branch opens a phase of its own at its first append.
            if not self.head.pinned and self.instead_of is None:
                self._open_file(self.head.phase, self.head.end)
                if self.head.torn:
                    self._cut_tail()
                elif self._is_foreign(self._phase):
                    self._close_file()
            # An interrupted redaction shows by its mark, or by its entry at the end.
            if self.head.header.type == Redact.entry_type or self._tape.folder.has(MARK_NAME):
                resume_redaction(self._tape)
        except BaseException:
            self._release_lock()
            raise

    def _is_foreign(self, phase: str) -> bool:
        """Return whether another copy of the store writes a phase: this one opens its own."""
        return self._tape.phases.read_replica(phase) != self._replica_id

    def _choose_phase_name(self, began: str) -> str:
        names, step = self._tape.phases.names(), 1
        if self._replica is not None and self._is_foreign(names[-1]):
            # The copy that wrote it will choose the number after it, perhaps for the same branch.
            step = self._replica.choose_step(self._tape.id)
        return choose_phase_name(names, self.branch, began, step)

    def _close_file(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open_file(self, phase: str, size: int) -> None:
        with self._tape.phases.folder.sub(phase) as folder:
            self._fd = folder.file(ENTRIES, os.O_RDWR | os.O_APPEND)
        self._phase, self._size = phase, size

    def _cut_tail(self) -> None:
        with PhaseFile(os.dup(self._fd), self._phase) as file:
            tail = file.read(self._size, file.size())
        self.torn = quarantine_bytes(self._tape.folder, f"{self._phase}.{self._size}", tail)
        os.ftruncate(self._fd, self._size)
        self._sync_file()
        if self._is_foreign(self._phase):
            self._close_file()
        why = f"{len(tail)} bytes after the last complete line were moved to quarantine"
        self.append(Repair("torn", quarantine=self.torn, why=why))
        self.barrier()

    def append(self, payload: Payload) -> Entry:
        """Write one entry and return it; durable after the next barrier."""
        data, payload = normalize_payload(payload)
        header = self._write_entry(payload.entry_type, self._tape.blobs.extract_long_strings(data))
        return build_entry(header, payload)

    def append_data(self, kind: str, data: bytes) -> str:
        """Write one entry whose data is compact JSON, unchanged, and return its id."""
        return self._write_entry(kind, self._tape.blobs.extract_long_strings(data)).id

    def _write_entry(self, kind: str, data: bytes) -> Header:
        self._require_lock()
        if self._fd < 0:
            why = "fork" if self.instead_of else "go-on"
            self._open_phase(
                lambda phase: Branch(phase, self.branch, self.place, why, self._replica_id), why
            )
        header, line = self._encode_next(kind, data)
        try:
            disk.append_bytes(self._fd, line, self._size)
        except Overtaken:  # a process without our lock writes there: nobody knows the parent now
            self._release_lock()
            raise
        self._advance_head(header, self._size)
        self._size += len(line)
        if self.durability == "entry":
            self.barrier()
        return header

    def _require_lock(self) -> None:
        if not self._lock.is_held:
            raise UsageError("this writer is closed, or another process opened it")

    def _encode_next(self, kind: str, data: bytes) -> tuple[Header, bytes]:
        self._at = choose_entry_time(self._time, self._tape.clock())
        return encode_line(kind, self.parent, self._n + 1, format_timestamp(self._at), data)

    def _advance_head(self, header: Header, offset: int) -> None:
        self.parent, self._n, self._offset = header.id, header.n, offset
        self._time, self._dirty = self._at, True
        self._changes.phases.add(self._phase)
        self._changes.branches.add(self.branch)

    @property
    def _replica_id(self) -> str | None:
        return None if self._replica is None else self._replica.id

    @property
    def place(self) -> Place:
        """The place of the newest entry."""
        return Place(phase=self._phase, offset=self._offset, entry=self.parent)

    def anchor(self, anchor: Anchor) -> Entry:
        """Start a phase with this anchor and continue in it; durable when this returns.

        Earlier entries stay where they are: `rewind` to the anchor's base undoes it.
        """
        self._require_lock()
        self.barrier()
        if anchor.kind == "merge":  # entries of other branches, whose writers may have been killed
            for phase in dict.fromkeys(
                kept_range.phase for kept_range in anchor.kept if kept_range.tape is None
            ):
                self._tape.phases.sync(phase)
        written_anchor: list[Anchor] = []

        def first(phase: str) -> Anchor:
            written_anchor.append(
                replace(
                    anchor,
                    phase=phase,
                    branch=self.branch,
                    base=self.place,
                    replica=self._replica_id,
                )
            )
            return written_anchor[-1]

        return build_entry(self._open_phase(first, anchor.kind, anchor.kind), written_anchor[-1])

    def _open_phase(self, first: Callable[[str], Payload], why: str, began: str = "") -> Header:
        """Start a phase with the entry that `first` returns, and commit it with a journal line."""
        phases = self._tape.phases
        self._changes.phases.add(self._phase)
        with self._open_moves() as moves:
            if self._tape.folder.follow() != self._lock.changes:  # only if nothing was written yet
                raise Overtaken("the tape was archived meanwhile, so this writer stops: try again")
            if self.instead_of is not None and self.branch in moves.refs.branches:
                old = self._lock  # a branch with the claimed name was created meanwhile
                machine = _name_machine(self._tape) if self.holder is not None else ""
                self._lock = _claim_branch(self._tape.folder, moves.refs, self.instead_of, machine)
                old.close()
                self.branch = self._lock.name
            # The number is chosen under the lock, so no other program has it.
            name = self._choose_phase_name(began)
            if self._fd >= 0 or not self.head.pinned:  # a pinned entry was synced before its pin
                phases.sync(self._phase)
            payload = first(name)
            data = self._tape.blobs.extract_long_strings(encode_payload(payload))
            header, line = self._encode_next(payload.entry_type, data)
            with phases.folder.make(name) as folder:
                folder.create(ENTRIES, line)
                if isinstance(payload, Anchor):
                    folder.create(ANCHOR_PAGE, render_anchor_page(payload, header.time))
                folder.sync()
                phases.folder.sync()
            moves.branch(self.branch, name, None, why)  # the commit point
        self._close_file()
        self._open_file(name, len(line))
        self._advance_head(header, 0)
        self._changes.begun.add(name)
        return header

    def rewind(self, to: Head, why: str = "rewind") -> None:
        """Move the branch back to an earlier entry with one journal line; nothing is deleted.

        `why` is undo, rewind or go-on. The next append starts a new phase.
        """
        self._require_lock()
        self.barrier()
        # A claimed branch that nothing was written to is in no journal line: nothing to move.
        if self.instead_of is None or self._fd >= 0:
            with self._open_moves() as moves:
                pin_branch(moves, self._tape.phases, self.branch, to, why)
        self._close_file()
        self.head, self.parent, self._n = to, to.header.id, to.header.n
        self._phase, self._offset, self._time = to.phase, to.offset, parse_timestamp(to.header.time)

    @contextmanager
    def _open_moves(self) -> Iterator[Moves]:
        """Hold the journal's lock; a sync that fails under it closes the writer.

        It is then unknown whether the journal line was written, so nothing more may be written.
        """
        try:
            with self._tape.journal.open_moves(changes=self._changes) as moves:
                yield moves
        except SyncFailed:
            self._changes.fails = True
            self._release_lock()
            raise

    def barrier(self) -> None:
        """Sync everything appended so far.

        Raises Overtaken if the file is missing or its length changed, or if another machine
        continued the tape first, WriteFailed if the disk fails: these close the writer. Raises
        RemoteUnavailable where the remote that has to have it does not answer.
        """
        if not self._dirty or not self._lock.is_held:
            return
        try:
            disk.require_size(self._fd, self._size)
            # Writes to a deleted file succeed and are lost: only the link count shows it.
            if os.fstat(self._fd).st_nlink == 0:
                raise Overtaken(f"{self._phase} was deleted or replaced: this writer stops")
            self._sync_file()
        except TapeError:
            # After a failed sync the kernel may drop the pages and report success the next time,
            # so there is no second try.
            self._release_lock()
            raise
        if self._tape.projection is not None:
            try:
                self._tape.projection.on_barrier(self._tape, self._changes)
            except Overtaken:  # elsewhere: nothing may be written behind it
                self._release_lock()
                raise
        self._dirty = False

    def _sync_file(self) -> None:
        if self.durability != "none" and self._tape.folder.durable:
            disk.sync_file(self._fd)

    def close(self) -> None:
        """Sync and release the branch; closing twice is allowed."""
        self._changes.ends = True
        try:
            self.barrier()
        finally:
            self._release_lock()

    def _release_lock(self) -> None:
        if not self._lock.is_held:
            return
        self._close_file()
        self._lock.close()
        if self._tape.projection is not None:
            self._changes.fails = self._changes.fails or self._dirty
            self._tape.projection.on_end(self._tape, self._changes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _find_holder(tape: WritableTape, branch: str, *, is_named: bool) -> str | None:
    """Return who works on a branch elsewhere; raise Busy instead where that branch is meant."""
    holder = None if tape.projection is None else tape.projection.find_holder(tape, branch)
    if holder is not None and is_named:
        raise Busy(f"{holder} works on {branch}: `tape fork` makes a branch beside it")
    return holder


def _name_machine(tape: WritableTape) -> str:
    from .replica import build_machine_slug  # only where somebody works on a branch elsewhere

    replica = tape.replica()
    return build_machine_slug("" if replica is None else replica.machine)


def _claim_branch(tape: Folder, refs: Refs, busy: str, machine: str = "") -> Lock:
    """Take the lock of the first name after `busy` that is neither used nor claimed.

    Names are numbered, behind that of a machine if it is given.
    """
    if machine:
        busy = f"{busy[: _MAX_STEM - len(machine)].rstrip('.-_')}.{machine}"
        if busy not in refs.branches:
            with suppress(Busy):
                return Lock.take_in(tape, busy)
    k = 2
    while True:
        name = choose_branch_name(refs, busy, ".", k)
        try:
            return Lock.take_in(tape, name)
        except Busy:
            k = int(name.rpartition(".")[2]) + 1


def _refuse_uncommitted_phase(tape: WritableTape, refs: Refs, branch: str) -> None:
    """Raise Damaged for a branch with a phase that has entries but that no journal line names."""
    # One line is what a crash before the journal line leaves: readers ignore it. A second one was
    # written after the journal line, so the journal has lost that, and new entries would hide them.
    for name in tape.phases.names(refs.phases()):
        lines = tape.phases.read_first_lines(name)
        if len(lines) > 1 and getattr(decode_line(lines[0]).data, "branch", None) == branch:
            raise Damaged(
                f"{name} holds entries of {branch!r} but {JOURNAL_NAME} does not name it; "
                "`tape fsck --repair` writes its line again",
                file=name,
            )
