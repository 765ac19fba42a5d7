"""What a program is given for one answer: words for its command line, and a prompt on its input.

A program has no place for a conversation, so that what came before is written out before the last
prompt. Pictures and tools have no place in it at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from tape.model.entries import Text, Thinking, ToolCall, join_texts, read_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tape.context.view import Message

    from ..models import Preset
    from ..types import Request, StreamEvent
    from ..wires.failures import ProviderFailures
    from ..wires.json_values import WireObject


class ProgramCall(NamedTuple):
    """One call of a program."""

    model: str
    """Its own name of a model; "" for the one that it chooses itself."""
    system: str
    prompt: str
    effort: str | None
    session: str
    """A new id for its session."""
    folder: Path
    """A folder for files of this call only."""


class ProgramStart(NamedTuple):
    """How a program is run."""

    arguments: tuple[str, ...]
    text: str
    """What it reads."""
    variables: dict[str, str]
    """Those that it gets beside ours."""


class ProgramOutput(Protocol):
    """Turns the lines of one answer, each a JSON object, into stream events."""

    def __init__(self, failures: ProviderFailures, preset: Preset) -> None: ...

    finished: bool
    """Whether the answer has ended."""

    def feed(self, line: WireObject) -> Iterator[StreamEvent]:
        """Yield the stream events of one line; raises ModelError."""
        ...


class Program(Protocol):
    """The module of one program, which has its `ProgramOutput` as well."""

    PACKAGE: str
    """What installs it."""

    def build_start(self, call: ProgramCall) -> ProgramStart:
        """Return how the program is run for a call; it may write files into its folder."""
        ...

    def remove_session(self, call: ProgramCall, environ: Mapping[str, str]) -> None:
        """Remove what the program kept of a call among its own sessions."""
        ...


_ROLES = {"user": "User", "assistant": "Assistant", "tool": "Result"}


def render_prompt(request: Request) -> str:
    """Return a conversation as one prompt: its last message, after what came before."""
    messages = [(message, _render_message(message)) for message in request.messages]
    spoken = [(message, text) for message, text in messages if text]
    if not spoken:
        return ""
    *earlier, (_, last) = spoken
    if not earlier:
        return last
    parts = [f"{_ROLES.get(message.role, message.role)}: {text}" for message, text in earlier]
    history = "\n\n".join(parts)
    return f"The conversation so far:\n\n{history}\n\nAnswer what comes next:\n\n{last}"


def list_left_out(request: Request, name: str) -> tuple[str, ...]:
    """Return a warning for each part of a request that has no place in a prompt."""
    kinds = {type(block) for message in request.messages for block in message.content}
    others = kinds - {Text, Thinking, ToolCall}
    warnings = {
        f"{name} answers without the tools of gong": bool(request.tools),
        f"{name} was sent no pictures and files": bool(others),
    }
    return tuple(text for text, applies in warnings.items() if applies)


def _render_message(message: Message) -> str:
    calls = [
        f"(calls {block.name} with {read_arguments(block)})"
        for block in message.content
        if isinstance(block, ToolCall)
    ]
    return "\n".join(filter(None, (join_texts(message.content), *calls)))
