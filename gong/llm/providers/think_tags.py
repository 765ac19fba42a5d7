"""Thinking that hosts send as text between `<think>` tags at the beginning of an answer: pure.

However the text is cut, the same comes out. Tags further on are words like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    TaggedText = tuple[Literal["text", "thinking"], str]

_MOST_BLANKS = 4_096
"""Characters before a tag: a host that sends more means them as words."""
_OPEN, _CLOSE = "<think>", "</think>"


class ThinkTags:
    """Tells the thoughts of one answer from its words."""

    def __init__(self) -> None:
        self._held = ""
        """What may be part of a tag, or blanks before the words."""
        self._place: Literal["before", "inside", "behind", "words"] = "before"

    def feed(self, text: str) -> Iterator[TaggedText]:
        """Yield what is certain by now; to be consumed whole."""
        self._held += text
        if self._place == "before":
            self._enter_tag()
        if self._place == "inside":
            yield from self._take_thoughts()
        if self._place == "behind":
            self._held = self._held.lstrip()
            self._place = "words" if self._held else "behind"
        if self._place == "words" and self._held:
            yield "text", self._held
            self._held = ""

    def flush_rest(self) -> Iterator[TaggedText]:
        """Yield what was held back, at the end of the answer."""
        held, self._held = self._held, ""
        if held and self._place != "behind":
            yield ("thinking" if self._place == "inside" else "text"), held

    def _enter_tag(self) -> None:
        said = self._held.lstrip()
        if said.startswith(_OPEN):
            self._held, self._place = said.removeprefix(_OPEN), "inside"
        elif not _OPEN.startswith(said) or len(self._held) > _MOST_BLANKS:
            self._place = "words"

    def _take_thoughts(self) -> Iterator[TaggedText]:
        thought, closed, behind = self._held.partition(_CLOSE)
        if closed:
            self._held, self._place = behind, "behind"
        else:
            kept = _count_close_start(thought)
            thought, self._held = thought[: len(thought) - kept], thought[len(thought) - kept :]
        if thought:
            yield "thinking", thought


def _count_close_start(text: str) -> int:
    """Return how many characters at the end may begin the closing tag."""
    sizes = range(min(len(text), len(_CLOSE) - 1), 0, -1)
    return next((size for size in sizes if text.endswith(_CLOSE[:size])), 0)
