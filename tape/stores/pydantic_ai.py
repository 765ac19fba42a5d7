"""The message history of a Pydantic AI agent on a tape.

history = MessageHistory("user-7", "tapes")
result = agent.run_sync("Hi", message_history=history.load())
history.add(result.new_messages())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import NotFound
from ..model.entries import Assistant, Context, Text, Thinking, ToolCall, ToolResult, User
from .session_log import Item, SessionLog, require_package

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ..model.entries import Block, Payload

TOOL = "pydantic-ai"


class MessageHistory:
    """The messages of one conversation, in the store at `folder`.

    `pop` and `clear` move the branch: what they undo stays on the tape.
    """

    def __init__(self, session_id: str, folder: str | Path) -> None:
        require_package("pydantic_ai", "pydantic-ai")
        self.session_id = session_id
        self._log = SessionLog(folder, TOOL, session_id)

    def load(self) -> list[Any]:
        """Return all messages (`ModelMessage`), oldest first, for `message_history`."""
        return self._parse([item.value for item in self._log.read()])

    def add(self, messages: Sequence[Any]) -> None:
        """Record messages, such as `result.new_messages()`; durable when this returns."""
        from pydantic_ai.messages import ModelMessagesTypeAdapter  # an extra

        rows = ModelMessagesTypeAdapter.dump_python([*messages], mode="json")
        if rows:
            self._log.append([Item(row, tuple(_read_message(row))) for row in rows])

    def pop(self) -> Any | None:
        """Take the newest message back and return it; None where there is none."""
        try:
            return self._parse([self._log.pop()])[0]
        except NotFound:
            return None

    def clear(self) -> None:
        """Take all messages back."""
        self._log.clear()

    def _parse(self, rows: Sequence[Any]) -> list[Any]:
        from pydantic_ai.messages import ModelMessagesTypeAdapter  # an extra

        return [*ModelMessagesTypeAdapter.validate_python([*rows])]


def _read_message(message: Any) -> Iterator[Payload]:
    """Yield what a message says, as usual entries."""
    parts = [part for part in message["parts"] if isinstance(part, dict)]
    if message["kind"] == "response":
        model = str(message.get("model_name") or "")
        yield Assistant(
            tuple(_read_answer(parts)), str(message.get("provider_name") or ""), model=model
        )
        return
    for part in parts:
        content = part.get("content")
        text = content if isinstance(content, str) else msgspec.json.encode(content).decode()
        match part.get("part_kind"):
            case "system-prompt":
                yield Context("system", TOOL, (Text(text),))
            case "user-prompt":
                pieces = content if isinstance(content, list) else [text]
                yield User(tuple(Text(piece) for piece in pieces if isinstance(piece, str)))
            case "tool-return" | "retry-prompt" as kind if part.get("tool_name"):
                failed = kind == "retry-prompt"
                yield ToolResult(part["tool_call_id"], part["tool_name"], (Text(text),), failed)


def _read_answer(parts: Sequence[dict[str, Any]]) -> Iterator[Block]:
    for part in parts:
        match part:
            case {"part_kind": "text", "content": str(text)}:
                yield Text(text)
            case {"part_kind": "thinking", "content": str(text)}:
                yield Thinking(text)
            case {"part_kind": "tool-call", "tool_call_id": str(call), "tool_name": str(name)}:
                args = part.get("args")
                if isinstance(args, str):
                    yield ToolCall(call, name, args_text=args)
                else:
                    yield ToolCall(call, name, msgspec.Raw(msgspec.json.encode(args)))
