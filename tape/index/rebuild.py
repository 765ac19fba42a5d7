"""Rebuilding the index from all tapes, beside the one in use, which it replaces when it is whole.

Whoever reads or writes meanwhile keeps using the old file; what the old one learned until the last
moment the new one learns too:

    .index/index.db    filled from all tapes, no journal, no syncs
                       + what the old index knows and this one does not
    index.db locked    + the same again: no writer can reach the old one any more
                       synced, closed, renamed over index.db

Stopped by Ctrl+C it leaves what it has read, and the file `.index/stopped` beside it; the next one
continues there, after it has compared those tapes with their files. Killed, it leaves a file
that nobody trusts: the next one begins again.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from ..damage import warn_of_damage
from ..errors import Busy
from ..store import disk
from ..store.disk import Folder
from . import lookups
from .database import (
    Stopped,
    lock_index_folder,
    open_database,
    remove_index_files,
    write_transaction,
)
from .projection import Index, require_store
from .reader import INDEX_NAME, connect_index

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..store.store import Store
    from .catch_up import Progress


_REBUILD_FOLDER = ".index"
"""The folder in which a new index is made."""
_STOPPED = "stopped"
"""The file there that says that somebody stopped before it was whole."""


def rebuild_index(store: Store, progress: Progress = lambda _done, _total: None) -> int:
    """Read all tapes into a new index and return how many it holds; `progress` gets done, total.

    Memory does not grow with the store. Interrupted, it leaves the old index as it was, and a
    folder in which the next rebuild continues. Each line that changed on the disk gives a
    DamageWarning. Raises Busy while another rebuild is running, OSError or sqlite3.Error where the
    index cannot be written, NewerFormat or Damaged of the store itself.
    """
    import shutil

    store.check()
    beside = store.path / _REBUILD_FOLDER
    with _lock_rebuild(store):
        open_database(
            store.home, partial(require_store, store, store.home), store.clock
        ).close()  # a foreign or a newer one is set aside
        stopped = beside / _STOPPED
        is_begun = stopped.exists()
        if not is_begun:
            shutil.rmtree(beside, ignore_errors=True)
            beside.mkdir(mode=0o700)
        stopped.unlink(missing_ok=True)  # from here on only a whole run may be trusted
        is_stopped = False
        try:
            with closing(Index(store, beside, skipped=warn_of_damage)) as index:
                try:
                    index.fill(progress, is_begun=is_begun)
                except Stopped:
                    is_stopped = True
                    raise
                index.learn_from(store.path / INDEX_NAME)
                count = index.answer(lookups.count_tapes)
                _replace_index(store, index, beside)
            return count
        finally:
            if is_stopped:
                with Folder.open(beside) as folder:
                    with disk.Descriptor(folder.file(INDEX_NAME)) as file:
                        disk.sync_file(file.fd)
                    folder.create(_STOPPED, b"")
            else:
                shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def _lock_rebuild(store: Store) -> Iterator[None]:
    fd = os.open(store.tapes, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise Busy("the index is being rebuilt by another process: wait for it") from error
    finally:
        os.close(fd)


def _replace_index(store: Store, index: Index, beside: Path) -> None:
    """Rename the new index over the one in use, which is locked and learned from once more."""
    with (
        lock_index_folder(store.home),
        closing(connect_index(store.home, timeout=5)) as old,
        write_transaction(old),
    ):
        # The old one is locked, so it learns no more; what it learned until now must not be lost.
        index.learn_from(store.path / INDEX_NAME)
        index.close()
        with Folder.open(store.home) as home, Folder.open(beside) as source:
            fd = source.file(INDEX_NAME)
            try:
                disk.sync_file(fd)
            finally:
                os.close(fd)
            # The side files of the old one, first: SQLite would replay its -wal into the new one.
            remove_index_files(home)
            os.rename(INDEX_NAME, INDEX_NAME, src_dir_fd=source.fd, dst_dir_fd=home.fd)
