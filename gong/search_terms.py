"""The words of a query, and how much each counts in ranking: rare words count more. Pure.

`TapeRecall` ranks the entries of a tape with them, and the offline model the sentences of a
conversation.
"""

from __future__ import annotations

import re
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING, NamedTuple

from tape.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


MAX_TERMS = 24
"""Maximum terms of a query."""

_CJK_RANGES = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff"
_QUERY_PART = rf'"(?P<phrase>[^"]+)"|(?P<wide>[{_CJK_RANGES}]+)|(?P<word>[^\W_{_CJK_RANGES}]+)'
"""Compiled at its first use: most runs search nothing."""
_STOP_WORD_LIST = (
    "a about an and are as ask asked at be by can could did do does for from had has have he"
    " her his how i if in is it its know me mention mentioned my of on or our please recall"
    " remember said say she should so tell that the their them then there they this to told"
    " was we were what when where which who whom whose why will with would you your"
)
_STOP_WORDS = frozenset(_STOP_WORD_LIST.split())
_CJK_STOP = (
    "是什么|什么|多少|哪[个里些一儿]?|谁|几[个点号次天位]|何时|何处|怎么|如何|为什么|我们|你们|之前|刚才|告诉|说过|记得|记住|请问|现在"
    "|[的是了吗呢吧啊么我你他她它说过请在有和与及把被就都也还要会能那这给让]"
)
_MIN_STEM_LETTERS = 4
"""Minimum letters of a word whose plural `s` may be missing."""


class SearchTerm(NamedTuple):
    """A word or phrase to search for."""

    begins: str
    """A lower-case string that a text must contain before the pattern is tried."""
    pattern: re.Pattern[str]


def parse_words(query: str) -> tuple[SearchTerm, ...]:
    """Return the words and phrases of a query; empty if it has no letter and no digit.

    Words match as prefixes (`port` finds `ports`); "a phrase" matches exactly; Chinese,
    Japanese and Korean are split into pairs of characters. Words that carry no meaning are left
    out where others remain.
    """
    return tuple(_split_query(query)[0])


def parse_terms(query: str) -> tuple[SearchTerm, ...]:
    """Return `parse_words`, and all words in a row, which count once more.

    Raises UsageError for a query without a letter or a digit.
    """
    terms, words = _split_query(query)
    if not terms:
        raise UsageError(f"nothing to search for in {query!r}: give a word or a number")
    return (*terms, *(_build_row(words) if len(words) > 1 else ()))


def weigh_term(texts_with: int, texts: int) -> float:
    """Return the weight of a term that `texts_with` of all texts contain."""
    return log(1 + texts / max(texts_with, 1))


def _split_query(query: str) -> tuple[list[SearchTerm], list[str]]:
    """Return the terms of a query, and its words alone."""
    parts = list(re.finditer(_QUERY_PART, query))
    plain_words = [part["word"].lower() for part in parts if part["word"]]
    words = [word for word in plain_words if word not in _STOP_WORDS]
    if len(plain_words) == len(parts):
        words = words or plain_words
    terms: list[SearchTerm] = []
    for word in dict.fromkeys(words):
        stem = word[:-1] if len(word) >= _MIN_STEM_LETTERS and word.endswith("s") else word
        pattern = re.compile(rf"(?<![^\W_]){re.escape(stem)}", re.IGNORECASE)
        terms.append(SearchTerm(stem, pattern))
    for part in parts:
        if part["wide"]:
            runs = list(filter(None, re.split(_CJK_STOP, part["wide"]))) or [part["wide"]]
            pairs = [pair for run in runs for pair in map("".join, pairwise(run))] or runs
            terms += (SearchTerm(pair, re.compile(re.escape(pair))) for pair in pairs)
        elif part["phrase"]:
            terms += _build_row(part["phrase"].lower().split())
    return terms[:MAX_TERMS], words


def _build_row(words: Sequence[str]) -> tuple[SearchTerm, ...]:
    """Return the term that words in a row are; nothing for no word."""
    row = r"[\W_]+".join(map(re.escape, words))
    return (SearchTerm(words[0], re.compile(row, re.IGNORECASE)),) if words else ()
