"""Spans of OpenTelemetry as OTLP JSON, with the conventions for GenAI, → steps.

    span                     becomes
    -----------------------  --------------------------------------------------------------------
    chat                     its input messages that no chat before it had; then an answer
    invoke_agent             its input messages, where no chat had them
    anything else            nothing: what a tool returned is a message of the next chat

Spans without content give answers without words, with their tokens. Where each chat repeats the
history, as most programs write it, messages that were read before are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...model.entries import (
    Assistant,
    Context,
    Cost,
    Failure,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    User,
)
from ..parsing import CallBinder, build_tool_call, to_file_block, to_plain_text
from ..wire import decode_json, encode_json, pack_raw
from .steps import (
    NEWEST,
    ReadIds,
    SourceSession,
    SourceStep,
    decode_object,
    read_count,
    read_list,
    read_object,
    read_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ...model.entries import Block, Payload
    from ..wire import Put, WireObject

TOOL = "otlp"
_STOPS = {"tool_call": "tool_calls", "length": "length", "content_filter": "content_filter"}
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is an export of spans."""
    return isinstance(value.get("resourceSpans"), list)


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session in an export of spans; `name` is that of the file."""
    document = decode_object(b"\n".join(read_lines())) or {}
    resource: WireObject = {}
    spans: list[tuple[WireObject, WireObject]] = []
    for group in map(read_object, read_list(document.get("resourceSpans"))):
        resource |= _read_attributes(read_object(group.get("resource")))
        for scope in map(read_object, read_list(group.get("scopeSpans"))):
            objects = map(read_object, read_list(scope.get("spans")))
            spans += [(span, _read_attributes(span)) for span in objects]
    ids = (read_text(facts.get("gen_ai.conversation.id")) for _, facts in spans)

    def read_steps(put: Put) -> Iterator[SourceStep]:
        return _SpanReader(session, put).read(spans)

    session = SourceSession(
        TOOL,
        "otlp-json",
        next(filter(None, ids), name),
        read_steps,
        cwd=read_text(resource.get("process.working_directory")) or None,
        created=_read_moment(spans[0][0], "startTimeUnixNano") if spans else None,
        title=read_text(resource.get("tape.title")) or None,
        repository=read_text(resource.get("tape.repository")) or None,
        person=read_text(resource.get("tape.person")) or None,
        machine=read_text(resource.get("host.name")) or None,
    )
    return session


def _read_attributes(holder: WireObject) -> WireObject:
    values: WireObject = {}
    for attribute in map(read_object, read_list(holder.get("attributes"))):
        values[read_text(attribute.get("key"))] = _read_value(read_object(attribute.get("value")))
    return values


def _read_value(value: WireObject) -> Any:
    """Return a value of OTLP: integers are written as strings."""
    match value:
        case {"intValue": str(digits)}:
            return int(digits) if digits.lstrip("-").isdecimal() else digits
        case {"arrayValue": {"values": list(values)}}:
            return [_read_value(read_object(item)) for item in values]
        case _:
            return next(iter(value.values()), None)


def _read_moment(span: WireObject, name: str) -> int | None:
    """Return microseconds since 1970."""
    text = str(span.get(name))
    return int(text) // 1000 if text.isdecimal() and 0 < int(text) < 1 << 63 else None


class _SpanReader:
    """Reads the spans of one conversation."""

    def __init__(self, session: SourceSession, put: Put) -> None:
        self.session, self.put = session, put
        self.calls = CallBinder()
        self._seen: list[bytes] = []
        """Messages so far, as JSON, without what only some spans say of them."""

    def read(self, spans: list[tuple[WireObject, WireObject]]) -> Iterator[SourceStep]:
        """Yield a step for each chat, and for each message before it."""
        ids = ReadIds(self.session)
        for number, (span, facts) in enumerate(spans):
            if ids.is_repeated(span.get("spanId")):
                continue
            operation = read_text(facts.get("gen_ai.operation.name"))
            if operation not in {"chat", "invoke_agent"}:
                continue
            start, end = (_read_moment(span, f"{edge}TimeUnixNano") for edge in ("start", "end"))
            for place, payloads in enumerate(self._read_input(facts)):
                yield SourceStep(f"#{number}.{place}", NEWEST, start, tuple(payloads))
            if operation == "chat":
                lasted = ((end or 0) - (start or 0)) // 1000
                answer = self._read_answer(span, facts, max(lasted, 0))
                yield SourceStep(f"#{number}", NEWEST, end, (answer,))

    def _read_input(self, facts: WireObject) -> Iterator[list[Payload]]:
        messages = [read_object(message) for message in _read_json_list(facts.get(_INPUT))]
        keys = [_build_key(message) for message in messages]
        known = len(self._seen) if keys[: len(self._seen)] == self._seen else 0
        for message, key in zip(messages[known:], keys[known:], strict=True):
            self._seen.append(key)
            yield [*self._convert_message(message)]

    def _convert_message(self, message: WireObject) -> Iterator[Payload]:
        role, parts = read_text(message.get("role")), read_list(message.get("parts"))
        blocks: list[Block] = []
        results: list[ToolResult] = []
        for part in map(read_object, parts):
            if part.get("type") == "tool_call_response":
                identity = part.get("id")
                call = self.calls.result(identity if isinstance(identity, str) else None)
                text = to_plain_text(part.get("response", part.get("result", "")))
                is_error = part.get("is_error") is True
                results.append(ToolResult(call.id, call.name, (Text(text),), is_error))
            else:
                blocks.append(self._read_part(part))
        if results:
            *others, last = results
            yield from others
            content = (*last.content, *blocks)
            yield ToolResult(last.call_id, last.name, content, last.is_error)
        elif role == "user":
            yield User(tuple(blocks) or (Text(""),))
        elif role == "assistant":
            yield Assistant(tuple(blocks))
        else:
            yield Context(role or "user", "otlp", tuple(blocks))

    def _read_part(self, part: WireObject) -> Block:
        match part:
            case {"type": "text", "content": str(text)}:
                return Text(text)
            case {"type": "reasoning", "content": str(text)}:
                return Thinking(text)
            case {"type": "tool_call", "name": name}:
                identity, called = part.get("id"), to_plain_text(name)
                ours = self.calls.call(identity if isinstance(identity, str) else None, called)
                return build_tool_call(ours, called, part.get("arguments"), {})
            case {"type": "blob", "content": data, "mime_type": mime}:
                file = to_file_block(data, mime, self.put, {})
                return file or Opaque(raw=pack_raw(part))
            case _:
                return Opaque(raw=pack_raw(part))

    def _read_answer(self, span: WireObject, facts: WireObject, lasted: int) -> Assistant:
        self.calls.begin_answer(encode_json(span))
        blocks: list[Block] = []
        for message in map(read_object, _read_json_list(facts.get(_OUTPUT))):
            self._seen.append(_build_key(message))
            blocks += map(self._read_part, map(read_object, read_list(message.get("parts"))))
        has_calls = any(isinstance(block, ToolCall) for block in blocks)
        reasons = read_list(facts.get("gen_ai.response.finish_reasons"))
        stop = read_text(reasons[0]) if reasons else ""
        error, cost = read_text(facts.get("error.type")), facts.get("tape.cost_usd")
        why = read_text(read_object(span.get("status")).get("message"))
        return Assistant(
            content=tuple(blocks),
            provider=read_text(facts.get("gen_ai.provider.name")),
            model=read_text(
                facts.get("gen_ai.response.model") or facts.get("gen_ai.request.model")
            ),
            stop_reason="error"
            if error
            else _STOPS.get(stop, "tool_calls" if has_calls else "stop"),
            raw_stop=stop or None,
            usage=_read_usage(facts),
            cost=Cost("USD", float(cost)) if isinstance(cost, int | float) else None,
            response_id=read_text(facts.get("gen_ai.response.id")) or None,
            duration_ms=lasted,
            error=Failure(error, why) if error else None,
        )


def _read_json_list(value: Any) -> list[Any]:
    """Return messages, which spans carry as JSON in a string."""
    if isinstance(value, str):
        try:
            value = decode_json(value)
        except ValueError:
            return []
    return read_list(value)


def _build_key(message: WireObject) -> bytes:
    return encode_json([message.get("role"), message.get("parts")])


def _read_usage(facts: WireObject) -> Usage:
    """Return the tokens of a chat: `input_tokens` has those that were cached."""
    named = {
        name: read_count(facts.get(f"gen_ai.usage.{name}"))
        for name in (
            "input_tokens", "output_tokens", "cache_read.input_tokens",
            "cache_creation.input_tokens", "reasoning.output_tokens",
        )
    }  # fmt: skip
    sent, received, reads, writes, thoughts = named.values()
    return Usage(
        input=max(sent - reads - writes, 0),
        output=received,
        reasoning=thoughts or None,
        cache_read=reads or None,
        cache_write=writes or None,
        total=sent + received,
    )
