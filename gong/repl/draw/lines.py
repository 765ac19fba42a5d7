"""Lines for a terminal: their style, their width, and text that is safe in them; pure."""

from __future__ import annotations

import re
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import category

from wcwidth import iter_graphemes

from tape.text import measure_width, show_controls

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

INDENT = "  "


class StyledPart(NamedTuple):
    """A piece of a line; `style` holds names from `styles`, separated by blanks."""

    text: str
    style: str = ""


class StyledLine(NamedTuple):
    """One line without newline; `style` is a name from `styles`, or empty."""

    text: str
    style: str = ""
    parts: tuple[StyledPart, ...] = ()
    """The same text in pieces with styles of their own; empty where all of it has one style."""


def join_parts(parts: Iterable[StyledPart], style: str = "") -> StyledLine:
    """Return pieces as one line; neighbours of the same style become one."""
    joined = tuple(
        StyledPart("".join(part.text for part in same), name)
        for name, same in groupby((part for part in parts if part.text), lambda part: part.style)
    )
    is_plain = all(not part.style for part in joined)
    return StyledLine("".join(part.text for part in joined), style, () if is_plain else joined)


_EMOJI = "\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_UNSETTLED = re.compile(
    "[\u200c\u200d\u20e3\ufe0e\ufe0f\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff]"
)
_JOINED = re.compile(
    f"\u200d\ufe0f?[{_EMOJI}]?|[\u200c\u20e3\ufe0e\ufe0f]"
    f"|(?<=[{_EMOJI}\ufe0f])[\U0001f3fb-\U0001f3ff]"
)
_FLAG_LETTERS = {0x1F1E6 + place: ord("A") + place for place in range(26)}


def settle_widths(text: str) -> str:
    """Return a text of which every terminal has the same idea how many columns it takes.

    A sequence of emoji is its first one, without its variant, and a flag is the letters of its
    country. Where a whole screen is drawn in place, what a terminal draws wider or narrower than
    was thought stays there as a ghost.
    """
    if text.isascii() or not _UNSETTLED.search(text):
        return text
    return _JOINED.sub("", text).translate(_FLAG_LETTERS)


def find_unsettled_chars(text: str) -> set[int]:
    """Return the places of the characters that `settle_widths` leaves out."""
    if text.isascii():
        return set()
    return {place for match in _JOINED.finditer(text) for place in range(*match.span())}


def clip_line(text: str, columns: int) -> str:
    """Return a line cut to at most `columns`, spaces kept, with `…` if it was cut."""
    if measure_width(text) <= columns:
        return text
    return f"{next(_wrap_rows(text, max(columns - 1, 1)))}…"


def wrap_last_rows(text: str, columns: int, limit: int) -> list[str]:
    """Return the last rows of a line on a screen of `columns`.

    A long beginning is dropped in big steps, so that the rows do not move while the line grows.
    """
    step = columns * limit * 2
    start = max(len(text) - step, 0) // step * step
    return list(_wrap_rows(text[start:], columns))[-limit:]


def _wrap_rows(text: str, columns: int) -> Iterator[str]:
    """Yield rows cut at the edge, but never within what a terminal draws as one character."""
    if text.isascii():
        yield from (text[at : at + columns] for at in range(0, max(len(text), 1), columns))
        return
    row, used = "", 0
    for char in iter_graphemes(text):
        wide = measure_width(char)
        if used + wide > columns:
            yield row
            row, used = "", 0
        row, used = row + char, used + wide
    yield row


_BREAKABLE = (
    "[\u2e80-\u303e\u3041-\ua4cf\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\U00020000-\U0003fffd]"
    "[\u0300-\u036f\u3099\u309a\ufe00-\ufe0f]*"
)
"""A letter of Chinese or Japanese, between which and its neighbour a row may end."""
_CLOSING = {"Pe", "Pf", "Po", "Lm"}
"""Kinds of characters before which no row ends: closing punctuation, length marks."""
_OPENING = {"Ps", "Pi"}
_SMALL = frozenset("っゃゅょッャュョ")


@cache  # compiled with the first text: 4 ms that the first prompt would wait for
def _compile_letter() -> re.Pattern[str]:
    return re.compile(_BREAKABLE)


@cache
def _compile_tokens() -> re.Pattern[str]:
    return re.compile(f"( +|{_BREAKABLE})")


def _split_words(
    parts: Iterable[StyledPart], *, keep_blanks: bool
) -> Iterator[tuple[str, list[StyledPart]]]:
    """Yield the blanks before a word, one of several outside of code, and the word's pieces.

    Between two letters of Chinese or Japanese a row may end, but not before closing punctuation
    or after opening.
    """
    word: list[StyledPart] = []
    blank, may_break = "", False
    for text, style in parts:
        for token in _compile_tokens().split(text):
            if not token:
                continue
            if token.isspace():
                if word:
                    yield blank, word
                keeps_token = keep_blanks or style == "code"
                blank, word, may_break = token if keeps_token else " ", [], False
                continue
            is_letter = _compile_letter().match(token) is not None
            if word and (is_letter or may_break) and not _is_closing(token[0]):
                last = word[-1].text[-1]
                if category(last) not in _OPENING:
                    yield blank, word
                    blank, word = "", []
            word.append(StyledPart(token, style))
            may_break = is_letter
    if word:
        yield blank, word


def _is_closing(char: str) -> bool:
    return category(char) in _CLOSING or char in _SMALL


def wrap_parts(
    parts: Sequence[StyledPart],
    columns: int,
    *,
    first: Sequence[StyledPart] = (),
    rest: Sequence[StyledPart] = (),
    keep_blanks: bool = False,
) -> list[list[StyledPart]]:
    """Return pieces as rows of at most `columns`, behind `first` and then behind `rest`.

    No word is broken: one that is longer than a row has a row of its own, which is longer. Several
    blanks are one, unless they are kept.
    """
    rows = [[*first]]
    start = used = sum(measure_width(part.text) for part in first)
    for blank, word in _split_words(parts, keep_blanks=keep_blanks):
        wide = sum(measure_width(part.text) for part in word)
        gap = blank if used > start else ""
        if used > start and used + len(gap) + wide > columns:
            rows.append([*rest])
            start = used = sum(measure_width(part.text) for part in rest)
            gap = ""
        if gap:
            before = rows[-1][-1].style
            rows[-1].append(StyledPart(gap, before if before == word[0].style else ""))
        rows[-1] += word
        used += len(gap) + wide
    return rows


def wrap_text(text: str, columns: int) -> list[str]:
    """Return a text as rows of at most `columns`; only a word that is longer than a row is cut."""
    rows = ("".join(part.text for part in row) for row in wrap_parts([StyledPart(text)], columns))
    return [cut for row in rows for cut in _wrap_rows(row, columns)]


def wrap_row(text: str, columns: int) -> list[str]:
    """Return a line of text as rows of at most `columns`, words not broken.

    Further rows begin where the last column of a table does, where that is in the first half;
    else two columns behind the beginning of the line.
    """
    if measure_width(text) <= columns:
        return [text]
    start = len(text) - len(text.lstrip(" "))
    gaps = [match.end() for match in re.finditer(r"(?<=\S) {2,}(?=\S)|(?<= )\* (?=\S)", text)]
    hang = max((gap for gap in gaps if gap <= columns // 2), default=start + len(INDENT))
    rows = wrap_parts(
        [StyledPart(text[start:])],
        columns,
        first=[StyledPart(" " * start)],
        rest=[StyledPart(" " * hang)],
        keep_blanks=True,
    )
    return ["".join(part.text for part in row).rstrip() for row in rows]


def cut_styled_line(line: StyledLine, columns: int, indent: str = "") -> list[StyledLine]:
    """Return a line as rows of at most `columns`, cut at the edge; `indent` begins further ones."""
    rows: list[list[StyledPart]] = [[]]
    used = 0
    for text, style in line.parts or (StyledPart(line.text),):
        for char in iter_graphemes(text):
            wide = measure_width(char)
            if used + wide > columns:
                rows.append([StyledPart(indent)])
                used = measure_width(indent)
            rows[-1].append(StyledPart(char, style))
            used += wide
    return [join_parts(row, line.style) for row in rows]


def escape_text(text: str) -> str:
    """Return text that is safe to show on a screen."""
    return show_controls(text.removesuffix("\r")).expandtabs(4)


def render_remark(text: str, style: str = "note") -> StyledLine:
    """Return a message of gong as one line; the terminal wraps it."""
    return StyledLine(" ".join(show_controls(text).split()), style)
