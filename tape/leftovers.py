"""What a program leaves that is killed while it makes something: one table of names, for all.

`verify` notes it, `fsck --repair` moves it to the trash, `gc` deletes it. Nothing is called a
leftover before it was not touched for an hour: somebody may be making it. What is in `trash/` is
nobody's leftover, `gc --trash` empties it; the mark of a redaction is completed, not removed.
"""

from __future__ import annotations

import re
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from .disk import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .store import Store
    from .tape import Tape

OLD = 3_600_000_000
"""Microseconds after which what is half made, or led to by nothing, is no longer being made."""

NAMES = {
    "store": re.compile(r"\.(store\..*|index)\Z"),
    "tapes": re.compile(r"\.new-.*\Z"),
    "tape": re.compile(r"\.((refs|tape)\.new|new-origin)\Z"),
    "shelf": re.compile(r"\.[0-9a-f]{64}\.[0-9a-f]+\Z"),
}
"""By the folder it is in: store.json and an index half made; tapes half created or imported;
tape.json and refs.jsonl half repaired, the past that detaching copies; blobs half written."""


class Leftover(NamedTuple):
    """Something half made."""

    path: str
    """Inside the store for what is beside the tapes; else inside the tape's folder."""
    bytes: int


def find_beside(store: Store) -> Iterator[Leftover]:
    """Yield what was left half made in the store's own folders."""
    for place, names in (("", NAMES["store"]), ("tapes/", NAMES["tapes"])):
        with suppress(FileNotFoundError), Folder.open(store.path / place) as folder:
            yield from _aged(folder, place, names, store.clock)


def find_inside(tape: Tape) -> Iterator[Leftover]:
    """Yield what was left half made in a tape's folder."""
    yield from _aged(tape.folder, "", NAMES["tape"], tape.clock)
    for shelf in open_shelves(tape.folder):
        with shelf:
            yield from _aged(shelf, f"blobs/{shelf.name}/", NAMES["shelf"], tape.clock)


def open_shelves(tape: Folder) -> Iterator[Folder]:
    """Yield the folders of a tape's blobs, each open."""
    with suppress(FileNotFoundError, NotADirectoryError), tape.sub("blobs") as blobs:
        for name in blobs.names():
            with suppress(FileNotFoundError, NotADirectoryError):
                yield blobs.sub(name)


def _aged(
    folder: Folder, place: str, names: re.Pattern[str], clock: Callable[[], int]
) -> Iterator[Leftover]:
    """Yield what has such a name and was not touched for an hour."""
    for name in filter(names.match, folder.names()):
        with suppress(FileNotFoundError):  # finished meanwhile
            about = list(folder.tree(name))
            touched = max(one.st_mtime_ns for one in about) // 1000
            if clock() - touched > OLD and not stat.S_ISLNK(about[0].st_mode):
                yield Leftover(f"{place}{name}", folder.weight(name))
