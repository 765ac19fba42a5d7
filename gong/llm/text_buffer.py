"""A text that grows by small pieces, kept in little more memory than it has characters."""

from __future__ import annotations

_PIECES_PER_JOIN = 1_024
"""Pieces that become one: a short one takes fifty bytes beside its characters."""


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
