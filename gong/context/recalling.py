"""Search and read the path of a branch, from the root on, for the model that writes it.

Compactions are no limit here: covered entries are on the path like all others. Both functions read
the tape as a stream; memory does not grow with it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from tape.blocks import Text, join_texts, select_tool_calls
from tape.damage import warn_of_damage
from tape.entries import Anchor, Assistant, Context, ToolResult, User
from tape.errors import Ambiguous, Damaged, NotFound
from tape.glance.words import iter_argument_texts
from tape.line import decode_line, read_type
from tape.reference import is_id_prefix
from tape.render import render_blob_head, render_conversation

from ..tools import recall
from .ranking import BestMatches, parse_terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tape.blocks import ToolCall
    from tape.branches import Head
    from tape.line import Entry
    from tape.path import Source
    from tape.tape import Tape

    from ..tools.tool import RecallMatch

PAGE_CHARS = 8_000
"""Maximum characters of an entry that are read at once."""
NEIGHBOUR_CHARS = 2_000
"""Maximum characters of each entry around it."""
MAX_SEARCHED_BYTES = 1 << 24
"""Maximum bytes of a text that are searched, from its beginning."""

_SPOKEN_TYPES = frozenset({"user", "assistant", "tool.result", "context", "anchor"})
_RECALL_TOOLS = frozenset(tool.name for tool in recall.RECALL_TOOLS)
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

    def search(self, query: str, limit: int = recall.RECALL_LIMIT) -> Sequence[RecallMatch]:
        """Return the entries that match the words best, newer first among equals.

        Not all words must match; rare ones count more. Raises UsageError for a query without a
        letter or a digit, Damaged or NotFound if the path cannot be read.
        """
        best = BestMatches(parse_terms(query), limit)
        asked: Entry | None = None
        for entry in self._read_entries():
            if isinstance(entry.data, User | Anchor) and asked is not None:
                best.take(asked, _extract_texts(asked))
                asked = None
            if isinstance(entry.data, User):
                asked = entry
            else:
                best.take(entry, _extract_texts(entry))
        if asked is not None:
            best.take(asked, [(_CURRENT_PROMPT_WEIGHT, join_texts(_extract_prompt_text(asked)))])
        return best.list_found()

    def _read_entries(self) -> Iterator[Entry]:
        for segment in self._tape.path(self._head()):
            whole = segment.source.expand
            expand = lambda ref, whole=whole: (
                whole(ref) if ref.bytes <= MAX_SEARCHED_BYTES else render_blob_head(ref)
            )  # noqa: E731
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
        shown = _render_entry_page(decode_line(hit.line, hit.source.expand), offset)
        return "\n\n".join([*_render_neighbours(earlier), shown, *_render_neighbours(later)])

    def _find_around(
        self, entry: str, before: int, after: int
    ) -> tuple[list[_TapeLine], _TapeLine, list[_TapeLine]]:
        """Return an entry, and the messages before and after it."""
        start = b'{"id":"%b' % entry.encode()
        past: deque[_TapeLine] = deque(maxlen=before)
        hits: list[_TapeLine] = []
        later: list[_TapeLine] = []
        for one in self._read_lines():
            if one.line.startswith(start):
                hits.append(one)
            elif read_type(one.line) in _SPOKEN_TYPES:
                if not hits:
                    past.append(one)
                elif len(later) < after:
                    later.append(one)
        if not hits:
            raise NotFound(f"no entry {entry} on this branch: find entries with tape_search")
        if len(hits) > 1:
            raise Ambiguous(entry, tuple(_extract_line_id(hit)[: len(entry) + 8] for hit in hits))
        return list(past), hits[0], later

    def _read_lines(self) -> Iterator[_TapeLine]:
        for segment in self._tape.path(self._head()):
            for _, line in segment.checked_lines(warn_of_damage):
                yield _TapeLine(segment.source, line)


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
                    yield _CALL_WEIGHT, _format_call_text(call)
        case ToolResult() as result if result.name not in _RECALL_TOOLS:
            yield (
                _RESULT_WEIGHT,
                result.whole if result.whole is not None else join_texts(result.content),
            )
        case _:
            return


def _extract_prompt_text(entry: Entry) -> tuple[Text, ...]:
    content = entry.data.content if isinstance(entry.data, User) else ()
    return tuple(block for block in content if isinstance(block, Text))


def _format_call_text(call: ToolCall) -> str:
    """Return a call's name and the texts and numbers among its arguments."""
    if call.args_text is not None:
        return f"{call.name} {call.args_text}"
    try:
        arguments = msgspec.json.decode(call.args) if bytes(call.args) else None
    except ValueError:
        return call.name
    return " ".join([call.name, *iter_argument_texts(arguments)])


def _render_neighbours(lines: Sequence[_TapeLine]) -> Iterator[str]:
    """Yield the entries around the one that is read, each cut."""
    for one in lines:
        try:
            entry = decode_line(one.line, render_blob_head)
        except Damaged as error:
            yield f"[entry {_extract_line_id(one)[: recall.SHORT_ID_DIGITS]} is left out: {error}]"
            continue
        if isinstance(entry.data, ToolResult):
            entry = replace(entry, data=replace(entry.data, full=None))
        heading, body = _render_entry(entry)
        more = len(body) - NEIGHBOUR_CHARS
        cut = f"{body[:NEIGHBOUR_CHARS]}\n[{more} characters more: tape_read {entry.id[: recall.SHORT_ID_DIGITS]}]"
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
    said = f"[characters {offset} to {min(end, len(body))} of {len(body)}{go_on}]"
    return f"{heading}\n{body[offset:end]}\n{said}"


def _render_entry(entry: Entry) -> tuple[str, str]:
    """Return an entry's heading with its id, and its text."""
    heading, *lines = render_conversation([entry])
    return f"{heading} · {entry.id[: recall.SHORT_ID_DIGITS]}", "\n".join(lines).strip("\n")


def _extract_line_id(one: _TapeLine) -> str:
    return one.line[7:47].decode()
