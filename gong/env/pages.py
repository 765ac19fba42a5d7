"""One page of a large text file, found without holding the file in memory.

The file is read once, in pieces: lines are counted, the page is kept up to a size, and the digest
of all bytes is taken on the way. What is binary, by its beginning or a zero byte anywhere, says so.
"""

from __future__ import annotations

import hashlib
import os
import stat
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from .scanner import LARGE_BYTES, PIECE_BYTES, SAMPLE_BYTES, open_at_once, open_below

if TYPE_CHECKING:
    from collections.abc import Callable

_OTHER_KINDS = (b"\xff\xfe", b"\xfe\xff", b"%PDF-", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")
"""Beginnings of files that are no text of one byte order: whoever knows them reads them whole."""


class FilePage(NamedTuple):
    """Lines of a large file; all sizes are in bytes."""

    text: bytes
    """The beginning of the page, or all of it."""
    lines: int
    """How many of the lines asked for there are."""
    total: int
    """Lines of the file."""
    first_line: int
    """Size of the first line of the page, with its end."""
    page_size: int
    page_digest: str
    """SHA-256 of the whole page."""
    digest: bytes
    """SHA-256 of the file."""
    size: int
    is_binary: bool = False


def read_page(
    path: str,
    first: int,
    count: int | None,
    most: int,
    root: str | None = None,
    on_piece: Callable[[bytes], None] | None = None,
) -> FilePage | None:
    """Return `count` lines from the line `first` on (from 0; None: all), of which `most` bytes.

    `on_piece` is given all of them, piece by piece. None for what is not a large file of plain
    text, or binary. Raises OSError.
    """
    opener = partial(open_below, root) if root else open_at_once
    with open(path, "rb", opener=opener) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size <= LARGE_BYTES:
            return None
        sample = file.read(SAMPLE_BYTES)
        if sample.startswith(_OTHER_KINDS) or path.endswith(".ipynb"):
            return None
        if b"\0" in sample:
            return _build_binary_page(status.st_size)
        file.seek(0)
        end = None if count is None else first + count
        reader = _PageReader(first, end, most, on_piece)
        while piece := file.read(PIECE_BYTES):
            if b"\0" in piece:
                return _build_binary_page(status.st_size)
            reader.read_piece(piece)
    return reader.build_page()


def _build_binary_page(size: int) -> FilePage:
    return FilePage(b"", 0, 0, 0, 0, "", b"", size, is_binary=True)


class _PageReader:
    """Takes a file piece by piece."""

    def __init__(
        self,
        first: int,
        end: int | None,
        most: int,
        on_piece: Callable[[bytes], None] | None = None,
    ) -> None:
        self._first, self._end, self._most = first, end, most
        self._on_piece = on_piece
        self._line = 0
        """Line ends so far."""
        self._size = self._page_size = 0
        self._last = b""
        self._text = bytearray()
        self._first_line = 0
        self._is_first_line = True
        self._digest, self._page_digest = hashlib.sha256(), hashlib.sha256()

    def read_piece(self, piece: bytes) -> None:
        """Take the next bytes."""
        self._digest.update(piece)
        self._size += len(piece)
        self._last = piece[-1:]
        ends = piece.count(b"\n")
        if self._line + ends >= self._first and (self._end is None or self._line < self._end):
            start = _find_line_start(piece, self._first - self._line)
            stop = len(piece)
            if self._end is not None and self._line + ends >= self._end:
                stop = _find_line_start(piece, self._end - self._line)
            self._keep(piece[start:stop])
        self._line += ends

    def _keep(self, part: bytes) -> None:
        self._page_digest.update(part)
        self._page_size += len(part)
        if self._on_piece is not None:
            self._on_piece(part)
        if len(self._text) < self._most:
            self._text += part[: self._most - len(self._text)]
        if self._is_first_line and part:
            end = part.find(b"\n") + 1
            self._first_line += end or len(part)
            self._is_first_line = not end

    def build_page(self) -> FilePage:
        """Return the page, when all bytes were taken."""
        total = self._line + (self._last not in {b"", b"\n"})
        end = total if self._end is None else min(self._end, total)
        return FilePage(
            bytes(self._text),
            max(end - self._first, 0),
            total,
            self._first_line,
            self._page_size,
            self._page_digest.hexdigest(),
            self._digest.digest(),
            self._size,
        )


def _find_line_start(piece: bytes, number: int) -> int:
    """Return where the line after `count` line ends begins; 0 for none."""
    at = 0
    for _ in range(number):
        at = piece.index(b"\n", at) + 1
    return at
