"""What every writer of another agent's session file is given: a tape's entries as a tree; pure."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ...context.view import Message
from ...model.entries import Assistant, Context, ToolResult, User

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...model.entries import Anchor, Payload
    from ...model.line import Entry
    from ..wire import Load


class PlacedEntry(NamedTuple):
    """An entry, and the one before it on its path."""

    entry: Entry
    parent: str | None


class TapeOutline(NamedTuple):
    """The entries of one branch of a tape, or of all of them, each once and after its parent."""

    id: str
    """The tape's id, 32 hex digits."""
    title: str | None
    cwd: str
    git_branch: str
    created: str
    """UTC, as every time of a tape."""
    entries: tuple[PlacedEntry, ...]
    """The current branch comes last, so that a file ends where the tape is."""
    labels: Mapping[str, str]
    """Label → entry."""
    load: Load
    list_kept: Callable[[Anchor], list[str]]
    """Returns the ids of the entries that an anchor keeps in view."""
    program: str = "tape/0"
    """What recorded it, as `name/version`; of an imported session the agent's name."""
    branch: str = ""
    """The branch that comes last."""
    agents: Mapping[str, TapeOutline] = MappingProxyType({})
    """Sub-agent → its own session, where it can be read."""
    repository: str | None = None
    """`host/owner/name`."""
    person: str | None = None
    """`Name <email>`."""
    machine: str | None = None
    with_content: bool = True
    """Whether a format that can do without it has what was said."""

    @property
    def uuid(self) -> str:
        """The tape's id as a UUID is written."""
        return format_uuid(self.id)


def format_uuid(digits: str) -> str:
    """Return the first 32 of hex digits as a UUID is written: the same digits, the same UUID."""
    padded = digits[:32]
    return f"{padded[:8]}-{padded[8:12]}-{padded[12:16]}-{padded[16:20]}-{padded[20:]}"


def to_message(payload: Payload) -> Message | None:
    """Return what an entry says to or by the model; None if it says nothing."""
    match payload:
        case User(content=content):
            return Message("user", content)
        case Context(role=role, content=content):
            return Message("system" if role == "system" else "user", content)
        case Assistant(content=content):
            return Message("assistant", content)
        case ToolResult():
            return Message("tool", payload.content, payload.call_id, payload.name, payload.is_error)
    return None


def shorten_time(time: str) -> str:
    """Return a tape's time with milliseconds, as JavaScript writes it."""
    return f"{time[:23]}Z"


def build_time_name(time: str) -> str:
    """Return a tape's time as a part of a file's name, in seconds."""
    return time[:19].replace(":", "-").replace(".", "-")
