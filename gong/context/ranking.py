"""Ranks texts by a query: rare words count more than frequent ones, long texts less.

One pass over the texts in their order; memory does not grow with them. Pure.
"""

from __future__ import annotations

import re
from itertools import islice, pairwise
from math import log, log10
from typing import TYPE_CHECKING, NamedTuple

from tape.errors import UsageError
from tape.text import to_single_line

from ..tools.tool import RecallMatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tape.line import Entry

MAX_TERMS = 24
"""Maximum terms of a query."""
SNIPPET_CHARS = 240
"""Maximum characters of a snippet."""

_MIN_CANDIDATES = 256
"""Minimum number of candidates kept while texts are read."""
_PLACES_PER_TERM = 4
"""Maximum positions of each term that are tried for the best snippet."""
_LONG_TEXT_CHARS = 1_000
"""Characters from which on a text counts noticeably less."""
_CJK_RANGES = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff"
_QUERY_PART = re.compile(
    rf'"(?P<phrase>[^"]+)"|(?P<wide>[{_CJK_RANGES}]+)|(?P<word>[^\W_{_CJK_RANGES}]+)', re.IGNORECASE
)
_STOP_WORD_LIST = (
    "a an and are as at be by can could did do does for from had has have he her his how i if in is"
    " it its me my of on or our say said she should so tell that the their them then there they"
    " this to was we were what when where which who why will with would you your"
)
_STOP_WORDS = frozenset(_STOP_WORD_LIST.split())
_MIN_STEM_LETTERS = 4
"""Minimum letters of a word whose plural `s` may be missing."""


class SearchTerm(NamedTuple):
    """A word or phrase to search for."""

    begins: str
    """A lower-case string that a text must contain before the pattern is tried."""
    pattern: re.Pattern[str]


def parse_terms(query: str) -> tuple[SearchTerm, ...]:
    """Return the terms of a query; raise UsageError if it has no letter and no digit.

    Words match as prefixes (`port` finds `ports`); "a phrase" matches exactly; Chinese,
    Japanese and Korean are split into pairs of characters. All words in a row count once more.
    """
    parts = list(_QUERY_PART.finditer(query))
    said = [part["word"].lower() for part in parts if part["word"]]
    words = [word for word in said if word not in _STOP_WORDS]
    if len(said) == len(parts):
        words = words or said
    found = [*map(_build_word_term, dict.fromkeys(words))]
    for part in parts:
        if part["wide"]:
            found += map(_build_literal_term, _split_pairs(part["wide"]))
        elif part["phrase"]:
            found += _build_phrase_terms(part["phrase"].lower().split())
    if not found:
        raise UsageError(f"nothing to search for in {query!r}: give a word or a number")
    more = _build_phrase_terms(words) if len(words) > 1 else []
    return (*found[:MAX_TERMS], *more)


def _build_word_term(word: str) -> SearchTerm:
    stem = word[:-1] if len(word) >= _MIN_STEM_LETTERS and word.endswith("s") else word
    return SearchTerm(stem, re.compile(rf"(?<![^\W_]){re.escape(stem)}", re.IGNORECASE))


def _build_literal_term(text: str) -> SearchTerm:
    return SearchTerm(text, re.compile(re.escape(text)))


def _split_pairs(text: str) -> Iterator[str]:
    """Yield each pair of adjacent characters; the text itself if it has only one."""
    yield from map("".join, pairwise(text)) if len(text) > 1 else (text,)


def _build_phrase_terms(words: Sequence[str]) -> list[SearchTerm]:
    if not words:
        return []
    row = r"[\W_]+".join(map(re.escape, words))
    return [SearchTerm(words[0], re.compile(row, re.IGNORECASE))]


class _Candidate(NamedTuple):
    terms: frozenset[int]
    """Indices of the terms it contains."""
    factor: float
    order: int
    found: RecallMatch


class BestMatches:
    """Takes texts in their order and keeps the best matches."""

    def __init__(self, wanted: Sequence[SearchTerm], limit: int) -> None:
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
            places = self._find_places(text)
            seen |= places.keys()
            factor = weight / (1 + log10(1 + len(text) / _LONG_TEXT_CHARS))
            if places and (best is None or len(places) * factor > len(best[1]) * best[0]):
                best = factor, places, text
        for term in seen:
            self._with[term] += 1
        if best is not None:
            factor, places, text = best
            found = RecallMatch(entry.id, entry.time, entry.type, _cut_snippet(text, places))
            self._kept.append(_Candidate(frozenset(places), factor, self._texts, found))
            if len(self._kept) >= 2 * max(_MIN_CANDIDATES, self._limit):
                self._kept = self._rank_candidates()[: max(_MIN_CANDIDATES, self._limit)]

    def list_found(self) -> list[RecallMatch]:
        """Return the best matches, newer first among equals."""
        return [one.found for one in self._rank_candidates()[: self._limit]]

    def _find_places(self, text: str) -> dict[int, list[int]]:
        """Return the first few positions of each term, by the index of the term."""
        lower = text.lower()
        places: dict[int, list[int]] = {}
        for at, term in enumerate(self._wanted):
            if term.begins in lower:
                hits = term.pattern.finditer(text)
                if starts := [hit.start() for hit in islice(hits, _PLACES_PER_TERM)]:
                    places[at] = starts
        return places

    def _rank_candidates(self) -> list[_Candidate]:
        worth = [log(1 + self._texts / max(count, 1)) for count in self._with]

        def rank(one: _Candidate) -> tuple[float, int]:
            return round(sum(worth[at] for at in one.terms) * one.factor, 3), one.order

        return sorted(self._kept, key=rank, reverse=True)


def _cut_snippet(text: str, places: dict[int, list[int]]) -> str:
    """Return the part of a text with most terms, on one line."""
    starts = [(start, term) for term, found in places.items() for start in found]

    def near(start: int) -> int:
        return len({term for other, term in starts if 0 <= other - start < SNIPPET_CHARS // 2})

    middle = max(sorted(start for start, _ in starts), key=near)
    begin = max(middle - SNIPPET_CHARS // 4, 0)
    end = min(begin + SNIPPET_CHARS, len(text))
    begin = max(end - SNIPPET_CHARS, 0)
    return f"{'…' * (begin > 0)}{to_single_line(text[begin:end])}{'…' * (end < len(text))}"
