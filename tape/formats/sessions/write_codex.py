"""One branch of a tape → a rollout that Codex lists, reads and resumes.

Codex keeps two logs in one file: what its model was sent (`response_item`), and what happened for
people (`event_msg`). Its own reader shows the second, so both are written:

    entry           response_item                     event_msg
    --------------  --------------------------------  -------------------------------------------
    user            message                           user_message
    context         message                           –
    assistant       reasoning, message, call          agent_reasoning, agent_message, token_count
    tool.result     output                            exec_command_end, for commands
    model, meta     – (`turn_context`)                –
    anchor          – (`compacted`)                   context_compacted
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...model.entries import (
    Anchor,
    Assistant,
    Meta,
    Model,
    Start,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    User,
    join_texts,
    select_tool_calls,
)
from ...model.summary import render_summary
from ..encoder import CallIds
from ..openai_responses.emit import OpenAIResponsesOptions, build_encoder
from ..wire import build_argument_object, encode_json, unpack_raw
from .outline import shorten_time, to_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.line import Entry
    from ..wire import WireObject
    from .outline import TapeOutline

_VERSION = "0.169.0"
"""The version of Codex whose files these are like."""
_COMMAND_FIELDS = ("command", "cmd")


def write_session(tape: TapeOutline) -> Iterator[bytes]:
    """Yield the lines of the rollout, without newlines."""
    yield from map(encode_json, _Writer(tape).build_lines())


class _Writer:
    def __init__(self, tape: TapeOutline) -> None:
        self.tape, self.cwd = tape, tape.cwd
        options = OpenAIResponsesOptions(verbatim=True, stored=True, thinking_as_text=False)
        self.style = build_encoder(options, tape.load).form
        self.ids = CallIds(self.style.ids)
        self.model = self.effort = ""
        self.calls: dict[str, ToolCall] = {}
        self.total = [0, 0, 0, 0, 0]
        """Tokens so far: input, cached, output, reasoning, all."""

    def build_lines(self) -> Iterator[WireObject]:
        yield self._wrap(self.tape.created, "session_meta", self._build_meta())
        for entry, _ in self.tape.entries:
            for kind, payload in self._build_payloads(entry):
                yield self._wrap(entry.time, kind, payload)

    def _wrap(self, time: str, kind: str, payload: WireObject) -> WireObject:
        return {"timestamp": shorten_time(time), "type": kind, "payload": payload}

    def _build_meta(self) -> WireObject:
        return {
            "id": self.tape.uuid,
            "timestamp": shorten_time(self.tape.created),
            "cwd": self.tape.cwd,
            "originator": "codex_cli_rs",
            "cli_version": _VERSION,
            "source": "cli",
            "model_provider": "openai",
            **({"git": {"branch": self.tape.git_branch}} if self.tape.git_branch else {}),
        }

    def _build_payloads(self, entry: Entry) -> Iterator[tuple[str, WireObject]]:
        data = entry.data
        match data:
            case Start(cwd=str(cwd)) | Meta(cwd=str(cwd)):
                self.cwd = cwd
            case Model():
                yield from self._name_model(data.model, data.effort or "")
            case Anchor():
                text = data.summary
                text = render_summary(text)
                yield "compacted", {"message": text}
                yield "event_msg", {"type": "context_compacted"}
            case User():
                yield from self._build_items(entry)
                text = join_texts(data.content)
                yield "event_msg", {"type": "user_message", "message": text, "images": []}
            case Assistant():
                yield from self._build_answer(entry, data)
            case ToolResult():
                yield from self._build_items(entry)
                yield from self._build_command_end(data)
            case _:
                yield from self._build_items(entry)

    def _build_items(self, entry: Entry) -> Iterator[tuple[str, WireObject]]:
        message = to_message(entry.data)
        if message is None:
            return
        for part in self.style.parts(message, self.ids):
            item = part.value
            if "role" in item:
                item = {"type": "message", **item, "content": _list_texts(item)}
            yield "response_item", item

    def _build_answer(self, entry: Entry, said: Assistant) -> Iterator[tuple[str, WireObject]]:
        yield from self._name_model(said.model, self.effort)
        self.ids.begin_answer()
        for call in select_tool_calls(said.content):
            self.calls[call.id] = call
        for block in said.content:
            if isinstance(block, Thinking) and block.text:
                yield "event_msg", {"type": "agent_reasoning", "text": block.text}
                if not unpack_raw(block.wire).get("encrypted_content"):
                    summary = [{"type": "summary_text", "text": block.text}]
                    yield "response_item", {"type": "reasoning", "summary": summary}
            elif isinstance(block, Text) and block.text:
                event = {"type": "agent_message", "message": block.text}
                yield "event_msg", event
        yield from self._build_items(entry)
        usage = said.usage
        cached = (usage.cache_read or 0) + (usage.cache_write or 0)
        given = usage.input + cached
        last = [given, usage.cache_read or 0, usage.output, usage.reasoning or 0]
        counts = [*last, given + usage.output]
        self.total = [one + more for one, more in zip(self.total, counts, strict=True)]
        info = {
            "total_token_usage": _name_counts(self.total),
            "last_token_usage": _name_counts(counts),
            "model_context_window": None,
        }
        yield "event_msg", {"type": "token_count", "info": info, "rate_limits": None}

    def _name_model(self, model: str, effort: str) -> Iterator[tuple[str, WireObject]]:
        """Yield the settings of a turn, where they change."""
        if not model or (model, effort) == (self.model, self.effort):
            return
        self.model, self.effort = model, effort
        yield (
            "turn_context",
            {
                "cwd": self.cwd,
                "approval_policy": "on-request",
                "sandbox_policy": {"type": "workspace-write"},
                "model": model,
                **({"effort": effort} if effort else {}),
                "summary": "auto",
            },
        )

    def _build_command_end(self, result: ToolResult) -> Iterator[tuple[str, WireObject]]:
        """Yield what happened for people, if the call was a command."""
        call = self.calls.get(result.call_id)
        given = build_argument_object(call) if call is not None and call.args else {}
        fields = unpack_raw(given) if not isinstance(given, dict) else given
        command = next((fields[name] for name in _COMMAND_FIELDS if name in fields), None)
        if command is None or call is None:
            return
        text = join_texts(result.content)
        words = command if isinstance(command, list) else ["bash", "-lc", str(command)]
        yield (
            "event_msg",
            {
                "type": "exec_command_end",
                "call_id": call.id,
                "turn_id": call.id,
                "command": [str(word) for word in words],
                "cwd": self.cwd,
                "parsed_cmd": [],
                "source": "agent",
                "stdout": text,
                "stderr": "",
                "aggregated_output": text,
                "exit_code": 1 if result.is_error else 0,
                "duration": {"secs": result.duration_ms // 1000, "nanos": 0},
                "formatted_output": text,
                "status": "failed" if result.is_error else "completed",
            },
        )


def _list_texts(item: WireObject) -> list[WireObject]:
    """Return the content of a message as a list, as Codex has it."""
    content = item["content"]
    if not isinstance(content, str):
        return list(content)
    kind = "output_text" if item["role"] == "assistant" else "input_text"
    return [{"type": kind, "text": content}]


def _name_counts(counts: list[int]) -> WireObject:
    names = (
        *("input_tokens", "cached_input_tokens", "output_tokens"),
        *("reasoning_output_tokens", "total_tokens"),
    )
    return dict(zip(names, counts, strict=True))
