"""Text as the full-text index takes it, and what people type as a query of that index; pure.

The index cuts text where letters and digits end, so `read_file` and `src/auth/login.py:42` are runs
of words, found as phrases. Chinese, Japanese and Korean are written without blanks: each character
there counts as a word, so that any two neighbours can be found.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..errors import UsageError
from ..payload import well_formed

GAP = "\x1f"
"""Stands around each character that is a word: it is no letter, and no text of people's has it."""

_WIDE = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3040-\u30ff\u3105-\u312f"
    "\u3130-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff"
    "\uf900-\ufaff\uff66-\uffdc\U0001aff0-\U0001b16f\U00020000-\U0003ffff]"
)
_TERM = re.compile(
    r'(?P<sign>(?:-(?=[^\s-]))?)(?:"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+))(?P<star>\*?)'
)


def spaced(text: str) -> str:
    """Return text with a gap around each Han, kana and hangul character."""
    return text if text.isascii() else _WIDE.sub(rf"{GAP}\g<0>{GAP}", text)


def unspaced(text: str) -> str:
    """Return text that was `spaced` as it was."""
    return text.replace(GAP, "")


class _Term(NamedTuple):
    text: str
    is_unwanted: bool
    """What has it is left out."""
    is_beginning: bool
    """Its last word may go on."""

    def match(self) -> str:
        quoted = spaced(self.text).replace('"', '""')
        return f'"{quoted}"{" *" if self.is_beginning else ""}'


def match(query: str) -> str:
    """Return the FTS5 expression of a query as people write it.

    Words must all be there; `"a phrase"` as it stands, `-word` must not be there, `word*` may go
    on, `one OR two` is either. All else means itself. Raises UsageError where nothing is left to
    look for.
    """
    wanted: list[list[str]] = []
    unwanted: list[str] = []
    joined = False
    for term in _terms(query):
        if term is None:
            joined = bool(wanted)
        elif term.is_unwanted:
            unwanted.append(term.match())
        else:
            if joined:
                wanted[-1].append(term.match())
            else:
                wanted.append([term.match()])
            joined = False
    if not wanted:
        raise UsageError(f"nothing to look for in {query!r}: give a word with a letter or a digit")
    found = " AND ".join(f"({' OR '.join(either)})" for either in wanted)
    return f"({found}) NOT ({' OR '.join(unwanted)})" if unwanted else found


def _terms(query: str) -> list[_Term | None]:
    """Return the terms in order, None for an OR; what holds no letter or digit is left out."""
    found: list[_Term | None] = []
    for part in _TERM.finditer(well_formed(query).replace("\0", " ")):
        phrase, word = part["phrase"], part["word"]
        if word == "OR" and not part["sign"]:
            found.append(None)
            continue
        text = phrase if phrase is not None else word.rstrip("*")
        if any(map(str.isalnum, text)):
            goes_on = bool(part["star"]) or (word or "").endswith("*")
            found.append(_Term(text, bool(part["sign"]), goes_on))
    return found
