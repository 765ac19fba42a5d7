"""A text as it looks: the view in which texts that differ only in typography are the same (pure).

Each line loses the blanks at its end; what remains is brought to NFKC, and curly quotes, dashes
and odd blanks become plain ones. Every place of the view is known in the text it was made of.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from tape.lookalikes import replace_lookalikes

_BLANKS = " \t\f\v\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
_BLANKS += "\u202f\u205f\u3000"
"""What may stand unseen at the end of a line; a carriage return is text."""
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f"
)
_MARKS += (
    "\u0981-\u0983\u09bc-\u09d7\u0b3c-\u0b57\u0bbe-\u0bd7\u0c3e-\u0c56\u0cbc-\u0cd6\u0d3e-\u0d57"
)
_MARKS += (
    "\u0dca-\u0ddf\u1031-\u103e\u1ab0-\u1aff\u1b34-\u1b44\u1dc0-\u1dff\u20d0-\u20ff\u302a-\u302f"
)
_MARKS += "\u3099\u309a\ufe20-\ufe2f\u1161-\u11c2\uff9e\uff9f"
_STILL = "\\x00-\\x7f\u00c0-\u00ff\u0410-\u044f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3"
"""Characters that look the same in every way, as long as no mark follows them."""
_CLUSTER = re.compile(f"[^{_MARKS}][{_MARKS}]+|[^{_STILL}]")
"""A character and the marks that melt with it, or any other that may look otherwise."""
_NEEDLESS = re.compile(r"\s+\Z")


class Span(NamedTuple):
    """First place of something in a text, and the one after its last."""

    start: int
    end: int


class NormalizedText:
    """A text as it looks, and where each place of it comes from."""

    def __init__(self, text: str) -> None:
        *whole, last = text.split("\n")
        self._sources = [_strip_carriage_return(line) for line in whole] + [last]
        looks = [_normalize_line(line) for line in self._sources]
        self.text = "\n".join(looks)
        self._starts = list(accumulate((len(look) + 1 for look in looks), initial=0))[:-1]
        lengths = (len(line) + 1 for line in text.split("\n"))
        self._source_starts = list(accumulate(lengths, initial=0))[:-1]
        self._maps: dict[int, _ColumnMap] = {}

    def source(self, span: Span) -> Span | None:
        """Return where a piece of the view stands in the text.

        None when it begins or ends inside what is one character there.
        """
        start, end = self._map_offset(span.start), self._map_offset(span.end)
        return None if start is None or end is None else Span(start, end)

    def _map_offset(self, place: int) -> int | None:
        line = bisect_right(self._starts, place) - 1
        columns = self._maps.get(line) or self._maps.setdefault(
            line, _ColumnMap(self._sources[line])
        )
        column = columns.source(place - self._starts[line])
        return None if column is None else self._source_starts[line] + column


def find_lookalike_spans(text: str, wanted: str) -> list[Span]:
    """Return where something that looks like `wanted` stands in `text`, without overlaps.

    Blanks at the end of `wanted` are found as they are or not at all at the end of a line.
    """
    pattern = _compile_lookalike(wanted)
    if pattern is None:
        return []
    view = NormalizedText(text)
    found = (view.source(Span(*match.span())) for match in pattern.finditer(view.text))
    return [span for span in found if span is not None]


def _compile_lookalike(wanted: str) -> re.Pattern[str] | None:
    lines = wanted.replace("\r\n", "\n").split("\n")
    looks = "\n".join(map(_normalize_line, lines))
    ending = replace_lookalikes(lines[-1][len(lines[-1].rstrip(_BLANKS)) :])
    if not _NEEDLESS.sub("", looks):
        return None
    tail = f"(?:{re.escape(ending)}|(?=\\n|\\Z))" if ending else ""
    return re.compile(re.escape(looks) + tail)


def _strip_carriage_return(line: str) -> str:
    """Return a line without the carriage return of its end."""
    return line.removesuffix("\r")


def _normalize_line(line: str) -> str:
    line = line.rstrip(_BLANKS)
    return (
        line if line.isascii() else _CLUSTER.sub(lambda found: _normalize_cluster(found[0]), line)
    )


@lru_cache(maxsize=4096)
def _normalize_cluster(cluster: str) -> str:
    return replace_lookalikes(unicodedata.normalize("NFKC", cluster))


class _ColumnMap:
    """The columns of one line and of its look."""

    def __init__(self, line: str) -> None:
        self._begins = [0]
        """Where each cluster begins in the look."""
        self._spans = [(0, 0, 0)]
        """Where each begins in the line, and where it ends in the look and in the line."""
        shown = source = 0
        for found in _CLUSTER.finditer(line):
            shown += found.start() - source
            source = found.end()
            self._begins.append(shown)
            shown += len(_normalize_cluster(found[0]))
            self._spans.append((found.start(), shown, source))

    def source(self, column: int) -> int | None:
        """Return the column of the line that is `column` of its look; None inside a cluster."""
        cluster = bisect_right(self._begins, column) - 1
        begin, shown, source = self._spans[cluster]
        if column >= shown:
            return source + column - shown
        return begin if column == self._begins[cluster] else None
