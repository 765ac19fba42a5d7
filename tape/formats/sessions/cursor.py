"""Chats of Cursor's CLI, the blobs of `~/.cursor/chats/MD5/UUID/store.db`, → steps.

A database holds one chat: blobs named by their SHA-256, and its record in `meta`. Blobs that are
JSON are the messages; the others are a graph of turns that repeats them, and are left out. Nothing
of this is published: it is the shape of chats of June to September 2026. `DATABASE` gives
the record as the first line, with `meta.json` beside the file, and then the messages.

    message, block                    becomes
    --------------------------------  ---------------------------------------------------------
    user, `<user_query>` and pictures user, without the tag
    user, what Cursor adds            context
    assistant                         an answer: reasoning, words, `tool-call`
    tool, `tool-result`               the result of a call
    system                            context
    another role                      custom `cursor.<role>`, whole
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from ...model.entries import (
    NO_JSON,
    Assistant,
    Context,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    User,
)
from ..parsing import (
    CallBinder,
    build_tool_call,
    to_file_block,
    to_file_block_from_url,
    to_plain_text,
)
from ..wire import drop_fields, encode_json, pack_raw
from .database import DAMAGED_LINE, SessionDatabase, decode_column, select_objects
from .steps import (
    NEWEST,
    SourceSession,
    SourceStep,
    decode_object,
    read_list,
    read_object,
    read_text,
    read_time,
    strip_model,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from ...model.entries import Block, Payload
    from ..wire import Put, WireObject

TOOL = "cursor"
FORMAT = "cursor-chat"
_QUERY = re.compile(r"\s*<user_query>\n?(.*?)\n?</user_query>\s*", re.DOTALL)
_ADDED = re.compile(r"\s*<(user_info|system_reminder|project_layout|rules|git_status)\b")
_WORKSPACE = re.compile(r"^Workspace Path: (.+)$", re.MULTILINE)


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is the record of a chat."""
    return "agentId" in value and ("latestRootBlobId" in value or "chat" in value)


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session of a chat; `name` is that of its folder."""
    record: WireObject = {}
    cwd = ""
    for line in read_lines():
        value = decode_object(line) or {}
        if is_session_line(value):
            record = value
        elif not cwd and value.get("role") == "user":
            match = _WORKSPACE.search(
                to_plain_text(value.get("content") or "").replace("\\n", "\n")
            )
            cwd = match[1].strip() if match else ""
    chat = read_object(record.get("chat"))

    def read_steps(put: Put) -> Iterator[SourceStep]:
        session.damaged = 0
        return _StepReader(session, put, read_text(record.get("lastUsedModel"))).read(read_lines())

    session = SourceSession(
        TOOL,
        FORMAT,
        name,
        read_steps,
        cwd=read_text(record.get("workspacePath")) or cwd or None,
        created=read_time(chat.get("createdAtMs")) or read_time(record.get("createdAt")),
        title=read_text(chat.get("title")) or read_text(record.get("name")) or None,
        strip_changes=strip_model,
    )
    return session


class _StepReader:
    """Reads the messages of one chat."""

    def __init__(self, session: SourceSession, put: Put, model: str) -> None:
        self.session, self.put, self.model = session, put, model
        self.calls = CallBinder()

    def read(self, lines: Iterable[bytes]) -> Iterator[SourceStep]:
        """Yield a step for each message."""
        for number, line in enumerate(lines):
            message = decode_object(line)
            if message is None:
                self.session.damaged += bool(line.strip())
            elif not is_session_line(message):
                time = read_time(message.get("createdAt"))
                yield SourceStep(f"#{number}", NEWEST, time, tuple(self._convert(message)))

    def _convert(self, message: WireObject) -> Iterator[Payload]:
        content = message.get("content")
        pieces = content if isinstance(content, list) else [content] if content else []
        match message.get("role"):
            case "user":
                yield from self._convert_prompt(pieces)
            case "assistant":
                yield self._read_answer(message, pieces)
            case "tool":
                for piece in pieces:
                    yield self._read_result(read_object(piece), message)
            case "system":
                yield Context("system", "system", tuple(self._read_blocks(pieces)))
            case role:
                yield self.session.keep_whole(read_text(role) or "blob", message)

    def _convert_prompt(self, pieces: list[Any]) -> Iterator[Payload]:
        """Yield what Cursor adds to a prompt, and then the prompt."""
        query: list[Block] = []
        added: list[Block] = []
        for block in self._read_blocks(pieces):
            if not isinstance(block, Text):
                query.append(block)
                continue
            query += [Text(words) for words in _QUERY.findall(block.text)]
            rest = _QUERY.sub("", block.text)
            if _ADDED.match(block.text) or rest != block.text:
                added += [Text(rest)] if rest.strip() else []
            else:
                query.append(block)
        if added:
            yield Context("user", TOOL, tuple(added))
        if query or not added:
            yield User(tuple(query) or (Text(""),))

    def _read_blocks(self, pieces: list[Any]) -> Iterator[Block]:
        for value in pieces:
            match value:
                case str(text) | {"type": "text", "text": str(text)}:
                    yield Text(text)
                case {"type": "reasoning" | "thinking" | "redacted-reasoning" as kind}:
                    thought = read_text(value.get("text")) or read_text(value.get("thinking"))
                    rest = drop_fields(value, "type", "text", "thinking")
                    raw = pack_raw(rest) if rest else NO_JSON
                    yield Thinking(thought, redacted=kind == "redacted-reasoning", wire=raw)
                case {"type": "tool-call"}:
                    yield self._read_call(value)
                case _:
                    yield self._read_file(value) or Opaque(raw=pack_raw(value))

    def _read_call(self, piece: WireObject) -> ToolCall:
        identity, name = piece.get("toolCallId"), to_plain_text(piece.get("toolName") or "")
        ours = self.calls.call(identity if isinstance(identity, str) else None, name)
        rest = {"id": identity} if isinstance(identity, str) else {}
        arguments = piece.get("args") if "args" in piece else piece.get("input")
        return build_tool_call(ours, name, arguments, rest)

    def _read_file(self, value: Any) -> Block | None:
        piece = read_object(value)
        data = next((piece[name] for name in ("image", "data") if name in piece), None)
        mime = piece.get("mediaType") or piece.get("mimeType") or "image/png"
        named = piece.get("filename")
        block = to_file_block_from_url(data, self.put, {}, named)
        name = named if isinstance(named, str) else None
        return block or to_file_block(data, mime, self.put, {}, name)

    def _read_answer(self, message: WireObject, pieces: list[Any]) -> Assistant:
        self.calls.begin_answer(encode_json(pieces))
        blocks = tuple(self._read_blocks(pieces))
        options = read_object(read_object(message.get("providerOptions")).get("cursor"))
        has_calls = any(isinstance(block, ToolCall) for block in blocks)
        return Assistant(
            blocks,
            provider="cursor",
            model=read_text(options.get("modelName")) or self.model,
            stop_reason="tool_calls" if has_calls else "stop",
            response_id=read_text(message.get("id")) or None,
        )

    def _read_result(self, piece: WireObject, message: WireObject) -> ToolResult:
        identity, name = piece.get("toolCallId"), read_text(piece.get("toolName")) or None
        call = self.calls.result(identity if isinstance(identity, str) else None, name)
        output = read_object(piece.get("output"))
        text = output.get("value") if "value" in output else piece.get("result")
        parts = read_list(piece.get("experimental_content")) or read_list(text)
        blocks = tuple(self._read_blocks(parts)) or (Text(to_plain_text(text or "")),)
        rest = drop_fields(
            piece,
            *("type", "toolCallId", "toolName", "result", "output", "isError"),
            "experimental_content",
        )
        failed = piece.get("isError", message.get("isError")) is True
        return ToolResult(
            call.id,
            call.name or name or "",
            blocks,
            failed or read_text(output.get("type")).startswith("error"),
            details=pack_raw(rest) if rest else NO_JSON,
        )


def _read_database(database: sqlite3.Connection, _session: str, file: Path) -> list[bytes]:
    record: dict[str, Any] = {}
    for row in select_objects(database, "SELECT value FROM meta ORDER BY key")[0]:
        value = row["value"]
        with suppress(ValueError, TypeError):  # it is JSON as it is, or written as hex digits
            value = bytes.fromhex(value)
        record = decode_column(value) | record
    with suppress(OSError):
        record["chat"] = decode_column(file.with_name("meta.json").read_bytes())
    rows, all_read = select_objects(database, "SELECT id, data FROM blobs ORDER BY rowid")
    blobs = {str(row["id"]): _to_bytes(row["data"]) for row in rows}
    messages = {name: data for name, data in blobs.items() if data[:1] == b"{"}
    named = _list_prompt_blobs(blobs.get(str(record.get("latestRootBlobId")), b""))
    whole = set(named) == set(messages)  # the same message may be there twice
    lines = [messages[name] for name in (named if whole else messages)]
    header = msgspec.json.encode({"agentId": file.absolute().parent.name, "chat": {}} | record)
    return [header, *lines, *[DAMAGED_LINE] * (not all_read)]


def _to_bytes(data: Any) -> bytes:
    return data if isinstance(data, bytes) else str(data or "").encode()


def _list_prompt_blobs(root: bytes) -> list[str]:
    """Return the blobs that Cursor's root names as the prompt, field 1 of a Protocol Buffer."""
    size = 32
    names: list[str] = []
    head = bytes([1 << 3 | 2, size])
    while root.startswith(head) and len(root) >= len(head) + size:
        names.append(root[len(head) : len(head) + size].hex())
        root = root[len(head) + size :]
    return names


DATABASE = SessionDatabase("blobs", "data", _read_database, has_one=True)
