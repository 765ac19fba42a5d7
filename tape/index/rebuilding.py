"""The whole index made anew, beside the one in use, and put in its place when it is whole.

Invariant: whoever reads or writes meanwhile keeps using the old file, and what the old one learned
of until the last moment the new one learns too.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from .. import disk
from ..damage import warn_of_damage
from ..disk import Folder
from ..errors import Busy
from . import tables
from .database import NAME, alone, connect, immediate, open_database, remove
from .follower import Index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ..store import Store

_BESIDE = ".index"
"""The folder in which the new one is made."""


def rebuilt(store: Store, progress: Callable[[int, int], None]) -> int:
    """Read all tapes into a new index and return how many it holds; `progress` gets done, total.

    Memory does not grow with the store. Cut short, it leaves the old index as it was, and a folder
    that the next rebuilding removes. Lines that changed on the disk are a DamageWarning each.
    Raises Busy while another one is at work, OSError or sqlite3.Error where it cannot be written,
    NewerFormat or Damaged of the store itself.
    """
    store.check()
    beside = store.path / _BESIDE
    with _only_one(store):
        open_database(store, store.path).close()  # a foreign or a newer one is set aside
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(mode=0o700)
        try:
            return _made(store, beside, progress)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def _only_one(store: Store) -> Iterator[None]:
    fd = os.open(store.tapes, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise Busy("the index is being rebuilt by another process: wait for it") from error
    finally:
        os.close(fd)


def _made(store: Store, beside: Path, progress: Callable[[int, int], None]) -> int:
    with closing(Index(store, beside, skipped=warn_of_damage)) as index:
        index.fill(progress)
        index.learn(store.path / NAME)
        count = index.answer(tables.count)
        with alone(store.path), closing(connect(store.path)) as old, immediate(old):
            index.learn(store.path / NAME)  # and nobody tells the old one more
            index.close()
            with Folder.open(store.path) as home, Folder.open(beside) as source:
                _sync(source)
                remove(home)
                os.rename(NAME, NAME, src_dir_fd=source.fd, dst_dir_fd=home.fd)
    return count


def _sync(folder: Folder) -> None:
    fd = folder.file(NAME)
    try:
        disk.sync(fd)
    finally:
        os.close(fd)
