"""The JSON that command hooks read and write: the dialect of Claude Code, in both directions.

Names of events and tools, and of their fields, are data here. Other modules name all about hooks in
gong's own words.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from .hook import GATES, HookAnswer, HookFailed, UnreadableDecision

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .hook import HookCall, Point


class EventMeaning(NamedTuple):
    """What an event is in gong."""

    point: Point
    subject: str = ""
    """The input field that a matcher is compared with; empty: a matcher is ignored."""


EVENTS: dict[str, EventMeaning] = {
    "PreToolUse": EventMeaning("tool_call", "tool_name"),
    "PostToolUse": EventMeaning("tool_result", "tool_name"),
    "PostToolUseFailure": EventMeaning("tool_result", "tool_name"),
    "PermissionRequest": EventMeaning("permission", "tool_name"),
    "UserPromptSubmit": EventMeaning("input"),
    "SessionStart": EventMeaning("session_start", "source"),
    "SessionEnd": EventMeaning("session_end", "reason"),
    "Stop": EventMeaning("stop"),
    "SubagentStart": EventMeaning("session_start", "agent_type"),
    "SubagentStop": EventMeaning("stop", "agent_type"),
    "PreCompact": EventMeaning("session_op", "trigger"),
    "PostCompact": EventMeaning("after_compact", "trigger"),
    "Notification": EventMeaning("notification", "notification_type"),
    "Setup": EventMeaning("setup", "trigger"),
    "before_session_op": EventMeaning("session_op", "op"),
}
"""Every event that a command hook may name; the last one is gong's own: fork, switch, compact."""

OWN_NAMES = {
    "before_tool_call": "PreToolUse",
    "on_tool_result": "PostToolUse",
    "on_input": "UserPromptSubmit",
}
"""gong's name of an event → the one above."""

TOOL_NAMES = {
    **dict.fromkeys(("bash", "shell", "run_shell_command"), "Bash"),
    **dict.fromkeys(("read", "read_file"), "Read"),
    **dict.fromkeys(("write", "write_file"), "Write"),
    **dict.fromkeys(("edit", "edit_file", "replace", "apply_patch"), "Edit"),
    **dict.fromkeys(("notebook_edit", "NotebookEdit"), "NotebookEdit"),
    **dict.fromkeys(("grep", "grep_search", "search_file_content"), "Grep"),
    **dict.fromkeys(("find", "glob"), "Glob"),
    **dict.fromkeys(("ls", "list_dir", "list_directory"), "LS"),
    **dict.fromkeys(("web_fetch", "WebFetch"), "WebFetch"),
    **dict.fromkeys(("web_search", "WebSearch"), "WebSearch"),
    **dict.fromkeys(("todo", "todo_write"), "TodoWrite"),
    **dict.fromkeys(("task", "Task", "spawn_agent"), "Task"),
}
"""gong's name of a tool → Claude's."""

_MORE_NAMES = {"Edit": ("MultiEdit",), "Task": ("Agent",)}
_PATCH_NAMES = ("apply_patch", "Edit", "Write", "MultiEdit")
"""A patch may edit and write: a hook for either has to see it."""

_FIELDS = {
    "Read": {"file_path": "path"},
    "Write": {"file_path": "path"},
    "Edit": {"file_path": "path", "old_string": "oldText", "new_string": "newText"},
}
"""Claude's name of a tool → its fields that gong's default tools call otherwise."""


def list_tool_names(tool: str) -> tuple[str, ...]:
    """Return every name by which a matcher may mean a tool, Claude's first."""
    if tool == "apply_patch":
        return _PATCH_NAMES
    shared = TOOL_NAMES.get(tool)
    if shared is None:
        return (tool,)
    own = (
        spelling
        for spelling, name in TOOL_NAMES.items()
        if name == shared and spelling != "apply_patch"
    )
    return tuple(dict.fromkeys((shared, tool, *own, *_MORE_NAMES.get(shared, ()))))


def translate_tool_name(tool: str) -> str:
    """Return Claude's name of a tool; a patch and tools of others keep theirs."""
    return tool if tool == "apply_patch" else TOOL_NAMES.get(tool, tool)


def build_tool_input(tool: str, args: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    """Return a call's arguments with Claude's names beside gong's; `file_path` is absolute."""
    tool_input = dict(args)
    for name, own in _FIELDS.get(translate_tool_name(tool), {}).items():
        if own in tool_input:
            tool_input.setdefault(name, tool_input[own])
    if isinstance(path := tool_input.get("file_path"), str):
        path = posixpath.join(cwd, posixpath.expanduser(path))
        tool_input["file_path"] = posixpath.normpath(path)
    return tool_input


def read_tool_input(
    tool: str, args: Mapping[str, Any], sent: Mapping[str, Any], updated: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments that an `updatedInput` means: fields the hook did not touch stay.

    `args` are the call's own, `sent` what the hook was given.
    """
    meant = dict(updated)
    for name, own in _FIELDS.get(translate_tool_name(tool), {}).items():
        if name not in meant or name in args:
            continue
        value = meant.pop(name)
        if value != sent.get(name) or own not in meant:
            meant[own] = args[own] if value == sent.get(name) and own in args else value
    if meant.get("file_path") == sent.get("file_path") and "file_path" in args:
        meant["file_path"] = args["file_path"]
    return meant


_CLAUDE_MODES = {
    "accept_edits": "acceptEdits",
    "dont_ask": "bypassPermissions",
    "bypass": "bypassPermissions",
    "locked": "dontAsk",
}
"""Claude's names of permission modes, by what they do: its dontAsk denies what no rule allows."""


def build_input(event: str, call: HookCall, tool_name: str = "") -> dict[str, Any]:
    """Return the JSON object for an event; `tool_name` is how the hook calls the tool."""
    facts = call.facts
    fields: dict[str, Any] = {
        "session_id": facts.session,
        "transcript_path": facts.transcript,
        "cwd": facts.cwd,
        "permission_mode": _CLAUDE_MODES.get(facts.permission_mode, facts.permission_mode),
    }
    if facts.agent_id:
        fields |= {"agent_id": facts.agent_id, "agent_type": facts.agent_type}
    return {**fields, "hook_event_name": event, **_build_event_fields(event, call, tool_name)}


def _build_event_fields(event: str, call: HookCall, tool_name: str) -> dict[str, Any]:
    value = call.value
    match call.point:
        case "tool_call" | "permission" | "tool_result":
            return _build_tool_fields(event, call, tool_name or translate_tool_name(value["tool"]))
        case "input":
            return {"prompt": value["text"]}
        case "stop":
            own = {"agent_transcript_path": call.facts.transcript} if call.facts.agent_id else {}
            return {
                "stop_hook_active": value["active"],
                "last_assistant_message": value["text"],
                "background_tasks": [],
                **own,
            }
        case "session_op" if event == "PreCompact":
            meta = value["meta"]
            return {"trigger": meta["trigger"], "custom_instructions": meta["focus"]}
    return value


def _build_tool_fields(event: str, call: HookCall, tool_name: str) -> dict[str, Any]:
    value = call.value
    fields: dict[str, Any] = {
        "tool_name": tool_name,
        "tool_input": build_tool_input(value["tool"], value["args"], call.facts.cwd),
        "tool_use_id": value["call_id"],
    }
    if call.point == "permission":
        return fields | {"permission_suggestions": value["suggestions"]}
    if call.point == "tool_call":
        return fields
    result = value["result"]
    fields["duration_ms"] = value["duration_ms"]
    if event == "PostToolUseFailure":
        return fields | {"error": result["content"], "is_interrupt": False}
    response = {**result["details"], "content": result["content"], "is_error": False}
    if tool_name == "Bash":
        response |= {"stdout": result["content"], "stderr": "", "interrupted": False}
    return fields | {"tool_response": response}


def is_meant(event: str, call: HookCall) -> bool:
    """Return whether an event is what happened at its point, where a point is several events."""
    match event:
        case "PostToolUse":
            return not call.value["result"]["is_error"]
        case "PostToolUseFailure":
            return bool(call.value["result"]["is_error"])
        case "PreCompact":
            return bool(call.value["op"] == "compact")
        case "Stop" | "SessionStart" | "SessionEnd" | "UserPromptSubmit" | "Setup":
            return not call.facts.agent_id
        case "SubagentStop" | "SubagentStart":
            return bool(call.facts.agent_id)
    return True


def read_subject(event: str, call: HookCall) -> tuple[str, ...]:
    """Return the names that a matcher of an event is compared with; empty: it has none."""
    match EVENTS[event].subject:
        case "":
            return ()
        case "tool_name":
            return list_tool_names(call.value["tool"])
        case "agent_type":
            return (call.facts.agent_type,)
        case "trigger" if call.point == "session_op":
            return (call.value["meta"]["trigger"],)
        case field:
            return (str(call.value[field]),)


_DECISIONS: dict[object, str] = {
    "approve": "allow",
    "allow": "allow",
    "ask": "ask",
    "block": "block",
    "deny": "block",
    "cancel": "block",
}


_INNER_FIELDS = (
    "permissionDecision", "permissionDecisionReason", "behavior",
    "updatedToolOutput", "updatedMCPToolOutput",
)  # fmt: skip
_OUTER_FIELDS = ("continue", "stopReason", "systemMessage", "reason", "decision")
_SPELLINGS = {
    field.lower(): field for field in (*_INNER_FIELDS, *_OUTER_FIELDS, "hookSpecificOutput")
}
"""Field in small letters and without `_` → as it is spelt."""
_FIELD_IN_TEXT = re.compile(
    r"""(["'])(hookSpecificOutput|additionalContext|updatedInput|"""
    + "|".join((*_INNER_FIELDS, *_OUTER_FIELDS))
    + r")\1\s*:"
)
_RESTRICTIVE = {"ask": 1, "block": 2}


def _list_misspelt(fields: Iterable[str]) -> list[str]:
    """Return remarks about fields that would decide something if they were spelt so."""
    meant = {field: _SPELLINGS.get(field.replace("_", "").lower(), field) for field in fields}
    return [
        f"{field} says nothing: the field is {right}"
        for field, right in meant.items()
        if right != field
    ]


def find_field(text: str) -> str | None:
    """Return the first field of an answer in a text that is not one; None: it has none."""
    match = _FIELD_IN_TEXT.search(text)
    return match[2] if match else None


def _list_misplaced(answer: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    """Return remarks about fields on the wrong level of an answer."""
    inner = [field for field in _INNER_FIELDS if field in answer]
    if isinstance(answer.get("decision"), dict):
        inner.append("decision")
    inner += [field for field in ("updatedInput", "updated_input") if field in answer]
    outer = [field for field in _OUTER_FIELDS if field in own and not isinstance(own[field], dict)]
    return [
        *(f"{field} belongs in hookSpecificOutput, not at the top" for field in inner),
        *(f"{field} belongs at the top, not in hookSpecificOutput" for field in outer),
        *_list_misspelt({**answer, **own}),
    ]


def _read_misplaced(
    call: HookCall, answer: Mapping[str, Any], own: Mapping[str, Any]
) -> tuple[str, str]:
    """Return the strictest decision on the wrong level, and its reason; an allow counts nothing."""
    decisions = [answer.get("permissionDecision"), own.get("decision")]
    reason = answer.get("permissionDecisionReason") or own.get("reason") or ""
    if call.point == "permission":
        nested = answer.get("decision")
        table = nested if isinstance(nested, dict) else answer
        decisions.append(table.get("behavior"))
        reason = reason or table.get("message") or ""
    meant = [_DECISIONS.get(decision, "") for decision in decisions if isinstance(decision, str)]
    strictest = max(meant, key=lambda decision: _RESTRICTIVE.get(decision, 0), default="")
    return (strictest if strictest in _RESTRICTIVE else ""), str(reason)


class _Decision(NamedTuple):
    """What an answer decides, wherever it says so."""

    meant: Any
    """As in `HookAnswer.decision`."""
    reason: str
    updated: Any
    """New arguments, of any type; None for none."""
    interrupts: bool = False
    """Whether the run is to end with the call."""


def _read_decision(
    call: HookCall, answer: Mapping[str, Any], own: Mapping[str, Any], *, is_odd: bool
) -> _Decision:
    """Return what an answer decides; `is_odd` where fields are on the wrong level."""
    outer = answer.get("decision")
    decision = own.get("permissionDecision") or ("" if isinstance(outer, dict) else outer) or ""
    reason = own.get("permissionDecisionReason") or answer.get("reason") or ""
    updated = own.get("updatedInput", answer.get("updatedInput", answer.get("updated_input")))
    permission = own.get("decision")
    if isinstance(permission, dict):  # the answer to PermissionRequest
        decision = permission.get("behavior", "")
        reason = permission.get("message") or reason
        updated = permission.get("updatedInput", updated)
    if not isinstance(decision, str) or decision not in {*_DECISIONS, "", "defer"}:
        raise UnreadableDecision(f"unknown decision {decision!r}: use allow, ask, deny or block")
    meant = _DECISIONS.get(decision, "")
    if is_odd:
        stricter, why = _read_misplaced(call, answer, own)
        if _RESTRICTIVE.get(stricter, 0) > _RESTRICTIVE.get(meant, 0):
            meant, reason = stricter, why or reason
    interrupts = (
        isinstance(permission, dict) and permission.get("interrupt") is True and meant == "block"
    )
    return _Decision(meant, str(reason), updated, interrupts)


def read_answer(call: HookCall, answer: Mapping[str, Any]) -> HookAnswer:
    """Return what the JSON that a hook wrote means; raises HookFailed for a field of a wrong type.

    Fields that an event has no use for are ignored, as Claude Code does. One on the wrong level is
    reported to the user; if it refuses or asks it counts.
    """
    own = answer.get("hookSpecificOutput", {})
    if not isinstance(own, dict):
        raise HookFailed("hookSpecificOutput is not an object")
    remarks = _list_misplaced(answer, own)
    decided = _read_decision(call, answer, own, is_odd=bool(remarks))
    meant, reason = decided.meant, decided.reason
    texts = (_read_text(own, "additionalContext"), _read_text(answer, "additionalContext"))
    context = next(filter(None, (*texts, _read_text(answer, "additional_context"))), "")
    if call.point == "tool_result" and meant == "block":  # it has run: the model is told why
        context = "\n".join(filter(None, (reason, context)))
    is_question = call.point in {"tool_call", "permission"}
    if call.point not in GATES or not (is_question or meant == "block"):
        meant = ""
    stop = (reason or "a hook denied a call and ended the run") if decided.interrupts else None
    continues = (answer.get("continue", True), own.get("continue", True))
    if not all(isinstance(value, bool) for value in continues):
        raise HookFailed("continue is not true or false")
    if not all(continues):
        stop_reason = _read_text(answer, "stopReason") or _read_text(own, "stopReason")
        stop = stop_reason or "a hook ended the run"
        if call.point in {"tool_call", "input"}:
            meant, reason = "block", reason or stop
    return HookAnswer(
        decision=meant,
        reason=reason,
        changed=_read_updates(call, own, decided.updated),
        context=context,
        message=_read_text(answer, "systemMessage") or _read_text(own, "systemMessage"),
        remarks=tuple(remarks),
        stop=stop,
    )


def _read_updates(call: HookCall, own: Mapping[str, Any], updated: Any) -> dict[str, Any]:
    """Return the fields of the call's value that an answer replaces."""
    value = call.value
    if call.point == "tool_result":
        output = own.get("updatedToolOutput", own.get("updatedMCPToolOutput"))
        if output is not None:
            return {"result": {**value["result"], "content": _read_output(output)}}
    elif call.point in {"tool_call", "permission"} and updated is not None:
        if not isinstance(updated, dict):
            raise HookFailed("updatedInput is not an object")
        sent = build_tool_input(value["tool"], value["args"], call.facts.cwd)
        return {"args": read_tool_input(value["tool"], value["args"], sent, updated)}
    return {}


def _read_text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise HookFailed(f"{key} is not a text")
    return value or ""


def _read_output(output: Any) -> str:
    """Return the text of an updated result: a text, or the text of an object that has one."""
    if isinstance(output, str):
        return output
    if isinstance(output, dict):
        for key in ("content", "stdout", "text"):
            if isinstance(text := output.get(key), str):
                return text
    raise HookFailed("updatedToolOutput has no text")
