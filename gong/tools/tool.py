"""What a tool is: a Struct for its arguments, a text for the model, and `run`.

Two channels leave a tool: `content` for the model, `details` for people and programs. Only
`content` ever reaches a model. An error is a result like any other: the model can mend it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Raw, Struct

from tape.blocks import NO_JSON, BlobRef, Content, Text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ..env.protocol import ExecutionEnvironment
    from ..llm.types import Grammar
    from .truncation.pipeline import Limits
    from .truncation.storage import Storage
    from .truncation.values import Override

ErrorKind = Literal[
    "FileNotFound",
    "EditConflict",
    "ShellExitError",
    "ShellTimeout",
    "PermissionDenied",
    "ValidationError",
    "UnknownTool",
]
"""What went wrong, for programs; the model reads the text."""


class Removed(Struct, frozen=True, omit_defaults=True):
    """What the registry took out of a result, and where the whole of it is."""

    truncation_path: str
    truncation_removed_lines: int | None = None
    truncation_removed_bytes: int | None = None


class ToolResult(Struct, frozen=True):
    """What a tool answered."""

    content: Content
    details: Struct | None = None
    is_error: bool = False
    full: str | None = None
    """All there was, where `content` shows a part of it (see `truncate.kept_whole`)."""
    kept: BlobRef | None = None
    """The whole of it as a blob of the tape; an entry that names it keeps it from `tape gc`."""
    removed: Removed | None = None
    """What the registry cut; None where nothing was, or the tool did that itself."""
    kind: ErrorKind | None = None
    """Which error it is, where it is one of the named kinds."""

    @classmethod
    def from_text(cls, text: str, details: Struct | None = None) -> ToolResult:
        """Return a success that says `text`."""
        return cls((Text(text),), details)

    @classmethod
    def error(
        cls, text: str, details: Struct | None = None, kind: ErrorKind | None = None
    ) -> ToolResult:
        """Return a failure a model can act on."""
        return cls((Text(text),), details, is_error=True, kind=kind)


def details_of(result: ToolResult) -> Raw:
    """Return the JSON for people and programs: details, what was cut, the kind of error.

    NO_JSON when there is nothing of it.
    """
    merged: dict[str, Any] = {}
    if result.details is not None:
        merged.update(msgspec.to_builtins(result.details))
    if result.removed is not None:
        merged.update(truncated=True, **msgspec.to_builtins(result.removed))
    if result.kind is not None:
        merged["error_kind"] = result.kind
    return Raw(msgspec.json.encode(merged)) if merged else NO_JSON


class Found(NamedTuple):
    """An entry of the tape that fits what was looked for."""

    entry: str
    """Its id, 40 hex digits."""
    time: str
    type: str
    snippet: str
    """The words around what fits, on one line."""


class Recall(Protocol):
    """What was said and done before on the branch a session writes. Called in a thread."""

    def search(self, query: str, limit: int) -> Sequence[Found]:
        """Return at most `limit` entries that fit the words of a query, best first.

        Raises UsageError (of the store) where the query has no word.
        """

    def read(self, entry: str, before: int = 0, after: int = 0, offset: int = 0) -> str:
        """Return an entry as readable text, and so many before and after it.

        `entry` is a prefix of its id; of its text the first `offset` characters are left out.
        Raises NotFound or Ambiguous (of the store).
        """


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a running tool may use."""

    env: ExecutionEnvironment
    """Where it acts."""
    call_id: str
    """The call it answers."""
    update: Callable[[str], None]
    """Takes output as it comes, for screens; never stored."""
    storage: Storage | None = None
    """Where output that is too long is kept; None is among temporary files."""
    session: str | None = None
    """Tape id."""
    tape: Recall | None = None
    """What stands on the tape so far; None where nothing is recorded."""
    request_compaction: Callable[[str], None] | None = None
    """Asks for a compaction before the next step, with what to keep in focus or ""."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool."""

    name: str
    """What the model calls it."""
    description: str
    """What the model is told of it."""
    arguments: type[Struct]
    """Shape of its arguments; docstrings of fields stand in the JSON Schema."""
    run: Callable[[Any, ToolContext], Awaitable[ToolResult]]
    """The body: takes an instance of `arguments`; cancelling it stops it."""
    replay: Literal["safe", "unsafe"] = "unsafe"
    """Safe when running it twice changes nothing (tape.md §3)."""
    truncation: Override | None = None
    """How the registry cuts its results, where that is not as for all tools."""
    limits: Limits | None = None
    """Cuts its results by characters and lines instead, as the model family expects."""
    freeform: Grammar | None = None
    """Takes text in place of JSON: it becomes the argument `input`."""
    stopped: str = "Operation aborted"
    """What its result says when it was cancelled while it ran."""
    divert: Callable[[Any], Diversion | ToolResult | None] | None = None
    """Given the arguments: another tool that is meant by them, or why nothing may run."""


class Diversion(NamedTuple):
    """A call that another tool answers."""

    tool: Tool
    arguments: Struct
