"""Lines of two texts matched, and where an edit is in a text, before it was made and after; pure.

A text here is whole lines: it is empty, or ends with a line feed, and has no other line ends.

Matching is never quadratic in the length. It repeats three steps on a span of both texts until no
span is left:

    1. trim      lines that are equal at both ends match
    2. split     lines that are unique on both sides match, as many as are in the same order;
                 what is between them are new spans
    3. compare   where no line is unique, every line is compared with every other, in a small span;
                 a large one counts as rewritten
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ..files.calls import PatchHunk, TextInsertion, TextReplacement
from ..lookalikes import replace_lookalikes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


MAX_COMPARED_PAIRS = 40_000
"""Most pairs of lines to compare; a larger part counts as rewritten."""
NO_ORIGIN = -1
"""Marks a line that has no old line."""


_LineSpan = tuple[int, int, int, int]
"""A stretch of both texts: first old line, the one after the last, the same of the new text."""


def match_lines(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """Return for each line of `new` its number in `old`, from 0, or NO_ORIGIN."""
    origins = [NO_ORIGIN] * len(new)
    spans: list[_LineSpan] = [(0, len(old), 0, len(new))]
    while spans:
        a, b, c, d = spans.pop()
        while a < b and c < d and old[a] == new[c]:
            origins[c] = a
            a, c = a + 1, c + 1
        while a < b and c < d and old[b - 1] == new[d - 1]:
            b, d = b - 1, d - 1
            origins[d] = b
        if not set(old[a:b]).isdisjoint(new[c:d]):
            spans += _split_span(old, new, (a, b, c, d), origins)
    return origins


def _split_span(
    old: Sequence[str], new: Sequence[str], span: _LineSpan, origins: list[int]
) -> list[_LineSpan]:
    """Match the lines that are unique on both sides, else all, and return what is between them."""
    a, b, c, d = span
    once_old, once_new = _index_unique_lines(old, a, b), _index_unique_lines(new, c, d)
    pairs = [(once_old[line], j) for line, j in once_new.items() if line in once_old]
    anchors = _select_rising_pairs(sorted(pairs, key=lambda pair: pair[1]))
    if not anchors:
        if (b - a) * (d - c) <= MAX_COMPARED_PAIRS:
            matcher = SequenceMatcher(None, old[a:b], new[c:d], autojunk=False)
            for i, j, size in matcher.get_matching_blocks():
                origins[c + j : c + j + size] = range(a + i, a + i + size)
        return []
    spans = []
    for i, j in [*anchors, (b, d)]:
        if a < i and c < j:
            spans.append((a, i, c, j))
        a, c = i + 1, j + 1
    for i, j in anchors:
        origins[j] = i
    return spans


def _index_unique_lines(lines: Sequence[str], start: int, end: int) -> dict[str, int]:
    counts = Counter(lines[start:end])
    return {lines[at]: at for at in range(start, end) if counts[lines[at]] == 1}


def _select_rising_pairs(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of pairs whose first numbers increase."""
    ends: list[int] = []  # smallest first number that ends a run of each length
    at: list[int] = []  # the index of that pair
    before: list[int] = []  # the previous pair of each pair
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


T = TypeVar("T")

EditStep = TextReplacement | PatchHunk | TextInsertion


class TextSpan(NamedTuple):
    """A span of characters in a text, and its replacement."""

    start: int
    end: int
    text: str


class MarkedText(NamedTuple, Generic[T]):
    """A text, and a mark for each of its lines."""

    text: str
    marks: list[T]


def normalize_text(text: str) -> str:
    """Return a text with line feeds for its line ends, the last one too, and no byte order mark."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    return f"{text}\n" if text and not text.endswith("\n") else text


def split_lines(text: str) -> list[str]:
    """Return the lines of whole lines, without their ends."""
    return text.split("\n")[:-1]


def find_step_spans(text: str, step: EditStep, cursor: int = 0) -> list[TextSpan]:
    """Return the places that a step would change in a text; empty if it does not fit.

    Hunks of a patch come in the order of the file: `cursor` is where the one before ended.
    """
    match step:
        case TextReplacement():
            places = list(
                _find_text_spans(text, _normalize_newlines(step.old), _normalize_newlines(step.new))
            )
            return places if len(places) == 1 or step.every else []
        case TextInsertion(line, added):
            lines = split_lines(text)
            line = len(lines) if line is None else line
            if not 0 <= line <= len(lines):
                return []
            start = sum(len(line_text) + 1 for line_text in lines[:line])
            return [TextSpan(start, start, normalize_text(added))]
        case PatchHunk():
            place = _find_hunk_span(text, step, cursor)
            return [] if place is None else [place]


def find_undo_spans(text: str, step: EditStep) -> list[TextSpan]:
    """Return the places that revert a step in a text that contains its result.

    Empty if that is unclear: it added nothing, or its text occurs not at all or more than once.
    """
    match step:
        case TextReplacement():
            places = list(
                _find_text_spans(text, _normalize_newlines(step.new), _normalize_newlines(step.old))
            )
        case TextInsertion(_, added):
            places = list(_find_line_spans(text, split_lines(normalize_text(added)), []))
        case PatchHunk():
            places = list(
                _find_line_spans(text, _strip_returns(step.new), _strip_returns(step.old))
            )
    return places if len(places) == 1 or (isinstance(step, TextReplacement) and step.every) else []


def list_added_runs(step: EditStep) -> list[list[str]]:
    """Return the runs of whole lines that a step added."""
    match step:
        case TextReplacement():
            old, new = split_lines(normalize_text(step.old)), split_lines(normalize_text(step.new))
        case TextInsertion(_, added):
            old, new = [], split_lines(normalize_text(added))
        case PatchHunk():
            old, new = _strip_returns(step.old), _strip_returns(step.new)
    runs: list[list[str]] = [[]]
    for line, origin in zip(new, match_lines(old, new), strict=True):
        if origin == NO_ORIGIN:
            runs[-1].append(line)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def find_line_numbers(text: str, run: Sequence[str]) -> list[int]:
    """Return the numbers, from 0, of the lines at which a run of whole lines begins."""
    return [text.count("\n", 0, place.start) for place in _find_line_spans(text, run, [])]


def splice_text(marked: MarkedText[T], place: TextSpan, mark: T) -> tuple[MarkedText[T], list[T]]:
    """Return a text with a place replaced, and the marks of the removed lines.

    Unchanged lines keep their marks, new ones get `mark`.
    """
    text, marks = marked
    start = text.rfind("\n", 0, place.start) + 1
    region = text[start : place.start] + place.text
    end = place.end
    if not (_is_line_end(text[max(end - 1, 0) : end]) and _is_line_end(region[-1:])):
        end = text.find("\n", end) + 1 or len(text)
        region = normalize_text(region + text[place.end : end])
    first = text.count("\n", 0, start)
    old, new = split_lines(text[start:end]), split_lines(region)
    origins = match_lines(old, new)
    known = marks[first : first + len(old)]
    gone = set(range(len(old))).difference(origins)
    inside = [mark if origin == NO_ORIGIN else known[origin] for origin in origins]
    whole = MarkedText(
        text[:start] + region + text[end:], marks[:first] + inside + marks[first + len(old) :]
    )
    return whole, [known[at] for at in sorted(gone)]


def _is_line_end(last: str) -> bool:
    return last in {"", "\n"}


def _normalize_line(line: str) -> str:
    return replace_lookalikes(line).strip()


def _normalize_newlines(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _strip_returns(lines: Sequence[str]) -> list[str]:
    return [line.removesuffix("\r") for line in lines]


def _find_text_spans(text: str, old: str, new: str) -> Iterator[TextSpan]:
    """Yield the places where a text occurs."""
    start = text.find(old) if old else -1
    while start >= 0:
        yield TextSpan(start, start + len(old), new)
        start = text.find(old, start + len(old))


def _find_line_spans(
    text: str, old: Sequence[str], new: Sequence[str], start: int = 0
) -> Iterator[TextSpan]:
    """Yield the places from `start` on where these whole lines occur."""
    needle, instead = "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new)
    at = text.find(needle, start) if needle else -1
    while at >= 0:
        if at == 0 or text[at - 1] == "\n":
            yield TextSpan(at, at + len(needle), instead)
        at = text.find(needle, at + 1)


def _find_hunk_span(text: str, hunk: PatchHunk, cursor: int) -> TextSpan | None:
    """Return the first place after the contexts of a hunk where its old lines occur."""
    for context in hunk.contexts:
        first_span = _find_first_span(text, [context], [], cursor)
        cursor = first_span.end if first_span else cursor
    old, new = _strip_returns(hunk.old), _strip_returns(hunk.new)
    if not old:
        at = cursor if hunk.contexts else len(text)
        return TextSpan(at, at, "".join(f"{line}\n" for line in new))
    if hunk.at_end:
        places = [*_find_line_spans(text, old, new)]
        if places and places[-1].end == len(text):
            return places[-1]
    return _find_first_span(text, old, new, cursor)


def _find_first_span(text: str, old: list[str], new: list[str], start: int) -> TextSpan | None:
    """Return the first place where lines occur: exactly, or else with look-alike characters."""
    exact = next(_find_line_spans(text, old, new, start), None)
    if exact is not None:
        return exact
    lines, bare_old = split_lines(text[start:]), [_normalize_line(line) for line in old]
    bare = "".join(f"{_normalize_line(line)}\n" for line in lines)
    loose = next(_find_line_spans(bare, bare_old, []), None)
    if loose is None:
        return None
    first = bare.count("\n", 0, loose.start)
    begin = start + sum(len(line) + 1 for line in lines[:first])
    end = begin + sum(len(line) + 1 for line in lines[first : first + len(old)])
    return TextSpan(begin, end, "".join(f"{line}\n" for line in new))
