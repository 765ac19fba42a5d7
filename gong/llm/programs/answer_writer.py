"""The stream events of an answer whose text comes in pieces, or as all of it so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..types import (
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tape.model.entries import Usage

    from ..types import StreamEvent

Kind = Literal["text", "thinking"]


class AnswerWriter:
    """Makes blocks of text and thinking of what a program says, in its order."""

    def __init__(self) -> None:
        self._index = -1
        self._kind: Kind | None = None
        self._is_started = False
        self._texts: dict[str, str] = {}
        self.warnings: list[str] = []

    def start(self, model: str, response_id: str | None = None) -> Iterator[StreamEvent]:
        """Yield the start of the answer, once."""
        if not self._is_started:
            self._is_started = True
            yield StreamStart(model, response_id)

    def add_piece(self, kind: Kind, piece: str) -> Iterator[StreamEvent]:
        """Yield more of the block that is open, or a new one where it is of another kind."""
        if not piece:
            return
        yield from self.start("")
        is_text = kind == "text"
        if self._kind != kind:
            yield from self.end_block()
            self._kind, self._index = kind, self._index + 1
            yield TextStart(self._index) if is_text else ReasoningStart(self._index)
        delta = TextDelta if is_text else ReasoningDelta
        yield delta(self._index, piece)

    def add_whole(self, kind: Kind, name: str, text: str) -> Iterator[StreamEvent]:
        """Yield what is new of a text of this name, which comes as all of it so far.

        A text that does not continue what was there is a block of its own.
        """
        before = self._texts.get(name, "")
        self._texts[name] = text
        if not text.startswith(before):
            yield from self.end_block()
            before = ""
        yield from self.add_piece(kind, text[len(before) :])

    def end_block(self) -> Iterator[StreamEvent]:
        """Yield the end of the block that is open."""
        kind, self._kind = self._kind, None
        if kind is not None:
            yield TextEnd(self._index) if kind == "text" else ReasoningEnd(self._index)

    def finish(self, usage: Usage) -> Iterator[StreamEvent]:
        """Yield the end of the answer."""
        yield from self.start("")
        yield from self.end_block()
        yield Finish("stop", usage, "stop", warnings=tuple(self.warnings))
