"""Sessions of the Claude Agent SDK on tapes: `ClaudeAgentOptions(session_store=SessionStore(…))`.

An entry of the SDK is a line of Claude Code's session file. Each transcript has a tape: that of the
session, and one for each sub-agent; deleting takes all lines back, and they stay on the tape.
"""

from __future__ import annotations

import asyncio
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec

from ..model.entries import Assistant, Content, Text, Thinking, ToolCall, ToolResult, User
from .session_log import Item, SessionLog, list_sessions, require_package

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from ..model.entries import Block, Payload

TOOL = "claude-agent"


class SessionStore:
    """The `SessionStore` of the Claude Agent SDK, in the store at a folder; all its methods.

    A key is {project_key, session_id, subpath?}. Errors are `tape.TapeError`.
    """

    def __init__(self, folder: str | Path) -> None:
        require_package("claude_agent_sdk", "claude-agent")
        self.folder = folder
        self._lock = Lock()

    async def append(self, key: Mapping[str, str], entries: list[dict[str, Any]]) -> None:
        """Record lines; one whose `uuid` is there already is not recorded again."""
        await asyncio.to_thread(self._append, key, entries)

    async def load(self, key: Mapping[str, str]) -> list[dict[str, Any]] | None:
        """Return the lines of a transcript; None where it has none."""
        log = self._open(key)
        return await asyncio.to_thread(lambda: [item.value for item in log.read()] or None)

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        """Return {session_id, mtime} of each session; mtime in ms since 1970."""
        return await asyncio.to_thread(lambda: [session for session, _ in self._list(project_key)])

    async def list_session_summaries(self, project_key: str) -> list[dict[str, Any]]:
        """Return {session_id, mtime, data} of each session; `data` is the SDK's own."""
        sessions = await asyncio.to_thread(lambda: [*self._list(project_key)])
        return [{**session, "data": summary or {}} for session, summary in sessions]

    async def delete(self, key: Mapping[str, str]) -> None:
        """Undo the lines of a transcript; without `subpath` those of its sub-agents too."""

        def clear() -> None:
            self._open(key).clear()
            for subpath in [] if key.get("subpath") else self._list_subkeys(key):
                self._open({**key, "subpath": subpath}).clear()

        await asyncio.to_thread(clear)

    async def list_subkeys(self, key: Mapping[str, str]) -> list[str]:
        """Return the `subpath` of each transcript of a session but the main one."""
        return await asyncio.to_thread(self._list_subkeys, key)

    def _append(self, key: Mapping[str, str], entries: list[dict[str, Any]]) -> None:
        from claude_agent_sdk import fold_session_summary  # an extra

        def choose(so_far: list[Any]) -> Iterator[Item]:
            known = {item.value.get("uuid") for item in so_far if item.kind == "item"} - {None}
            summaries = [item.value for item in so_far if item.kind == "summary"]
            new = []
            for entry in entries:
                if entry.get("uuid") not in known:
                    new.append(entry)
                    known.add(entry["uuid"]) if entry.get("uuid") else None
            for entry in new:
                yield Item(entry, tuple(_read_line(entry)))
            if new and not key.get("subpath"):
                before = {"session_id": key["session_id"], "mtime": 0}
                before |= {"data": summaries[-1] if summaries else {}}
                folded = fold_session_summary(before if summaries else None, key, new)["data"]
                if not summaries or folded != summaries[-1]:
                    yield Item(folded, kind="summary")

        if entries:
            with self._lock:  # in the order of the calls
                self._open(key).update(choose, "item", "summary")

    def _open(self, key: Mapping[str, str]) -> SessionLog:
        parts = [key["project_key"], key["session_id"], *filter(None, [key.get("subpath")])]
        return SessionLog(self.folder, TOOL, "/".join(part.replace("/", "%2F") for part in parts))

    def _list(self, project_key: str) -> Iterator[tuple[dict[str, Any], Any]]:
        """Yield session_id and mtime of the sessions that have lines, with their summaries."""
        for log, parts in self._list_logs():
            if parts[:1] == [project_key] and len(parts) == 2:  # noqa: PLR2004 (no sub-agent)
                newest = log.read_newest("summary")
                if newest is not None:
                    yield {"session_id": parts[1], "mtime": newest[0] // 1000}, newest[1]

    def _list_subkeys(self, key: Mapping[str, str]) -> list[str]:
        prefix = [key["project_key"], key["session_id"]]
        return [
            parts[2]
            for log, parts in self._list_logs()
            if parts[:2] == prefix and len(parts) > len(prefix) and log.read_newest("item")
        ]

    def _list_logs(self) -> list[tuple[SessionLog, list[str]]]:
        logs = list_sessions(self.folder, TOOL)
        return [(log, [p.replace("%2F", "/") for p in log.session.split("/")]) for log in logs]


def _read_line(line: Mapping[str, Any]) -> Iterator[Payload]:
    """Yield what a line of a transcript says, as usual entries; nothing where it is no message."""
    message = line.get("message")
    if line.get("isMeta") or not isinstance(message, dict):
        return
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    blocks = (
        [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    )
    if line.get("type") == "assistant":
        turn = tuple(_read_blocks(blocks))
        if turn:
            yield Assistant(turn, "anthropic", "anthropic-messages", "", str(message.get("model")))
        return
    for block in blocks:
        if block.get("type") == "tool_result":
            inner = block.get("content")
            text = [{"type": "text", "text": inner}] if isinstance(inner, str) else inner
            output: Content = tuple(_read_blocks(text if isinstance(text, list) else []))
            called = str(block.get("tool_use_id"))
            yield ToolResult(called, "", output, block.get("is_error") is True)
    turn = tuple(_read_blocks(blocks))
    if line.get("type") == "user" and turn:
        yield User(turn)


def _read_blocks(blocks: Iterable[Any]) -> Iterator[Block]:
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)}:
                yield Text(text)
            case {"type": "thinking", "thinking": str(text)}:
                yield Thinking(text)
            case {"type": "tool_use", "id": str(call), "name": str(name)}:
                yield ToolCall(call, name, msgspec.Raw(msgspec.json.encode(block.get("input"))))
