"""What happens in a session → updates of the Agent Client Protocol, version 1.

event                          update
-----------------------------  -----------------------------------------------------------
message_update                 agent_message_chunk, agent_thought_chunk
steering_injected              user_message_chunk
message_end                    tool_call, pending, for each call of the answer; after the results
                               of these calls usage_update, its size 0 if that is not known
tool_start                     tool_call_update, in_progress
tool_update                    tool_call_update, with the output so far
tool_end                       tool_call_update, completed or failed, with changes and output
todos                          plan
mode_select                    current_mode_update
named                          session_info_update

Each update of a call says again what the call is, for who has only that one. Events of sub-agents
are left out: their call shows their result.
"""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from acp import helpers, schema

from tape.errors import NotFound
from tape.files.calls import FileRead, find_command, parse_named_call
from tape.model.entries import (
    Assistant,
    Context,
    Image,
    Text,
    Thinking,
    ToolResult,
    User,
    join_texts,
    select_tool_calls,
)
from tape.render.sources import render_sources
from tape.text import to_single_line

from ..agent import events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tape.model.entries import ChangedFile, Content, ToolCall
    from tape.model.line import Entry

    from ..skills.skill import Skill
    from ..tools.dialogue import Todo
    from .call_files import CallFiles

_KINDS: dict[str, Any] = {
    **dict.fromkeys(("read", "read_many_files", "view_image", "tape_read"), "read"),
    "grep_search": "search",
    **dict.fromkeys(("web_fetch", "WebFetch", "web_search", "WebSearch"), "fetch"),
    **dict.fromkeys(("bash", "shell", "bash_output", "kill_shell"), "execute"),
    **dict.fromkeys(("grep", "find", "ls", "glob", "list_dir", "tape_search"), "search"),
    **dict.fromkeys(("enter_plan_mode", "exit_plan_mode"), "switch_mode"),
    **dict.fromkeys(("todo", "Task", "spawn_agent"), "think"),
}
"""Tool → the kind of its calls; of others what they do to files tells it."""
_CHUNKS: dict[str, Any] = {
    "user_message_chunk": schema.UserMessageChunk,
    "agent_message_chunk": schema.AgentMessageChunk,
    "agent_thought_chunk": schema.AgentThoughtChunk,
}
_PATH_FIELDS = ("path", "file_path", "file")
_MAX_TITLE = 120


class ShownCall(NamedTuple):
    """A call as an editor shows it."""

    call_id: str
    name: str
    arguments: dict[str, Any]
    files: CallFiles

    @classmethod
    def read(cls, call_id: str, name: str, raw: Any, files: CallFiles) -> ShownCall:
        """Return a call; `raw` are its arguments as JSON."""
        return cls(call_id, name, read_arguments(raw), files)

    @property
    def kind(self) -> Any:
        """What it does, as the protocol has it."""
        if self.name in _KINDS:
            return _KINDS[self.name]
        if find_command(self.name, self.arguments) is not None:
            return "execute"
        works = [call.work for call in parse_named_call(self.name, self.arguments)]
        if not works:
            return "other"
        return "read" if all(isinstance(work, FileRead) for work in works) else "edit"

    def build_start(self) -> schema.ToolCallStart:
        """Return the beginning of a call."""
        return helpers.start_tool_call(
            self.call_id,
            describe_call(self.name, self.arguments),
            kind=self.kind,
            status="pending",
            locations=self.files.find_locations(self.name, self.arguments) or None,
            content=self.files.build_diffs(self.name, self.arguments) or None,
            raw_input=self.arguments,
        )

    def build_question(self, details: Mapping[str, Any]) -> schema.ToolCallUpdate:
        """Return the call as the user is asked about it; `details` is what it would change.

        The details go along as `_meta.details`, and their diff as text where the arguments alone
        do not say what becomes of the file.
        """
        start = self.build_start()
        content = start.content
        if not content and isinstance(diff := details.get("diff"), str) and diff:
            content = [helpers.tool_content(helpers.text_block(f"```diff\n{diff}\n```"))]
        return schema.ToolCallUpdate(
            tool_call_id=start.tool_call_id,
            title=start.title,
            kind=start.kind,
            status="pending",
            content=content,
            locations=start.locations,
            raw_input=start.raw_input,
            field_meta={"details": details} if details else None,
        )

    def build_update(self, status: Any, content: list[Any] | None = None, **more: Any) -> Any:
        """Return an update of the call."""
        return helpers.update_tool_call(
            self.call_id,
            title=describe_call(self.name, self.arguments),
            kind=self.kind,
            status=status,
            content=content,
            raw_input=self.arguments,
            **more,
        )

    def build_result(
        self, content: Content, files: Sequence[ChangedFile], *, is_error: bool
    ) -> schema.ToolCallProgress:
        """Return the end of the call; `files` is what was recorded of them."""
        text = join_texts(content)
        blocks = [] if is_error else self.files.build_result_diffs(self.name, self.arguments, files)
        if text:
            blocks.append(helpers.tool_content(helpers.text_block(text)))
        status = "failed" if is_error else "completed"
        locations = self.files.find_locations(self.name, self.arguments) or None
        update: schema.ToolCallProgress = self.build_update(
            status, blocks or None, locations=locations, raw_output={"output": text}
        )
        return update


def describe_call(name: str, arguments: dict[str, Any]) -> str:
    """Return a call in one line: its command or its path."""
    what = next((arguments[key] for key in ("command", *_PATH_FIELDS, "pattern")
                 if isinstance(arguments.get(key), str)), "")  # fmt: skip
    if not what:
        what = ", ".join(call.path for call in parse_named_call(name, arguments))
    title = f"{name} {what}".strip().split("\n")[0]
    return title if len(title) <= _MAX_TITLE else f"{title[: _MAX_TITLE - 1]}…"


def read_arguments(raw: Any) -> dict[str, Any]:
    """Return the arguments of a call as an object."""
    try:
        value = json.loads(bytes(raw) or b"{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class SessionUpdates:
    """The updates of one session, as its events come."""

    def __init__(self, files: CallFiles) -> None:
        self._files = files
        self._answers = 0
        """Answers so far: they number the ids of its messages."""
        self._calls: dict[str, ShownCall] = {}
        """Calls without a result yet, by their id."""
        self._usage: schema.UsageUpdate | None = None
        """What is to be sent after the results of an answer's calls."""

    def build_question(
        self, call_id: str, name: str, raw: Any, details: Any
    ) -> schema.ToolCallUpdate:
        """Return a call as the user is asked about it.

        `raw` are its arguments as JSON, `details` what it would change, as JSON, too.
        """
        call = ShownCall.read(call_id, name, raw, self._files)
        return call.build_question(read_arguments(details))

    def take_event(
        self, event: events.Event, window: int, find_files: Callable[[str], Sequence[ChangedFile]]
    ) -> Iterator[Any]:
        """Yield the updates of an event of the session itself.

        `window` is the model's context window in tokens, 0 where it is not known; `find_files`
        returns what a call that has ended did to files.
        """
        message = f"answer-{self._answers}"
        match event:
            case events.MessageUpdate(part="text", delta=text) if text:
                yield _build_chunk("agent_message_chunk", text, message)
            case events.MessageUpdate(part="thinking", delta=text) if text:
                yield _build_chunk("agent_thought_chunk", text, message)
            case events.SteeringInjected(text=text) if text:
                yield helpers.update_user_message_text(text)
            case events.MessageEnd():
                self._answers += 1
                yield from self._take_answer(event, window)
            case events.TurnEnd() | events.RunEnd():
                yield from self._flush_usage()
            case events.TodosChanged():
                yield build_plan(event.todos)
            case events.ModeSelect():
                yield helpers.update_current_mode(event.mode)
            case events.SessionNamed():
                kind: Any = "session_info_update"
                yield schema.SessionInfoUpdate(session_update=kind, title=event.title)
            case _:
                yield from self._take_call_event(event, find_files)

    def _take_call_event(
        self, event: events.Event, find_files: Callable[[str], Sequence[ChangedFile]]
    ) -> Iterator[Any]:
        match event:
            case events.ToolExecutionStart():
                call = ShownCall.read(event.call_id, event.name, event.args, self._files)
                self._calls[event.call_id] = call
                yield call.build_update("in_progress")
            case events.ToolExecutionUpdate(tail=tail) if tail:
                block = helpers.tool_content(helpers.text_block(tail))
                yield self._find_call(event.call_id, "").build_update("in_progress", [block])
            case events.ToolExecutionEnd():
                call = self._find_call(event.call_id, event.name)
                self._calls.pop(event.call_id, None)
                files = find_files(event.call_id)
                yield call.build_result(event.content, files, is_error=event.is_error)

    def _take_answer(self, event: events.MessageEnd, window: int) -> Iterator[Any]:
        yield from self._flush_usage()
        yield from _build_sources(event.entry, event.content)
        calls = select_tool_calls(event.content)
        for block in calls:
            call = ShownCall.read(block.id, block.name, _get_arguments(block), self._files)
            self._calls[block.id] = call
            yield call.build_start()
        self._usage = schema.UsageUpdate(
            session_update="usage_update", used=event.usage.total, size=window
        )
        if not calls:
            yield from self._flush_usage()

    def _flush_usage(self) -> Iterator[Any]:
        usage, self._usage = self._usage, None
        if usage is not None:
            yield usage

    def _find_call(self, call_id: str, name: str) -> ShownCall:
        return self._calls.get(call_id, ShownCall(call_id, name, {}, self._files))


def build_plan(todos: tuple[Todo, ...]) -> Any:
    """Return the todo list of a session as its plan."""
    return helpers.update_plan(
        helpers.plan_entry(todo.content, priority="medium", status=todo.status) for todo in todos
    )


def build_commands(skills: Iterable[Skill]) -> schema.AvailableCommandsUpdate:
    """Return what can be typed as `/name`."""
    commands = []
    for skill in skills:
        text = to_single_line(skill.description)
        command = schema.AvailableCommand(name=skill.name, description=text)
        if skill.hint:
            hint = schema.UnstructuredCommandInput(hint=skill.hint)
            command.input = schema.AvailableCommandInput(hint)
        commands.append(command)
    kind: Any = "available_commands_update"
    return schema.AvailableCommandsUpdate(session_update=kind, available_commands=commands)


def _build_chunk(kind: Any, text: str, message: str) -> Any:
    return _CHUNKS[kind](session_update=kind, content=helpers.text_block(text), message_id=message)


def build_history(path: Iterable[Entry], files: CallFiles) -> Iterator[Any]:
    """Yield the updates that show a session again from its beginning, compacted parts too.

    A message's id is that of its entry.
    """
    calls: dict[str, ShownCall] = {}
    for entry in path:
        match entry.data:
            case User(content=content) | Context(origin="document", content=content):
                yield from _build_words("user_message_chunk", entry.id, content, files)
            case Assistant(content=content):
                yield from _build_words("agent_message_chunk", entry.id, content, files)
                yield from _build_sources(entry.id, content)
                for block in select_tool_calls(content):
                    call = ShownCall.read(block.id, block.name, _get_arguments(block), files)
                    calls[block.id] = call
                    yield call.build_start()
            case ToolResult() as result:
                unknown = ShownCall(result.call_id, result.name, {}, files)
                call = calls.pop(result.call_id, unknown)
                yield call.build_result(result.content, result.files, is_error=result.is_error)


def _get_arguments(call: ToolCall) -> Any:
    """Return the arguments of a call as JSON; text without a form is its `input`."""
    return call.args if call.args_text is None else json.dumps({"input": call.args_text}).encode()


def _build_sources(message: str, content: Content) -> Iterator[Any]:
    """Yield the pages that an answer cites, as its last words."""
    if sources := render_sources(content):
        yield _build_chunk("agent_message_chunk", "\n\n" + "\n".join(sources), message)


def _build_words(kind: str, message: str, content: Content, files: CallFiles) -> Iterator[Any]:
    for block in content:
        match block:
            case Text() if block.text:
                yield _build_chunk(kind, block.text, message)
            case Thinking() if block.text:
                yield _build_chunk("agent_thought_chunk", block.text, message)
            case Image():
                with suppress(NotFound):
                    data = base64.b64encode(files.load(block.blob)).decode()
                    picture = helpers.image_block(data, block.mime)
                    yield _CHUNKS[kind](session_update=kind, content=picture, message_id=message)
