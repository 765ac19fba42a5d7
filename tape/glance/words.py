"""Text as the full-text index takes it, and what people type as a query of that index; pure.

The index cuts text where letters and digits end, so `read_file` and `src/auth/login.py:42` are runs
of words, found as phrases. Chinese, Japanese and Korean are written without blanks: each character
there counts as a word, so that any two neighbours can be found.
"""

from __future__ import annotations

import re

from ..errors import UsageError
from ..text import replace_surrogates

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Iterator

CJK_GAP = "\x1f"
"""Stands around each character that is a word: it is no letter, and no text of people's has it."""

RESULT_CHARS = 1_000
"""Characters of a tool's result whose words are kept."""

_CJK_CHARS = (
    "[\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3040-\u30ff\u3105-\u312f"
    "\u3130-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff"
    "\uf900-\ufaff\uff66-\uffdc\U0001aff0-\U0001b16f\U00020000-\U0003ffff]"
)
"""Compiled at its first use, which takes as long as to look a word up."""
_QUERY_TERM = re.compile(
    r'(?P<sign>(?:-(?=[^\s-]))?)(?:"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+))(?P<star>\*?)'
)


def space_cjk(text: str) -> str:
    """Return text with a gap around each Han, kana and hangul character."""
    return text if text.isascii() else re.sub(_CJK_CHARS, rf"{CJK_GAP}\g<0>{CJK_GAP}", text)


def unspace_cjk(text: str) -> str:
    """Return text that was `spaced` as it was."""
    return text.replace(CJK_GAP, "")


def iter_argument_texts(value: object) -> Iterator[str]:
    """Yield the texts and numbers in an argument; keys say nothing that the name does not."""
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            yield str(value)
        case list():
            for item in value:
                yield from iter_argument_texts(item)
        case dict():
            for item in (value.get("head"),) if "$blob" in value else value.values():
                yield from iter_argument_texts(item)


def build_match_expression(query: str) -> str:
    """Return the FTS5 expression of a query as people write it.

    Words must all be there; `"a phrase"` as it stands, `-word` must not be there, `word*` may go
    on, `one OR two` is either. All else means itself. Raises UsageError where nothing is left to
    look for.
    """
    wanted: list[list[str]] = []
    unwanted: list[str] = []
    joined = False
    for sign, term in _iter_query_terms(query):
        if sign == "OR":
            joined = bool(wanted)
        elif sign == "-":
            unwanted.append(term)
        else:
            if joined:
                wanted[-1].append(term)
            else:
                wanted.append([term])
            joined = False
    if not wanted:
        raise UsageError(f"nothing to look for in {query!r}: give a word with a letter or a digit")
    found = " AND ".join(f"({' OR '.join(either)})" for either in wanted)
    return f"({found}) NOT ({' OR '.join(unwanted)})" if unwanted else found


def _iter_query_terms(query: str) -> Iterator[tuple[str, str]]:
    """Yield the terms in order, each as FTS5 takes it, behind its sign: nothing, `-`, or `OR`.

    What holds no letter or digit is left out.
    """
    for part in _QUERY_TERM.finditer(replace_surrogates(query).replace("\0", " ")):
        sign, phrase, word = part["sign"], part["phrase"], part["word"]
        if word == "OR" and not sign:
            yield "OR", ""
            continue
        text = phrase if phrase is not None else word.rstrip("*")
        if any(map(str.isalnum, text)):
            goes_on = bool(part["star"]) or (word or "").endswith("*")
            yield sign, _quote_term(text) + (" *" if goes_on else "")


def _quote_term(text: str) -> str:
    doubled = space_cjk(text).replace('"', '""')
    return f'"{doubled}"'
