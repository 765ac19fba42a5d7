"""Server-sent events, parsed from the bytes of an answer.

They are parsed here, because the size of a line and of an event is limited
and the chunks come from several clients; httpx-sse reads decoded lines without a limit. Lines end
with LF, CR or CRLF, wherever the bytes are cut. Comments, names and ids of events are passed over:
the data says what an event is. An event that nothing ends is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


_OF_A_LINE = 16
"""Bytes that a line takes beside what is in it."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventTooLong(ValueError):
    """A line, or an event, is longer than it may be; the text says which."""


class EventParser:
    """Cuts one stream, whose lines and events have a maximum size in bytes."""

    def __init__(self, limit: int) -> None:
        self._most = limit
        self._rest: list[bytes] = []
        self._size = 0
        """Bytes of the incomplete line."""
        self._data: list[bytes] = []
        self._data_size = 0
        self._is_first = True
        self._after_return = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the data of each event that ends in `chunk`; to be consumed whole.

        Raises EventTooLong.
        """
        for line in self._split_lines(chunk):
            if line.startswith(b"data:"):
                self._add_data(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line == b"data":
                self._add_data(b"")
            elif not line and self._data:
                data, self._data, self._data_size = self._data, [], 0
                yield b"\n".join(data)

    def _add_data(self, data: bytes) -> None:
        self._data.append(data)
        self._data_size += len(data) + _OF_A_LINE
        if self._data_size > self._most + _OF_A_LINE:
            raise EventTooLong("an event")

    def _split_lines(self, chunk: bytes) -> list[bytes]:
        """Return the lines that end in `chunk`, without their ends."""
        # CRLF may be cut in two: a LF that begins the next chunk belongs to the CR before it
        if self._after_return and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_return = False
        if b"\r" in chunk:
            self._after_return = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        # the first part completes the line kept from before, the last begins the next one
        first, *lines = chunk.split(b"\n")
        self._rest.append(first)
        self._size += len(first)
        if self._size > self._most:
            raise EventTooLong("a line")
        if not lines:
            return []
        first = b"".join(self._rest)
        if self._is_first:
            first = first.removeprefix(_BYTE_ORDER_MARK)
            self._is_first = False
        self._rest = [lines.pop()]
        self._size = len(self._rest[0])
        return [first, *lines]
