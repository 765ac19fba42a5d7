"""Server-sent events: the bytes of an answer cut into the data of its events; pure.

Lines end with LF, CR or CRLF, wherever the bytes are cut. Comments, names and ids of events are
passed over: what an event is stands in its data. An event that nothing ends is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Events:
    """Cuts one stream."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self._is_first = True
        self._after_return = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the data of each event that ends in `chunk`; to be consumed whole."""
        for line in self._lines(chunk):
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line == b"data":
                self._data.append(b"")
            elif not line and self._data:
                data, self._data = self._data, []
                yield b"\n".join(data)

    def _lines(self, chunk: bytes) -> list[bytes]:
        """Return the lines that end in `chunk`, without their ends."""
        if self._after_return and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_return = False
        if b"\r" in chunk:
            self._after_return = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *lines = chunk.split(b"\n")
        self._rest.append(first)
        if not lines:
            return []
        first = b"".join(self._rest)
        if self._is_first:
            first = first.removeprefix(_BYTE_ORDER_MARK)
            self._is_first = False
        self._rest = [lines.pop()]
        return [first, *lines]
