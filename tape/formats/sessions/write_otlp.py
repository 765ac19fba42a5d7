"""One branch of a tape → spans of OpenTelemetry as OTLP JSON, with the conventions for GenAI.

entry             span
----------------  -----------------------------------------------------------------------
user              `invoke_agent PROGRAM`, a trace of its own up to the next prompt
assistant         `chat MODEL`, below it; ends at the entry's time, lasts `duration_ms`
tool.result       `execute_tool NAME`, below it; of a call on the branch
usage             `chat MODEL`, such as for a title
anything else     nothing

All traces of a tape name it as `gen_ai.conversation.id`. What was said is written only if it is
asked for: a chat then has the messages that are new since the one before it, not the whole history
again. The conventions are in development: the scope names the version that is written.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ...clock import parse_timestamp
from ...model.entries import (
    Anchor,
    Assistant,
    Context,
    Image,
    SideUsage,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    User,
    join_texts,
    select_tool_calls,
)
from ...model.summary import render_summary
from ..wire import build_decoded_arguments, encode_json, load_base64

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.entries import Content, Cost, Usage
    from ...model.line import Entry
    from ..wire import WireObject
    from .outline import TapeOutline

CONVENTIONS = "semantic-conventions-genai v0.1.0"
SCOPE = "tape"
_INTERNAL, _CLIENT = 1, 3
_ERROR = 2
_FINISH = {"tool_calls": "tool_call"}
_PROVIDERS = {"google": "gcp.gemini", "bedrock": "aws.bedrock", "mistral": "mistral_ai"}


def write_session(tape: TapeOutline) -> Iterator[bytes]:
    """Yield the one line of the document; what was said only where `tape.with_content` says so."""
    program, _, version = tape.program.partition("/")
    spans = _Spans(tape, program)
    for entry, _ in tape.entries:
        spans.add_entry(entry)
    spans.end_turn()
    resource = {
        "service.name": program,
        "service.version": version,
        "process.working_directory": tape.cwd,
        "tape.title": (tape.title or "") if tape.with_content else "",
    }
    facts = {
        "tape.repository": tape.repository,
        "tape.person": tape.person,
        "host.name": tape.machine,
    }
    resource |= {name: fact for name, fact in facts.items() if fact is not None}
    scope = {"name": SCOPE, "attributes": _list_attributes({"tape.conventions": CONVENTIONS})}
    document = {
        "resourceSpans": [
            {
                "resource": {"attributes": _list_attributes(resource)},
                "scopeSpans": [{"scope": scope, "spans": spans.spans}],
            }
        ]
    }
    yield encode_json(document)


class _Spans:
    """The spans so far, in the order in which they began to be written."""

    def __init__(self, tape: TapeOutline, program: str) -> None:
        self.tape, self.program = tape, program
        self.spans: list[WireObject] = []
        self._turn: WireObject | None = None
        self._unsent: list[WireObject] = []
        """Messages that no chat has had."""
        self._calls: dict[str, ToolCall] = {}

    def add_entry(self, entry: Entry) -> None:
        """Add what an entry says."""
        match entry.data:
            case User(content=content):
                self.end_turn()
                self._begin_turn(entry)
                self._add_message("user", self._build_parts(content))
            case Context(role=role, content=content):
                self._add_message(role, self._build_parts(content))
            case Anchor(summary=summary):
                text = {"type": "text", "content": render_summary(summary)}
                self._add_message("user", [text])
            case Assistant() as said:
                self._add_chat(entry, said)
            case SideUsage() as side:
                counts = _name_usage(side.usage, side.cost)
                names = {"gen_ai.request.model": side.model, "tape.purpose": side.purpose}
                self._add_span(entry, "chat", side.model, 0, _name_provider(side) | names | counts)
            case ToolResult() as result:
                self._add_tool(entry, result)

    def _begin_turn(self, entry: Entry) -> WireObject:
        facts = {"gen_ai.agent.name": self.program, "tape.branch": self.tape.branch}
        self._turn = None
        self._turn = self._add_span(entry, "invoke_agent", self.program, 0, facts)
        return self._turn

    def end_turn(self) -> None:
        """Give the span of the turn what no chat had, which is then its input."""
        if self._turn is not None and self._unsent:
            self._turn["attributes"] += _list_attributes(self._take_messages())

    def _add_message(self, role: str, parts: list[WireObject]) -> None:
        self._unsent.append({"role": role, "parts": parts})

    def _take_messages(self) -> WireObject:
        messages, self._unsent = self._unsent, []
        return {"gen_ai.input.messages": messages} if self.tape.with_content and messages else {}

    def _add_chat(self, entry: Entry, reply: Assistant) -> None:
        calls = select_tool_calls(reply.content)
        self._calls |= {call.id: call for call in calls}
        finish = _FINISH.get(reply.stop_reason, reply.stop_reason)
        facts: WireObject = {
            **_name_provider(reply),
            "gen_ai.request.model": reply.model,
            "gen_ai.response.model": reply.model,
            "gen_ai.response.id": reply.response_id,
            "gen_ai.response.finish_reasons": [finish],
            **_name_usage(reply.usage, reply.cost),
            **self._take_messages(),
        }
        if self.tape.with_content:
            parts = self._build_parts(reply.content)
            answer = {"role": "assistant", "parts": parts, "finish_reason": finish}
            facts["gen_ai.output.messages"] = [answer]
        if reply.error is not None:
            facts["error.type"] = reply.error.kind
        span = self._add_span(entry, "chat", reply.model, reply.duration_ms, facts)
        if reply.error is not None:
            span["status"] = {"code": _ERROR, "message": reply.error.message}

    def _add_tool(self, entry: Entry, result: ToolResult) -> None:
        text = join_texts(result.content)
        answer: WireObject = {"type": "tool_call_response", "id": result.call_id, "response": text}
        if result.is_error:
            answer["is_error"] = True
        files = [part for part in self._build_parts(result.content) if part["type"] != "text"]
        self._add_message("tool", [answer, *files])
        call = self._calls.get(result.call_id)
        facts: WireObject = {
            "gen_ai.tool.name": result.name,
            "gen_ai.tool.call.id": result.call_id,
            "gen_ai.tool.type": "function",
        }
        if self.tape.with_content:
            facts["gen_ai.tool.call.arguments"] = build_decoded_arguments(call) if call else {}
            facts["gen_ai.tool.call.result"] = text
        if result.is_error:
            facts["error.type"] = "tool_error"
        span = self._add_span(entry, "execute_tool", result.name, result.duration_ms, facts)
        if result.is_error:
            span["status"] = {"code": _ERROR}

    def _add_span(
        self, entry: Entry, operation: str, name: str, lasted: int, facts: WireObject
    ) -> WireObject:
        """Add a span that ends at an entry, `lasted` ms long; the turn ends no earlier."""
        end = parse_timestamp(entry.time) * 1000
        times = {
            "startTimeUnixNano": str(end - lasted * 1_000_000),
            "endTimeUnixNano": str(end),
        }
        general = {
            "gen_ai.operation.name": operation,
            "gen_ai.conversation.id": self.tape.id,
            "tape.entry": entry.id,
        }
        turn = self._turn
        span = {
            "traceId": turn["traceId"] if turn else _hash_text(f"trace {entry.id}", 32),
            "spanId": _hash_text(f"span {entry.id}", 16),
            **({"parentSpanId": turn["spanId"]} if turn else {}),
            "name": f"{operation} {name}".rstrip(),
            "kind": _CLIENT if operation == "chat" else _INTERNAL,
            **times,
            "attributes": _list_attributes({**general, **facts}),
        }
        if turn is not None:
            turn["endTimeUnixNano"] = str(end)
        self.spans.append(span)
        return span

    def _build_parts(self, content: Content) -> list[WireObject]:
        parts: list[WireObject] = []
        for block in content:
            match block:
                case Text(text=text):
                    parts.append({"type": "text", "content": text})
                case Thinking(text=text) if text:
                    parts.append({"type": "reasoning", "content": text})
                case ToolCall(id=identity, name=name):
                    arguments = build_decoded_arguments(block)
                    call = {
                        "type": "tool_call",
                        "id": identity,
                        "name": name,
                        "arguments": arguments,
                    }
                    parts.append(call)
                case Image(blob=blob, mime=mime) if self.tape.with_content:
                    data = load_base64(blob, self.tape.load)
                    blob_part = {"type": "blob", "modality": "image", "mime_type": mime}
                    parts += [] if data is None else [{**blob_part, "content": data}]
        return parts


def _name_provider(source: Assistant | SideUsage) -> WireObject:
    return {"gen_ai.provider.name": _PROVIDERS.get(source.provider, source.provider)}


def _name_usage(usage: Usage, cost: Cost | None) -> WireObject:
    """Return the tokens of a call: those that were cached are part of the input."""
    cached = (usage.cache_read or 0) + (usage.cache_write or 0)
    return {
        "gen_ai.usage.input_tokens": usage.input + cached,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
        "tape.cost_usd": cost.amount if cost else None,
    }


def _hash_text(text: str, digits: int) -> str:
    return sha256(text.encode()).hexdigest()[:digits]


def _list_attributes(facts: WireObject) -> list[WireObject]:
    """Return attributes as OTLP has them; those without a value are left out."""
    return [
        {"key": key, "value": _wrap_value(value)}
        for key, value in facts.items()
        if value is not None and value != ""
    ]


def _wrap_value(value: Any) -> WireObject:
    """Return a value: messages and arguments as JSON in a string, as spans carry them."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case list() if all(isinstance(item, str) for item in value):
            return {"arrayValue": {"values": [_wrap_value(item) for item in value]}}
        case _:
            return {"stringValue": encode_json(value).decode()}
