"""Checkpoints of LangGraph on tapes: `graph.compile(checkpointer=TapeSaver(FOLDER))`.

A thread has a tape. Each checkpoint and each write is an item of it; values of channels are in the
checkpoint that changed them, so that a step records what is new:

    checkpoint 1   values a@1 b@1
    checkpoint 2   values b@2        its channel_versions: a@1 b@2
    writes         of checkpoint 2
    removed        [checkpoint 1]    not found any more; bytes and values stay

Messages that a graph keeps in the channel `messages` are usual entries, too, each once.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from threading import Lock
from typing import TYPE_CHECKING, Any

from . import langgraph_thread as rows
from .langgraph_thread import KINDS, TOOL, CheckpointThread, build_config
from .session_log import Item, SessionLog, list_sessions, require_package

require_package("langgraph", "langgraph")

from langgraph.checkpoint.base import (  # noqa: E402 (first the error that says what to install)
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    get_checkpoint_id,
    get_checkpoint_metadata,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from langgraph.checkpoint.base import CheckpointTuple

    from .session_log import LoggedItem


class TapeSaver(BaseCheckpointSaver[int]):
    """The checkpointer of LangGraph, in the store at `folder`; all its methods, plain and async."""

    def __init__(self, folder: str | Path, *, serde: Any | None = None) -> None:
        super().__init__(serde=serde)
        self.folder = folder
        self._lock = Lock()

    def get_tuple(self, config: Any) -> CheckpointTuple | None:
        """Return a checkpoint, the newest where the config names none; None if there is none."""
        settings = config["configurable"]
        space = settings.get("checkpoint_ns", "")
        thread = self._read(settings["thread_id"])
        checkpoint_id = get_checkpoint_id(config) or max(
            (checkpoint_id for ns, checkpoint_id in thread.checkpoints if ns == space), default=None
        )
        row = {**thread.pruned, **thread.checkpoints}.get((space, checkpoint_id or ""))
        return None if row is None else thread.build_tuple(row)

    def list(
        self,
        config: Any | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 (LangGraph's name)
        before: Any | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first in each thread."""
        named = config["configurable"] if config else {}
        ids: Sequence[str] = (
            [named["thread_id"]]
            if config
            else [log.session for log in list_sessions(self.folder, TOOL)]
        )
        until = get_checkpoint_id(before) if before else None
        count = 0
        for thread_id in ids:
            thread = self._read(thread_id)
            for space, checkpoint_id in sorted(
                thread.checkpoints, reverse=True, key=lambda key: key[1]
            ):
                if named.get("checkpoint_ns") not in {None, space} or (
                    until and checkpoint_id >= until
                ):
                    continue
                if named.get("checkpoint_id") not in {None, "", checkpoint_id}:
                    continue
                checkpoint = thread.build_tuple(thread.checkpoints[space, checkpoint_id])
                metadata: Any = checkpoint.metadata
                if any(metadata.get(key) != value for key, value in (filter or {}).items()):
                    continue
                if limit is not None and count >= limit:
                    return
                count += 1
                yield checkpoint

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Record a checkpoint with the channels that changed; return its config."""
        settings = config["configurable"]
        values = checkpoint["channel_values"]
        row = {
            "ns": settings.get("checkpoint_ns", ""),
            "id": checkpoint["id"],
            "parent": settings.get("checkpoint_id"),
            "checkpoint": self._dump({**checkpoint, "channel_values": {}}),
            "metadata": self._dump(get_checkpoint_metadata(config, metadata)),
            "values": [
                [name, version, self._dump(values[name]) if name in values else None]
                for name, version in new_versions.items()
            ],
            "messages": [],
        }
        value = values.get("messages") if "messages" in new_versions else ()
        messages = value if isinstance(value, list) else []

        def choose(so_far: list[LoggedItem]) -> Iterator[Item]:
            known = {message_id for item in so_far for message_id in item.value.get("messages", ())}
            new_messages = [
                message
                for message in messages
                if getattr(message, "id", None) and message.id not in known
            ]
            row["messages"] = [message.id for message in new_messages]
            payloads = tuple(
                payload for message in new_messages for payload in rows.read_message(message)
            )
            yield Item(row, payloads, "checkpoint")

        with self._lock:
            self._log(settings["thread_id"]).update(choose, *(["checkpoint"] if messages else []))
        return build_config(settings["thread_id"], row["ns"], row["id"])

    def put_writes(
        self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Record what a task wrote after a checkpoint."""
        settings = config["configurable"]
        row = {
            "ns": settings.get("checkpoint_ns", ""),
            "id": settings["checkpoint_id"],
            "task": task_id,
            "path": task_path,
            "writes": [
                [WRITES_IDX_MAP.get(channel, index), channel, self._dump(value)]
                for index, (channel, value) in enumerate(writes)
            ],
        }
        with self._lock:
            self._log(settings["thread_id"]).append([Item(row, kind="writes")])

    def delete_thread(self, thread_id: str) -> None:
        """Take all checkpoints of a thread back; they stay on the tape."""
        self._log(thread_id).clear()

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Hide the checkpoints of these runs, and their writes."""
        runs = set(run_ids)
        for thread_id in [log.session for log in list_sessions(self.folder, TOOL)] if runs else ():
            thread = self._read(thread_id)
            rows = thread.checkpoints.items()
            gone = [k for k, row in rows if self._load(row["metadata"]).get("run_id") in runs]
            self._hide(thread_id, gone)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Record all checkpoints and writes of a thread in another one."""
        items = self._log(source_thread_id).read(KINDS)
        self._log(target_thread_id).append([Item(item.value, kind=item.kind) for item in items])

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """List only the newest checkpoint of each namespace; the others are found by id."""
        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
                continue
            thread = self._read(thread_id)
            newest = dict(sorted(thread.checkpoints))
            newest_keys = set(newest.items())
            self._hide(
                thread_id, [key for key in thread.checkpoints if key not in newest_keys], "pruned"
            )

    async def alist(self, config: Any | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        """Do what `list` does."""
        for checkpoint in await asyncio.to_thread(lambda: [*self.list(config, **options)]):
            yield checkpoint

    aget_tuple = rows.build_async(get_tuple)
    aput = rows.build_async(put)
    aput_writes = rows.build_async(put_writes)
    adelete_thread = rows.build_async(delete_thread)
    adelete_for_runs = rows.build_async(delete_for_runs)
    acopy_thread = rows.build_async(copy_thread)
    aprune = rows.build_async(prune)

    def _log(self, thread_id: str) -> SessionLog:
        return SessionLog(self.folder, TOOL, thread_id)

    def _read(self, thread_id: str) -> CheckpointThread:
        return CheckpointThread(thread_id, self._log(thread_id).read(KINDS), self._load)

    def _hide(self, thread_id: str, keys: Sequence[tuple[str, str]], kind: str = "removed") -> None:
        if keys:
            self._log(thread_id).append([Item([*map(list, keys)], kind=kind)])

    def _dump(self, value: Any) -> Sequence[str]:
        kind, data = self.serde.dumps_typed(value)
        return [kind, b64encode(data).decode()]

    def _load(self, value: Sequence[str]) -> Any:
        return self.serde.loads_typed((value[0], b64decode(value[1])))
