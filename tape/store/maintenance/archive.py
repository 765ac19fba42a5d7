"""Archiving: a tape's folder becomes one file beside the others, and a folder again.

Invariant: one form is whole and synced before the other one goes, and what replaces a folder was
read back and compared with it. Nobody writes the tape meanwhile: all its locks are held.

    tapes/.new-…              the file, written, synced, read back and compared
    tapes/NAME.tar.zst        renamed to that; the folder still counts
    tapes/NAME → .new-…       from here on the file counts
    tapes/.new-…              its `phases` gets another name, so that whoever has it open looks
                              for the file; then it is deleted
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, NamedTuple

from ...errors import Busy, NotFound, UsageError, WriteFailed
from ..disk import Descriptor, Folder
from ..locks import hold_flock, hold_lock_in
from ..packed import PACKED_SUFFIX, PackedTape, pack_folder
from ..redaction import MARK_NAME, resume_redaction
from ..refs import is_union_decided
from ..tape_folder import TapeFolder

if TYPE_CHECKING:
    from ..store import Store
    from ..tape import Tape


class ArchivedTape(NamedTuple):
    """What archiving a tape, or making a folder of it, did."""

    is_changed: bool
    """False where it had that form before."""
    before: int
    """Bytes of its files."""
    after: int


def pack_tape(store: Store, tape: Tape) -> ArchivedTape:
    """Make one file of a tape's folder, `NAME.tar.zst`, and delete the folder.

    Raises Busy while a branch is being written, UsageError for a folder that holds what is not a
    file, WriteFailed; then the tape is as it was.
    """
    folder = _require_tape_folder(tape)
    if folder.is_archived:
        size = measure_tape(store, tape)
        return ArchivedTape(False, size, size)
    if folder.has(MARK_NAME):
        resume_redaction(tape)
    if is_union_decided(folder):
        with tape.journal.open_moves():  # completes it
            pass
    with ExitStack() as held:
        held.enter_context(tape.hold_all_locks())
        held.enter_context(hold_lock_in(folder, "refs"))
        if folder.has(MARK_NAME):
            raise Busy(f"a redaction or a union of tape {tape.id[:8]} is under way: wait for it")
        tapes = held.enter_context(Folder.open(store.tapes, durable=store.durable))
        name = folder.name
        if not os.path.samestat(tapes.stat(name), os.fstat(folder.fd)):
            raise NotFound(f"tape {tape.id[:8]} is no longer in {name}")
        before = measure_tape(store, tape)
        new = f".new-{store.random(4)}-{name}"[:200]
        try:
            packed = held.enter_context(_write_archive(store, tapes, folder, new))
            held.enter_context(hold_flock(packed.fd, packed.file))
            _place_archive(store, tapes, new, name)
        except BaseException:
            with suppress(OSError), store.note_change(tapes):
                os.unlink(new, dir_fd=tapes.fd)
            raise
        gone = f".new-{store.random(4)}-{name}"[:200]
        with store.note_change(tapes, tape.id, name, comes=True):  # it came in its other form
            os.rename(name, gone, src_dir_fd=tapes.fd, dst_dir_fd=tapes.fd)
        tapes.sync()
        _delete_folder(store, tapes, gone)
        after = os.fstat(packed.fd).st_size
    return ArchivedTape(True, before, after)


def _require_tape_folder(tape: Tape) -> TapeFolder:
    assert isinstance(tape.folder, TapeFolder), "a tape of a store"
    return tape.folder


def _write_archive(store: Store, tapes: Folder, folder: TapeFolder, new: str) -> PackedTape:
    """Write the file under an unfinished name, and return it when it holds all of the folder."""
    with store.note_change(tapes):
        fd = tapes.file(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with Descriptor(fd):
        pack_folder(folder, fd)
    with ExitStack() as held:
        packed = held.enter_context(PackedTape.open_file(tapes, new, folder.name))
        is_same = not any(packed.find_damaged_frames()) and packed.is_copy_of(folder)
        if is_same:
            held.pop_all()
            return packed
    raise WriteFailed(
        f"{folder.name} was not archived: its files changed meanwhile, or the disk did not keep "
        "what was written"
    )


def _place_archive(store: Store, tapes: Folder, new: str, name: str) -> None:
    """Give the file its name: under the tape's locks nobody else does that."""
    file = name + PACKED_SUFFIX
    if tapes.has(file):  # a leftover of a crash is gone by now: this holds something else
        raise UsageError(f"{name} was not archived: {file} is there already: move it away")
    with store.note_change(tapes):
        os.rename(new, file, src_dir_fd=tapes.fd, dst_dir_fd=tapes.fd)
    tapes.sync()


def _delete_folder(store: Store, tapes: Folder, name: str) -> None:
    with tapes.sub(name) as folder:
        os.rename("phases", ".phases", src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
        for inner in folder.names():
            folder.remove(inner)
    with store.note_change(tapes):
        os.rmdir(name, dir_fd=tapes.fd)


def unpack_tape(store: Store, tape: Tape) -> ArchivedTape:
    """Make a folder of an archived tape again, and delete the file.

    Raises Damaged, and changes nothing, where the file is damaged; WriteFailed.
    """
    folder = _require_tape_folder(tape)
    before = measure_tape(store, tape)
    if not folder.is_archived:
        folder.require_folder()  # removes the file that a kill left beside it
        return ArchivedTape(False, before, before)
    folder.require_folder()
    return ArchivedTape(True, before, measure_tape(store, tape))


def measure_tape(store: Store, tape: Tape) -> int:
    """Return the bytes of a tape's files in the form that it has."""
    name = tape.folder.name
    with Folder.open(store.tapes) as tapes:
        is_archived = _require_tape_folder(tape).is_archived
        try:
            return tapes.measure_bytes(name + PACKED_SUFFIX * is_archived)
        except FileNotFoundError:  # another process has given it the other form since
            return tapes.measure_bytes(name + PACKED_SUFFIX * (not is_archived))
