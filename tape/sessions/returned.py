"""Which steps of a session were exported from one of our tapes, and continued by another agent.

The id of an exported session is that of its tape, and where an agent has ids of steps, they begin
as those of the entries do. Elsewhere a step is an entry that says the same at the same place:

    the tape    1─2─3─4─5       was exported up to 4, then continued
    the file    1─2─4─x         3 says nothing in that agent's format; x is new
    the import  1─2─3─4─5
                      └─x       a branch of the tape, called like the session

What a format cannot hold, such as thinking, is not compared, and a masked secret is any text.
Several entries of a tape may say the same (a prompt that was sent again), so each step has all the
entries that it may be, and what follows decides.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..errors import TapeError
from ..model.entries import (
    AgentStart,
    Anchor,
    Assistant,
    Audio,
    Context,
    Document,
    Image,
    ToolCall,
    ToolResult,
    User,
    join_texts,
)
from ..model.line import read_header
from ..model.summary import render_summary
from .recorded import EntryPlace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..formats.sessions.steps import SourceSession
    from ..model.entries import Content, Payload
    from ..store.recorded_tape import TapeFolders
    from ..store.tape import Tape

_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}\Z")
_STEP = re.compile(r"[0-9a-f]{16,40}\Z")
_OPENCODE = re.compile(r"ses_(?P<tape>[0-9a-f]{16})[0-9a-f]{10}\Z")
"""As `write_opencode` names a branch of a tape."""
_MASK = re.compile(r"\[redacted:[^\]\s]*\]")


def find_exported_tape(session: SourceSession, folders: TapeFolders) -> str | None:
    """Return the folder of the tape that a session, or the one it forked off, was exported from."""
    for identity in (session.id, *session.forked_from):
        digits = ""
        if _UUID.match(identity):
            digits = identity.replace("-", "")
        elif named := _OPENCODE.match(identity):
            digits = named["tape"]
        if digits and (folder := folders.find(digits)) is not None:
            return folder
    return None


class _Words(NamedTuple):
    """What an entry says, in any format."""

    who: str
    text: str
    calls: tuple[tuple[str, str], ...] = ()
    """Name and arguments, as JSON with sorted keys."""

    @property
    def is_empty(self) -> bool:
        return not self.text and not self.calls


def _read_words(payload: Payload) -> _Words | None:
    """Return what an entry says; None if it is a remark."""
    match payload:
        case User(content=content):
            return _Words("user", _read_text(content))
        case Context(content=content):
            return _Words("context", _read_text(content))
        case Anchor(summary=summary):
            return _Words("anchor", " ".join(render_summary(summary).split()) or "[summary]")
        case Assistant(content=content):
            calls = tuple(
                (block.name, _read_arguments(block))
                for block in content
                if isinstance(block, ToolCall)
            )
            return _Words("assistant", _read_text(content), calls)
        case ToolResult(content=content):
            return _Words("result", _read_text(content))
    return None


def _read_text(content: Content) -> str:
    text = " ".join(join_texts(content).split())
    has_media = any(isinstance(block, Image | Document | Audio) for block in content)
    return text or ("[media]" if has_media else "")


def _read_arguments(call: ToolCall) -> str:
    if call.args_text is not None:
        return call.args_text
    try:
        value = msgspec.json.decode(bytes(call.args) or b"{}")
    except msgspec.DecodeError:
        return bytes(call.args).decode("utf-8", "replace")
    return msgspec.json.encode(value, order="sorted").decode()


def _is_same(ours: _Words, theirs: _Words) -> bool:
    if ours.who != theirs.who or len(ours.calls) != len(theirs.calls):
        return False
    pairs = zip(ours.calls, theirs.calls, strict=True)
    return _is_same_text(ours.text, theirs.text) and all(
        our[0] == their[0] and _is_same_text(our[1], their[1]) for our, their in pairs
    )


def _is_same_text(ours: str, theirs: str) -> bool:
    """Return whether two texts are the same, where a mask in theirs is any text."""
    if ours == theirs or not _MASK.search(theirs):
        return ours == theirs
    pattern = ".*?".join(map(re.escape, _MASK.split(theirs)))
    return re.fullmatch(pattern, ours, re.DOTALL) is not None


class _ExportedEntry(NamedTuple):
    """An entry of the tape."""

    before: str
    words: _Words | None
    call: str
    """Of a result: the id of its call."""


class ExportedEntries:
    """The entries of a tape that a session may repeat, on all of its branches."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._entries: dict[str, _ExportedEntry] = {}
        self._after: dict[str, list[str]] = {}
        self._by_prefix: dict[str, str] = {}
        self._calls: set[str] = set()
        """Ids of calls that have a result."""
        self.agents: set[str] = set()
        """Sub-agents that the tape names."""
        self.root = ""
        self.places: dict[str, EntryPlace] = {}
        """Entry → where it is."""

    def read(self) -> None:
        """Take note of what the tape has; branches that cannot be read are left out."""
        for phase, offset, line in self._tape.phases.read_all_lines():
            header = read_header(line)
            self.places[header.id] = EntryPlace(header.id, header.n, phase, offset)
        for branch in self._tape.refs().branches:
            before = ""
            try:
                path = self._tape.entries(self._tape.head(branch))
            except TapeError:
                continue
            for entry in path:
                if entry.id not in self._entries:
                    self._add(entry.id, before, entry.data)
                before = entry.id

    def _add(self, identity: str, before: str, payload: Payload) -> None:
        call = payload.call_id if isinstance(payload, ToolResult) else ""
        self._calls.add(call)
        self._entries[identity] = _ExportedEntry(before, _read_words(payload), call)
        self._after.setdefault(before, []).append(identity)
        self._by_prefix[identity[:16]] = identity
        self.root = self.root or identity
        if isinstance(payload, AgentStart):
            self.agents.add(payload.agent)

    def find_named(self, step: str) -> str | None:
        """Return the entry whose id a step has, as far as the agent's ids are long."""
        digits = step.replace("-", "") if _UUID.match(step) else step.partition("-")[0]
        if not _STEP.match(digits):
            return None
        identity = self._by_prefix.get(digits[:16])
        return identity if identity is not None and identity.startswith(digits) else None

    def find_same(self, candidates: Iterable[str], payload: Payload) -> list[str] | None:
        """Return the entries after one of several that say what a payload says.

        None if no entry does, and the candidates themselves if it says nothing.
        """
        candidates = [*candidates]
        words = _read_words(payload)
        if words is None or words.is_empty:
            return candidates
        call = ""
        if isinstance(payload, ToolResult):
            call = payload.call_id if payload.call_id in self._calls else ""
            beside = [last for last in candidates if self._has_result_before(last, words, call)]
            if beside:  # formats differ in the order of results
                return beside
        same = [
            identity
            for identity in self._walk_below(candidates)
            if self._is_entry_of(self._entries[identity], words, call)
        ]
        return same or None

    def _walk_below(self, candidates: list[str]) -> Iterator[str]:
        """Yield what may follow: what is behind entries that a format may leave out, too."""
        waiting = [after for last in candidates for after in self._after.get(last, ())]
        for identity in waiting:  # grows while it is walked
            yield identity
            words = self._entries[identity].words
            if words is None or words.is_empty or words.who in {"context", "anchor", "result"}:
                waiting += self._after.get(identity, ())

    def _has_result_before(self, identity: str, words: _Words, call: str) -> bool:
        """Return whether an entry, or one before it below the same answer, is a result."""
        while identity:
            entry = self._entries[identity]
            if entry.words is not None and entry.words.who == "result":
                if self._is_entry_of(entry, words, call):
                    return True
            elif entry.words is not None and not entry.words.is_empty:
                return False
            identity = entry.before
        return False

    def _is_entry_of(self, entry: _ExportedEntry, words: _Words, call: str) -> bool:
        if entry.words is None:
            return False
        if words.who == entry.words.who == "anchor":  # formats render a summary each in its way
            return True
        if words.who == "result" and entry.call:
            return entry.call == call if call else _is_same(entry.words, words)
        if words.who == "user" and entry.words.who in {"context", "anchor"}:
            # some formats know no other way to say these
            return _is_same_text(entry.words.text, words.text)
        return _is_same(entry.words, words)
