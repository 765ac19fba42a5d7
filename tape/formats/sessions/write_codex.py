"""One branch of a tape → a rollout that Codex lists, reads and resumes.

Codex keeps two logs in one file: what its model was sent (`response_item`), and what happened for
people (`event_msg`). Its own reader shows the second, so both are written:

    entry           response_item                     event_msg
    --------------  --------------------------------  -------------------------------------------
    user            message                           task_started, user_message
    context         message                           –
    assistant       reasoning, message, call          agent_reasoning, agent_message, token_count
    tool.result     output                            exec_command_end, mcp_tool_call_end
    model, meta     – (`turn_context`)                –
    anchor          – (`compacted`)                   context_compacted

A turn lasts from a prompt to the next one, and Codex shows a call only within its turn: each event
of a call names it. It shows no call that has not ended, so one without a result, as after a kill,
ends with its turn. Calls other than commands are shown as those of a server with the name of the
program that ran them.
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
from .outline import build_time_name, format_uuid, shorten_time, to_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...model.line import Entry
    from ..wire import WireObject
    from .outline import TapeOutline

_VERSION = "0.169.0"
"""The version of Codex whose files these are like."""
_COMMAND_FIELDS = ("command", "cmd")


def build_file_name(tape: TapeOutline) -> str:
    """Return where in its folder Codex looks for a session."""
    day = tape.created[:10].replace("-", "/")
    return f"sessions/{day}/rollout-{build_time_name(tape.created)}-{tape.uuid}.jsonl"


def write_session(tape: TapeOutline) -> Iterator[bytes]:
    """Yield the lines of the rollout, without newlines."""
    yield from map(encode_json, _Writer(tape).build_lines())


class _Writer:
    def __init__(self, tape: TapeOutline) -> None:
        self.tape, self.cwd = tape, tape.cwd
        options = OpenAIResponsesOptions(verbatim=True, stored=True, thinking_as_text=False)
        self.style = build_encoder(options, tape.load).form
        self.ids = CallIds(self.style.ids)
        self.model = self.effort = self.turn = ""
        self.last_words = ""
        """What the model said last in this turn."""
        self.calls: dict[str, tuple[ToolCall, str]] = {}
        """Id of a call → the call, and its turn."""
        self.open: dict[str, None] = {}
        """Calls without a result so far."""
        self.total = [0, 0, 0, 0, 0]
        """Tokens so far: input, cached, output, reasoning, all."""

    def build_lines(self) -> Iterator[WireObject]:
        yield self._wrap(self.tape.created, "session_meta", self._build_meta())
        time = self.tape.created
        for entry, _ in self.tape.entries:
            time = entry.time
            for kind, payload in self._build_payloads(entry):
                yield self._wrap(time, kind, payload)
        for kind, payload in self._end_turn():
            yield self._wrap(time, kind, payload)

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
            **({"git": git} if (git := self._describe_repository()) else {}),
        }

    def _describe_repository(self) -> WireObject:
        git: WireObject = {}
        if self.tape.git_branch:
            git["branch"] = self.tape.git_branch
        if self.tape.repository and not self.tape.repository.startswith("/"):
            git["repository_url"] = f"https://{self.tape.repository}"
        return git

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
                yield from self._end_turn()
                yield from self._begin_turn(entry)
                yield from self._build_items(entry)
                text = join_texts(data.content)
                yield "event_msg", {"type": "user_message", "message": text, "images": []}
            case Assistant():
                yield from self._build_answer(entry, data)
            case ToolResult():
                yield from self._build_items(entry)
                self.open.pop(data.call_id, None)
                yield from self._build_call_end(data.call_id, data)
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

    def _begin_turn(self, entry: Entry) -> Iterator[tuple[str, WireObject]]:
        self.turn, self.last_words = format_uuid(entry.id), ""
        started = {"type": "task_started", "turn_id": self.turn, "model_context_window": None}
        yield "event_msg", started

    def _end_turn(self) -> Iterator[tuple[str, WireObject]]:
        for identity in self.open:
            yield from self._build_call_end(identity, None)
        self.open.clear()
        if self.turn:
            done = {
                "type": "task_complete",
                "turn_id": self.turn,
                "last_agent_message": self.last_words,
            }
            yield "event_msg", done

    def _build_answer(self, entry: Entry, answer: Assistant) -> Iterator[tuple[str, WireObject]]:
        if not self.turn:
            yield from self._begin_turn(entry)
        self.last_words = join_texts(answer.content) or self.last_words
        yield from self._name_model(answer.model, self.effort)
        self.ids.begin_answer()
        for call in select_tool_calls(answer.content):
            self.calls[call.id] = call, self.turn
            self.open[call.id] = None
        for block in answer.content:
            if isinstance(block, Thinking) and block.text:
                yield "event_msg", {"type": "agent_reasoning", "text": block.text}
                if not unpack_raw(block.wire).get("encrypted_content"):
                    summary = [{"type": "summary_text", "text": block.text}]
                    yield "response_item", {"type": "reasoning", "summary": summary}
            elif isinstance(block, Text) and block.text:
                event = {"type": "agent_message", "message": block.text}
                yield "event_msg", event
        yield from self._build_items(entry)
        usage = answer.usage
        cached = (usage.cache_read or 0) + (usage.cache_write or 0)
        sent = usage.input + cached
        last = [sent, usage.cache_read or 0, usage.output, usage.reasoning or 0]
        counts = [*last, sent + usage.output]
        self.total = [total + more for total, more in zip(self.total, counts, strict=True)]
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
                **({"turn_id": self.turn} if self.turn else {}),
                **({"effort": effort} if effort else {}),
                "summary": "auto",
            },
        )

    def _build_call_end(
        self, identity: str, result: ToolResult | None
    ) -> Iterator[tuple[str, WireObject]]:
        """Yield what happened for people; a call without a result was aborted."""
        call, turn = self.calls.get(identity, (None, ""))
        if call is None:
            return
        arguments = build_argument_object(call) if call.args else {"input": call.args_text or ""}
        fields = unpack_raw(arguments) if not isinstance(arguments, dict) else arguments
        command = next((fields[name] for name in _COMMAND_FIELDS if name in fields), None)
        text = join_texts(result.content) if result else ""
        has_failed = result is None or result.is_error
        seconds, rest = divmod(result.duration_ms if result else 0, 1000)
        ended: WireObject = {
            "call_id": call.id,
            "turn_id": turn,
            "duration": {"secs": seconds, "nanos": rest * 1_000_000},
        }
        if command is None:
            content = [{"type": "text", "text": text}]
            server = self.tape.program.partition("/")[0]
            yield (
                "event_msg",
                {
                    "type": "mcp_tool_call_end",
                    **ended,
                    "invocation": {"server": server, "tool": call.name, "arguments": fields},
                    "result": {"Ok": {"content": content, "isError": has_failed}}
                    if result
                    else {"Err": "aborted"},
                },
            )
            return
        words = command if isinstance(command, list) else ["bash", "-lc", str(command)]
        yield (
            "event_msg",
            {
                "type": "exec_command_end",
                **ended,
                "command": [str(word) for word in words],
                "cwd": self.cwd,
                "parsed_cmd": [],
                "source": "agent",
                "stdout": text,
                "stderr": "",
                "aggregated_output": text,
                "exit_code": int(has_failed) if result else -1,
                "formatted_output": text,
                "status": "failed" if has_failed else "completed",
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
        "input_tokens", "cached_input_tokens", "output_tokens",
        "reasoning_output_tokens", "total_tokens",
    )  # fmt: skip
    return dict(zip(names, counts, strict=True))
