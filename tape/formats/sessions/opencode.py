"""Sessions of OpenCode: its export document, and the rows of its database, → steps.

    {info, messages: [{info {id, role, modelID, providerID, tokens, cost, time}, parts: […]}]}

    part                       becomes
    -------------------------  --------------------------------------------------------------
    text, reasoning, file      text, thinking, picture or file of the message
    tool                       a call of the answer, and its result where it has ended
    compaction                 (of the next summary) anchor
    step-start, step-finish,   nothing: what they say is in the message
    snapshot
    anything else              custom `opencode.<type>`, whole

Rows of the database become the document of `opencode export`. A session that was
reverted ends before the message it names; what came after is a branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ...ids import compute_tape_id
from ...model.entries import (
    NO_JSON,
    AgentEnd,
    AgentStart,
    Anchor,
    Assistant,
    Cost,
    Failure,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    User,
    join_texts,
)
from ..parsing import CallBinder, build_tool_call, to_file_block_from_url, to_plain_text
from ..wire import encode_json, pack_raw
from .database import DAMAGED_LINE, SessionDatabase, decode_column, read_session_row, select_objects
from .steps import (
    ROOT,
    ReadIds,
    SourceSession,
    SourceStep,
    decode_documents,
    read_count,
    read_list,
    read_object,
    read_text,
    read_time,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from ...model.entries import Block, Payload
    from ..wire import Put, WireObject

TOOL = "opencode"
FORMAT = "opencode-export"
_STOPS = {"stop": "stop", "tool-calls": "tool_calls", "length": "length"}
_SILENT = frozenset({"step-start", "step-finish", "snapshot", "patch"})
_ENDED = frozenset({"completed", "error"})


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is an exported session."""
    return isinstance(value.get("info"), dict) and isinstance(value.get("messages"), list)


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session in an exported document; `name` is that of the file."""
    documents, damaged = decode_documents([*read_lines()])
    document = documents[0] if documents else {}
    info = read_object(document.get("info"))

    def read_steps(put: Put) -> Iterator[SourceStep]:
        session.damaged = damaged
        return _StepReader(session, put).read(read_list(document.get("messages")))

    session = SourceSession(
        TOOL,
        FORMAT,
        read_text(info.get("id")) or name,
        read_steps,
        cwd=read_text(info.get("directory")) or None,
        created=read_time(read_object(info.get("time")).get("created")),
        title=read_text(info.get("title")) or None,
    )
    reverted = read_text(read_object(info.get("revert")).get("messageID"))
    if reverted:
        session.newest = _find_before(read_list(document.get("messages")), reverted)
    return session


def _find_before(messages: list[Any], reverted: str) -> str | None:
    """Return the step before a message; None if that is not there, or is the first."""
    ids = [_get_id(message, number) for number, message in enumerate(messages)]
    place = next((at for at, step in enumerate(ids) if step.partition("#")[0] == reverted), 0)
    return ids[place - 1] if place else None


def _get_id(message: Any, number: int) -> str:
    return f"{read_text(read_object(read_object(message).get('info')).get('id'))}#{number}"


class _StepReader:
    """Reads the messages of one session."""

    def __init__(self, session: SourceSession, put: Put) -> None:
        self.session, self.put = session, put
        self.calls = CallBinder()
        self.is_compacting = False
        """Whether the next answer is the summary of a compaction."""

    def read(self, messages: list[Any]) -> Iterator[SourceStep]:
        """Yield a step for each message."""
        parent = ROOT
        ids = ReadIds(self.session)
        for number, value in enumerate(messages):
            message = read_object(value)
            info = read_object(message.get("info"))
            if ids.is_repeated(info.get("id")):
                continue
            parts = [read_object(part) for part in read_list(message.get("parts"))]
            match info.get("role"):
                case "user":
                    payloads = [*self._convert_prompt(parts)]
                case "assistant":
                    payloads = [*self._convert_answer(info, parts)]
                case _:
                    payloads = [self.session.keep_whole("message", value)]
            identity = _get_id(message, number)
            time = read_time(read_object(info.get("time")).get("created"))
            yield SourceStep(identity, parent, time, tuple(payloads))
            parent = identity

    def _convert_prompt(self, parts: list[WireObject]) -> Iterator[Payload]:
        blocks, others = self._read_blocks(parts)
        self.is_compacting = any(part.get("type") == "compaction" for part in parts)
        if blocks or not self.is_compacting:
            yield User(tuple(blocks) or (Text(""),))
        yield from others

    def _read_blocks(self, parts: list[WireObject]) -> tuple[list[Block], list[Payload]]:
        """Return the words and files of a message, and what is none."""
        blocks: list[Block] = []
        others: list[Payload] = []
        for part in parts:
            match part:
                case {"type": "text", "text": str(text)}:
                    blocks.append(Text(text))
                case {"type": "reasoning", "text": str(text)}:
                    metadata = read_object(part.get("metadata"))
                    blocks.append(Thinking(text, wire=pack_raw(metadata) if metadata else NO_JSON))
                case {"type": "file", "url": url}:
                    name = part.get("filename")
                    file = to_file_block_from_url(url, self.put, {}, name)
                    blocks.append(file or Opaque(raw=pack_raw(part)))
                case {"type": "tool"}:
                    blocks.append(self._read_call(part))
                case {"type": "compaction"}:
                    pass
                case _ if read_text(part.get("type")) not in _SILENT:
                    kind = read_text(part.get("type")) or "part"
                    others.append(self.session.keep_whole(kind, part))
        return blocks, others

    def _read_call(self, part: WireObject) -> ToolCall:
        name, call = to_plain_text(part.get("tool") or ""), part.get("callID")
        ours = self.calls.call(call if isinstance(call, str) else None, name)
        arguments = read_object(part.get("state")).get("input")
        rest = {"id": call} if isinstance(call, str) else {}
        return build_tool_call(ours, name, arguments, rest)

    def _convert_answer(self, info: WireObject, parts: list[WireObject]) -> Iterator[Payload]:
        self.calls.begin_answer(encode_json(parts))
        blocks, others = self._read_blocks(parts)
        if (self.is_compacting or info.get("summary") is True) and join_texts(blocks):
            self.is_compacting = False
            yield Anchor(
                kind="compaction", summary=join_texts(blocks), reason="compacted by OpenCode"
            )
            yield from others
            return
        tokens, error = read_object(info.get("tokens")), read_object(info.get("error"))
        cost, stop = info.get("cost"), read_text(info.get("finish"))
        usual = "tool_calls" if any(isinstance(block, ToolCall) for block in blocks) else "stop"
        yield Assistant(
            content=tuple(blocks),
            provider=read_text(info.get("providerID")),
            model=read_text(info.get("modelID")),
            stop_reason="error" if error else _STOPS.get(stop, usual),
            raw_stop=stop or None,
            usage=_read_usage(tokens),
            cost=Cost("USD", float(cost)) if isinstance(cost, int | float) and cost else None,
            error=_read_failure(error) if error else None,
        )
        calls = iter(block for block in blocks if isinstance(block, ToolCall))
        for part in parts:
            if part.get("type") == "tool":
                yield from self._convert_result(part, next(calls))
        yield from others

    def _convert_result(self, part: WireObject, call: ToolCall) -> Iterator[Payload]:
        state = read_object(part.get("state"))
        if read_text(state.get("status")) not in _ENDED:
            return
        is_error = state["status"] == "error"
        text = to_plain_text(state.get("error" if is_error else "output") or "")
        blocks: list[Block] = [Text(text)]
        for file in map(read_object, read_list(state.get("attachments"))):
            block = to_file_block_from_url(file.get("url"), self.put, {}, file.get("filename"))
            blocks.append(block or Opaque(raw=pack_raw(file)))
        details = read_object(state.get("metadata"))
        child = read_text(details.get("sessionId")) or read_text(details.get("sessionID"))
        result = ToolResult(
            call.id,
            call.name,
            tuple(blocks),
            is_error,
            details=pack_raw(details) if details else NO_JSON,
        )
        if not child:
            yield result
            return
        arguments = read_object(state.get("input"))
        kind = read_text(arguments.get("subagent_type")) or "general"
        task = read_text(arguments.get("prompt"))
        yield AgentStart(child, kind, task, tape=compute_tape_id(TOOL, child))
        yield result
        yield AgentEnd(child, text, "failed" if is_error else "completed")


def _read_failure(error: WireObject) -> Failure:
    message = read_object(error.get("data")).get("message")
    return Failure("ProviderError", to_plain_text(message or error))


def _read_usage(tokens: WireObject) -> Usage:
    cache = read_object(tokens.get("cache"))
    sent, received = read_count(tokens.get("input")), read_count(tokens.get("output"))
    reads, writes = read_count(cache.get("read")), read_count(cache.get("write"))
    thoughts = read_count(tokens.get("reasoning"))
    return Usage(
        input=sent,
        output=received + thoughts,
        reasoning=thoughts or None,
        cache_read=reads or None,
        cache_write=writes or None,
        total=sent + received + thoughts + reads + writes,
    )


def _read_database(database: sqlite3.Connection, session: str, _file: Path) -> list[bytes] | None:
    row = read_session_row(database, "session", session)
    if row is None:
        return None
    parts: dict[str, list[Any]] = {}
    rows, all_parts = select_objects(
        database, "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id", session
    )
    for part in rows:
        decoded = {**decode_column(part["data"]), "id": part["id"]}
        parts.setdefault(part["message_id"], []).append(decoded)
    rows, all_messages = select_objects(
        database, "SELECT id, data FROM message WHERE session_id = ? ORDER BY id", session
    )
    messages = [
        {
            "info": {**decode_column(message["data"]), "id": message["id"]},
            "parts": parts.get(message["id"], []),
        }
        for message in rows
    ]
    info = {
        "id": session,
        "title": row.get("title"),
        "directory": row.get("directory"),
        "version": row.get("version"),
        "parentID": row.get("parent_id"),
        "time": {"created": row.get("time_created"), "updated": row.get("time_updated")},
        "revert": decode_column(row.get("revert")),
    }
    line = msgspec.json.encode({"info": info, "messages": messages})
    return [line, *[DAMAGED_LINE] * (not (all_parts and all_messages))]


DATABASE = SessionDatabase(
    "session",
    "id",
    _read_database,
    "s.time_updated || ' ' || (SELECT count(*) || ' ' || max(t.time_updated)"
    " FROM part t WHERE t.session_id = s.id)",
)
