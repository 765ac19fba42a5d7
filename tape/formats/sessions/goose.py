"""Sessions of Goose, `~/.local/share/goose/sessions/*.jsonl` or rows of `sessions.db`, → steps.

A file begins with a header; each other line is a message. Since 1.20 both are rows of a database,
which `DATABASE` gives as the same lines.

    message, block                becomes
    ----------------------------  -------------------------------------------------------------
    user, text and image          user
    user, `toolResponse`          the result of a call; `status` error and `isError` are errors
    assistant                     an answer: thinking and reasoning, words, `toolRequest` and
                                  `frontendToolRequest` as calls
    user that people do not see,  anchor; the assistant's word that follows it is context, and a
    and an assistant's after it   prompt that was moved below it stays in view
    `systemNotification`          note
    another role or block         custom `goose.<type>`, whole

A compaction leaves the messages before it as they are, but for their `metadata`:

    prompt  (hidden from both)  ─┐
    summary (model only)         │  anchor, keeps the prompt
    "Your context was compacted" │  context
    prompt, once more           ─┘  nothing
"""

from __future__ import annotations

from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from ...model.entries import (
    NO_JSON,
    Anchor,
    Assistant,
    Context,
    Note,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    User,
)
from ..parsing import CallBinder, build_tool_call, to_file_block, to_plain_text
from ..wire import drop_fields, encode_json, pack_raw
from .database import DAMAGED_LINE, SessionDatabase, decode_column, read_session_row, select_objects
from .steps import (
    NEWEST,
    ReadIds,
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

    from msgspec import Raw

    from ...model.entries import Block, Payload
    from ..wire import Put, WireObject

TOOL = "goose"
FORMAT = "goose-session"


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is the header of a session, or a message with its time."""
    if "working_dir" in value:
        return "role" not in value
    is_timed = isinstance(value.get("created"), int) and isinstance(value.get("content"), list)
    return is_timed and read_text(value.get("role")) in {"user", "assistant"}


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session in a file; `name` is the file's name without its ending."""
    header = next((v for line in read_lines() if (v := decode_object(line))), {})
    if "role" in header:
        header = {}
    config = read_object(header.get("model_config"))

    def read_steps(put: Put) -> Iterator[SourceStep]:
        session.damaged = 0
        model = read_text(config.get("model_name"))
        return _StepReader(session, put, read_text(header.get("provider_name")), model).read(
            read_lines()
        )

    session = SourceSession(
        TOOL,
        FORMAT,
        name,
        read_steps,
        cwd=read_text(header.get("working_dir")) or None,
        created=read_time(header.get("created_at")),
        title=read_text(header.get("description")) or None,
        strip_changes=strip_model,
    )
    return session


class _StepReader:
    """Reads the messages of one session."""

    def __init__(self, session: SourceSession, put: Put, provider: str, model: str) -> None:
        self.session, self.put = session, put
        self.provider, self.model = provider, model
        self.calls = CallBinder()
        self.moved = ""
        """Words of a prompt that a compaction moves below its summary, until they come again."""

    def read(self, lines: Iterable[bytes]) -> Iterator[SourceStep]:
        """Yield a step for each message; of a compaction, see above."""
        before: tuple[str, WireObject] = "", {}
        ids = ReadIds(self.session)
        numbered = ((number, line) for number, line in enumerate(lines) if line.strip())
        following = chain(numbered, [(0, b"")])
        for (number, line), (_, next_line) in pairwise(following):
            value = decode_object(line)
            if value is None:
                self.session.damaged += 1
                continue
            if value.get("id") and ids.is_repeated(line):  # parts of one message share its id
                continue
            if "role" not in value and number == 0:
                continue
            identity, kept_from = f"#{number}", None
            if "role" not in value:
                payloads: tuple[Payload, ...] = (self.session.keep_whole("line", value),)
            elif self._is_moved(value):
                continue
            elif self._is_summary(value, decode_object(next_line) or {}):
                payloads = (self._read_summary(value),)
                if not any(_is_seen(before[1], name) for name in ("userVisible", "agentVisible")):
                    kept_from, self.moved = before[0], _join_words(before[1])
            else:
                payloads = tuple(self._convert(value))
            time = read_time(value.get("created"))
            yield SourceStep(identity, NEWEST, time, payloads, kept_from)
            before = identity, value

    def _is_moved(self, message: WireObject) -> bool:
        """Return whether this is the prompt that the compaction before it has moved."""
        is_moved = message.get("role") == "user" and _join_words(message) == self.moved != ""
        if message.get("role") == "user":
            self.moved = ""
        return is_moved

    def _is_summary(self, message: WireObject, after: WireObject) -> bool:
        """Return whether a message is for the model only, and a word of the assistant after it."""
        pair = (message.get("role"), after.get("role"))
        hidden = not _is_seen(message, "userVisible") and not _is_seen(after, "userVisible")
        return pair == ("user", "assistant") and hidden

    def _read_summary(self, message: WireObject) -> Anchor:
        return Anchor(kind="compaction", summary=_join_words(message), reason="compacted by Goose")

    def _convert(self, message: WireObject) -> Iterator[Payload]:
        role = message.get("role")
        if read_text(role) not in {"user", "assistant"}:
            yield self.session.keep_whole(read_text(role) or "message", message)
            return
        self.calls.begin_answer(encode_json(message.get("content")))
        blocks: list[Block] = []
        others: list[Payload] = []
        content = read_list(message.get("content"))
        for piece in map(read_object, content):
            match piece:
                case {"type": "toolResponse"}:
                    yield self._read_result(piece)
                case {"type": "systemNotification", "msg": str(text)}:
                    others.append(Note(text))
                case _ if (block := self._read_block(piece)) is not None:
                    blocks.append(block)
                case _:
                    others.append(self.session.keep_whole(read_text(piece.get("type")), piece))
        if blocks and role == "assistant" and not _is_seen(message, "userVisible"):
            yield Context("user", TOOL, tuple(blocks))  # Goose's own words about a compaction
        elif role == "assistant" and blocks:
            has_calls = any(isinstance(block, ToolCall) for block in blocks)
            yield Assistant(
                tuple(blocks),
                provider=self.provider,
                model=self.model,
                stop_reason="tool_calls" if has_calls else "stop",
            )
        elif blocks:
            yield User(tuple(blocks))
        yield from others

    def _read_block(self, piece: WireObject) -> Block | None:
        match piece:
            case {"type": "text", "text": str(text)}:
                return Text(text)
            case {"type": "thinking", "thinking": str(text)} | {
                "type": "reasoning",
                "text": str(text),
            }:
                return Thinking(text, wire=_keep_fields(piece, "signature"))
            case {"type": "redactedThinking"}:
                return Thinking("", redacted=True, wire=_keep_fields(piece, "data"))
            case {"type": "image" | "audio"}:
                return to_file_block(piece.get("data"), piece.get("mimeType"), self.put, {})
            case {"type": "toolRequest" | "frontendToolRequest"}:
                return self._read_call(piece)
        return None

    def _read_call(self, piece: WireObject) -> ToolCall:
        identity, called = piece.get("id"), read_object(piece.get("toolCall"))
        function = read_object(called.get("value"))
        name = to_plain_text(function.get("name") or "")
        ours = self.calls.call(identity if isinstance(identity, str) else None, name)
        rest = {"id": identity} if isinstance(identity, str) else {}
        error = {"error": called["error"]} if "error" in called else {}
        return build_tool_call(ours, name, function.get("arguments"), rest | error)

    def _read_result(self, piece: WireObject) -> ToolResult:
        identity, result = piece.get("id"), read_object(piece.get("toolResult"))
        call = self.calls.result(identity if isinstance(identity, str) else None)
        value = result.get("value")
        parts = value.get("content") if isinstance(value, dict) else value
        blocks = tuple(self._read_result_block(part) for part in read_list(parts))
        content = blocks or (Text(to_plain_text(result.get("error") or parts or "")),)
        failed = result.get("status") == "error" or read_object(value).get("isError") is True
        rest = drop_fields(read_object(value), "content", "isError")
        details = pack_raw(rest) if rest else NO_JSON
        return ToolResult(call.id, call.name, content, failed, details=details)

    def _read_result_block(self, value: Any) -> Block:
        """Return a block of a result of MCP; a resource with its text, or as a file."""
        piece = read_object(value)
        resource = read_object(piece.get("resource"))
        block = self._read_block(piece)
        if block is None and isinstance(resource.get("text"), str):
            block = Text(resource["text"])
        if block is None:
            mime = resource.get("mimeType")
            block = to_file_block(resource.get("blob"), mime, self.put, {})
        return block or Opaque(raw=pack_raw(value))


def _is_seen(message: WireObject, by: str) -> bool:
    return read_object(message.get("metadata")).get(by) is not False


def _join_words(message: WireObject) -> str:
    pieces = map(read_object, read_list(message.get("content")))
    return "\n".join(read_text(piece.get("text")) for piece in pieces if "text" in piece)


def _keep_fields(piece: WireObject, name: str) -> Raw:
    return pack_raw({name: piece[name]}) if piece.get(name) else NO_JSON


def _read_database(database: sqlite3.Connection, session: str, _file: Path) -> list[bytes] | None:
    row = read_session_row(database, "sessions", session)
    if row is None:
        return None
    header = {
        "working_dir": row.get("working_dir"),
        "description": row.get("name") or row.get("description"),
        "created_at": row.get("created_at"),
        "provider_name": row.get("provider_name"),
        "model_config": decode_column(row.get("model_config_json")),
    }
    query = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
    messages, all_read = select_objects(database, query, session)
    lines = [msgspec.json.encode(header)]
    for message in messages:
        try:
            blocks = msgspec.json.decode(message["content_json"])
        except (msgspec.DecodeError, TypeError):
            blocks = [{"type": "damaged", "text": str(message["content_json"])}]
        line = {
            "id": message.get("message_id"),
            "role": message["role"],
            "created": message["created_timestamp"],
            "content": blocks,
            "metadata": decode_column(message.get("metadata_json")),
        }
        lines.append(msgspec.json.encode(line))
    return [*lines, *[DAMAGED_LINE] * (not all_read)]


DATABASE = SessionDatabase(
    "sessions",
    "working_dir",
    _read_database,
    "s.updated_at || ' ' || (SELECT count(*) || ' ' || max(t.id)"
    " FROM messages t WHERE t.session_id = s.id)",
)
