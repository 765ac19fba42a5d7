"""Conversations of Simon Willison's llm, `~/.config/io.datasette.llm/logs.db`, → steps.

`exchange/session_databases` gives a conversation as lines: {"llm_session", "name", "model"}, then a
line for each message, {"llm_message", "parent", "role", "parts", "turn"}. Their ids are the hashes
of the message store (0.36 and newer), so a conversation that went two ways is a tree; older rows of
`responses` are one after the other. `turn` is the model call that ended with the message.

    message, part                becomes
    ---------------------------  --------------------------------------------------------------
    user                         user
    assistant                    an answer: reasoning, words, calls; model and tokens of its turn
    system                       context
    tool; `tool_result`          the result of a call, with its pictures
    anything else                custom `llm.<role>`, whole
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    from collections.abc import Callable, Iterable, Iterator

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
        return _StepReader(made, put, read_text(facts.get("model"))).read(read_lines())

    made = SourceSession(
        TOOL,
        FORMAT,
        read_text(facts.get("llm_session")) or name,
        read_steps,
        created=read_time(facts.get("time")),
        title=read_text(facts.get("name")) or None,
    )
    return made


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
            [read_object(one) for one in read_list(value.get("parts"))],
        )
        if role not in {"user", "assistant", "system", "tool"}:
            yield self.session.keep_whole(role or "message", value)
            return
        if role == "assistant":
            yield self._read_answer(parts, turn)
        for part in parts:
            if part.get("type") == _RESULT:
                yield self._read_result(part)
        said = tuple(self._read_block(one) for one in parts if one.get("type") != _RESULT)
        if role == "system":
            yield Context("system", "system", said or (Text(""),))
        elif role == "user" and (said or not parts):
            yield User(said or (Text(""),))

    def _read_answer(self, parts: list[WireObject], turn: WireObject) -> Assistant:
        self.calls.begin_answer(encode_json(parts))
        blocks = tuple(self._read_block(one) for one in parts if one.get("type") != _RESULT)
        calls = any(one.get("type") == "tool_call" for one in parts)
        given, said = read_count(turn.get("input_tokens")), read_count(turn.get("output_tokens"))
        return Assistant(
            blocks,
            provider=TOOL,
            model=read_text(turn.get("resolved_model"))
            or read_text(turn.get("model"))
            or self.model,
            stop_reason="tool_calls" if calls else "stop",
            usage=Usage(input=given, output=said, total=given + said),
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
                given, name = part.get("tool_call_id"), to_plain_text(part.get("name") or "")
                ours = self.calls.call(given if isinstance(given, str) else None, name)
                rest = {"id": given} if isinstance(given, str) else {}
                return build_tool_call(ours, name, part.get("arguments"), rest)
            case "attachment":
                return self._read_attachment(part.get("attachment"))
        return Opaque(raw=pack_raw(part))

    def _read_attachment(self, value: Any) -> Block:
        given = read_object(value)
        url = read_text(given.get("url"))
        if content := read_text(given.get("content")):
            mime = read_text(given.get("type")) or "application/octet-stream"
            url = f"data:{mime};base64,{content}"
        found = to_file_block_from_url(url, self.put, {}) if url else None
        if found is None and (path := read_text(given.get("path"))):
            return Text(f"[file {path}]")
        return found or Opaque(raw=pack_raw(given))

    def _read_result(self, part: WireObject) -> ToolResult:
        given, name = part.get("tool_call_id"), read_text(part.get("name")) or None
        call = self.calls.result(given if isinstance(given, str) else None, name)
        pictures = [self._read_attachment(one) for one in read_list(part.get("attachments"))]
        failed = bool(part.get("exception"))
        blocks = (Text(to_plain_text(part.get("output") or "")), *pictures)
        return ToolResult(call.id, call.name or name or "", blocks, failed)
