"""Sessions of Copilot CLI, `~/.copilot/session-state/ID/events.jsonl`, → steps.

Each line is {"type", "id", "timestamp", "parentId", "data"}. The shape is not published: it is that
of files of versions 0.0.369 to 1.0.

    event                             becomes
    --------------------------------  ---------------------------------------------------------
    session.start                     the folder, the branch and the model of the session
    session.model_change              the model of the answers after it
    user.message                      user
    assistant.message                 an answer: reasoning, words, calls; tokens of its output
    tool.execution_complete           the result of a call
    session.info, .warning, .error    note
    turns and calls that begin        – (their message says the same)
    anything else                     custom `copilot.<type>`, whole; what a sub-agent says, too
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...model.entries import (
    NO_JSON,
    Assistant,
    Git,
    Note,
    Text,
    Thinking,
    ToolResult,
    Usage,
    User,
)
from ...repository import name_repository
from ..parsing import CallBinder, build_tool_call, to_plain_text
from ..wire import drop_fields, encode_json, pack_raw
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
    read_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ...model.entries import Block, Payload
    from ..wire import Put, WireObject

TOOL = "copilot"
FORMAT = "copilot-events"
_TALK = frozenset({"user.message", "assistant.message", "tool.execution_complete"})
_REMARKS = frozenset({"session.info", "session.warning", "session.error"})
_MARKS = frozenset(
    {"assistant.turn_start", "assistant.turn_end", "tool.execution_start", "session.start"}
)


def is_session_line(value: WireObject) -> bool:
    """Return whether an object is an event of a session."""
    kind = read_text(value.get("type"))
    return isinstance(value.get("data"), dict) and (
        kind in _TALK or (kind == "session.start" and "sessionId" in value["data"])
    )


def read_session(read_lines: Callable[[], Iterable[bytes]], name: str) -> SourceSession:
    """Return the session in a file; `name` is that of its folder."""
    start: WireObject = {}
    for line in read_lines():
        value = decode_object(line) or {}
        if value.get("type") == "session.start":
            start = read_object(value.get("data"))
            break
    context = read_object(start.get("context"))
    branch, commit = read_text(context.get("branch")), read_text(context.get("headCommit"))
    host, path = read_text(context.get("repositoryHost")), read_text(context.get("repository"))

    def read_steps(_put: Put) -> Iterator[SourceStep]:
        session.damaged = 0
        return _StepReader(session, read_text(start.get("selectedModel"))).read(read_lines())

    session = SourceSession(
        TOOL,
        FORMAT,
        read_text(start.get("sessionId")) or name,
        read_steps,
        cwd=read_text(context.get("cwd")) or None,
        git=Git(branch or None, commit or None, dirty=False) if branch or commit else None,
        created=read_time(start.get("startTime")),
        repository=name_repository(f"https://{host}/{path}") if host and path else None,
        project=read_text(context.get("gitRoot")) or None,
    )
    return session


class _StepReader:
    """Reads the events of one session."""

    def __init__(self, session: SourceSession, model: str) -> None:
        self.session, self.model = session, model
        self.calls = CallBinder()

    def read(self, lines: Iterable[bytes]) -> Iterator[SourceStep]:
        """Yield a step for each event that says something."""
        ids = ReadIds(self.session)
        for number, line in enumerate(lines):
            event = decode_object(line)
            if event is None:
                self.session.damaged += bool(line.strip())
                continue
            if ids.is_repeated(event.get("id")):
                continue
            payloads = tuple(self._convert(event))
            if payloads:
                identity = read_text(event.get("id")) or "event"
                time = read_time(event.get("timestamp"))
                yield SourceStep(f"{identity}#{number}", NEWEST, time, payloads)

    def _convert(self, event: WireObject) -> Iterator[Payload]:
        kind, data = read_text(event.get("type")), read_object(event.get("data"))
        if data.get("parentToolCallId"):
            yield self.session.keep_whole(f"subagent.{kind}", event)
        elif kind == "user.message":
            yield User((Text(read_text(data.get("content"))),))
        elif kind == "assistant.message":
            yield self._read_answer(data)
        elif kind == "tool.execution_complete":
            yield self._read_result(data)
        elif kind in _REMARKS:
            yield Note(to_plain_text(data.get("message") or ""))
        elif kind == "session.model_change" and read_text(data.get("newModel")):
            self.model = data["newModel"]
        elif kind not in _MARKS:
            yield self.session.keep_whole(kind or "event", event)

    def _read_answer(self, data: WireObject) -> Assistant:
        self.calls.begin_answer(encode_json(data))
        blocks: list[Block] = []
        if thought := read_text(data.get("reasoningText")):
            blocks.append(Thinking(thought))
        if text := read_text(data.get("content")):
            blocks.append(Text(text))
        requests = [read_object(request) for request in read_list(data.get("toolRequests"))]
        for call in requests:
            name, identity = to_plain_text(call.get("name") or ""), call.get("toolCallId")
            ours = self.calls.call(identity if isinstance(identity, str) else None, name)
            rest = {"id": identity} if isinstance(identity, str) else {}
            blocks.append(build_tool_call(ours, name, call.get("arguments"), rest))
        written = read_count(data.get("outputTokens"))
        answer = Assistant(tuple(blocks), provider="github", model=self.model)
        return replace(
            answer,
            stop_reason="tool_calls" if requests else "stop",
            usage=Usage(output=written, total=written),
            response_id=read_text(data.get("messageId")) or None,
        )

    def _read_result(self, data: WireObject) -> ToolResult:
        identity, result = data.get("toolCallId"), data.get("result")
        call = self.calls.result(identity if isinstance(identity, str) else None)
        self.model = read_text(data.get("model")) or self.model
        content = read_object(result).get("content") if isinstance(result, dict) else result
        error = data.get("error")
        if content is None and error is not None:
            content = read_object(error).get("message") or error
        text = to_plain_text(content) if content is not None else ""
        rest = drop_fields(data, "toolCallId")
        details = pack_raw(rest) if rest else NO_JSON
        return ToolResult(
            call.id, call.name, (Text(text),), data.get("success") is False, details=details
        )
