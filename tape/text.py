"""Text as it may stand on a screen: shown whole, on one line, in so many columns; pure.

Nothing is imported that takes time: a list of tapes needs no more than this.
"""

from __future__ import annotations

import re
import unicodedata

SHORT = 8
"""Digits of an id that stand for it on a screen."""
_TITLE = 80

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def well_formed(text: str) -> str:
    """Return text with U+FFFD in the place of each lone surrogate."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def visible(text: str) -> str:
    """Return a text with its control characters shown: no escape sequence, no turned direction.

    Tabs and newlines stay, CR before LF goes.
    """
    return _HIDDEN.sub(_shown, text.replace("\r\n", "\n"))


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:  # noqa: PLR2004 (C0 has pictures of its own)
        return chr(0x2400 + code)
    if code == 0x7F:  # noqa: PLR2004
        return "\u2421"
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"<U+{code:04X}>"  # noqa: PLR2004


def width(text: str) -> int:
    """Return how many columns a text takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in {"Cf", "Me", "Mn"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def single(text: str) -> str:
    """Return a text on one line, its blanks and line ends each one blank."""
    return " ".join(visible(text).split())


def fitted(text: str, columns: int) -> str:
    """Return a text on one line of at most so many columns, with `…` where it was cut."""
    text = single(text)
    if width(text) <= columns:
        return text
    kept, used = [], 1
    for char in text:
        used += _columns(char)
        if used > columns:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "…"


def title_of(said: str) -> str | None:
    """Return the beginning of a prompt in one line, to call a tape by; None without words."""
    return " ".join(said.split(None, _TITLE)[:_TITLE])[:_TITLE] or None
