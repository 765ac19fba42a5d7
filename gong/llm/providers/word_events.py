"""Whole answers cut into stream events and counted, for providers that have no tokenizer.

One word counts as one token.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tape.blocks import Text, Thinking, ToolCall
from tape.entries import Usage

from ..types import (
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

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tape.blocks import Block

    from ..types import Request, StreamEvent

_WORD = re.compile(r"\s*\S+|\s+")
_ARGUMENTS_PIECE = 16


def iter_text_events(index: int, text: str, size: int | None = None) -> Iterator[StreamEvent]:
    """Yield the events of a text block, word by word or `size` characters at a time."""
    yield TextStart(index)
    for piece in _split_pieces(text, size):
        yield TextDelta(index, piece)
    yield TextEnd(index)


def iter_thinking_events(index: int, text: str, size: int | None = None) -> Iterator[StreamEvent]:
    """Yield the events of a thinking block."""
    yield ReasoningStart(index)
    for piece in _split_pieces(text, size):
        yield ReasoningDelta(index, piece)
    yield ReasoningEnd(index)


def iter_call_events(
    index: int, name: str, provider_id: str, arguments: str, size: int | None = None
) -> Iterator[StreamEvent]:
    """Yield the events of a tool call; `arguments` is its JSON text."""
    yield ToolCallStart(index, name, provider_id)
    for piece in _split_pieces(arguments, size or _ARGUMENTS_PIECE):
        yield ToolCallDelta(index, piece)
    yield ToolCallEnd(index)


def count_usage(request: Request, answer: Iterable[str]) -> Usage:
    """Return what a call costs when a word is a token; `answer` is the texts sent back."""
    asked = _count_word_tokens(request.system) + sum(
        _count_word_tokens(_get_block_text(block))
        for message in request.messages
        for block in message.content
    )
    answered = sum(_count_word_tokens(text) for text in answer)
    return Usage(input=asked, output=answered, total=asked + answered)


def _split_pieces(text: str, size: int | None) -> list[str]:
    """Return `text` in parts that joined are the text again."""
    if size is None:
        return _WORD.findall(text)
    return [text[start : start + size] for start in range(0, len(text), size)]


def _count_word_tokens(text: str) -> int:
    return len(text.split())


def _get_block_text(block: Block) -> str:
    match block:
        case Text() | Thinking():
            return block.text
        case ToolCall():
            return block.args_text or bytes(block.args).decode()
        case _:
            return ""
