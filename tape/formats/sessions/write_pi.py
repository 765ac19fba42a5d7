"""A tape → a session file of pi, version 3, with every branch, label and compaction.

entry            entry of pi
---------------  -----------------------------------------------------------
user             message: user
assistant        message: assistant
tool.result      message: toolResult
context          custom_message, hidden
anchor           compaction, with the first entry that stays in view
model            model_change, and thinking_level_change for its effort
the title        session_info
a label          label
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from ...clock import parse_timestamp
from ...model.entries import (
    Anchor,
    Assistant,
    Context,
    Image,
    Model,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    User,
)
from ...model.summary import render_summary
from ..wire import (
    build_argument_object,
    describe_unsent,
    encode_json,
    get_provider_fields,
    load_bytes,
    unpack_raw,
)
from .outline import build_time_name, shorten_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.entries import Block, Content
    from ...model.line import Entry
    from ..wire import WireObject
    from .outline import TapeOutline

_APIS = {
    "anthropic-messages": "anthropic-messages",
    "openai-chat": "openai-completions",
    "openai-responses": "openai-responses",
    "google-generate": "google-generative-ai",
}
_STOPS = {"tool_calls": "toolUse", "length": "length", "error": "error", "aborted": "aborted"}
_ID_DIGITS = 16


def build_file_name(tape: TapeOutline) -> str:
    """Return where in its folder pi looks for a session."""
    project = tape.cwd.strip("/").replace("/", "-")
    return f"sessions/--{project}--/{build_time_name(tape.created)}_{tape.uuid}.jsonl"


def write_session(tape: TapeOutline) -> Iterator[bytes]:
    """Yield the lines of the session file, without newlines."""
    yield from map(encode_json, _Writer(tape).build_lines())


class _Writer:
    def __init__(self, tape: TapeOutline) -> None:
        self.tape = tape
        self.ends: dict[str, str | None] = {}
        """Entry → the id that what follows it names as its parent."""
        self.calls: dict[str, str] = {}
        """Our id of a call → the one that is written."""

    def build_lines(self) -> Iterator[WireObject]:
        time = shorten_time(self.tape.created)
        yield {
            "type": "session",
            "version": 3,
            "id": self.tape.uuid,
            "timestamp": time,
            "cwd": self.tape.cwd,
        }
        last: str | None = None
        for entry, before in self.tape.entries:
            parent = self.ends.get(before or "")
            for number, line in enumerate(self._build_lines(entry)):
                identity = entry.id[:_ID_DIGITS] + (f"-{number}" if number else "")
                kind = line.pop("type")
                head = {"type": kind, "id": identity, "parentId": parent}
                yield {**head, "timestamp": shorten_time(entry.time), **line}
                parent = last = identity
            self.ends[entry.id] = parent
        names = [
            {"type": "label", "targetId": self.ends[target], "label": label}
            for label, target in self.tape.labels.items()
            if self.ends.get(target)
        ]
        names += [{"type": "session_info", "name": self.tape.title}] if self.tape.title else []
        for number, line in enumerate(names):
            identity = f"name-{number}"
            yield {**line, "id": identity, "parentId": last, "timestamp": time}
            last = identity

    def _build_lines(self, entry: Entry) -> Iterator[WireObject]:
        data = entry.data
        stamp = parse_timestamp(entry.time) // 1000
        match data:
            case User():
                yield _build_message("user", self._build_content(data.content), stamp)
            case Context():
                content = self._build_content(data.content)
                more = {"customType": data.origin, "content": content, "display": False}
                yield {"type": "custom_message", **more}
            case Assistant():
                yield self._build_answer(data, stamp)
            case ToolResult():
                more = {
                    "toolCallId": self.calls.get(data.call_id, data.call_id),
                    "toolName": data.name,
                    "isError": data.is_error,
                    **({"details": data.details} if data.details else {}),
                }
                content = self._build_content(data.content)
                yield _build_message("toolResult", content, stamp, **more)
            case Model():
                names = {"provider": data.provider, "modelId": data.model}
                yield {"type": "model_change", **names}
                if data.effort:
                    yield {"type": "thinking_level_change", "thinkingLevel": data.effort}
            case Anchor():
                yield self._build_compaction(entry, data)

    def _build_compaction(self, entry: Entry, anchor: Anchor) -> WireObject:
        ends = (self.ends.get(kept_id) for kept_id in self.tape.list_kept(anchor))
        first = next(filter(None, ends), None)
        summary = anchor.summary
        return {
            "type": "compaction",
            "summary": render_summary(summary),
            "firstKeptEntryId": first or entry.id[:_ID_DIGITS],
            "tokensBefore": anchor.tokens.before if anchor.tokens else 0,
        }

    def _build_answer(self, answer: Assistant, stamp: int) -> WireObject:
        usage, cost = answer.usage, answer.cost.amount if answer.cost else 0
        return _build_message(
            "assistant",
            self._build_content(answer.content),
            stamp,
            api=_APIS.get(answer.api, answer.api),
            provider=answer.provider,
            model=answer.model,
            usage={
                "input": usage.input,
                "output": usage.output,
                "cacheRead": usage.cache_read or 0,
                "cacheWrite": usage.cache_write or 0,
                "totalTokens": usage.total,
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": cost},
            },
            stopReason=_STOPS.get(answer.stop_reason, "stop"),
            **({"errorMessage": answer.error.message} if answer.error else {}),
            **({"responseId": answer.response_id} if answer.response_id else {}),
        )

    def _build_content(self, content: Content) -> list[WireObject]:
        return [self._build_block(block) for block in content]

    def _build_block(self, block: Block) -> WireObject:  # noqa: PLR0911 (a table)
        match block:
            case Text():
                return {"type": "text", "text": block.text, **_get_fields(block)}
            case Thinking():
                fields = _get_fields(block)
                more = {"redacted": True} if block.redacted else {}
                return {"type": "thinking", "thinking": block.text, **more, **fields}
            case ToolCall():
                identity = unpack_raw(block.wire).get("id") if block.wire else None
                self.calls[block.id] = identity if isinstance(identity, str) else block.id
                arguments = build_argument_object(block)
                call = {"id": self.calls[block.id], "name": block.name, "arguments": arguments}
                return {"type": "toolCall", **call}
            case Image():
                data = load_bytes(block.blob, self.tape.load)
                if data is not None:
                    text = b64encode(data).decode()
                    return {"type": "image", "data": text, "mimeType": block.mime}
                return {"type": "text", "text": describe_unsent(block)}
            case Opaque():
                return unpack_raw(block.raw)
        return {"type": "text", "text": "[a file that pi cannot hold]"}


def _build_message(role: str, content: list[WireObject], stamp: int, **more: object) -> WireObject:
    return {"type": "message", "message": {"role": role, "content": content, **more,
                                           "timestamp": stamp}}  # fmt: skip


def _get_fields(block: Block) -> WireObject:
    """Return a provider's own fields, under the names that pi gives them."""
    fields = get_provider_fields(block, "")
    named = {"signature": "thinkingSignature"}
    return {named.get(key, key): value for key, value in fields.items() if key != "type"}
