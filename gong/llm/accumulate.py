"""Collects stream events into a complete answer.

Each block has an index of its own, under which its events come in this order:

| events | block |
|---|---|
| TextStart, TextDelta*, TextEnd | Text |
| ReasoningStart, ReasoningDelta*, ReasoningEnd | Thinking |
| ToolCallStart, ToolCallDelta*, ToolCallEnd | ToolCall, which is nothing before its end |
| OpaqueBlock | Opaque |

An answer that breaks off after five events, and what `partial` returns after each:

    TextStart(0)                    –
    TextDelta(0, "I look.")         Text("I look.")
    ToolCallStart(1, "read")        Text("I look.")
    ToolCallDelta(1, '{"path":')    Text("I look.")    half a call never runs
    StreamFailure                   Text("I look.")    `response` raises the error

Invariant: a call's `args` are exactly the text the model wrote, and are set only if that text is a
JSON object that an entry can store unchanged; any other text is in `args_text`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

import msgspec
from msgspec import Raw

from tape.model.entries import NO_JSON, Block, Content, Opaque, Text, Thinking, ToolCall, Usage

from ..errors import ModelError, StreamError
from .partial_json import parse_partial_arguments
from .types import (
    Finish,
    OpaqueBlock,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Response,
    StreamEvent,
    StreamFailure,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PIECES_PER_JOIN = 1_024
"""Number of pieces to join: a short string takes fifty bytes besides its characters."""


class TextBuffer:
    """Collects pieces of one text."""

    __slots__ = ("_new", "_old", "length")

    def __init__(self) -> None:
        self.length = 0
        """Characters so far."""
        self._old: list[str] = []
        self._new: list[str] = []

    def append(self, piece: str) -> None:
        """Add a piece at the end."""
        self.length += len(piece)
        self._new.append(piece)
        if len(self._new) >= _PIECES_PER_JOIN:
            self._old.append("".join(self._new))
            self._new = []

    def text(self) -> str:
        """Return all of it."""
        text = "".join([*self._old, *self._new])
        self._old, self._new = [text], []
        return text


_BLOB_KEY = "$blob"  # an object with this key means a blob on a tape (tape.md §2)


@dataclass(slots=True)
class _TextDraft:
    """An incomplete text or thinking block."""

    kind: type[Text | Thinking]
    parts: TextBuffer = field(default_factory=TextBuffer)
    wire: Raw = field(default_factory=lambda: NO_JSON)
    redacted: bool = False

    def build_block(self) -> Text | Thinking | None:
        """Return the block so far; None while it is empty."""
        text = self.parts.text()
        if not text and self.wire == NO_JSON:
            return None
        if self.kind is Text:
            return Text(text, wire=self.wire)
        return Thinking(text, redacted=self.redacted, wire=self.wire)


@dataclass(slots=True)
class _CallDraft:
    """An incomplete tool call."""

    id: str
    name: str
    parts: TextBuffer = field(default_factory=TextBuffer)
    wire: Raw = field(default_factory=lambda: NO_JSON)
    whole: bool = False

    def build_block(self) -> ToolCall | None:
        """Return the call; None until it is complete, because half a call must never run."""
        if not self.whole:
            return None
        text = self.parts.text()
        # Hosts send no text at all for a call without arguments. What is not an object is kept as
        # the model wrote it: the tool's error shows it, and the model can correct it.
        if text.strip() and not _is_plain_object(text):
            return ToolCall(id=self.id, name=self.name, args_text=text, wire=self.wire)
        args = Raw(text.encode() if text.strip() else b"{}")
        return ToolCall(id=self.id, name=self.name, args=args, wire=self.wire)


@dataclass(slots=True)
class _OpaqueDraft:
    """A provider-specific block, which always arrives complete."""

    raw: Raw

    def build_block(self) -> Opaque:
        """Return the block."""
        return Opaque(raw=self.raw)


_Draft = _TextDraft | _CallDraft | _OpaqueDraft


class StreamAccumulator:
    """Collects the events of one answer; `prefix` (such as c_1a2b3c4d) starts its call ids."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.model = ""
        self.response_id: str | None = None
        self.usage = Usage()
        self.finish: Finish | None = None
        self.error: ModelError | None = None
        self._drafts: dict[int, _Draft] = {}
        self._calls = 0

    def process(self, event: StreamEvent) -> None:
        """Add the next event."""
        match event:
            case StreamStart():
                self.model, self.response_id = event.model, event.response_id
            case TextStart():
                self._drafts[event.index] = _TextDraft(Text)
            case ReasoningStart():
                self._drafts[event.index] = _TextDraft(Thinking)
            case ToolCallStart():
                # Ids of our own: those of hosts repeat between answers, or are missing.
                self._drafts[event.index] = _CallDraft(f"{self.prefix}_{self._calls}", event.name)
                self._calls += 1
            case OpaqueBlock():
                self._drafts[event.index] = _OpaqueDraft(event.raw)
            case TextDelta() | ReasoningDelta() | ToolCallDelta():
                draft = self._drafts[event.index]
                assert not isinstance(draft, _OpaqueDraft), "an opaque block comes whole"
                draft.parts.append(event.delta)
            case TextEnd() | ReasoningEnd() | ToolCallEnd():
                self._end_draft(event)
            case Finish():
                self.finish, self.usage = event, event.usage
            case StreamFailure():
                self.error, self.usage = event.error, event.usage
            case _:
                assert_never(event)

    def partial(self) -> Content:
        """Return the content so far, without incomplete tool calls and empty or blank blocks."""
        return tuple(
            block
            for block in self._list_blocks()
            if not isinstance(block, Text | Thinking) or block.wire != NO_JSON or block.text.strip()
        )

    def arguments(self, index: int) -> dict[str, Any]:
        """Return the arguments so far of the call at `index`; `{}` at first.

        Each use parses the whole text again: call it once per frame, not for each delta.
        """
        draft = self._drafts.get(index)
        return parse_partial_arguments(draft.parts.text()) if isinstance(draft, _CallDraft) else {}

    def response(self) -> Response:
        """Return the complete answer.

        Raises the error of the stream, or StreamError if it has not ended.
        """
        if self.error is not None:
            raise self.error
        if self.finish is None:
            raise StreamError("the answer has not ended")
        return Response(
            content=tuple(self._list_blocks()),
            stop_reason=self.finish.stop_reason,
            usage=self.usage,
            model=self.model,
            raw_stop=self.finish.raw_stop,
            response_id=self.response_id,
            warnings=self.finish.warnings,
            rate_limit=self.finish.rate_limit,
            raw=self.finish.raw,
        )

    def _end_draft(self, event: TextEnd | ReasoningEnd | ToolCallEnd) -> None:
        draft = self._drafts[event.index]
        assert not isinstance(draft, _OpaqueDraft), "an opaque block comes whole"
        draft.wire = event.wire
        if isinstance(draft, _CallDraft):
            draft.whole = True
        elif isinstance(event, ReasoningEnd):
            draft.redacted = event.redacted

    def _list_blocks(self) -> list[Block]:
        # By index, not by arrival: blocks of one answer may be streamed side by side.
        drafts = (self._drafts[index] for index in sorted(self._drafts))
        return [block for draft in drafts if (block := draft.build_block()) is not None]


def join_deltas(events: Iterable[StreamEvent]) -> Iterator[StreamEvent]:
    """Yield the events; pieces of one block that follow each other become one piece.

    Raises what `events` raises, behind what came before it.
    """
    first: TextDelta | ReasoningDelta | ToolCallDelta | None = None
    pieces: list[str] = []
    try:
        for event in events:
            if isinstance(event, TextDelta | ReasoningDelta | ToolCallDelta):
                if first is not None and type(event) is type(first) and event.index == first.index:
                    pieces.append(event.delta)
                    continue
                if first is not None:
                    yield type(first)(first.index, "".join(pieces))
                first, pieces = event, [event.delta]
                continue
            if first is not None:
                yield type(first)(first.index, "".join(pieces))
                first = None
            yield event
    except ModelError:
        # What came before the failure is part of the recorded answer, so it goes out first.
        if first is not None:
            yield type(first)(first.index, "".join(pieces))
        raise
    if first is not None:
        yield type(first)(first.index, "".join(pieces))


def _is_plain_object(text: str) -> bool:
    """Tell whether a text is a JSON object without the key that means a blob anywhere in it."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            if _BLOB_KEY in item:
                return False
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return isinstance(value, dict)
