"""What a tool is: a Struct for its arguments, a text for the model, and `run`.

Two channels leave a tool: `content` for the model, `details` for people and programs. Only
`content` ever reaches a model. An error is a result like any other: the model can mend it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from msgspec import Raw, Struct

from tape.blocks import NO_JSON, Content, Text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..env.protocol import ExecutionEnvironment
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
    """What the model did not see because `content` was cut."""
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


class Grammar(Struct, frozen=True):
    """What free text must look like."""

    syntax: Literal["lark", "regex"]
    definition: str


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
    divert: Callable[[Any], Diversion | ToolResult | None] | None = None
    """Given the arguments: another tool that is meant by them, or why nothing may run."""


class Diversion(NamedTuple):
    """A call that another tool answers."""

    tool: Tool
    arguments: Struct
