"""What happens in a session → updates of the Agent Client Protocol, version 1; pure.

event                          update
-----------------------------  -----------------------------------------------------------
message_update                 agent_message_chunk, agent_thought_chunk
message_end                    tool_call, pending, for each call of the answer; usage_update
tool_start                     tool_call_update, in_progress
tool_end                       tool_call_update, completed or failed, with the output
todos                          plan
mode_select                    current_mode_update
named                          session_info_update
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from acp import helpers, schema

from tape.model.entries import (
    Text,
    Thinking,
    ToolCall,
    join_texts,
    select_tool_calls,
)

from ..agent import events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tape.context.view import Message

_KINDS: dict[str, Any] = {
    **dict.fromkeys(("read", "read_file", "view_image", "tape_read"), "read"),
    **dict.fromkeys(("write", "edit", "apply_patch", "write_file", "edit_file"), "edit"),
    **dict.fromkeys(("bash", "shell", "bash_output", "kill_shell"), "execute"),
    **dict.fromkeys(("grep", "find", "ls", "glob", "list_dir", "tape_search"), "search"),
    **dict.fromkeys(("enter_plan_mode", "exit_plan_mode"), "switch_mode"),
    **dict.fromkeys(("todo", "Task", "spawn_agent"), "think"),
}
"""Tool → the kind of its calls; others are "other"."""
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


def build_updates(event: events.Event, window: int) -> Iterator[Any]:
    """Yield the updates of an event; `window` is the model's context window in tokens."""
    match event:
        case events.MessageUpdate(part="text", delta=text) if text:
            yield helpers.update_agent_message_text(text)
        case events.MessageUpdate(part="thinking", delta=text) if text:
            yield helpers.update_agent_thought_text(text)
        case events.MessageEnd():
            for call in select_tool_calls(event.content):
                yield build_call(call.id, call.name, read_arguments(call.args))
            used = event.usage.total
            yield schema.UsageUpdate(session_update="usage_update", used=used, size=window or used)
        case events.ToolExecutionStart():
            yield helpers.update_tool_call(event.call_id, status="in_progress")
        case events.ToolExecutionEnd():
            yield _build_end(event)
        case events.TodosChanged():
            yield helpers.update_plan(
                helpers.plan_entry(one.content, priority="medium", status=one.status)
                for one in event.todos
            )
        case events.ModeSelect():
            yield helpers.update_current_mode(event.mode)
        case events.SessionNamed():
            kind: Any = "session_info_update"
            yield schema.SessionInfoUpdate(session_update=kind, title=event.title)


def _build_end(event: events.ToolExecutionEnd) -> schema.ToolCallProgress:
    text = join_texts(event.content)
    content = [helpers.tool_content(helpers.text_block(text))] if text else None
    status: Any = "failed" if event.is_error else "completed"
    return helpers.update_tool_call(
        event.call_id, status=status, content=content, raw_output={"output": text}
    )


def build_history(messages: tuple[Message, ...]) -> Iterator[Any]:
    """Yield the updates that show a conversation again, from its beginning."""
    for message in messages:
        if message.role == "tool":
            text = join_texts(message.content)
            status: Any = "failed" if message.is_error else "completed"
            content = [helpers.tool_content(helpers.text_block(text))] if text else None
            yield helpers.update_tool_call(
                message.call_id or "", status=status, content=content, raw_output={"output": text}
            )
            continue
        for block in message.content:
            match block:
                case Text() if message.role == "assistant":
                    yield helpers.update_agent_message_text(block.text)
                case Text():
                    yield helpers.update_user_message_text(block.text)
                case Thinking() if block.text:
                    yield helpers.update_agent_thought_text(block.text)
                case ToolCall():
                    yield build_call(block.id, block.name, read_arguments(block.args))
