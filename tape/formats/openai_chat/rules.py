"""What the OpenAI Chat Completions API refuses about `messages`: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..encoder import OPENAI_CHAT_IDS
from ..violations import TOOL_NAME, Violation, check_objects, find_repeated, is_blank, is_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..encoder import IdRule
    from ..wire import WireObject

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_PARTS = frozenset({"text", "image_url", "input_audio", "file", "refusal"})


def check_array(
    array: Sequence[Any], *, strict: bool = False, ids: IdRule = OPENAI_CHAT_IDS
) -> list[Violation]:
    """Return what is wrong with an array of messages.

    `strict` wants arguments that are JSON objects, characters of `ids`, every id only once, and
    no empty text.
    """
    violations = check_objects(array, "messages")
    if violations:
        return violations
    for place, message in enumerate(array):
        violations += _check_chat_message(f"messages[{place}]", message, strict=strict)
        for call in _get_tool_calls(message):
            violations += _check_chat_call(f"messages[{place}]", call, ids, strict=strict)
    violations += _check_chat_pairing(array)
    if strict:
        used = [str(call.get("id")) for message in array for call in _get_tool_calls(message)]
        violations += [
            Violation("messages", f"call {call} stands twice") for _, call in find_repeated(used)
        ]
    return violations


def _get_tool_calls(message: WireObject) -> list[WireObject]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _check_chat_message(where: str, message: WireObject, *, strict: bool) -> Iterator[Violation]:
    role, content = str(message.get("role")), message.get("content")
    if role not in _ROLES:
        yield Violation(where, f"unknown role {role}")
    if role == "assistant":
        yield from _check_assistant(where, message)
    elif not isinstance(content, str | list) or content == []:
        yield Violation(where, "content must be a string or a list, and not empty")
    if role != "assistant" and "tool_calls" in message:
        yield Violation(where, "tool_calls belong to an assistant message")
    for place, part in enumerate(content if isinstance(content, list) else []):
        kind = str(part.get("type") if isinstance(part, dict) else None)
        if kind not in _PARTS:
            yield Violation(f"{where}.content[{place}]", f"unknown part {kind}")
        elif kind == "text" and strict and is_blank(part.get("text")):
            yield Violation(f"{where}.content[{place}]", "text must not be empty")
        elif kind != "text" and role in {"tool", "system", "developer"}:
            yield Violation(f"{where}.content[{place}]", f"a {role} message takes text only")


def _check_assistant(where: str, message: WireObject) -> Iterator[Violation]:
    calls = message.get("tool_calls")
    if calls is not None and (
        not isinstance(calls, list) or len(_get_tool_calls(message)) != len(calls)
    ):
        yield Violation(where, "tool_calls must be a list of objects")
    if calls == []:
        yield Violation(where, "tool_calls must not be empty")
    content = message.get("content")
    if content is not None and not isinstance(content, str | list):
        yield Violation(where, "content must be a string, a list or null")
    spoken_fields = ("tool_calls", "function_call", "refusal", "audio")
    if (content is None or content == []) and not any(message.get(name) for name in spoken_fields):
        yield Violation(where, "an assistant message needs content or tool_calls")


def _check_chat_call(
    where: str, call: WireObject, ids: IdRule, *, strict: bool
) -> Iterator[Violation]:
    call_id = str(call.get("id") or "")
    least = ids.longest if ids.exact else 1
    if not least <= len(call_id) <= ids.longest or (strict and not ids.can_send(call_id)):
        yield Violation(where, f"call id {call_id!r} must have {least} to {ids.longest} characters")
    kind = str(call.get("type"))
    if kind not in {"function", "custom"}:
        yield Violation(where, f"unknown type of call {kind}")
        return
    fields = call.get(kind)
    if not isinstance(fields, dict) or not TOOL_NAME.fullmatch(str(fields.get("name", ""))):
        yield Violation(where, f"call {call_id} names no tool")
        return
    text = fields.get("arguments" if kind == "function" else "input")
    if not isinstance(text, str) or (strict and kind == "function" and not is_object(text)):
        yield Violation(where, f"the arguments of {call_id} are not a JSON object as text")


def _check_chat_pairing(array: Sequence[WireObject]) -> Iterator[Violation]:
    """Yield calls whose tool messages do not stand right after them, and tool messages of none."""
    waiting: list[str] = []
    asked_at = 0
    for place, message in enumerate([*array, {}]):
        where = f"messages[{place}]"
        if message.get("role") == "tool":
            call = str(message.get("tool_call_id"))
            if call in waiting:
                waiting.remove(call)
            else:
                yield Violation(where, f"tool message {call} answers no call before it")
            continue
        for call in waiting:
            yield Violation(f"messages[{asked_at}]", f"call {call} has no tool message after it")
        waiting, asked_at = [str(call.get("id")) for call in _get_tool_calls(message)], place
        for _, call in find_repeated(waiting):
            yield Violation(where, f"call {call} stands twice")
