"""Ranks texts by a query: rare words count more than frequent ones, long texts less.

One pass over the texts in their order; memory does not grow with them. Pure.
"""

from __future__ import annotations

import re
from itertools import islice, pairwise
from math import log, log10
from typing import TYPE_CHECKING, NamedTuple

from tape.errors import UsageError
from tape.text import single

from ..tools.tool import Found

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tape.line import Entry

MOST = 24
"""Maximum terms of a query."""
AROUND = 240
"""Maximum characters of a snippet."""

_KEPT = 256
"""Minimum number of candidates kept while texts are read."""
_NEAR = 4
"""Maximum positions of each term that are tried for the best snippet."""
_LONG = 1_000
"""Characters from which on a text counts noticeably less."""
_WIDE = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff"
_PART = re.compile(
    rf'"(?P<phrase>[^"]+)"|(?P<wide>[{_WIDE}]+)|(?P<word>[^\W_{_WIDE}]+)', re.IGNORECASE
)
_PLAIN = (
    "a an and are as at be by can could did do does for from had has have he her his how i if in is"
    " it its me my of on or our say said she should so tell that the their them then there they"
    " this to was we were what when where which who why will with would you your"
)
_STOP = frozenset(_PLAIN.split())
_STEM = 4
"""Minimum letters of a word whose plural `s` may be missing."""


class Term(NamedTuple):
    """A word or phrase to search for."""

    begins: str
    """A lower-case string that a text must contain before the pattern is tried."""
    pattern: re.Pattern[str]


def terms(query: str) -> tuple[Term, ...]:
    """Return the terms of a query; raise UsageError if it has no letter and no digit.

    Words match as prefixes (`port` finds `ports`); "a phrase" matches exactly; Chinese,
    Japanese and Korean are split into pairs of characters. All words in a row count once more.
    """
    parts = list(_PART.finditer(query))
    said = [part["word"].lower() for part in parts if part["word"]]
    words = [word for word in said if word not in _STOP]
    if len(said) == len(parts):
        words = words or said
    found = [*map(_word, dict.fromkeys(words))]
    for part in parts:
        if part["wide"]:
            found += map(_literal, _pairs(part["wide"]))
        elif part["phrase"]:
            found += _in_a_row(part["phrase"].lower().split())
    if not found:
        raise UsageError(f"nothing to search for in {query!r}: give a word or a number")
    more = _in_a_row(words) if len(words) > 1 else []
    return (*found[:MOST], *more)


def _word(word: str) -> Term:
    stem = word[:-1] if len(word) >= _STEM and word.endswith("s") else word
    return Term(stem, re.compile(rf"(?<![^\W_]){re.escape(stem)}", re.IGNORECASE))


def _literal(text: str) -> Term:
    return Term(text, re.compile(re.escape(text)))


def _pairs(text: str) -> Iterator[str]:
    """Yield each pair of adjacent characters; the text itself if it has only one."""
    yield from map("".join, pairwise(text)) if len(text) > 1 else (text,)


def _in_a_row(words: Sequence[str]) -> list[Term]:
    if not words:
        return []
    row = r"[\W_]+".join(map(re.escape, words))
    return [Term(words[0], re.compile(row, re.IGNORECASE))]


class _Candidate(NamedTuple):
    terms: frozenset[int]
    """Indices of the terms it contains."""
    factor: float
    order: int
    found: Found


class Best:
    """Takes texts in their order and keeps the best matches."""

    def __init__(self, wanted: Sequence[Term], limit: int) -> None:
        self._wanted, self._limit = wanted, limit
        self._texts = 0
        self._with = [0] * len(wanted)
        """Number of texts that contain each term."""
        self._kept: list[_Candidate] = []

    def take(self, entry: Entry, texts: Iterable[tuple[float, str]]) -> None:
        """Rank the texts of one entry, each with its weight; the best one counts."""
        self._texts += 1
        seen: set[int] = set()
        best: tuple[float, dict[int, list[int]], str] | None = None
        for weight, text in texts:
            places = self._places(text)
            seen |= places.keys()
            factor = weight / (1 + log10(1 + len(text) / _LONG))
            if places and (best is None or len(places) * factor > len(best[1]) * best[0]):
                best = factor, places, text
        for term in seen:
            self._with[term] += 1
        if best is not None:
            factor, places, text = best
            found = Found(entry.id, entry.time, entry.type, _snippet(text, places))
            self._kept.append(_Candidate(frozenset(places), factor, self._texts, found))
            if len(self._kept) >= 2 * max(_KEPT, self._limit):
                self._kept = self._ranked()[: max(_KEPT, self._limit)]

    def found(self) -> list[Found]:
        """Return the best matches, newer first among equals."""
        return [one.found for one in self._ranked()[: self._limit]]

    def _places(self, text: str) -> dict[int, list[int]]:
        """Return the first few positions of each term, by the index of the term."""
        lower = text.lower()
        places: dict[int, list[int]] = {}
        for at, term in enumerate(self._wanted):
            if term.begins in lower:
                hits = term.pattern.finditer(text)
                if starts := [hit.start() for hit in islice(hits, _NEAR)]:
                    places[at] = starts
        return places

    def _ranked(self) -> list[_Candidate]:
        worth = [log(1 + self._texts / max(count, 1)) for count in self._with]

        def rank(one: _Candidate) -> tuple[float, int]:
            return round(sum(worth[at] for at in one.terms) * one.factor, 3), one.order

        return sorted(self._kept, key=rank, reverse=True)


def _snippet(text: str, places: dict[int, list[int]]) -> str:
    """Return the part of a text with most terms, on one line."""
    starts = [(start, term) for term, found in places.items() for start in found]

    def near(start: int) -> int:
        return len({term for other, term in starts if 0 <= other - start < AROUND // 2})

    middle = max(sorted(start for start, _ in starts), key=near)
    begin = max(middle - AROUND // 4, 0)
    end = min(begin + AROUND, len(text))
    begin = max(end - AROUND, 0)
    return f"{'…' * (begin > 0)}{single(text[begin:end])}{'…' * (end < len(text))}"
