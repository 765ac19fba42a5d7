"""Sessions in the Simple format of txcript → steps: messages are those of Anthropic's API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...model.entries import Git
from ..anthropic.parse import AnthropicReader
from ..parsing import CallBinder
from .steps import (
    NEWEST,
    SourceSession,
    SourceStep,
    decode_object,
    read_list,
    read_text,
    read_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..wire import Put, WireObject

TOOL = "simple"
_FIELDS = frozenset({"timestamp", "cwd", "git_branch"})


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is a session in the Simple format."""
    messages = value.get("messages")
    return (
        isinstance(messages, list)
        and bool(_FIELDS & value.keys())
        and all(isinstance(message, dict) and "role" in message for message in messages)
    )


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session in the Simple format; `name` is that of the file."""
    document = decode_object(b"\n".join(read_lines())) or {}

    def read_steps(put: Put) -> Iterator[SourceStep]:
        reader = AnthropicReader(put, CallBinder())
        for number, message in enumerate(read_list(document.get("messages"))):
            yield SourceStep(f"#{number}", NEWEST, None, tuple(reader.read_element(message)))

    branch = read_text(document.get("git_branch"))
    return SourceSession(
        TOOL,
        TOOL,
        read_text(document.get("id")) or name,
        read_steps,
        cwd=read_text(document.get("cwd")) or None,
        git=Git(branch, None, dirty=False) if branch else None,
        created=read_time(document.get("timestamp")),
        title=read_text(document.get("title")) or None,
    )
