"""Search and read the path of a branch, from the root on, for the model that writes it.

Compactions are no limit here: covered entries are on the path like all others. Both functions read
the tape as a stream; memory does not grow with it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from tape.blocks import Text, text_of, tool_calls
from tape.damage import warn_of_damage
from tape.entries import Anchor, Assistant, Context, ToolResult, User
from tape.errors import Ambiguous, Damaged, NotFound
from tape.glance.words import strings
from tape.line import decode, kind_of
from tape.reference import is_prefix
from tape.render import beginning, conversation

from ..tools import recall
from .ranking import Best, terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tape.blocks import ToolCall
    from tape.branches import Head
    from tape.line import Entry
    from tape.path import Source
    from tape.tape import Tape

    from ..tools.tool import Found

PAGE = 8_000
"""Maximum characters of an entry that are read at once."""
BESIDE = 2_000
"""Maximum characters of each entry around it."""
LARGEST = 1 << 24
"""Maximum bytes of a text that are searched, from its beginning."""

_SPOKEN = frozenset({"user", "assistant", "tool.result", "context", "anchor"})
_OWN = frozenset(tool.name for tool in recall.TOOLS)
"""Tools whose calls and results only repeat other entries."""
_SAID, _ANSWERED, _CALLED, _SHOWN = 1.5, 1.2, 1.0, 0.8
"""Weights: users' text counts more than answers, and answers more than calls and results."""
_ASKED_NOW = 0.05
"""Weight of the current prompt, which the model already sees."""


class _Line(NamedTuple):
    source: Source
    line: bytes


class TapeRecall:
    """`gong.tools.tool.Recall` over the path to a head, which each call looks up again."""

    def __init__(self, tape: Tape, head: Callable[[], Head]) -> None:
        self._tape, self._head = tape, head

    def search(self, query: str, limit: int = recall.DEFAULT_LIMIT) -> Sequence[Found]:
        """Return the entries that match the words best, newer first among equals.

        Not all words must match; rare ones count more. Raises UsageError for a query without a
        letter or a digit, Damaged or NotFound if the path cannot be read.
        """
        best = Best(terms(query), limit)
        asked: Entry | None = None
        for entry in self._entries():
            if isinstance(entry.data, User | Anchor) and asked is not None:
                best.take(asked, _texts(asked))
                asked = None
            if isinstance(entry.data, User):
                asked = entry
            else:
                best.take(entry, _texts(entry))
        if asked is not None:
            best.take(asked, [(_ASKED_NOW, text_of(_content(asked)))])
        return best.found()

    def _entries(self) -> Iterator[Entry]:
        for segment in self._tape.path(self._head()):
            whole = segment.source.expand
            expand = lambda ref, whole=whole: whole(ref) if ref.bytes <= LARGEST else beginning(ref)  # noqa: E731
            bounded = segment._replace(source=segment.source._replace(expand=expand))
            for run in bounded.runs(warn_of_damage):
                yield from run

    def read(self, entry: str, before: int = 0, after: int = 0, offset: int = 0) -> str:
        """Return the entry whose id starts with `entry`, and those around it, like `tape cat`.

        Returns at most PAGE characters of it from `offset` on, and BESIDE of each other entry.
        Raises NotFound, Ambiguous, and Damaged if it cannot be read.
        """
        if not is_prefix(entry):
            raise NotFound(
                f"{entry!r} is not an id: give four hex digits or more, as tape_search does"
            )
        earlier, hit, later = self._around(entry, before, after)
        shown = _page(decode(hit.line, hit.source.expand), offset)
        return "\n\n".join([*_beside(earlier), shown, *_beside(later)])

    def _around(
        self, entry: str, before: int, after: int
    ) -> tuple[list[_Line], _Line, list[_Line]]:
        """Return an entry, and the messages before and after it."""
        start = b'{"id":"%b' % entry.encode()
        past: deque[_Line] = deque(maxlen=before)
        hits: list[_Line] = []
        later: list[_Line] = []
        for one in self._lines():
            if one.line.startswith(start):
                hits.append(one)
            elif kind_of(one.line) in _SPOKEN:
                if not hits:
                    past.append(one)
                elif len(later) < after:
                    later.append(one)
        if not hits:
            raise NotFound(f"no entry {entry} on this branch: find entries with tape_search")
        if len(hits) > 1:
            raise Ambiguous(entry, tuple(_id(hit)[: len(entry) + 8] for hit in hits))
        return list(past), hits[0], later

    def _lines(self) -> Iterator[_Line]:
        for segment in self._tape.path(self._head()):
            for _, line in segment.checked_lines(warn_of_damage):
                yield _Line(segment.source, line)


def _texts(entry: Entry) -> Iterator[tuple[float, str]]:
    """Yield the searchable texts of an entry, each with its weight."""
    match entry.data:
        case User(content=content):
            yield _SAID, text_of(content)
        case Context(origin="steering" | "follow_up", content=content):
            yield _SAID, text_of(content)
        case Context(content=content):
            yield _SHOWN, text_of(content)
        case Assistant(content=content):
            yield _ANSWERED, text_of(content)
            for call in tool_calls(content):
                if call.name not in _OWN:
                    yield _CALLED, _call_text(call)
        case ToolResult() as result if result.name not in _OWN:
            yield _SHOWN, result.whole if result.whole is not None else text_of(result.content)
        case _:
            return


def _content(entry: Entry) -> tuple[Text, ...]:
    content = entry.data.content if isinstance(entry.data, User) else ()
    return tuple(block for block in content if isinstance(block, Text))


def _call_text(call: ToolCall) -> str:
    """Return a call's name and the texts and numbers among its arguments."""
    if call.args_text is not None:
        return f"{call.name} {call.args_text}"
    try:
        arguments = msgspec.json.decode(call.args) if bytes(call.args) else None
    except ValueError:
        return call.name
    return " ".join([call.name, *strings(arguments)])


def _beside(lines: Sequence[_Line]) -> Iterator[str]:
    """Yield the entries around the one that is read, each cut."""
    for one in lines:
        try:
            entry = decode(one.line, beginning)
        except Damaged as error:
            yield f"[entry {_id(one)[: recall.SHORT]} is left out: {error}]"
            continue
        if isinstance(entry.data, ToolResult):
            entry = replace(entry, data=replace(entry.data, full=None))
        heading, body = _shown(entry)
        more = len(body) - BESIDE
        cut = f"{body[:BESIDE]}\n[{more} characters more: tape_read {entry.id[: recall.SHORT]}]"
        yield "\n".join(filter(None, (heading, cut if more > 0 else body)))


def _page(entry: Entry, offset: int) -> str:
    """Return a page of an entry, and the next offset; a result has its complete output."""
    if isinstance(entry.data, ToolResult) and entry.data.whole is not None:
        whole = replace(entry.data, content=(Text(entry.data.whole),), full=None)
        entry = replace(entry, data=whole)
    heading, body = _shown(entry)
    end = offset + PAGE
    if offset == 0 and end >= len(body):
        return "\n".join(filter(None, (heading, body)))
    if offset >= len(body):
        return f"{heading}\n[it has {len(body)} characters: there are none from {offset} on]"
    go_on = f"; continue with offset {end}" if end < len(body) else ""
    said = f"[characters {offset} to {min(end, len(body))} of {len(body)}{go_on}]"
    return f"{heading}\n{body[offset:end]}\n{said}"


def _shown(entry: Entry) -> tuple[str, str]:
    """Return an entry's heading with its id, and its text."""
    heading, *lines = conversation([entry])
    return f"{heading} · {entry.id[: recall.SHORT]}", "\n".join(lines).strip("\n")


def _id(one: _Line) -> str:
    return one.line[7:47].decode()
