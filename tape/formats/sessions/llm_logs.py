"""Conversations of Simon Willison's llm, `~/.config/io.datasette.llm/logs.db`, → steps.

`DATABASE` gives a conversation as lines: {"llm_session", "name", "model"}, then a line for each
message, {"llm_message", "parent", "role", "parts", "turn"}. Their ids are the hashes of the message
store (0.36 and newer), so a conversation that went two ways is a tree; older rows of `responses`
are one after the other. `turn` is the model call that ended with the message.

    message, part                becomes
    ---------------------------  --------------------------------------------------------------
    user                         user
    assistant                    an answer: reasoning, words, calls; model and tokens of its turn
    system                       context
    tool; `tool_result`          the result of a call, with its pictures
    anything else                custom `llm.<role>`, whole
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import msgspec

from ...model.entries import (
    NO_JSON,
    Assistant,
    Context,
    Opaque,
    Text,
    Thinking,
    ToolResult,
    Usage,
    User,
)
from ..parsing import CallBinder, build_tool_call, to_file_block_from_url, to_plain_text
from ..wire import encode_json, pack_raw
from .database import SessionDatabase, has_table, read_session_row, select_objects
from .steps import (
    ROOT,
    ReadIds,
    SourceSession,
    SourceStep,
    decode_object,
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

TOOL = "llm"
FORMAT = "llm-logs"
_RESULT = "tool_result"


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is a conversation, or one of its messages."""
    return "llm_session" in value or "llm_message" in value


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the conversation in some lines; `name` is its id where they do not say."""
    facts: WireObject = {}
    for line in read_lines():
        facts = decode_object(line) or {}
        break

    def read_steps(put: Put) -> Iterator[SourceStep]:
        return _StepReader(session, put, read_text(facts.get("model"))).read(read_lines())

    session = SourceSession(
        TOOL,
        FORMAT,
        read_text(facts.get("llm_session")) or name,
        read_steps,
        created=read_time(facts.get("time")),
        title=read_text(facts.get("name")) or None,
    )
    return session


class _StepReader:
    """Reads the messages of one conversation."""

    def __init__(self, session: SourceSession, put: Put, model: str) -> None:
        self.session, self.put, self.model = session, put, model
        self.calls = CallBinder()

    def read(self, lines: Iterable[bytes]) -> Iterator[SourceStep]:
        """Yield a step for each message."""
        newest = ROOT
        ids = ReadIds(self.session)
        for line in lines:
            value = decode_object(line)
            if value is None:
                self.session.damaged += bool(line.strip())
                continue
            if "llm_session" in value:
                continue
            identity = read_text(value.get("llm_message")) or None
            if ids.is_repeated(identity):
                continue
            turn = read_object(value.get("turn"))
            payloads = tuple(self._convert(value, turn))
            parent = read_text(value.get("parent")) or ROOT
            time = read_time(turn.get("datetime_utc"))
            yield SourceStep(identity, parent if identity else newest, time, payloads)
            newest = identity or newest

    def _convert(self, value: WireObject, turn: WireObject) -> Iterator[Payload]:
        role, parts = (
            read_text(value.get("role")),
            [read_object(part) for part in read_list(value.get("parts"))],
        )
        if role not in {"user", "assistant", "system", "tool"}:
            yield self.session.keep_whole(role or "message", value)
            return
        if role == "assistant":
            yield self._read_answer(parts, turn)
        for part in parts:
            if part.get("type") == _RESULT:
                yield self._read_result(part)
        blocks = tuple(self._read_block(part) for part in parts if part.get("type") != _RESULT)
        if role == "system":
            yield Context("system", "system", blocks or (Text(""),))
        elif role == "user" and (blocks or not parts):
            yield User(blocks or (Text(""),))

    def _read_answer(self, parts: list[WireObject], turn: WireObject) -> Assistant:
        self.calls.begin_answer(encode_json(parts))
        blocks = tuple(self._read_block(part) for part in parts if part.get("type") != _RESULT)
        calls = any(part.get("type") == "tool_call" for part in parts)
        sent, received = read_count(turn.get("input_tokens")), read_count(turn.get("output_tokens"))
        return Assistant(
            blocks,
            provider=TOOL,
            model=read_text(turn.get("resolved_model"))
            or read_text(turn.get("model"))
            or self.model,
            stop_reason="tool_calls" if calls else "stop",
            usage=Usage(input=sent, output=received, total=sent + received),
        )

    def _read_block(self, part: WireObject) -> Block:
        match part.get("type"):
            case "text":
                return Text(to_plain_text(part.get("text") or ""))
            case "reasoning":
                meta = part.get("provider_metadata")
                return Thinking(
                    to_plain_text(part.get("text") or ""),
                    redacted=bool(part.get("redacted")),
                    wire=pack_raw(meta) if meta else NO_JSON,
                )
            case "tool_call":
                identity, name = part.get("tool_call_id"), to_plain_text(part.get("name") or "")
                ours = self.calls.call(identity if isinstance(identity, str) else None, name)
                rest = {"id": identity} if isinstance(identity, str) else {}
                return build_tool_call(ours, name, part.get("arguments"), rest)
            case "attachment":
                return self._read_attachment(part.get("attachment"))
        return Opaque(raw=pack_raw(part))

    def _read_attachment(self, value: Any) -> Block:
        attachment = read_object(value)
        url = read_text(attachment.get("url"))
        if content := read_text(attachment.get("content")):
            mime = read_text(attachment.get("type")) or "application/octet-stream"
            url = f"data:{mime};base64,{content}"
        block = to_file_block_from_url(url, self.put, {}) if url else None
        if block is None and (path := read_text(attachment.get("path"))):
            return Text(f"[file {path}]")
        return block or Opaque(raw=pack_raw(attachment))

    def _read_result(self, part: WireObject) -> ToolResult:
        identity, name = part.get("tool_call_id"), read_text(part.get("name")) or None
        call = self.calls.result(identity if isinstance(identity, str) else None, name)
        pictures = [
            self._read_attachment(attachment) for attachment in read_list(part.get("attachments"))
        ]
        failed = bool(part.get("exception"))
        blocks = (Text(to_plain_text(part.get("output") or "")), *pictures)
        return ToolResult(call.id, call.name or name or "", blocks, failed)


_TURN = ("model", "resolved_model", "input_tokens", "output_tokens", "datetime_utc")


def _read_database(database: sqlite3.Connection, session: str, _file: Path) -> list[bytes] | None:
    conversation = read_session_row(database, "conversations", session)
    if has_table(database, "threads"):
        thread = read_session_row(database, "threads", session)
        if thread is not None:
            facts = {"llm_session": session, "name": thread["name"], "time": thread["datetime_utc"]}
            return [encode_json(row) for row in (facts, *_list_messages(database, session))]
    if conversation is None:
        return None
    facts = {"llm_session": session, "name": conversation["name"], "model": conversation["model"]}
    return [encode_json(row) for row in (facts, *_list_responses(database, session))]


def _list_messages(database: sqlite3.Connection, thread: str) -> Iterator[WireObject]:
    """Yield the messages that turns of a thread ended with, each after its parent."""
    turns, _ = select_objects(
        database, "SELECT * FROM turns WHERE thread_id = ? ORDER BY datetime_utc, id", thread
    )
    seen: set[str] = set()
    for turn in turns:
        chain: list[WireObject] = []
        digest = turn["tip_message_hash"]
        while digest is not None and digest not in seen:
            seen.add(digest)
            rows, _ = select_objects(database, "SELECT * FROM messages WHERE hash = ?", digest)
            chain += rows
            digest = rows[0]["parent_hash"] if rows else None
        for message in reversed(chain):
            is_tip = message["hash"] == turn["tip_message_hash"]
            yield {
                "llm_message": message["hash"],
                "parent": message["parent_hash"],
                "role": message["role"],
                "parts": _list_parts(database, message["hash"]),
                "turn": {name: turn[name] for name in _TURN} if is_tip else None,
            }


def _list_parts(database: sqlite3.Connection, message: str) -> list[WireObject]:
    """Return the parts of a message, with the fragments and attachments that they name."""
    rows, _ = select_objects(
        database, "SELECT * FROM parts WHERE message_hash = ? ORDER BY position", message
    )
    parts = []
    for row in rows:
        part: WireObject = msgspec.json.decode(row["payload"]) if row["payload"] else {}
        part["type"] = row["type"]
        if row["text"] is not None:
            part["text"] = row["text"]
        for piece in part.pop("text_ref", ()):
            literal = piece.get("literal")
            text = _find_fragment(database, piece["fragment"]) if literal is None else literal
            part["text"] = part.get("text", "") + text
        if isinstance(part.get("attachment"), dict):
            part["attachment"] = _read_attachment(database, part["attachment"].get("id"))
        if isinstance(part.get("attachments"), list):
            names = [attachment.get("id") for attachment in part["attachments"]]
            part["attachments"] = [_read_attachment(database, name) for name in names]
        parts.append(part)
    return parts


def _find_fragment(database: sqlite3.Connection, fragment: object) -> str:
    row = database.execute("SELECT content FROM fragments WHERE id = ?", (fragment,)).fetchone()
    return str(row[0]) if row else ""


def _read_attachment(database: sqlite3.Connection, identity: object) -> WireObject:
    rows, _ = select_objects(database, "SELECT * FROM attachments WHERE id = ?", identity)
    if not rows:
        return {}
    content = rows[0].pop("content")
    if isinstance(content, bytes):
        rows[0]["content"] = b64encode(content).decode()
    return rows[0]


def _list_responses(database: sqlite3.Connection, conversation: str) -> Iterator[WireObject]:
    """Yield the prompt and the answer of each response of an older conversation."""
    rows, _ = select_objects(
        database,
        "SELECT * FROM responses WHERE conversation_id = ? ORDER BY datetime_utc, id",
        conversation,
    )
    parent = system = ""
    for row in rows:
        prompt = [
            {"type": "tool_result", **result}
            for result in _select_of(database, "tool_results", row["id"])
        ]
        words = [
            *(_find_fragment(database, fragment["fragment_id"])
              for fragment in _select_of(database, "prompt_fragments", row["id"])),
            row["prompt"] or "",
        ]  # fmt: skip
        text = "\n".join(filter(None, words))
        prompt += [{"type": "text", "text": text}] if text or not prompt else []
        prompt += [
            {
                "type": "attachment",
                "attachment": _read_attachment(database, attachment["attachment_id"]),
            }
            for attachment in _select_of(database, "prompt_attachments", row["id"])
        ]
        answer: list[WireObject] = []
        if row.get("reasoning"):
            answer.append({"type": "reasoning", "text": row["reasoning"]})
        answer.append({"type": "text", "text": row["response"] or ""})
        for call in _select_of(database, "tool_calls", row["id"]):
            arguments = msgspec.json.decode(call["arguments"])
            answer.append({"type": "tool_call", **call, "arguments": arguments})
        turn = {name: row.get(name) for name in _TURN}
        steps: list[tuple[str, list[WireObject], WireObject | None]] = [
            ("user", prompt, None),
            ("assistant", answer, turn),
        ]
        if row["system"] and row["system"] != system:
            system = row["system"]
            steps.insert(0, ("system", [{"type": "text", "text": system}], None))
        for role, parts, model_call in steps:
            name = f"{row['id']}:{role}"
            message = {"llm_message": name, "parent": parent, "role": role, "parts": parts}
            yield {**message, "turn": model_call}
            parent = name


def _select_of(database: sqlite3.Connection, table: str, response: str) -> list[WireObject]:
    """Return the rows of a table that belong to a response, in their order."""
    if not has_table(database, table):
        return []
    order = "id" if table.startswith("tool_") else '"order"'
    query = f"SELECT * FROM {table} WHERE response_id = ? ORDER BY {order}"  # noqa: S608
    return select_objects(database, query, response)[0]


DATABASE = SessionDatabase("conversations", "model", _read_database, also="threads")
