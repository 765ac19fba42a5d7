"""Sessions of Goose, `~/.local/share/goose/sessions/*.jsonl` or rows of `sessions.db`, → steps.

A file begins with a header; each other line is a message. Since 1.20 both are rows of a database,
which `session_sources` reads as the same lines.

    message, block                becomes
    ----------------------------  -------------------------------------------------------------
    user, text and image          user
    user, `toolResponse`          the result of a call; `status` error is an error
    assistant                     an answer: thinking, words, `toolRequest` as calls
    another role or block         custom `goose.<type>`, whole
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...model.entries import Assistant, Text, Thinking, ToolResult, User
from ..parsing import CallBinder, build_tool_call, to_file_block, to_plain_text
from ..wire import encode_json
from .steps import (
    NEWEST,
    SourceSession,
    SourceStep,
    decode_object,
    read_list,
    read_object,
    read_text,
    read_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ...model.entries import Block, Payload
    from ..wire import Put, WireObject

TOOL = "goose"
FORMAT = "goose-session"


def is_goose_line(value: WireObject) -> bool:
    """Return whether an object is the header of a session, or a message with its time."""
    if "working_dir" in value:
        return "role" not in value
    is_timed = isinstance(value.get("created"), int) and isinstance(value.get("content"), list)
    return is_timed and value.get("role") in {"user", "assistant"}


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session in a file; `name` is the file's name without its ending."""
    header = next((v for line in read_lines() if (v := decode_object(line))), {})
    if "role" in header:
        header = {}
    config = read_object(header.get("model_config"))

    def read_steps(put: Put) -> Iterator[SourceStep]:
        made.damaged = 0
        model = read_text(config.get("model_name"))
        return _StepReader(made, put, read_text(header.get("provider_name")), model).read(
            read_lines()
        )

    made = SourceSession(
        TOOL,
        FORMAT,
        name,
        read_steps,
        cwd=read_text(header.get("working_dir")) or None,
        created=read_time(header.get("created_at")),
        title=read_text(header.get("description")) or None,
    )
    return made


class _StepReader:
    """Reads the messages of one session."""

    def __init__(self, session: SourceSession, put: Put, provider: str, model: str) -> None:
        self.session, self.put = session, put
        self.provider, self.model = provider, model
        self.calls = CallBinder()

    def read(self, lines: Iterable[bytes]) -> Iterator[SourceStep]:
        """Yield a step for each message."""
        for number, line in enumerate(lines):
            value = decode_object(line)
            if value is None:
                self.session.damaged += bool(line.strip())
            elif "role" in value:
                time = read_time(value.get("created"))
                yield SourceStep(f"#{number}", NEWEST, time, tuple(self._convert(value)))
            elif number:
                yield SourceStep(
                    f"#{number}", NEWEST, None, (self.session.keep_whole("line", value),)
                )

    def _convert(self, message: WireObject) -> Iterator[Payload]:
        role = message.get("role")
        if role not in {"user", "assistant"}:
            yield self.session.keep_whole(read_text(role) or "message", message)
            return
        self.calls.begin_answer(encode_json(message))
        blocks: list[Block] = []
        others: list[Payload] = []
        content = read_list(message.get("content"))
        for piece in map(read_object, content):
            if piece.get("type") == "toolResponse":
                yield self._read_result(piece)
            elif (block := self._read_block(piece)) is not None:
                blocks.append(block)
            else:
                others.append(self.session.keep_whole(read_text(piece.get("type")), piece))
        if role == "assistant" and blocks:
            has_calls = any(read_object(one).get("type") == "toolRequest" for one in content)
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
            case {"type": "thinking", "thinking": str(text)}:
                return Thinking(text)
            case {"type": "redactedThinking"}:
                return Thinking("", redacted=True)
            case {"type": "image"}:
                return to_file_block(piece.get("data"), piece.get("mimeType"), self.put, {})
            case {"type": "toolRequest"}:
                given, called = piece.get("id"), read_object(piece.get("toolCall"))
                asked = read_object(called.get("value"))
                name = to_plain_text(asked.get("name") or "")
                ours = self.calls.call(given if isinstance(given, str) else None, name)
                rest = {"id": given} if isinstance(given, str) else {}
                return build_tool_call(ours, name, asked.get("arguments"), rest)
        return None

    def _read_result(self, piece: WireObject) -> ToolResult:
        given, result = piece.get("id"), read_object(piece.get("toolResult"))
        call = self.calls.result(given if isinstance(given, str) else None)
        value = result.get("value")
        said = value.get("content") if isinstance(value, dict) else value
        blocks = [self._read_block(one) for one in map(read_object, read_list(said))]
        content = tuple(block for block in blocks if block is not None)
        if not content:
            content = (Text(to_plain_text(result.get("error") or said or "")),)
        failed = result.get("status") == "error" or read_object(value).get("isError") is True
        return ToolResult(call.id, call.name, content, failed)
