"""Leftovers of killed programs: one table of their names, for all commands.

`verify` notes it, `fsck --repair` moves it to the trash, `gc` deletes it. Nothing counts as a
leftover until it was not modified for an hour: it may still be in use. Files in `trash/` are not
leftovers, `gc --trash` deletes them; the mark of a redaction is completed, not removed.
"""

from __future__ import annotations

import re
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from .disk import Folder
from .refs import UNITE_FOLDER, is_union_decided

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .store import Store
    from .tape import Tape

LEFTOVER_AGE = 3_600_000_000
"""Age in microseconds after which an unfinished or unreachable file is no longer in use."""

LEFTOVER_NAMES = {
    "store": r"\.(store\..*|index)\Z",
    "tapes": r"\.new-.*\Z",
    "tape": r"\.((refs|tape)\.new|new-origin|unite)\Z",
    "shelf": r"\.[0-9a-f]{64}\.[0-9a-f]+\Z",
}
"""By folder: unfinished store.json and index; tapes being created or imported; tape.json and
refs.jsonl under repair, the past that detach copies, phases that unite copies; unfinished blobs."""


class Leftover(NamedTuple):
    """An unfinished file or folder."""

    path: str
    """Path inside the store if it is beside the tapes, else inside the tape's folder."""
    bytes: int


def find_store_leftovers(store: Store) -> Iterator[Leftover]:
    """Yield the leftovers in the store's own folders."""
    for place, names in (("", LEFTOVER_NAMES["store"]), ("tapes/", LEFTOVER_NAMES["tapes"])):
        with suppress(FileNotFoundError), Folder.open(store.path / place) as folder:
            yield from _find_aged_leftovers(folder, place, names, store.clock)


def find_tape_leftovers(tape: Tape) -> Iterator[Leftover]:
    """Yield the leftovers in a tape's folder."""
    for leftover in _find_aged_leftovers(tape.folder, "", LEFTOVER_NAMES["tape"], tape.clock):
        if leftover.path != UNITE_FOLDER or not is_union_decided(tape.folder):
            yield leftover
    for shelf in open_blob_shelves(tape.folder):
        with shelf:
            yield from _find_aged_leftovers(
                shelf, f"blobs/{shelf.name}/", LEFTOVER_NAMES["shelf"], tape.clock
            )


def open_blob_shelves(tape: Folder) -> Iterator[Folder]:
    """Yield the folders of a tape's blobs, each open."""
    with suppress(FileNotFoundError, NotADirectoryError), tape.sub("blobs") as blobs:
        for name in blobs.names():
            with suppress(FileNotFoundError, NotADirectoryError):
                yield blobs.sub(name)


def _find_aged_leftovers(
    folder: Folder, place: str, pattern: str, clock: Callable[[], int]
) -> Iterator[Leftover]:
    """Yield files and folders with a matching name that were not modified for an hour."""
    for name in (name for name in folder.names() if re.match(pattern, name)):
        with suppress(FileNotFoundError):  # finished meanwhile
            stats = list(folder.walk_stats(name))
            touched = max(status.st_mtime_ns for status in stats) // 1000
            if clock() - touched > LEFTOVER_AGE and not stat.S_ISLNK(stats[0].st_mode):
                yield Leftover(f"{place}{name}", folder.measure_bytes(name))
