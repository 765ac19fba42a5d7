"""Messages of the Language Server Protocol as bytes; pure.

A message is a head of lines, of which `Content-Length` counts the bytes of the JSON behind it.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ..errors import GongError

_LENGTH = re.compile(
    rb"^content-length:[ \t]*([0-9]{1,12})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE
)
_MAX_HEAD = 16_384
_MAX_BODY = 64 << 20


class ServerFault(GongError):
    """A language server that fails, or does not keep to the protocol; the text says how."""


def encode_message(message: dict[str, Any]) -> bytes:
    """Return a message with its head."""
    body = msgspec.json.encode(message)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class MessageReader:
    """Cuts what a server writes into its messages."""

    def __init__(self) -> None:
        self._data = bytearray()

    def read(self, data: bytes) -> list[dict[str, Any]]:
        """Return the messages that are whole now; raises ServerFault for what is none."""
        self._data += data
        messages = []
        while (message := self._take_message()) is not None:
            messages.append(message)
        return messages

    def _take_message(self) -> dict[str, Any] | None:
        end = self._data.find(b"\r\n\r\n")
        if (end if end >= 0 else len(self._data)) > _MAX_HEAD:
            raise ServerFault("it writes something else than messages")
        if end < 0:
            return None
        match = _LENGTH.search(self._data, 0, end + 2)
        if match is None or int(match[1]) > _MAX_BODY:
            raise ServerFault("it wrote a message of no length, or of more than 64 MB")
        start, length = end + 4, int(match[1])
        if len(self._data) < start + length:
            return None
        body = bytes(self._data[start : start + length])
        del self._data[: start + length]
        try:
            message = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ServerFault(f"it wrote a message that is not JSON: {error}") from error
        if not isinstance(message, dict):
            raise ServerFault("it wrote a message that is not an object")
        return message
