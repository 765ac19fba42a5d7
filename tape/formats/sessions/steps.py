"""What every reader of another agent's sessions gives: steps of a tree, in the order of the file.

    file of the agent  --reader-->  SourceSession: facts, and steps one after the other
    steps              --tape/sessions/import_-->  a tape: branches, anchors, linked tapes

A step names its parent, so a tree stays a tree: a step whose parent is not the newest one begins a
branch. Readers are pure and lenient: a line that cannot be read costs itself only, and what is not
understood becomes a `custom` entry with the whole of it. The same bytes give the same steps, and
more bytes give the same steps and more, so that a session that grew can be imported again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from ...ids import compute_tape_id
from ...model.entries import Assistant, Custom, Git
from ...text import format_count
from ..wire import decode_json, pack_raw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ...model.entries import Payload
    from ..wire import Put, WireObject

ROOT = ""
"""The parent of a step that begins at the start of the tape."""
_MAX_KIND = 40
NEWEST = "newest"
"""The parent of a step that follows the one before it, whatever that is."""


class SourceStep(NamedTuple):
    """One step: what it becomes on the tape, as one entry or several."""

    id: str | None
    """The source's own id; None for a remark that belongs to the step before it."""
    parent: str
    """Id of the step it follows, `ROOT` or `NEWEST`."""
    time: int | None
    """Microseconds since 1970; None where the source does not say."""
    payloads: tuple[Payload, ...]
    kept_from: str | None = None
    """Of an anchor: the id of the first step that stays in view."""


@dataclass
class SourceSession:
    """One session of another agent; what follows `steps` is known when they have been read."""

    tool: str
    """The agent: claude, codex, …"""
    format: str
    """Name of the file format."""
    id: str
    """The agent's own id of the session; of a sub-agent `SESSION/AGENT`."""
    read_steps: Callable[[Put], Iterator[SourceStep]]
    """Reads the steps; pictures and files go to `put`."""
    cwd: str | None = None
    git: Git | None = None
    created: int | None = None
    """Microseconds since 1970; the tape of a session without it begins in 1970."""
    title: str | None = None
    repository: str | None = None
    """`host/owner/name`, where the source names the remote of its repository."""
    project: str | None = None
    """The top of that repository, where the source says it."""
    person: str | None = None
    """Who worked: `Name <email>`."""
    machine: str | None = None
    """The name of the machine."""
    children: tuple[SourceSession, ...] = ()
    """Sub-agents whose steps are in the same file."""
    forked_from: tuple[str, ...] = ()
    """Ids of the sessions whose history it says that it begins with."""
    read_beside: Callable[[str], bytes | None] = lambda _: None
    """Returns the bytes of a file that the agent stored beside the session, by the path that a line
    names; None where it is not there, or is no file of this session."""
    labels: dict[str, str] = field(default_factory=dict)
    """Label → step."""
    newest: str | None = None
    """The step where the session is; None if that is the last one that is read."""
    version: int | None = None
    """Version of the file's format, where it has one."""
    strip_changes: Callable[[Payload], Payload] | None = None
    """Returns an answer or a result without what the source may say otherwise another time; where
    two are the same then, the one on the tape stays as it is."""
    cost: float | None = None
    """USD of the whole session, where its file says that."""
    damaged: int = 0
    """Lines that could not be read."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Kind of line that was kept whole, but not understood → how many."""
    left_out: Counter[str] = field(default_factory=Counter)
    """What is not on the tape → how many: kinds that `describe_left_out` knows."""

    @property
    def tape_id(self) -> str:
        """The id of its tape: that of the session, whatever its file holds by now."""
        return compute_tape_id(self.tool, self.id)

    def keep_whole(self, kind: str, value: Any) -> Custom:
        """Return a line that was not understood, as an entry `TOOL.KIND`, and count it."""
        name = "".join(letter if letter.isalnum() else "_" for letter in kind.lower())
        name = name[:_MAX_KIND].strip("_") or "line"
        self.unknown[name] += 1
        return Custom(f"{self.tool}.{name}", pack_raw(value))

    def begin_reading(self) -> None:
        """Begin to count: the file is read once more."""
        self.damaged = 0
        self.unknown.clear()
        self.left_out.clear()


REPEATED = "repeated"
COVERED = "covered"
COPIED = "copied"
UNKNOWN_COUNT = "unknown_count"
NOT_WHOLE = "not_whole"
_LEFT_OUT = {
    REPEATED: ("line", "written a second time: left out"),
    COVERED: ("line", ""),
    UNKNOWN_COUNT: ("count", "of tokens in a form that is not known: left out"),
    NOT_WHOLE: ("result", "cut short: the whole output is not beside the session"),
    COPIED: ("entry", "of the session that this one began with: there already"),
}
"""What a reader may leave out → what that is, and what is said of it: nothing of lines that are
covered, because another one of the same file says what they say."""


def describe_left_out(kind: str, count: int) -> str:
    """Return the remark for people about `count` things that are not on a tape; "" for none."""
    what, ending = _LEFT_OUT[kind]
    return ending and f"{format_count(count, what)} {ending}"


def describe_unknown(kinds: Mapping[str, int]) -> str:
    """Return the remark for people about lines that were kept whole, counted by kind."""
    each = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    return f"{format_count(sum(kinds.values()), 'line')} kept whole, for no model to see: {each}"


class ReadIds:
    """Ids of what was read: the first line with an id counts, and later ones are left out.

    Agents write lines a second time when a session is resumed, compacted or forked.
    """

    def __init__(self, session: SourceSession | None = None) -> None:
        self._session = session
        self._ids: set[int] = set()

    def is_repeated(self, identity: Any) -> bool:
        """Return whether an id was there before, and count that; no id is never repeated."""
        if identity == "" or not isinstance(identity, str | bytes | int):
            return False
        key = hash(identity)  # keyed by a random number per process; a tenth of the memory
        if key not in self._ids:
            self._ids.add(key)
            return False
        if self._session is not None:
            self._session.left_out[REPEATED] += 1
        return True


def strip_model(payload: Payload) -> Payload:
    """Return an answer without its model, where the source names one for the whole session.

    People may name another one; answers that are on the tape keep the model that they have there.
    """
    return replace(payload, provider="", model="") if isinstance(payload, Assistant) else payload


def decode_object(line: bytes) -> WireObject | None:
    """Return a line as a JSON object; None if it is none."""
    try:
        value = decode_json(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def decode_documents(lines: list[bytes]) -> tuple[list[WireObject], int]:
    """Return the documents of a file, one over all lines or one a line, and how many are lost."""
    whole = decode_object(b"\n".join(lines))
    if whole is not None:
        return [whole], 0
    objects = [decode_object(line) for line in lines if line.strip()]
    return [item for item in objects if item is not None], objects.count(None)


def read_object(value: Any) -> WireObject:
    """Return an object; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def read_list(value: Any) -> list[Any]:
    """Return a list; anything else is an empty one."""
    return value if isinstance(value, list) else []


def read_text(value: Any) -> str:
    """Return a string; anything else is empty."""
    return value if isinstance(value, str) else ""


def read_count(value: Any) -> int:
    """Return a count that is not negative; anything else is 0."""
    is_count = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return int(value) if is_count and value < 1 << 62 else 0


def read_time(value: Any) -> int | None:
    """Return microseconds since 1970 of an ISO time, or of seconds or milliseconds since then."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return _limit_time(moment.timestamp())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _limit_time(value / 1000 if value > _MAX_SECONDS else value)
    return None


_MAX_SECONDS = 1e11
"""Seconds since 1970 in the year 5138; a larger number is of milliseconds."""


def _limit_time(seconds: float) -> int | None:
    """Return microseconds; None for a time that no tape can have."""
    return round(seconds * 1_000_000) if 0 < seconds < _MAX_SECONDS else None


def join_paragraphs(texts: Iterable[str]) -> str:
    """Return the texts that are not empty, with an empty line between two."""
    return "\n\n".join(filter(None, texts))
