"""Calls of an agent's own tools → sentences: questions, plans, todo lists, sub-agents; pure.

    ask_user {"questions": […]}          Asked 2 questions            the questions
    todo {"todos": […]}                  Todo list: 1 of 3 done       ☑ Read it
                                                                      ▶ Write it
                                                                      ☐ Test it
    exit_plan_mode {"plan": "…"}         Proposed a plan              the plan, which is Markdown
    Task {"description": "count files"}  Task: count files            the prompt

They are known by name and shape, also in sessions of other agents; any other call is not theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ..text import format_count, to_single_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TODO_MARKS = {"pending": "☐", "in_progress": "▶", "completed": "☑"}


class OwnCall(NamedTuple):
    """A call of such a tool as people read it."""

    sentence: str
    """What it does, on one line; not made visible."""
    lines: tuple[str, ...] = ()
    """What it is about; not made visible."""
    is_markdown: bool = False
    """Whether that is Markdown."""


def describe_own_call(name: str, arguments: Mapping[str, Any]) -> OwnCall | None:
    """Return a call as a sentence; None for other tools, and for arguments of another shape."""
    describe = _SENTENCES.get(name.lower().replace("_", ""))
    return None if describe is None else describe(arguments)


def flatten_object(text: str) -> list[str] | None:
    """Return a text that is a JSON object as lines of `key: value`; None for any other."""
    if text[:1] != "{":
        return None
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return [
        f"{key.replace('_', ' ')}: {item if isinstance(item, str) else _encode_value(item)}"
        for key, item in value.items()
        if item not in (None, "")
    ]


def _encode_value(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _read_list(arguments: Mapping[str, Any], key: str) -> list[Mapping[str, Any]] | None:
    items = arguments.get(key)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return None
    return items


def _read_text(arguments: Mapping[str, Any], *keys: str) -> str:
    texts = (arguments.get(key) for key in keys)
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def _describe_questions(arguments: Mapping[str, Any]) -> OwnCall | None:
    questions = _read_list(arguments, "questions")
    if not questions:
        return None
    texts = [str(item.get("question", "")) for item in questions]
    return OwnCall(f"Asked {format_count(len(texts), 'question')}", tuple(texts))


def _describe_todos(arguments: Mapping[str, Any]) -> OwnCall | None:
    items = _read_list(arguments, "todos")
    items = _read_list(arguments, "plan") if items is None else items
    if items is None:
        return None
    lines = []
    for item in items:
        mark = TODO_MARKS.get(str(item.get("status", "pending")), TODO_MARKS["pending"])
        lines.append(f"{mark} {to_single_line(str(item.get('content', item.get('step', ''))))}")
    done = sum(item.get("status") == "completed" for item in items)
    count = f"{done} of {len(items)} done" if items else "empty"
    return OwnCall(f"Todo list: {count}", tuple(lines))


def _describe_plan(arguments: Mapping[str, Any]) -> OwnCall:
    plan = _read_text(arguments, "plan")
    lines = tuple(plan.strip("\n").split("\n")) if plan else ()
    return OwnCall("Proposed a plan", lines, is_markdown=True)


def _describe_task(arguments: Mapping[str, Any]) -> OwnCall | None:
    prompt = _read_text(arguments, "prompt", "task", "message")
    title = _read_text(arguments, "description") or prompt
    if not title:
        return None
    kind = _read_text(arguments, "subagent_type", "agent_type")
    known = f" ({kind})" if kind and kind != "general-purpose" else ""
    lines = prompt.strip("\n").split("\n")
    is_whole = [title] == lines
    return OwnCall(f"Task{known}: {to_single_line(title)}", () if is_whole else tuple(lines))


def _name_target(verb: str, *keys: str) -> Callable[[Mapping[str, Any]], OwnCall]:
    def describe(arguments: Mapping[str, Any]) -> OwnCall:
        target = _read_text(arguments, *keys)
        return OwnCall(f"{verb} {to_single_line(target)}".rstrip())

    return describe


def _describe_message(arguments: Mapping[str, Any]) -> OwnCall:
    target, text = _read_text(arguments, "agent_id"), _read_text(arguments, "message")
    return OwnCall(f"Wrote to {target}: {to_single_line(text)}")


def _describe_skill(arguments: Mapping[str, Any]) -> OwnCall:
    words = (_read_text(arguments, "skill", "command", "name"), _read_text(arguments, "args"))
    return OwnCall(f"Skill: {to_single_line(' '.join(filter(None, words)))}")


def _describe_compaction(arguments: Mapping[str, Any]) -> OwnCall:
    focus = _read_text(arguments, "focus")
    return OwnCall(f"Asked for a compaction{f': {to_single_line(focus)}' if focus else ''}")


_SENTENCES: dict[str, Callable[[Mapping[str, Any]], OwnCall | None]] = {
    **dict.fromkeys(("askuser", "askuserquestion"), _describe_questions),
    **dict.fromkeys(("todo", "todowrite", "updateplan"), _describe_todos),
    "enterplanmode": lambda _: OwnCall("Began to plan"),
    "exitplanmode": _describe_plan,
    **dict.fromkeys(("task", "spawnagent"), _describe_task),
    "sendinput": _describe_message,
    **dict.fromkeys(("wait", "taskoutput"), _name_target("Waited for", "agent_id", "task_id")),
    **dict.fromkeys(("closeagent", "taskstop"), _name_target("Ended", "agent_id", "task_id")),
    "bashoutput": _name_target("Read the output of", "shell_id", "bash_id"),
    "killshell": _name_target("Ended", "shell_id"),
    "skill": _describe_skill,
    "compact": _describe_compaction,
    "structuredoutput": lambda _: OwnCall("Gave the answer as an object"),
    "tapesearch": _name_target("Searched the tape for", "query"),
    "taperead": _name_target("Read the tape at", "entry"),
}
"""Name of a tool, in small letters without `_` → its sentence."""
