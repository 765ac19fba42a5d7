"""Cuts the bytes of an answer into events: frames of AWS (`application/vnd.amazon.eventstream`).

| frame | event |
|---|---|
| `chunk`: {"bytes": "…"} | what is in `bytes`, an event of the model's own API |
| another event | {"NAME": what it holds} |
| an exception or error | {"type": "error", "error": {"type": its name, "message": …}} |

The padding that hides how long an event is (`p`) is left out. Both checksums are checked.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import crc32
from typing import TYPE_CHECKING, Any

import msgspec

from tape.formats.wire import encode_json

from .server_sent_events import EventTooLong

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTENT_TYPE = "application/vnd.amazon.eventstream"
_PRELUDE = 12
"""Bytes of both lengths and their checksum."""
_CHECKSUM = 4
_TEXT = 7
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Type of a header's value → its bytes; those of bytes and text stand before them."""
_WITH_LENGTH = frozenset({6, _TEXT})


class DamagedFrame(Exception):
    """Bytes that are no frame; the text says why."""


class FrameParser:
    """Collects the frames of one answer."""

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the data of each whole frame; raises DamagedFrame and EventTooLong."""
        self._buffer += chunk
        while len(self._buffer) >= _PRELUDE:
            size = int.from_bytes(self._buffer[:4])
            head_size = int.from_bytes(self._buffer[4:8])
            if crc32(self._buffer[:8]) != int.from_bytes(self._buffer[8:_PRELUDE]):
                raise DamagedFrame("the checksum of a frame's lengths is wrong")
            if size > self._max_size:
                raise EventTooLong("an event")
            if size < _PRELUDE + head_size + _CHECKSUM:
                raise DamagedFrame("the lengths of a frame do not fit together")
            if len(self._buffer) < size:
                return
            frame = bytes(self._buffer[:size])
            del self._buffer[:size]
            if crc32(frame[:-_CHECKSUM]) != int.from_bytes(frame[-_CHECKSUM:]):
                raise DamagedFrame("the checksum of a frame is wrong")
            headers = _parse_headers(frame[_PRELUDE : _PRELUDE + head_size])
            yield _decode_event(headers, frame[_PRELUDE + head_size : -_CHECKSUM])


def _parse_headers(data: bytes) -> dict[str, str]:
    """Return the headers that are texts."""
    headers: dict[str, str] = {}
    place = 0
    try:
        while place < len(data):
            name_end = place + 1 + data[place]
            name, kind = data[place + 1 : name_end].decode(), data[name_end]
            place = name_end + 1
            size = _SIZES.get(kind)
            if kind in _WITH_LENGTH:
                size = int.from_bytes(data[place : place + 2])
                place += 2
            if size is None or place + size > len(data):
                raise DamagedFrame("a header of a frame cannot be read")
            if kind == _TEXT:
                headers[name] = data[place : place + size].decode()
            place += size
    except (IndexError, UnicodeDecodeError):
        raise DamagedFrame("a header of a frame cannot be read") from None
    return headers


def _decode_event(headers: dict[str, str], payload: bytes) -> bytes:
    kind = headers.get(":message-type")
    if kind == "error":
        error = {"type": headers.get(":error-code"), "message": headers.get(":error-message")}
        return encode_json({"type": "error", "error": error})
    fields = _decode_payload(payload)
    if kind == "exception":
        message = fields.get("message") or fields.get("Message") or ""
        error = {"type": headers.get(":exception-type"), "message": message}
        return encode_json({"type": "error", "error": error})
    name = headers.get(":event-type", "")
    if name == "chunk" and isinstance(inner := fields.get("bytes"), str):
        try:
            return b64decode(inner, validate=True)
        except ValueError:
            raise DamagedFrame("the bytes of a chunk cannot be read") from None
    return encode_json({name: {key: value for key, value in fields.items() if key != "p"}})


def _decode_payload(payload: bytes) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(payload) if payload else {}
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise DamagedFrame("the JSON of a frame cannot be read") from None
    return fields if isinstance(fields, dict) else {}
