"""Rebuilding the whole index beside the one in use, then replacing it.

Invariant: readers and writers keep using the old file meanwhile, and everything that it records
until the last moment is copied to the new one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from ..damage import warn_of_damage
from ..errors import Busy
from ..store import disk
from ..store.disk import Folder
from . import tables
from .database import (
    INDEX_NAME,
    connect_index,
    lock_index_folder,
    open_database,
    remove_index_files,
    write_transaction,
)
from .projection import Index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ..store.store import Store

_REBUILD_FOLDER = ".index"
"""The folder in which the new one is made."""


def replace_index(store: Store, progress: Callable[[int, int], None]) -> int:
    """Read all tapes into a new index and return how many it holds; `progress` gets done, total.

    Uses constant memory. If interrupted, it leaves the old index unchanged, and a folder that the
    next rebuild removes. Each line that changed on the disk gives a DamageWarning. Raises Busy
    while another rebuild is running, OSError or sqlite3.Error if it cannot be written, NewerFormat
    or Damaged of the store itself.
    """
    store.check()
    beside = store.path / _REBUILD_FOLDER
    with _lock_rebuild(store):
        open_database(store, store.path).close()  # a foreign or a newer one is set aside
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(mode=0o700)
        try:
            return _build_and_swap(store, beside, progress)
        finally:
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


def _build_and_swap(store: Store, beside: Path, progress: Callable[[int, int], None]) -> int:
    with closing(Index(store, beside, skipped=warn_of_damage)) as index:
        index.fill(progress)
        index.learn_from(store.path / INDEX_NAME)
        count = index.answer(tables.count_tapes)
        with (
            lock_index_folder(store.path),
            closing(connect_index(store.path)) as old,
            write_transaction(old),
        ):
            index.learn_from(
                store.path / INDEX_NAME
            )  # and no process writes to the old one any longer
            index.close()
            with Folder.open(store.path) as home, Folder.open(beside) as source:
                _sync_index_file(source)
                remove_index_files(home)
                os.rename(INDEX_NAME, INDEX_NAME, src_dir_fd=source.fd, dst_dir_fd=home.fd)
    return count


def _sync_index_file(folder: Folder) -> None:
    fd = folder.file(INDEX_NAME)
    try:
        disk.sync_file(fd)
    finally:
        os.close(fd)
