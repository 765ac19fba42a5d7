"""What the prompt shows as a placeholder: long pasted texts, and pictures.

    pasted                               the prompt shows              the model gets
    -----------------------------------  ----------------------------  -----------------------
    up to 1,000 characters and 15 lines  the text                      the text
    more                                 [Pasted text #1: 120 lines]   the text in its place
    a picture, or the path of one        [Image #2: shot.png]          the words, and the picture

A placeholder is deleted whole, and the cursor goes over it; one that you change is plain text.
The history has the whole text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tape.text import show_controls

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer

    from ...agent.documents import AttachedDocument

MAX_CHARACTERS, MAX_LINES = 1000, 15
_PLACEHOLDER = re.compile(r"\[(?:Pasted text|Image) #\d+: [^\]\n]*\]")
_NAME_CHARACTERS = 40


class DraftParts:
    """The texts and pictures behind the placeholders of a conversation, by placeholder."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._pictures: dict[str, AttachedDocument] = {}

    def fold_paste(self, text: str) -> str:
        """Return what the prompt shows for a pasted text: it, or a placeholder."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.rstrip("\n").count("\n") + 1
        if len(text) <= MAX_CHARACTERS and lines <= MAX_LINES:
            return text
        known = next((key for key, value in self._texts.items() if value == text), None)
        size = f"{lines} lines" if lines > 1 else f"{len(text):,} characters"
        placeholder = known or f"[Pasted text #{self._next_number}: {size}]"
        self._texts[placeholder] = text
        return placeholder

    def add_picture(self, document: AttachedDocument, name: str) -> str:
        """Return the placeholder of a picture."""
        name = re.sub(r"[\[\]\s]", "_", show_controls(name))[-_NAME_CHARACTERS:]
        placeholder = f"[Image #{self._next_number}: {name}]"
        self._pictures[placeholder] = document
        return placeholder

    @property
    def _next_number(self) -> int:
        return len(self._texts) + len(self._pictures) + 1

    def expand_text(self, text: str) -> str:
        """Return a draft with the pasted texts in the place of their placeholders."""
        return _PLACEHOLDER.sub(lambda match: self._texts.get(match[0], match[0]), text)

    def fold_text(self, text: str) -> str:
        """Return a text with placeholders where it has a pasted text: the opposite of expanding."""
        for placeholder, pasted in self._texts.items():
            text = text.replace(pasted, placeholder)
        return text

    def list_pictures(self, text: str) -> list[AttachedDocument]:
        """Return the pictures whose placeholders are in a text."""
        names = dict.fromkeys(_PLACEHOLDER.findall(text))
        return [self._pictures[name] for name in names if name in self._pictures]

    def measure_before(self, draft: Buffer) -> int:
        """Return how long the placeholder is that the cursor is behind or inside; 0 for none.

        It counts from the beginning of the placeholder to the cursor.
        """
        return next((at - start for start, at, end in self._find_around(draft) if start < at), 0)

    def measure_after(self, draft: Buffer) -> int:
        """Return how much of the placeholder that the cursor is at is behind the cursor."""
        return next((end - at for start, at, end in self._find_around(draft) if at < end), 0)

    def _find_around(self, draft: Buffer) -> list[tuple[int, int, int]]:
        """Return begin, cursor and end of the placeholders that the cursor touches."""
        at = draft.cursor_position
        return [
            (match.start(), at, match.end())
            for match in _PLACEHOLDER.finditer(draft.text)
            if match.start() <= at <= match.end()
            and (match[0] in self._texts or match[0] in self._pictures)
        ]


def delete_before(draft: Buffer, parts: DraftParts) -> None:
    """Delete the placeholder before the cursor, or around it."""
    before = parts.measure_before(draft)
    match = _PLACEHOLDER.match(draft.text, draft.cursor_position - before)
    if before and match is not None:
        draft.delete(match.end() - draft.cursor_position)
        draft.delete_before_cursor(before)


def delete_after(draft: Buffer, parts: DraftParts) -> None:
    """Delete the placeholder behind the cursor."""
    draft.delete(parts.measure_after(draft))
