"""Search and read the path of a branch, from the root on, for the model that writes it.

Compactions are no limit here: covered entries are on the path like all others. Both functions read
the tape as a stream; memory does not grow with it.

`BestMatches` ranks. FTS5 of the index could not: it ranks tapes that are not being written, and not
the entries of one path. The score of an entry is that of its best text:

    sum over its terms of log(1 + texts / texts with the term)       rare words count more
      × weight of the kind of text (a user's 1.5 … a result's 0.8)
      / (1 + log10(1 + characters / 1000))                           long texts count less
"""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import islice
from math import log10
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from tape.damage import warn_of_damage
from tape.errors import Ambiguous, Damaged, NotFound
from tape.ids import is_id_prefix
from tape.index.full_text import iter_argument_texts
from tape.model.entries import (
    Anchor,
    Assistant,
    Context,
    Text,
    ToolResult,
    User,
    decode_arguments,
    join_texts,
    select_tool_calls,
)
from tape.model.line import decode_line, describe_blob_head, encode_id_prefix, read_id, read_type
from tape.render.markdown import render_conversation
from tape.text import to_single_line

from ..search_terms import parse_terms, weigh_term
from ..tools.session_tools import RECALL_LIMIT, RECALL_TOOLS, SHORT_ID_DIGITS
from ..tools.tool import RecallMatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tape.model.entries import BlobRef
    from tape.model.line import Entry
    from tape.store.path import Source
    from tape.store.refs import Head
    from tape.store.tape import Tape

    from ..search_terms import SearchTerm


SNIPPET_CHARS = 240
"""Maximum characters of a snippet."""

_MIN_CANDIDATES = 256
"""Minimum number of candidates kept while texts are read."""
_PLACES_PER_TERM = 4
"""Maximum positions of each term that are tried for the best snippet."""
_LONG_TEXT_CHARS = 1_000
"""Characters from which on a text counts noticeably less."""


class _Candidate(NamedTuple):
    terms: frozenset[int]
    """Indices of the terms it contains."""
    factor: float
    order: int
    found: RecallMatch


class BestMatches:
    """Takes texts in their order and keeps the best matches."""

    def __init__(self, terms: Sequence[SearchTerm], limit: int) -> None:
        self._wanted, self._limit = terms, limit
        self._texts = 0
        self._with = [0] * len(terms)
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
            match = RecallMatch(entry.id, entry.time, entry.type, _cut_snippet(text, places))
            self._kept.append(_Candidate(frozenset(places), factor, self._texts, match))
            if len(self._kept) >= 2 * max(_MIN_CANDIDATES, self._limit):
                self._kept = self._rank_candidates()[: max(_MIN_CANDIDATES, self._limit)]

    def list_found(self) -> list[RecallMatch]:
        """Return the best matches, newer first among equals."""
        return [candidate.found for candidate in self._rank_candidates()[: self._limit]]

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
        worth = [weigh_term(count, self._texts) for count in self._with]

        def rank(candidate: _Candidate) -> tuple[float, int]:
            return round(
                sum(worth[at] for at in candidate.terms) * candidate.factor, 3
            ), candidate.order

        return sorted(self._kept, key=rank, reverse=True)


def _cut_snippet(text: str, places: dict[int, list[int]]) -> str:
    """Return the part of a text with most terms, on one line."""
    starts = [(start, term) for term, term_starts in places.items() for start in term_starts]

    def near(start: int) -> int:
        return len({term for other, term in starts if 0 <= other - start < SNIPPET_CHARS // 2})

    middle = max(sorted(start for start, _ in starts), key=near)
    begin = max(middle - SNIPPET_CHARS // 4, 0)
    end = min(begin + SNIPPET_CHARS, len(text))
    begin = max(end - SNIPPET_CHARS, 0)
    return f"{'…' * (begin > 0)}{to_single_line(text[begin:end])}{'…' * (end < len(text))}"


PAGE_CHARS = 8_000
"""Maximum characters of an entry that are read at once."""
NEIGHBOUR_CHARS = 2_000
"""Maximum characters of each entry around it."""
MAX_SEARCHED_BYTES = 1 << 24
"""Maximum bytes of a text that are searched, from its beginning."""

_SPOKEN_TYPES = frozenset({"user", "assistant", "tool.result", "context", "anchor"})
_RECALL_TOOLS = frozenset(tool.name for tool in RECALL_TOOLS)
"""Tools whose calls and results only repeat other entries."""
_USER_WEIGHT, _ANSWER_WEIGHT, _CALL_WEIGHT, _RESULT_WEIGHT = 1.5, 1.2, 1.0, 0.8
"""Weights: users' text counts more than answers, and answers more than calls and results."""
_CURRENT_PROMPT_WEIGHT = 0.05
"""Weight of the current prompt, which the model already sees."""


class _TapeLine(NamedTuple):
    source: Source
    line: bytes


class TapeRecall:
    """`gong.tools.tool.Recall` over the path to a head, which each call looks up again."""

    def __init__(self, tape: Tape, head: Callable[[], Head]) -> None:
        self._tape, self._head = tape, head

    def search(self, query: str, limit: int = RECALL_LIMIT) -> Sequence[RecallMatch]:
        """Return the entries that match the words best, newer first among equals.

        Not all words must match; rare ones count more. Raises UsageError for a query without a
        letter or a digit, Damaged or NotFound if the path cannot be read.
        """
        best = BestMatches(parse_terms(query), limit)
        prompt: Entry | None = None
        for entry in self._read_entries():
            if isinstance(entry.data, User | Anchor) and prompt is not None:
                best.take(prompt, _extract_texts(prompt))
                prompt = None
            if isinstance(entry.data, User):
                prompt = entry
            else:
                best.take(entry, _extract_texts(entry))
        if prompt is not None:
            texts = [(_CURRENT_PROMPT_WEIGHT, text) for _, text in _extract_texts(prompt)]
            best.take(prompt, texts)
        return best.list_found()

    def _read_entries(self) -> Iterator[Entry]:
        for segment in self._tape.path(self._head()):
            expand = partial(_expand_bounded, segment.source.expand)
            bounded = segment._replace(source=segment.source._replace(expand=expand))
            for run in bounded.read_runs(warn_of_damage):
                yield from run

    def read(self, entry: str, before: int = 0, after: int = 0, offset: int = 0) -> str:
        """Return the entry whose id starts with `entry`, and those around it, like `tape cat`.

        Returns at most PAGE characters of it from `offset` on, and BESIDE of each other entry.
        Raises NotFound, Ambiguous, and Damaged if it cannot be read.
        """
        if not is_id_prefix(entry):
            raise NotFound(
                f"{entry!r} is not an id: give four hex digits or more, as tape_search does"
            )
        earlier, hit, later = self._find_around(entry, before, after)
        page = _render_entry_page(decode_line(hit.line, hit.source.expand), offset)
        return "\n\n".join([*_render_neighbours(earlier), page, *_render_neighbours(later)])

    def _find_around(
        self, entry: str, before: int, after: int
    ) -> tuple[list[_TapeLine], _TapeLine, list[_TapeLine]]:
        """Return an entry, and the messages before and after it."""
        start = encode_id_prefix(entry)
        past: deque[_TapeLine] = deque(maxlen=before)
        hits: list[_TapeLine] = []
        later: list[_TapeLine] = []
        for tape_line in self._read_lines():
            if tape_line.line.startswith(start):
                hits.append(tape_line)
            elif read_type(tape_line.line) in _SPOKEN_TYPES:
                if not hits:
                    past.append(tape_line)
                elif len(later) < after:
                    later.append(tape_line)
        if not hits:
            raise NotFound(f"no entry {entry} on this branch: find entries with tape_search")
        if len(hits) > 1:
            raise Ambiguous(entry, tuple(read_id(hit.line)[: len(entry) + 8] for hit in hits))
        return list(past), hits[0], later

    def _read_lines(self) -> Iterator[_TapeLine]:
        for segment in self._tape.path(self._head()):
            for _, line in segment.read_checked_lines(warn_of_damage):
                yield _TapeLine(segment.source, line)


def _expand_bounded(expand: Callable[[BlobRef], str], ref: BlobRef) -> str:
    return expand(ref) if ref.bytes <= MAX_SEARCHED_BYTES else describe_blob_head(ref)


def _extract_texts(entry: Entry) -> Iterator[tuple[float, str]]:
    """Yield the searchable texts of an entry, each with its weight."""
    match entry.data:
        case User(content=content):
            yield _USER_WEIGHT, join_texts(content)
        case Context(origin="steering" | "follow_up", content=content):
            yield _USER_WEIGHT, join_texts(content)
        case Context(content=content):
            yield _RESULT_WEIGHT, join_texts(content)
        case Assistant(content=content):
            yield _ANSWER_WEIGHT, join_texts(content)
            for call in select_tool_calls(content):
                if call.name not in _RECALL_TOOLS:
                    words = iter_argument_texts(decode_arguments(call))
                    texts = filter(None, [call.name, call.args_text, *words])
                    yield _CALL_WEIGHT, " ".join(texts)
        case ToolResult() as result if result.name not in _RECALL_TOOLS:
            yield (
                _RESULT_WEIGHT,
                result.whole if result.whole is not None else join_texts(result.content),
            )
        case _:
            return


def _render_neighbours(lines: Sequence[_TapeLine]) -> Iterator[str]:
    """Yield the entries around the one that is read, each cut."""
    for tape_line in lines:
        try:
            entry = decode_line(tape_line.line, describe_blob_head)
        except Damaged as error:
            yield f"[entry {read_id(tape_line.line)[:SHORT_ID_DIGITS]} is left out: {error}]"
            continue
        if isinstance(entry.data, ToolResult):
            entry = replace(entry, data=replace(entry.data, full=None))
        heading, body = _render_entry(entry)
        more = len(body) - NEIGHBOUR_CHARS
        rest = f"[{more} characters more: tape_read {entry.id[:SHORT_ID_DIGITS]}]"
        cut = f"{body[:NEIGHBOUR_CHARS]}\n{rest}"
        yield "\n".join(filter(None, (heading, cut if more > 0 else body)))


def _render_entry_page(entry: Entry, offset: int) -> str:
    """Return a page of an entry, and the next offset; a result has its complete output."""
    if isinstance(entry.data, ToolResult) and entry.data.whole is not None:
        whole = replace(entry.data, content=(Text(entry.data.whole),), full=None)
        entry = replace(entry, data=whole)
    heading, body = _render_entry(entry)
    end = offset + PAGE_CHARS
    if offset == 0 and end >= len(body):
        return "\n".join(filter(None, (heading, body)))
    if offset >= len(body):
        return f"{heading}\n[it has {len(body)} characters: there are none from {offset} on]"
    go_on = f"; continue with offset {end}" if end < len(body) else ""
    notice = f"[characters {offset} to {min(end, len(body))} of {len(body)}{go_on}]"
    return f"{heading}\n{body[offset:end]}\n{notice}"


def _render_entry(entry: Entry) -> tuple[str, str]:
    """Return an entry's heading with its id, and its text."""
    heading, *lines = render_conversation([entry])
    return f"{heading} · {entry.id[:SHORT_ID_DIGITS]}", "\n".join(lines).strip("\n")
