"""A tape recorded from what was read, or built from its lines, and put among the others.

Invariant: it is made in a folder that no reader looks at, and renamed when it is whole.
"""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ..errors import Busy, WriteFailed
from ..store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..disk import Folder
    from ..store import Beginning
    from ..tape import Tape
    from ..writer import Writer

_NAME_TAKEN = frozenset({errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR})


class ImportReport(Struct, frozen=True):
    """What an import did."""

    id: str
    path: str
    """The tape's folder."""
    added: int
    """Entries that are new in the store: all of them, or none."""
    entries: int
    """Entries in the file."""
    lost: int
    """Blobs that entries name and the file does not have."""


class ImportTarget(NamedTuple):
    """The tape that a file makes."""

    id: str
    folder: str
    is_path: bool
    """It holds one path only, so what names a redacted entry may stand elsewhere."""


class RecordedTape(NamedTuple):
    """A tape's folder, and whether it was not there before."""

    path: str
    is_new: bool


@contextmanager
def create_scratch_folder(store: Store, identity: str) -> Iterator[tuple[Folder, str]]:
    """Hold `tapes/` and a new name in it; whatever bears that name at the end is removed."""
    with store.open_tapes_folder() as tapes:
        name = f".new-{identity}.{store.random(4)}"
        tapes.make(name).close()
        try:
            yield tapes, name
        finally:
            shutil.rmtree(name, ignore_errors=True, dir_fd=tapes.fd)


def find_existing_folder(store: Store, identity: str) -> str | None:
    """Return the folder of the tape with this id, None where the store has none."""
    return next((name for name in store.folders() if store.read_tape_id(name) == identity), None)


def place_tape(store: Store, tapes: Folder, source: Folder, name: str, wanted: ImportTarget) -> str:
    """Rename what was built into the store, and return its name there."""
    free, k = wanted.folder, 2
    while True:
        try:
            os.rename(name, free, src_dir_fd=source.fd, dst_dir_fd=tapes.fd)
        except OSError as error:
            if error.errno not in _NAME_TAKEN:
                raise WriteFailed(f"{free} cannot be made: {error.strerror}") from error
        else:
            tapes.sync()
            return free
        if store.read_tape_id(free) == wanted.id:
            raise Busy(f"tape {wanted.id[:8]} was imported by another process just now")
        free, k = f"{wanted.folder}.{k}", k + 1


def record_tape(
    store: Store, identity: str, beginning: Beginning, fill: Callable[[Tape, Writer], None]
) -> RecordedTape:
    """Make the tape with this id, filled by `fill`, unless the store has it.

    It is recorded in a store inside the new folder, as any tape is, and moved.
    """
    known = find_existing_folder(store, identity)
    folder = known or _record_new_tape(store, identity, beginning, fill)
    return RecordedTape(str(store.tapes.absolute() / folder), known is None)


def _record_new_tape(
    store: Store, identity: str, beginning: Beginning, fill: Callable[[Tape, Writer], None]
) -> str:
    with create_scratch_folder(store, identity) as (tapes, name):
        inner = Store(
            store.tapes / name,
            clock=store.clock,
            random=lambda _: identity,
            durable=store.durable,
        )
        with inner.create(beginning) as tape, tape.writer() as writer:
            fill(tape, writer)
            folder = tape.folder.name
        with tapes.sub(name) as scratch, scratch.sub("tapes") as made:
            return place_tape(
                store, tapes, made, folder, ImportTarget(identity, folder, is_path=False)
            )
