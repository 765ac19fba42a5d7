"""A session of the OpenAI Agents SDK on a tape: `Runner.run(agent, "Hi", session=Session(…))`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import NotFound
from ..model.entries import Assistant, Context, Text, Thinking, ToolCall, ToolResult, User
from .session_log import Item, SessionLog, require_package

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..model.entries import Content, Payload

TOOL = "openai-agents"
_API = "openai-responses"


class Session:
    """The `Session` of the OpenAI Agents SDK, in the store at `folder`; all its methods.

    `pop_item` and `clear_session` move the branch: what they undo stays on the tape.
    """

    def __init__(
        self, session_id: str, folder: str | Path, session_settings: Any | None = None
    ) -> None:
        require_package("agents", "openai-agents")
        from agents import SessionSettings  # an extra

        self.session_id = session_id
        if session_settings is None or isinstance(session_settings, dict):
            session_settings = SessionSettings(**session_settings or {})
        self.session_settings = session_settings
        self._log = SessionLog(folder, TOOL, session_id)

    async def get_items(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the newest `limit` items, or as many as the settings say, oldest first."""
        count = limit if limit is not None else self.session_settings.limit
        items = [item.value for item in await asyncio.to_thread(self._log.read)]
        if count is None or count < 0:
            return items
        return items[len(items) - count :] if 0 < count < len(items) else items if count else []

    async def add_items(self, items: list[dict[str, Any]]) -> None:
        """Record items, durably."""
        if items:
            logged = [Item(item, tuple(_read_item(item))) for item in items]
            await _finish_change(asyncio.to_thread(self._log.append, logged))

    async def pop_item(self) -> dict[str, Any] | None:
        """Take the newest item back and return it; None where there is none."""
        try:
            item: dict[str, Any] = await _finish_change(asyncio.to_thread(self._log.pop))
        except NotFound:
            return None
        return item

    async def clear_session(self) -> None:
        """Take all items back."""
        await _finish_change(asyncio.to_thread(self._log.clear))


async def _finish_change(work: Any) -> Any:
    """Wait for a change that has begun, though the caller be cancelled: then raise that."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None and task.exception() is None:
        raise cancelled
    return task.result()


def _read_item(item: Any) -> Iterator[Payload]:
    """Yield what an item says, as a usual entry; nothing where that is not known."""
    match item:
        case {"role": "user", "content": content}:
            yield User(_read_content(content))
        case {"role": "assistant", "content": content}:
            yield Assistant(_read_content(content), "openai", _API)
        case {"role": "system" | "developer" as role, "content": content}:
            yield Context(role, TOOL, _read_content(content))
        case {"type": "reasoning", "summary": list(parts)}:
            texts = [part["text"] for part in parts if isinstance(part, dict) and "text" in part]
            yield Assistant((Thinking("\n\n".join(map(str, texts))),), "openai", _API)
        case {"type": "function_call", "call_id": str(call), "name": str(name)}:
            yield Assistant((_read_call(call, name, item.get("arguments")),), "openai", _API)
        case {"type": "function_call_output", "call_id": str(call), "output": output}:
            yield ToolResult(call, "", _read_content(output))


def _read_call(call: str, name: str, arguments: Any) -> ToolCall:
    text = arguments if isinstance(arguments, str) else ""
    try:
        return ToolCall(call, name, msgspec.Raw(msgspec.json.format(text.encode(), indent=-1)))
    except (msgspec.DecodeError, UnicodeEncodeError):
        return ToolCall(call, name, args_text=text)


def _read_content(content: Any) -> Content:
    if isinstance(content, str):
        return (Text(content),)
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return tuple(Text(text) for text in texts if isinstance(text, str))
