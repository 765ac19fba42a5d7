"""What the Anthropic Messages API refuses about `messages`: pure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..encoder import ANTHROPIC_IDS
from ..violations import TOOL_NAME, Violation, check_objects, find_repeated, is_blank
from .emit import IMAGES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..wire import WireObject

MAX_CACHE_MARKS = 4
"""Most prompt-cache marks in one request."""

_ROLES = frozenset({"user", "assistant", "system"})


def check_array(array: Sequence[Any], *, strict: bool = False) -> list[Violation]:
    """Return what is wrong with an array of messages; `strict` wants user and assistant in turn."""
    violations = check_objects(array, "messages")
    if violations:
        return violations
    if array and array[0].get("role") != "user":
        violations.append(Violation("messages[0]", "the first message must be the user's"))
    for place, message in enumerate(array):
        violations += _check_anthropic_message(
            f"messages[{place}]", message, is_last=place == len(array) - 1
        )
    violations += _check_tool_pairing(array)
    marks = sum(
        "cache_control" in block for message in array for block in _get_content_blocks(message)
    )
    if marks > MAX_CACHE_MARKS:
        violations.append(
            Violation(
                "messages", f"{marks} cache_control marks, at most {MAX_CACHE_MARKS} are allowed"
            )
        )
    for place, (earlier, other) in enumerate(pairwise(array), 1):
        if strict and earlier.get("role") == other.get("role"):
            violations.append(Violation(f"messages[{place}]", "the same role twice in a row"))
    return violations


def _check_anthropic_message(
    where: str, message: WireObject, *, is_last: bool
) -> Iterator[Violation]:
    role, content = str(message.get("role")), message.get("content")
    if role not in _ROLES:
        yield Violation(where, f"role {role} is none of user, assistant, system")
    if not isinstance(content, str | list) or (not content and not (is_last and role != "user")):
        yield Violation(where, "content must be a string or a list, and not empty")
    blocks = _get_content_blocks(message)
    for place, block in enumerate(blocks):
        yield from _check_content_block(f"{where}.content[{place}]", block, role)
    if role == "assistant" and blocks:
        last = blocks[-1]
        if str(last.get("type")) in {"thinking", "redacted_thinking"}:
            yield Violation(where, "the last block of an assistant message cannot be thinking")
        text = last.get("text")
        if is_last and isinstance(text, str) and text != text.rstrip():
            yield Violation(where, "the last answer cannot end with white space")


def _get_content_blocks(message: WireObject) -> list[WireObject]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict)]


def _check_content_block(where: str, block: WireObject, role: str) -> Iterator[Violation]:
    match block.get("type"):
        case "text" if is_blank(block.get("text")):
            yield Violation(where, "text must not be empty")
        case "thinking" | "redacted_thinking" as kind:
            yield from _check_thinking(
                where, block, role, "signature" if kind == "thinking" else "data"
            )
        case "tool_use":
            yield from _check_tool_use(where, block, role)
        case "tool_result":
            if role != "user":
                yield Violation(where, "tool_result belongs to a user message")
            for place, part in enumerate(_get_content_blocks(block)):
                yield from _check_content_block(f"{where}.content[{place}]", part, "tool_result")
        case "image":
            source = block.get("source")
            mime = str(source.get("media_type")) if isinstance(source, dict) else "nothing"
            if mime not in IMAGES and not (isinstance(source, dict) and "data" not in source):
                yield Violation(where, f"{mime} is no picture the API takes")


def _check_thinking(where: str, block: WireObject, role: str, proof: str) -> Iterator[Violation]:
    if role != "assistant":
        yield Violation(where, "thinking belongs to an assistant message")
    if not isinstance(block.get(proof), str):
        yield Violation(where, f"thinking without its {proof}")
    if "cache_control" in block:
        yield Violation(where, "thinking cannot carry cache_control")


def _check_tool_use(where: str, block: WireObject, role: str) -> Iterator[Violation]:
    if role != "assistant":
        yield Violation(where, "tool_use belongs to an assistant message")
    if not ANTHROPIC_IDS.can_send(str(block.get("id", ""))):
        yield Violation(where, f"tool_use id {block.get('id')!r} must match [a-zA-Z0-9_-]{{1,64}}")
    if not TOOL_NAME.fullmatch(str(block.get("name", ""))):
        yield Violation(where, f"{block.get('name')!r} is no tool's name")
    if not isinstance(block.get("input"), dict):
        yield Violation(where, "input must be an object")


def _check_tool_pairing(array: Sequence[WireObject]) -> Iterator[Violation]:
    """Yield calls without a result in the next message, and results without a call before."""
    used = [
        (place, call)
        for place, message in enumerate(array)
        for call in _get_tool_ids(message, "id")
    ]
    for index, call in find_repeated(call for _, call in used):
        yield Violation(f"messages[{used[index][0]}]", f"tool_use id {call} stands twice")
    for place, message in enumerate(array):
        call_ids = _get_tool_ids(array[place - 1], "id") if place else []
        result_ids = _get_tool_ids(message, "tool_use_id")
        where = f"messages[{place}]"
        yield from (
            Violation(where, f"{id_} answers no call") for id_ in result_ids if id_ not in call_ids
        )
        yield from (
            Violation(where, f"{id_} is answered twice") for _, id_ in find_repeated(result_ids)
        )
        following = array[place + 1] if place + 1 < len(array) else {}
        answers = _get_tool_ids(following, "tool_use_id")
        for call in _get_tool_ids(message, "id"):
            if call not in answers:
                yield Violation(where, f"tool_use {call} has no tool_result in the next message")
        kinds = [block.get("type") == "tool_result" for block in _get_content_blocks(message)]
        if kinds != sorted(kinds, reverse=True):
            yield Violation(where, "tool_result blocks must stand first")


def _get_tool_ids(message: WireObject, key: str) -> list[str]:
    kind = "tool_use" if key == "id" else "tool_result"
    return [
        str(block.get(key)) for block in _get_content_blocks(message) if block.get("type") == kind
    ]
