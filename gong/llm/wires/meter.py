"""Counts the size of an answer and compares it with the limits of its provider; pure.

It counts what stays in memory: text by its characters, everything else by the memory of its parsed
JSON. An answer above a limit ends with AnswerTooLarge, and its beginning is recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..types import (
    OpaqueBlock,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from .json_values import format_size_limit

if TYPE_CHECKING:
    from ..models import SizeLimits
    from ..types import StreamEvent
    from .failures import ProviderFailures

_SMALL = 65_536
"""Bytes of an event that is small enough whatever is in it."""
_OBJECT, _ARRAY, _VALUE = 256, 96, 128
"""Bytes that an object, an array, and a value in either take in memory beside their JSON."""
_UNFOLDED = 8
"""How many times its own limit the JSON of an event may take in memory."""
_QUIET = 33_554_432
"""Bytes without anything of an answer in them."""
_RATIO = 250
"""How many times its size data may unpack to; event streams reach 30."""
_RATIO_FROM = 1_048_576
"""Unpacked bytes from which on that counts."""


class AnswerMeter:
    """Counts one answer."""

    def __init__(self, sizes: SizeLimits, failures: ProviderFailures) -> None:
        self.sizes = sizes
        self._failures = failures
        self.taken = 0
        """Number of stream events so far."""
        self._text = self._data = self._blocks = self._events = self._quiet = 0

    def take_bytes(self, unpacked: int, received: int) -> None:
        """Count the bytes of an answer so far: as received, and decompressed."""
        if unpacked > _RATIO_FROM and unpacked > _RATIO * received:
            self.refuse_answer(
                f"sent compressed data that unpacks to more than {_RATIO} times its size"
            )

    def take_quiet(self, size: int) -> None:
        """Count bytes that may turn out to say nothing."""
        self._quiet += size
        if self._quiet > _QUIET:
            self.refuse_answer(
                f"sent {format_size_limit(_QUIET)} with nothing of an answer in them"
            )

    def take_data(self, data: bytes) -> None:
        """Count an event before it is read."""
        self._events += 1
        if self._events > self.sizes.events:
            self.refuse_answer(f"sent more than {self.sizes.events:,} events in one answer")
        if len(data) <= _SMALL:
            return
        marks = data.count(b"{") * _OBJECT + data.count(b"[") * _ARRAY + data.count(b",") * _VALUE
        if len(data) + marks > _UNFOLDED * self.sizes.event:
            self.refuse_answer("sent an event with too many values in it")

    def take_event(self, event: StreamEvent) -> None:
        """Count a stream event."""
        self._quiet = 0
        self.taken += 1
        match event:
            case TextDelta(delta=text) | ReasoningDelta(delta=text) | ToolCallDelta(delta=text):
                self._take_text(len(text))
            case TextStart() | ReasoningStart():
                self._take_block()
            case ToolCallStart(name=name, provider_id=provider_id):
                self._take_block()
                self._take_text(len(name) + len(provider_id))
            case OpaqueBlock(raw=raw):
                self._take_block()
                self.keep_bytes(len(raw))
            case TextEnd(wire=wire) | ReasoningEnd(wire=wire) | ToolCallEnd(wire=wire):
                self.keep_bytes(len(wire))
            case _:
                pass

    def keep_bytes(self, size: int) -> None:
        """Count bytes that are kept beside text."""
        self._data += size
        if self._data > self.sizes.data:
            self.refuse_answer(
                f"sent more than {format_size_limit(self.sizes.data)} of data in one answer"
            )

    def keep_value(self, value: Any) -> None:
        """Count a JSON value that is kept."""
        # about how many bytes it takes in memory
        size, pending = 0, [value]
        while pending:
            node = pending.pop()
            size += _VALUE
            if isinstance(node, str):
                size += len(node)
            elif isinstance(node, dict):
                size += _OBJECT + sum(map(len, node))
                pending.extend(node.values())
            elif isinstance(node, list):
                size += _ARRAY
                pending.extend(node)
        self.keep_bytes(size)

    def refuse_answer(self, what: str) -> None:
        """Raise AnswerTooLarge; `what` completes a sentence after the provider's name."""
        raise self._failures.build_size_error(f"{what}: the rest was not read")

    def _take_text(self, characters: int) -> None:
        self._text += characters
        if self._text > self.sizes.text:
            self.refuse_answer(f"sent more than {self.sizes.text:,} characters in one answer")

    def _take_block(self) -> None:
        self._blocks += 1
        if self._blocks > self.sizes.blocks:
            self.refuse_answer(f"began more than {self.sizes.blocks:,} blocks in one answer")
