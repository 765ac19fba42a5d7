"""What a tool is: a Struct for its arguments, a text for the model, and `run`.

Two channels leave a tool: `content` for the model, `details` for people and programs. Only
`content` ever reaches a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from tape.blocks import Content, Text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..env.protocol import ExecutionEnvironment


class ToolResult(Struct, frozen=True):
    """What a tool answered."""

    content: Content
    details: Struct | None = None
    is_error: bool = False
    full: str | None = None
    """What the model did not see because `content` was cut."""

    @classmethod
    def from_text(cls, text: str, details: Struct | None = None) -> ToolResult:
        """Return a success that says `text`."""
        return cls((Text(text),), details)

    @classmethod
    def error(cls, text: str, details: Struct | None = None) -> ToolResult:
        """Return a failure a model can act on."""
        return cls((Text(text),), details, is_error=True)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a running tool may use."""

    env: ExecutionEnvironment
    """Where it acts."""
    call_id: str
    """The call it answers."""
    update: Callable[[str], None]
    """Takes output as it comes, for screens; never stored."""


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
