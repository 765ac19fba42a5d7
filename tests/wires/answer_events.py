"""What a block of an answer is to us: the events of its beginning, its pieces and its end."""

from msgspec import Raw

from gong.llm.types import (
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


def reasoning(index, raw, *pieces):
    deltas = (ReasoningDelta(index, piece) for piece in pieces)
    return [ReasoningStart(index), *deltas, ReasoningEnd(index, Raw(raw))]


def text(index, *pieces, raw=None):
    end = TextEnd(index) if raw is None else TextEnd(index, Raw(raw))
    return [TextStart(index), *(TextDelta(index, piece) for piece in pieces), end]


def tool_call(index, name, tool_id, raw, *pieces):
    end = ToolCallEnd(index) if raw is None else ToolCallEnd(index, Raw(raw))
    deltas = (ToolCallDelta(index, piece) for piece in pieces)
    return [ToolCallStart(index, name, tool_id), *deltas, end]
