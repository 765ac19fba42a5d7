"""The text of a file as the answer to a reading tool shows it, where it shows all of it."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

from ..blocks import NO_JSON, join_texts

if TYPE_CHECKING:
    from ..entries import ToolResult

_NUMBERED = re.compile(r"[ ]*([0-9]+)(?:→|\t| ?\| ?|: )(.*)", re.DOTALL)
_NOTICE = re.compile(r"\[[^\]\n]*(lines|limit|truncated)[^\]\n]*\]\s*\Z", re.IGNORECASE)
_PAGE = 2000
"""Lines that agents show at once: a listing as long as that may not be the whole file."""


def extract_seen_text(answer: ToolResult) -> str | None:
    """Return what a file held that was read whole, None where that cannot be told.

    Lines may have numbers before them; then a remark may follow.
    """
    text = answer.whole if answer.whole is not None else join_texts(answer.content)
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    numbered = list(takewhile(bool, map(_NUMBERED.fullmatch, lines)))
    if not numbered:
        has_more = bytes(answer.details) not in {bytes(NO_JSON), b"null"} or _NOTICE.search(text)
        return None if has_more else text
    found = [match for match in numbered if match is not None]
    rest = "".join(lines[len(found) :]).strip()
    is_whole = [int(match[1]) for match in found] == list(range(1, len(found) + 1))
    if not is_whole or len(found) >= _PAGE or (rest and not rest.startswith("<")):
        return None
    return "".join(f"{match[2]}\n" for match in found)
