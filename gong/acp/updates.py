"""What happens in a session → updates of the Agent Client Protocol, version 1; pure.

event                          update
-----------------------------  -----------------------------------------------------------
message_update                 agent_message_chunk, agent_thought_chunk
steering_injected              user_message_chunk
message_end                    tool_call, pending, for each call of the answer; usage_update
tool_start                     tool_call_update, in_progress
tool_update                    tool_call_update, with the output so far
tool_end                       tool_call_update, completed or failed, with the output
todos                          plan
mode_select                    current_mode_update
named                          session_info_update

Those of sub-agents are left out: their call shows their result.
"""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from acp import helpers, schema

from tape.errors import NotFound
from tape.model.entries import (
    Assistant,
    Context,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    User,
    join_texts,
    select_tool_calls,
)
from tape.text import to_single_line

from ..agent import events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tape.model.entries import BlobRef, Content
    from tape.model.line import Entry

    from ..skills.skill import Skill
    from ..tools.dialogue import Todo

_KINDS: dict[str, Any] = {
    **dict.fromkeys(("read", "read_file", "view_image", "tape_read"), "read"),
    **dict.fromkeys(("write", "edit", "apply_patch", "write_file", "edit_file"), "edit"),
    **dict.fromkeys(("bash", "shell", "bash_output", "kill_shell"), "execute"),
    **dict.fromkeys(("grep", "find", "ls", "glob", "list_dir", "tape_search"), "search"),
    **dict.fromkeys(("enter_plan_mode", "exit_plan_mode"), "switch_mode"),
    **dict.fromkeys(("todo", "Task", "spawn_agent"), "think"),
}
"""Tool → the kind of its calls; others are "other"."""
_CHUNKS: dict[str, Any] = {
    "user_message_chunk": schema.UserMessageChunk,
    "agent_message_chunk": schema.AgentMessageChunk,
    "agent_thought_chunk": schema.AgentThoughtChunk,
}
_PATH_FIELDS = ("path", "file_path", "file")
_MOST_TITLE = 120


def build_call(call_id: str, name: str, arguments: dict[str, Any]) -> schema.ToolCallStart:
    """Return the beginning of a call."""
    return helpers.start_tool_call(
        call_id,
        describe_call(name, arguments),
        kind=_KINDS.get(name, "other"),
        status="pending",
        locations=[schema.ToolCallLocation(path=one) for one in find_paths(arguments)] or None,
        content=find_diffs(arguments) or None,
        raw_input=arguments,
    )


def describe_call(name: str, arguments: dict[str, Any]) -> str:
    """Return a call in one line: its command or its path."""
    what = next((arguments[key] for key in ("command", *_PATH_FIELDS, "pattern")
                 if isinstance(arguments.get(key), str)), "")  # fmt: skip
    title = f"{name} {what}".strip().split("\n")[0]
    return title if len(title) <= _MOST_TITLE else f"{title[: _MOST_TITLE - 1]}…"


def find_paths(arguments: dict[str, Any]) -> list[str]:
    """Return the absolute paths that a call names."""
    named = (arguments.get(key) for key in _PATH_FIELDS)
    return [one for one in named if isinstance(one, str) and one.startswith("/")]


def find_diffs(arguments: dict[str, Any]) -> list[Any]:
    """Return the changes that the arguments of an edit or a write show."""
    paths = [arguments[key] for key in _PATH_FIELDS if isinstance(arguments.get(key), str)]
    new = arguments.get("new_string", arguments.get("content"))
    old = arguments.get("old_string")
    if not paths or not isinstance(new, str):
        return []
    return [helpers.tool_diff_content(paths[0], new, old if isinstance(old, str) else None)]


def read_arguments(raw: Any) -> dict[str, Any]:
    """Return the arguments of a call as an object."""
    try:
        value = json.loads(bytes(raw) or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def build_updates(event: events.Event, window: int, message: str) -> Iterator[Any]:
    """Yield the updates of an event of a session itself.

    `window` is the model's context window in tokens, `message` the id of the coming answer.
    """
    match event:
        case events.MessageUpdate(part="text", delta=text) if text:
            yield _build_chunk("agent_message_chunk", text, message)
        case events.MessageUpdate(part="thinking", delta=text) if text:
            yield _build_chunk("agent_thought_chunk", text, message)
        case events.SteeringInjected(text=text) if text:
            yield helpers.update_user_message_text(text)
        case events.MessageEnd():
            for call in select_tool_calls(event.content):
                yield build_call(call.id, call.name, read_arguments(call.args))
            used = event.usage.total
            yield schema.UsageUpdate(session_update="usage_update", used=used, size=window or used)
        case events.TodosChanged():
            yield build_plan(event.todos)
        case events.ModeSelect():
            yield helpers.update_current_mode(event.mode)
        case events.SessionNamed():
            kind: Any = "session_info_update"
            yield schema.SessionInfoUpdate(session_update=kind, title=event.title)
        case _:
            yield from _build_call_updates(event)


def _build_call_updates(event: events.Event) -> Iterator[Any]:
    match event:
        case events.ToolExecutionStart():
            yield helpers.update_tool_call(event.call_id, status="in_progress")
        case events.ToolExecutionUpdate(tail=tail) if tail:
            shown = helpers.tool_content(helpers.text_block(tail))
            yield helpers.update_tool_call(event.call_id, status="in_progress", content=[shown])
        case events.ToolExecutionEnd():
            yield _build_result(event.call_id, event.content, is_error=event.is_error)


def build_plan(todos: tuple[Todo, ...]) -> Any:
    """Return the todo list of a session as its plan."""
    return helpers.update_plan(
        helpers.plan_entry(one.content, priority="medium", status=one.status) for one in todos
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


def _build_result(call_id: str, content: Content, *, is_error: bool) -> schema.ToolCallProgress:
    text = join_texts(content)
    shown = [helpers.tool_content(helpers.text_block(text))] if text else None
    status: Any = "failed" if is_error else "completed"
    return helpers.update_tool_call(
        call_id, status=status, content=shown, raw_output={"output": text}
    )


def build_history(path: Iterable[Entry], load: Callable[[BlobRef], bytes]) -> Iterator[Any]:
    """Yield the updates that show a session again from its beginning, compacted parts too.

    `load` returns the bytes of a picture. A message's id is that of its entry.
    """
    for entry in path:
        match entry.data:
            case User(content=content) | Context(origin="document", content=content):
                yield from _build_words("user_message_chunk", entry.id, content, load)
            case Assistant(content=content):
                yield from _build_words("agent_message_chunk", entry.id, content, load)
            case ToolResult(call_id=call, content=content, is_error=is_error):
                yield _build_result(call, content, is_error=is_error)


def _build_words(
    kind: str, message: str, content: Content, load: Callable[[BlobRef], bytes]
) -> Iterator[Any]:
    for block in content:
        match block:
            case Text() if block.text:
                yield _build_chunk(kind, block.text, message)
            case Thinking() if block.text:
                yield _build_chunk("agent_thought_chunk", block.text, message)
            case Image():
                with suppress(NotFound):
                    data = base64.b64encode(load(block.blob)).decode()
                    picture = helpers.image_block(data, block.mime)
                    yield _CHUNKS[kind](session_update=kind, content=picture, message_id=message)
            case ToolCall():
                yield build_call(block.id, block.name, read_arguments(block.args))
