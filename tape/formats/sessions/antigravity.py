"""Transcripts of Antigravity's CLI, `brain/ID/.system_generated/logs/transcript.jsonl`, → steps.

Each line is {"step_index", "source", "type", "status", "created_at", "content", …}. The shape is
not published: it is that of files of June to September 2026. The databases in `conversations` are
not read.

    type                              becomes
    --------------------------------  ---------------------------------------------------------
    USER_INPUT                        user, without the tag; an earlier `step_index` begins a
                                      branch there; what is added to the prompt: context
    PLANNER_RESPONSE                  an answer: thinking, words, calls, tokens where they are
    CHECKPOINT                        anchor; without words: nothing
    CONVERSATION_HISTORY and others   context; without words: nothing
    of the source SYSTEM
    ERROR_MESSAGE                     note
    INVOKE_SUBAGENT                   the result, and the sub-agent, whose session is another file
    any other of the source MODEL     the result of the oldest call without one
    anything else                     custom `antigravity.<type>`, whole

Calls have no ids. Their arguments are objects whose values are JSON written as text, or plain text.
"""

from __future__ import annotations

import re
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from ...ids import compute_tape_id
from ...model.entries import (
    NO_JSON,
    AgentEnd,
    AgentStart,
    Anchor,
    Assistant,
    Context,
    Note,
    Text,
    Thinking,
    ToolResult,
    Usage,
    User,
)
from ..parsing import CallBinder, build_tool_call, to_plain_text
from ..wire import decode_json, drop_fields, encode_json, pack_raw
from .steps import (
    NEWEST,
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

TOOL = "antigravity"
FORMAT = "antigravity-transcript"
_REQUEST = re.compile(r"\s*<USER_REQUEST>\n?(.*?)\n?</USER_REQUEST>\s*", re.DOTALL)
_MODEL = re.compile(r"`Model Selection` from .*? to (.+?)\.(?:\s|$)")
_CONVERSATION = re.compile(r'"?conversation_?[iI]d"?\s*[:=]\s*"?([\w.-]+)')
_FAILED = frozenset({"ERROR", "CANCELED", "CANCELLED"})
_KNOWN_FIELDS = ("step_index", "source", "type", "status", "created_at", "content")


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is a step of a transcript."""
    return "step_index" in value and read_text(value.get("type")).isupper()


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session in a file; `name` is that of the folder of the conversation."""
    cwd, created = "", None
    for line in read_lines():
        value = decode_object(line) or {}
        created = created or read_time(value.get("created_at"))
        for call in map(read_object, read_list(value.get("tool_calls"))):
            cwd = read_text(_decode_arguments(call.get("args")).get("Cwd"))
        if cwd:
            break

    def read_steps(_put: Put) -> Iterator[SourceStep]:
        session.damaged = 0
        return _StepReader(session).read(read_lines())

    session = SourceSession(TOOL, FORMAT, name, read_steps, cwd=cwd or None, created=created)
    return session


class _StepReader:
    """Reads the lines of one transcript."""

    def __init__(self, session: SourceSession) -> None:
        self.session = session
        self.calls = CallBinder()
        self.model = ""
        self.path: dict[int, str] = {}
        """Number of a step on the path to the newest one → its id."""

    def read(self, lines: Iterable[bytes]) -> Iterator[SourceStep]:
        """Yield a step for each line that says something; of a line written twice, the last."""
        ids = ReadIds(self.session)
        numbered = chain(enumerate(map(decode_object, filter(bytes.strip, lines))), [(0, {})])
        for (number, value), (_, after) in pairwise(numbered):
            if value is None:
                self.session.damaged += 1
                continue
            index = value.get("step_index")
            same = ("step_index", "type")
            if index is not None and all(value.get(key) == (after or {}).get(key) for key in same):
                continue
            if "created_at" in value and ids.is_repeated(encode_json(value)):
                continue
            payloads = tuple(self._convert(value))
            identity = f"#{number}"
            parent = NEWEST
            if isinstance(index, int):
                if value.get("type") == "USER_INPUT" and any(
                    earlier >= index for earlier in self.path
                ):
                    self.path = {at: step for at, step in self.path.items() if at < index}
                    parent = [*self.path.values()][-1] if self.path else ROOT
                if payloads:
                    self.path[index] = identity
            if payloads:
                yield SourceStep(identity, parent, read_time(value.get("created_at")), payloads)

    def _convert(self, line: WireObject) -> Iterator[Payload]:
        kind, content = read_text(line.get("type")), line.get("content")
        text = to_plain_text(read_object(content).get("text") or content or "")
        match kind, line.get("source"):
            case "USER_INPUT", source:
                yield from self._convert_prompt(text, is_typed=source != "SYSTEM")
            case "PLANNER_RESPONSE", _:
                yield self._read_answer(line, text)
            case "CHECKPOINT", _:
                if text.strip():
                    reason = "compacted by Antigravity"
                    yield Anchor(kind="compaction", summary=text.strip(), reason=reason)
            case "ERROR_MESSAGE", _:
                yield Note(text or to_plain_text(line.get("error_code") or "error"))
            case "INVOKE_SUBAGENT", _:
                yield from self._convert_agent(line, text)
            case _, "MODEL":
                yield self._read_result(line, text) or self.session.keep_whole(kind, line)
            case _, "SYSTEM":
                if text.strip():
                    yield Context("user", TOOL, (Text(text),))
            case _:
                yield self.session.keep_whole(kind or "line", line)

    def _convert_prompt(self, text: str, *, is_typed: bool) -> Iterator[Payload]:
        """Yield what Antigravity adds to a prompt, and then the prompt."""
        if match := _MODEL.search(text):
            self.model = match[1].strip()
        words = _REQUEST.findall(text)
        rest = _REQUEST.sub("", text) if words else ""
        if rest.strip():
            yield Context("user", TOOL, (Text(rest.strip()),))
        blocks = (Text("\n\n".join(words) if words else text),)
        yield User(blocks) if is_typed else Context("user", TOOL, blocks)

    def _read_answer(self, line: WireObject, text: str) -> Assistant:
        calls = [read_object(call) for call in read_list(line.get("tool_calls"))]
        self.calls.begin_answer(encode_json([text, calls]))
        blocks: list[Block] = []
        if thought := read_text(line.get("thinking")):
            blocks.append(Thinking(thought))
        if text:
            blocks.append(Text(text))
        for call in calls:
            name = to_plain_text(call.get("name") or "")
            arguments = _decode_arguments(call.get("args"))
            blocks.append(build_tool_call(self.calls.call(None, name), name, arguments, {}))
        return Assistant(
            tuple(blocks),
            provider="google",
            model=read_text(line.get("model")) or self.model,
            stop_reason="tool_calls" if calls else "stop",
            usage=_read_usage(read_object(line.get("usage"))),
            partial=line.get("status") == "RUNNING",
        )

    def _read_result(self, line: WireObject, text: str) -> ToolResult | None:
        """Return the result of the oldest call without one; None if there is no such call."""
        call = self.calls.result(None)
        if not call.is_known:
            return None
        rest = drop_fields(line, *_KNOWN_FIELDS)
        details = pack_raw(rest) if rest else NO_JSON
        failed = read_text(line.get("status")) in _FAILED
        return ToolResult(call.id, call.name, (Text(text),), failed, details=details)

    def _convert_agent(self, line: WireObject, text: str) -> Iterator[Payload]:
        result = self._read_result(line, text)
        agents = [*dict.fromkeys(_CONVERSATION.findall(text))]
        for agent in agents:
            yield AgentStart(agent, "subagent", "", tape=compute_tape_id(TOOL, agent))
        yield result or self.session.keep_whole("invoke_subagent", line)
        for agent in agents:
            failed = read_text(line.get("status")) in _FAILED
            yield AgentEnd(agent, "", "failed" if failed else "completed")


def _decode_arguments(arguments: Any) -> WireObject:
    r"""Return arguments whose values are JSON as text as what they say.

    {"Cwd": "\"/src\"", "Line": "3"}    {"Cwd": "/src", "Line": 3}
    {"Cwd": "/src", "Line": "3"}        the same: plain text
    """
    values = read_object(arguments)
    if not any(isinstance(text, str) and text[:1] in '"[{' for text in values.values() if text):
        return values
    return {name: _decode_value(value) for name, value in values.items()}


def _decode_value(value: Any) -> Any:
    try:
        return decode_json(value) if isinstance(value, str) else value
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
        return value


def _read_usage(usage: WireObject) -> Usage:
    """Return the tokens; what was given includes what was cached."""

    def read_first(*names: str) -> int:
        return next((count for name in names if (count := read_count(usage.get(name)))), 0)

    sent = read_first("input_tokens", "prompt_token_count")
    received = read_first("output_tokens", "candidates_token_count")
    cached = read_first("cached_content_token_count", "cached_tokens")
    thoughts = read_first("thoughts_token_count", "reasoning_tokens")
    return Usage(
        input=max(sent - cached, 0),
        output=received + thoughts,
        reasoning=thoughts or None,
        cache_read=cached or None,
        total=max(sent, cached) + received + thoughts,
    )
