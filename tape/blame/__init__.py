"""Which entry, tape and prompt last changed each line of a file: from all tapes and branches.

What the tapes tell is checked against the file as it is now; a line they do not explain is said
to be nobody's. `attribute` is the pure part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..disk import read_file
from ..errors import NotFound, UsageError
from .attribute import AttributedChange, BlamedRange, SeenVersion, attribute_lines
from .history import ChangeCause, read_file_history

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..index import Index
    from ..store import Store

__all__ = [
    "AttributedChange",
    "BlamedFile",
    "BlamedRange",
    "ChangeCause",
    "SeenVersion",
    "attribute_lines",
    "blame_file",
]


class BlamedFile(NamedTuple):
    """A file as it is now, and where its lines come from."""

    lines: list[str]
    """Without their ends."""
    ranges: list[BlamedRange[ChangeCause]]
    """In order and without gaps; none of a file without lines."""


def blame_file(
    store: Store,
    index: Index | None,
    file: Path,
    skipped: Callable[[str], None] = lambda _: None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> BlamedFile:
    """Return which change brought in each line of a file.

    What cannot be read on a tape is told to `skipped` and left out; `progress` is told how many of
    the tapes were read. Raises NotFound where the file
    is not there or no tape knows it, UsageError where it is no text, OSError where it cannot be
    read.
    """
    text = _read_current_text(file)
    changes = read_file_history(store, index, file, skipped, progress)
    if not changes:
        raise NotFound(f"{file}: no tape of {store.path} knows of a change of it")
    *lines, last = text.removeprefix("\ufeff").split("\n")
    whole = [*lines, last] if last else lines
    ranges = attribute_lines(text, changes)
    return BlamedFile([line.removesuffix("\r") for line in whole], ranges)


def _read_current_text(file: Path) -> str:
    try:
        data = read_file(file)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"{file}: there is no such file now") from error
    except IsADirectoryError as error:
        raise UsageError(f"{file} is a folder: name a file in it") from error
    if b"\0" in data:
        raise UsageError(f"{file} is a binary file: it has no lines to tell about")
    return data.decode("utf-8", "replace")
