"""Text as a screen shows it: control characters visible, on one line, cut to a width; pure.

Nothing is imported that takes time: a list of tapes needs no more than this. Widths are therefore
our own: importing wcwidth takes 29 ms of processor time, all of `tape ls` before it 25 ms. On 503
lines with other letters than ASCII in our tests the two agree on all but 2, where ours is wider by
the 2 columns that joined emoji or vowel signs save in some terminals: no line gets too long.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

SHORT = 8
"""How many digits of an id are shown."""
_TITLE = 80
_MAX_NAMES = 12
"""Names that an error lists."""
_NEAR_NAMES = 5

_HIDDEN = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Characters that control a terminal, change the text direction, or are invisible.

This pattern and the next two are compiled at their first use: it takes as long as a list of tapes.
"""
_PRINTABLE_HIDDEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Those of them that `str.isprintable` lets pass."""
_SHAPED = (
    "[\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18af\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]"
)
_JOINS = f"{_SHAPED}[\u200c\u200d]{_SHAPED}"
"""A zero-width joiner between letters or emoji, where it changes their shape."""
_ODD_WIDTH = (
    "[^\0-\xac\xae-\u02ff\u0384-\u038a\u038e-\u03a1\u03a3-\u0482\u048a-\u052f\u2010-\u2027"
    "\u202f-\u205f\u2190-\u2319\u2460-\u25fc]"
)
"""Characters that may take other than one column: not Latin, Greek, Cyrillic, dashes, arrows."""
_FEW = 4
"""Characters of a text whose widths are looked up without compiling that pattern: "–" for none."""


def replace_surrogates(text: str) -> str:
    """Return text with each lone surrogate replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean_words(text: str) -> str:
    """Return words of a person as they are sent and kept.

    U+FFFD replaces each zero byte, and for each lone surrogate: a byte that is not UTF-8.
    """
    return replace_surrogates(text).replace("\0", "\ufffd")


def show_controls(text: str) -> str:
    """Return a text with its control characters made visible, also those for text direction.

    Invisible characters are made visible too: zero-width spaces, U+2028, tags. Tabs and newlines
    stay, CR before LF is removed.
    """
    if (text.isascii() and text.isprintable()) or not _has_hidden_chars(text):
        return text
    return re.sub(_HIDDEN, _show_control, text.replace("\r\n", "\n"))


_COMMON = bytes({*range(0x20, 0x7F), *b"\t\n"})
"""ASCII characters that are shown as they are."""


def _has_hidden_chars(text: str) -> bool:
    """Return whether characters of a text have to be made visible.

    Common bytes are removed first: a tenth of the time of a search for all the others.
    """
    uncommon = text.encode("utf-8", "surrogatepass").translate(None, _COMMON)
    if not uncommon:
        return False
    rest = uncommon.decode("utf-8", "surrogatepass")
    if rest.isprintable() and _PRINTABLE_HIDDEN.isdisjoint(rest):  # as nearly always
        return False
    return bool(re.search(_HIDDEN, rest))


def escape_json_controls(text: str) -> str:
    """Return JSON with the characters of `visible` as JSON escapes, which keeps its meaning."""

    def escape(match: re.Match[str]) -> str:
        if _is_joiner_needed(match):
            return match[0]
        units = match[0].encode("utf-16-be", "surrogatepass").hex()
        return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))

    return re.sub(_HIDDEN, escape, text)


def _is_joiner_needed(match: re.Match[str]) -> bool:
    start = match.start()
    return start > 0 and re.compile(_JOINS).match(match.string, start - 1) is not None


def _show_control(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:  # noqa: PLR2004 (C0 has pictures of its own)
        return chr(0x2400 + code)
    if code == 0x7F:  # noqa: PLR2004
        return "\u2421"
    if _is_joiner_needed(match):
        return match[0]
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"<U+{code:04X}>"  # noqa: PLR2004


def measure_width(text: str) -> int:
    """Return the width of a text in columns: wide characters take two, combining ones none."""
    if text.isascii() or (len(text) > _FEW and not re.search(_ODD_WIDTH, text)):
        return len(text)
    return sum(map(_count_columns, text))


@lru_cache(maxsize=4_096)
def _count_columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in {"Cf", "Me", "Mn"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def to_single_line(text: str) -> str:
    """Return a text on one line, with each run of blanks and line ends as one space."""
    if not text.isascii():
        text = text.replace("\u2028", " ").replace("\u2029", " ")
    return " ".join(show_controls(text).split())


def shorten_to_width(text: str, columns: int) -> str:
    """Return a text on one line of at most `columns` columns, with `…` where it was cut."""
    return cut_to_width(to_single_line(text), columns)


def cut_to_width(text: str, columns: int) -> str:
    """Return a line of at most `columns` columns, with `…` where it was cut."""
    if measure_width(text) <= columns:
        return text
    if not re.search(_ODD_WIDTH, text[:columns]):
        return text[: max(columns - 1, 0)].rstrip() + "…"
    chars, used = [], 1
    for char in text:
        used += _count_columns(char)
        if used > columns:
            break
        chars.append(char)
    return "".join(chars).rstrip() + "…"


def extract_title(prompt: str) -> str | None:
    """Return the beginning of a prompt in one line, as a title; None if it has no text."""
    return " ".join(prompt.split(None, _TITLE)[:_TITLE])[:_TITLE] or None


def format_count(count: int, noun: str, many: str = "") -> str:
    """Return a number with its noun, in the plural unless it is 1: "1 entry", "2 entries"."""
    plural = many or (
        f"{noun[:-1]}ies"
        if noun.endswith("y")
        else f"{noun}es"
        if noun.endswith("ch")
        else f"{noun}s"
    )
    return f"{count} {noun if count == 1 else plural}"


def format_names(names: Collection[str], near_to: str) -> str:
    """Return names with commas between them; of many those like `near_to`, and how many more.

    For an error that says what there is instead: "main, try-1, try-2 and 997 more".
    """
    if len(names) <= _MAX_NAMES:
        return ", ".join(names)
    from difflib import get_close_matches  # noqa: PLC0415 - only an error needs it

    near = get_close_matches(near_to, names, _NEAR_NAMES) or [*names][:_NEAR_NAMES]
    return f"{', '.join(near)} and {len(names) - len(near)} more"


def format_seconds(duration: float) -> str:
    """Return a duration in seconds as text, such as "1 min 5 s"."""
    minutes, rest = divmod(int(duration), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
