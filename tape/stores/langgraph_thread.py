"""One thread of LangGraph from its items on a tape: what is there, what is hidden; pure."""

from __future__ import annotations

import asyncio
from functools import wraps
from typing import TYPE_CHECKING, Any

import msgspec

from ..model.entries import Assistant, Context, Text, ToolCall, ToolResult, User

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from langgraph.checkpoint.base import CheckpointTuple

    from ..model.entries import Content, Payload
    from .session_log import LoggedItem

TOOL = "langgraph"
KINDS = ("checkpoint", "writes", "removed", "pruned")
"""Kinds of items."""


class CheckpointThread:
    """The checkpoints of one thread, from its items; a key is (namespace, id)."""

    def __init__(
        self, thread_id: str, items: Iterable[LoggedItem], load: Callable[[Any], Any]
    ) -> None:
        self.thread_id, self._load = thread_id, load
        self.checkpoints: dict[tuple[str, str], Any] = {}
        self.pruned: dict[tuple[str, str], Any] = {}
        self.values: dict[tuple[str, str, Any], Any] = {}
        self.writes: dict[tuple[str, str], dict[tuple[str, int], Any]] = {}
        for kind, row in items:
            if kind in {"removed", "pruned"}:
                for space, checkpoint_id in row:
                    pruned = self.checkpoints.pop((space, checkpoint_id), None)
                    self.pruned |= {(space, checkpoint_id): pruned} if kind == "pruned" else {}
                continue
            key = row["ns"], row["id"]
            if kind == "checkpoint":
                self.checkpoints[key] = row
                self.values |= {(row["ns"], name, at): value for name, at, value in row["values"]}
                continue
            writes = self.writes.setdefault(key, {})
            for index, channel, value in row["writes"]:
                if index < 0 or (row["task"], index) not in writes:
                    writes[row["task"], index] = row["path"], channel, value

    def build_tuple(self, row: Any) -> CheckpointTuple:
        """Return what LangGraph calls a checkpoint: the row, its values and its writes."""
        from langgraph.checkpoint.base import (  # an extra
            CheckpointTuple,
            writes_sort_key,
        )

        space, checkpoint = row["ns"], self._load(row["checkpoint"])
        values = {
            name: self._load(value)
            for name, version in checkpoint["channel_versions"].items()
            if (value := self.values.get((space, name, version))) is not None
        }
        writes = self.writes.get((space, row["id"]), {})
        ordered = sorted(writes, key=lambda key: writes_sort_key(writes[key][0], *key))
        parent = row["parent"]
        return CheckpointTuple(
            config=build_config(self.thread_id, space, row["id"]),
            checkpoint={**checkpoint, "channel_values": values},
            metadata=self._load(row["metadata"]),
            parent_config=build_config(self.thread_id, space, parent) if parent else None,
            pending_writes=[
                (key[0], writes[key][1], self._load(writes[key][2])) for key in ordered
            ],
        )


def build_config(thread_id: str, space: str, checkpoint: str) -> Any:
    """Return the config that names a checkpoint."""
    where = {"thread_id": thread_id, "checkpoint_ns": space, "checkpoint_id": checkpoint}
    return {"configurable": where}


def build_async(method: Any) -> Any:
    """Return a method as the asynchronous one that does the same."""

    @wraps(method)
    async def run(*arguments: Any, **options: Any) -> Any:
        return await asyncio.to_thread(method, *arguments, **options)

    return run


def read_message(message: Any) -> Iterator[Payload]:
    """Yield what a message says, as a usual entry."""
    text = message.text if isinstance(message.text, str) else message.text()
    content: Content = (Text(text),) if text else ()
    match message.type:
        case "human":
            yield User(content)
        case "ai":
            calls = [
                ToolCall(
                    call["id"] or "", call["name"], msgspec.Raw(msgspec.json.encode(call["args"]))
                )
                for call in message.tool_calls
            ]
            yield Assistant((*content, *calls), "", TOOL)
        case "tool":
            yield ToolResult(
                message.tool_call_id, message.name or "", content, message.status == "error"
            )
        case "system":
            yield Context("system", TOOL, content)
