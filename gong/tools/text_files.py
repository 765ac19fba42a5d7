"""The text of a file, and where another text is in it (pure; bytes in, bytes out).

A file that is decoded and encoded again has the same bytes, whatever is in it. A text is found as
it is, else as it looks, and replaced:

    1. exactly, but that CRLF and LF match each other (a lone carriage return is text)
    2. as it looks: without blanks at the ends of lines, in NFKC, with curly quotes, dashes and odd
       blanks made plain; each place of this view is known in the text it was made of

Only matched spans change. What is put in gets the line ends of the file, told by its first.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from tape.lookalikes import replace_lookalikes

if TYPE_CHECKING:
    from collections.abc import Sequence


BOM = codecs.BOM_UTF8
"""The mark some programs put before UTF-8."""
_MARK = "\ufeff"


class TextFile(NamedTuple):
    """A text file taken apart."""

    text: str
    """What it says; bytes that are no UTF-8 stand as lone surrogates."""
    encoding: str
    """utf-8, utf-16-le or utf-16-be."""
    mark: bytes
    """The byte order mark it begins with; empty for most."""

    def to_bytes(self, text: str) -> bytes:
        """Return the bytes of such a file that says `text`."""
        return self.mark + self.encode_piece(text)

    def encode_piece(self, text: str) -> bytes:
        """Return the bytes of a piece of `text`."""
        if self.encoding != "utf-8":
            return text.encode(self.encoding, "surrogatepass")
        try:
            return text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            # A lone surrogate that represents no byte: only a model can have written it.
            return b"".join(map(_encode_character, text))


def decode_text_file(data: bytes) -> TextFile | None:
    """Return the text of a file; None for a binary one."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _decode_utf_16(data)
    if is_binary(data):
        return None
    mark = BOM if data.startswith(BOM) else b""
    return TextFile(data[len(mark) :].decode("utf-8", "surrogateescape"), "utf-8", mark)


def is_binary(data: bytes) -> bool:
    """Whether these bytes are binary: nearly every binary contains a NUL, and no text does."""
    return b"\0" in data


def strip_byte_order_mark(text: str) -> str:
    """Return what a model wrote without a byte order mark at its start."""
    return text.removeprefix(_MARK)


def _decode_utf_16(data: bytes) -> TextFile | None:
    mark, rest = data[:2], data[2:]
    encoding = "utf-16-le" if mark == codecs.BOM_UTF16_LE else "utf-16-be"
    try:
        text = rest.decode(encoding, "surrogatepass")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else TextFile(text, encoding, mark)


def _encode_character(character: str) -> bytes:
    try:
        return character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return character.encode("utf-8", "surrogatepass")


_BLANKS = " \t\f\v\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
_BLANKS += "\u202f\u205f\u3000"
"""What may stand unseen at the end of a line; a carriage return is text."""
_UNSEEN = re.compile(r"[ \t\f\v]\n|\r\n")
"""What an ASCII text holds and does not show, but for its end."""
_STEP = 1 << 20
"""Characters that are looked through at once: other threads have to wait meanwhile."""
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
_CLUSTER = f"[^{_MARKS}][{_MARKS}]+|[^{_STILL}]"
"""A character and the marks that melt with it, or any other that may look otherwise."""
_NEEDLESS = r"\s+\Z"


class Span(NamedTuple):
    """First place of something in a text, and the one after its last."""

    start: int
    end: int


class NormalizedText:
    """A text as it looks, and where each place of it comes from."""

    def __init__(self, text: str) -> None:
        *whole, last = text.split("\n")
        self._sources = [line.removesuffix("\r") for line in whole] + [last]
        looks = [_normalize_line(line) for line in self._sources]
        self.text = "\n".join(looks)
        self._starts = list(accumulate((len(look) + 1 for look in looks), initial=0))[:-1]
        lengths = (len(line) + 1 for line in text.split("\n"))
        self._source_starts = list(accumulate(lengths, initial=0))[:-1]
        self._maps: dict[int, _ColumnMap] = {}

    def source(self, span: Span) -> Span | None:
        """Return the span of a piece of the view in the text.

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


def find_lookalike_spans(text: str, old_text: str) -> list[Span]:
    """Return where `text` contains something that looks like `old_text`, without overlaps.

    Blanks at the end of `old_text` are found as they are or not at all at the end of a line.
    """
    lines = old_text.replace("\r\n", "\n").split("\n")
    looks = "\n".join(map(_normalize_line, lines))
    if not re.sub(_NEEDLESS, "", looks):
        return []
    ending = replace_lookalikes(lines[-1][len(lines[-1].rstrip(_BLANKS)) :])
    tail = f"(?:{re.escape(ending)}|(?=\\n|\\Z))" if ending else ""
    pattern = re.compile(re.escape(looks) + tail)
    if text.isascii() and not _has_unseen(text):  # it looks as it is
        return [Span(*match.span()) for match in pattern.finditer(text)]
    view = NormalizedText(text)
    spans = (view.source(Span(*match.span())) for match in pattern.finditer(view.text))
    return [span for span in spans if span is not None]


def _has_unseen(text: str) -> bool:
    steps = range(0, len(text), _STEP)
    return text[-1:] in _BLANKS or any(_UNSEEN.search(text, at, at + _STEP + 1) for at in steps)


def _normalize_line(line: str) -> str:
    line = line.rstrip(_BLANKS)
    return (
        line
        if line.isascii()
        else re.sub(_CLUSTER, lambda cluster: _normalize_cluster(cluster[0]), line)
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
        column = source = 0
        for cluster in re.finditer(_CLUSTER, line):
            column += cluster.start() - source
            source = cluster.end()
            self._begins.append(column)
            column += len(_normalize_cluster(cluster[0]))
            self._spans.append((cluster.start(), column, source))

    def source(self, column: int) -> int | None:
        """Return the column of the line that is `column` of its look; None inside a cluster."""
        cluster = bisect_right(self._begins, column) - 1
        begin, look_start, source = self._spans[cluster]
        if column >= look_start:
            return source + column - look_start
        return begin if column == self._begins[cluster] else None


@dataclass(frozen=True, slots=True)
class FileReplacement:
    """A file with one span of it replaced."""

    before: bytes
    after: bytes
    start: int
    """Where the span begins, in both."""
    old_end: int
    """Where it ends in `before`."""
    new_end: int
    """Where it ends in `after`."""


class TextPlaces(NamedTuple):
    """The occurrences of a text."""

    spans: tuple[Span, ...]
    """The occurrences to replace: exact ones if there are any, else similar ones."""
    total: int
    """How many there are in all, counting what could be meant as well."""
    exact: bool
    """Whether the spans hold the text as it is, but for line ends."""


def find_text(text: str, old_text: str) -> TextPlaces:
    """Return the occurrences of `old_text` in `text`; those that look like it where none is it.

    Where it is there as it is, the same with other blanks at the ends of lines counts for
    uniqueness, because those are not seen; the same with other quotes or dashes does not.
    """
    old_text = strip_byte_order_mark(old_text)
    parts = map(re.escape, _to_unix_line_ends(old_text).split("\n"))
    # A carriage return that is looked for is not the one of a line end.
    pattern = "\r?\n".join(part.replace("\\\r", "\\\r(?!\n)") for part in parts)
    exact = [Span(*match.span()) for match in re.finditer(pattern, text)]
    similar = find_lookalike_spans(text, old_text)
    # Similar places that overlap no exact one; both lists are in order
    ends = [other.end for other in exact]
    count = 0
    for span in similar:
        if exact and not _has_same_words(text[span.start : span.end], old_text):
            continue
        nearest = bisect_right(ends, span.start)
        count += nearest == len(exact) or exact[nearest].start >= span.end
    return TextPlaces(tuple(exact or similar), len(exact) + count, bool(exact))


def _has_same_words(first: str, other: str) -> bool:
    """Return whether two texts differ in nothing but blanks at the ends of their lines."""
    lines, other_lines = first.split("\n"), other.split("\n")
    return [line.rstrip() for line in lines] == [line.rstrip() for line in other_lines]


def replace_spans(
    file: TextFile, spans: Sequence[Span], new: str, before: bytes
) -> FileReplacement:
    """Return the file with `new` in place of each span; they are in order and do not overlap.

    `before` is its bytes.
    """
    text = file.text
    end = text.find("\n")
    line_end = "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"
    new = _to_unix_line_ends(new).replace("\n", line_end)
    first, last = spans[0].start, spans[-1].end
    gaps = (text[span.end : other.start] for span, other in pairwise(spans))
    middle = new + "".join(part + new for part in gaps)
    start = len(file.mark) + len(file.encode_piece(text[:first]))
    old_end = start + len(file.encode_piece(text[first:last]))
    inserted = file.encode_piece(middle)
    after = b"".join((memoryview(before)[:start], inserted, memoryview(before)[old_end:]))
    return FileReplacement(before, after, start, old_end, start + len(inserted))


def is_same_text(first: str, other: str) -> bool:
    """Whether two texts differ in nothing but their line ends."""
    return _to_unix_line_ends(first) == _to_unix_line_ends(other)


def _to_unix_line_ends(text: str) -> str:
    return strip_byte_order_mark(text).replace("\r\n", "\n")
