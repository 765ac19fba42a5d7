"""Which line of an old text each line of a new one is: pure, and never quadratic in their length.

Lines that stand once on both sides hold the two together; between them the same is done again, and
only where no such line is left, and little, every line is compared with every other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_COMPARED_PAIRS = 40_000
"""Pairs of lines that may be compared; beyond it what lies between counts as rewritten."""
NO_ORIGIN = -1
"""In the place of an old line's number: there was none."""


class _LineSpan(NamedTuple):
    """A stretch of both texts: first line, and the one after the last."""

    old: int
    old_end: int
    new: int
    new_end: int


def match_lines(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """Return for each line of `new` its number in `old`, from 0, or NEW."""
    found = [NO_ORIGIN] * len(new)
    spans = [_LineSpan(0, len(old), 0, len(new))]
    while spans:
        span = _trim_span(old, new, spans.pop(), found)
        if not set(old[span.old : span.old_end]).isdisjoint(new[span.new : span.new_end]):
            spans += _split_span(old, new, span, found)
    return found


def _trim_span(
    old: Sequence[str], new: Sequence[str], span: _LineSpan, found: list[int]
) -> _LineSpan:
    """Note what is alike at both ends and return what lies between."""
    a, b, c, d = span
    while a < b and c < d and old[a] == new[c]:
        found[c] = a
        a, c = a + 1, c + 1
    while a < b and c < d and old[b - 1] == new[d - 1]:
        b, d = b - 1, d - 1
        found[d] = b
    return _LineSpan(a, b, c, d)


def _split_span(
    old: Sequence[str], new: Sequence[str], span: _LineSpan, found: list[int]
) -> list[_LineSpan]:
    """Note the lines that hold a stretch together and return what lies between them."""
    anchors = _find_unique_pairs(old, new, span)
    if not anchors:
        _compare_span(old, new, span, found)
        return []
    spans, a, c = [], span.old, span.new
    for i, j in [*anchors, (span.old_end, span.new_end)]:
        if a < i and c < j:
            spans.append(_LineSpan(a, i, c, j))
        a, c = i + 1, j + 1
    for i, j in anchors:
        found[j] = i
    return spans


def _find_unique_pairs(
    old: Sequence[str], new: Sequence[str], span: _LineSpan
) -> list[tuple[int, int]]:
    """Return the longest run, in order, of lines that stand once on both sides."""
    once_old, once_new = (
        _index_unique_lines(old, span.old, span.old_end),
        _index_unique_lines(new, span.new, span.new_end),
    )
    pairs = [(once_old[line], j) for line, j in once_new.items() if line in once_old]
    return _select_rising_pairs(sorted(pairs, key=lambda pair: pair[1]))


def _index_unique_lines(lines: Sequence[str], start: int, end: int) -> dict[str, int]:
    counts = Counter(lines[start:end])
    return {lines[at]: at for at in range(start, end) if counts[lines[at]] == 1}


def _select_rising_pairs(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part of the pairs whose first numbers rise."""
    ends: list[int] = []  # smallest first number that ends a run of each length
    at: list[int] = []  # which pair that is
    before: list[int] = []  # the pair before each in its run
    for k, (i, _) in enumerate(pairs):
        length = bisect_left(ends, i)
        before.append(at[length - 1] if length else -1)
        ends[length : length + 1] = [i]
        at[length : length + 1] = [k]
    run, k = [], at[-1] if at else -1
    while k >= 0:
        run.append(pairs[k])
        k = before[k]
    return run[::-1]


def _compare_span(
    old: Sequence[str], new: Sequence[str], span: _LineSpan, found: list[int]
) -> None:
    a, b, c, d = span
    if (b - a) * (d - c) > MAX_COMPARED_PAIRS:
        return
    matcher = SequenceMatcher(None, old[a:b], new[c:d], autojunk=False)
    for i, j, size in matcher.get_matching_blocks():
        for k in range(size):
            found[c + j + k] = a + i + k
