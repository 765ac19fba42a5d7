"""What the OpenAI Responses API refuses about `input`: pure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..encoder import OPENAI_RESPONSES_IDS
from ..violations import TOOL_NAME, Violation, check_objects, find_repeated, is_blank, is_object
from .emit import MAX_ITEM_ID

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..wire import WireObject

_CALLS = frozenset({"function_call", "custom_tool_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_ROLES = frozenset({"user", "assistant", "system", "developer"})
_INPUT_PARTS = frozenset({"input_text", "input_image", "input_file", "input_audio"})
_OUTPUT_PARTS = frozenset({"output_text", "refusal"})


def check_array(array: Sequence[Any], *, strict: bool = False) -> list[Violation]:
    """Return what is wrong with an array of items.

    `strict` wants each call's output right after its batch, arguments that are JSON objects, and
    no empty text.
    """
    violations = check_objects(array, "input")
    if violations:
        return violations
    for place, item in enumerate(array):
        where, kind = f"input[{place}]", str(item.get("type", "message"))
        if kind == "message":
            violations += _check_message_item(where, item, strict=strict)
        elif kind in _CALLS:
            violations += _check_call_item(where, item, strict=strict)
        elif kind in _OUTPUTS and not isinstance(item.get("output"), str | list):
            violations.append(Violation(where, "output must be a string or a list"))
        violations += _check_item_id(where, item)
    violations += _check_output_pairing(array, strict=strict)
    violations += _check_reasoning_order(array)
    return violations


def _check_item_id(where: str, item: WireObject) -> Iterator[Violation]:
    item_id = item.get("id")
    if isinstance(item_id, str) and (not 0 < len(item_id) <= MAX_ITEM_ID or item_id.endswith("_")):
        yield Violation(
            where, f"id {item_id!r} must have 1 to {MAX_ITEM_ID} characters, no _ at the end"
        )


def _check_message_item(where: str, item: WireObject, *, strict: bool) -> Iterator[Violation]:
    role, content = str(item.get("role")), item.get("content")
    if role not in _ROLES:
        yield Violation(where, f"unknown role {role}")
    if not isinstance(content, str | list) or (strict and not content):
        yield Violation(where, "content must be a string or a list, and not empty")
    allowed = _OUTPUT_PARTS if role == "assistant" else _INPUT_PARTS
    for place, part in enumerate(content if isinstance(content, list) else []):
        kind = str(part.get("type") if isinstance(part, dict) else None)
        if kind not in allowed:
            yield Violation(f"{where}.content[{place}]", f"a {role} message has no part {kind}")
        elif strict and kind in {"input_text", "output_text"} and is_blank(part.get("text")):
            yield Violation(f"{where}.content[{place}]", "text must not be empty")


def _check_call_item(where: str, item: WireObject, *, strict: bool) -> Iterator[Violation]:
    call = str(item.get("call_id") or "")
    longest = OPENAI_RESPONSES_IDS.longest
    if not 0 < len(call) <= longest or (strict and not OPENAI_RESPONSES_IDS.can_send(call)):
        yield Violation(where, f"call_id {call!r} must have 1 to {longest} characters")
    if not TOOL_NAME.fullmatch(str(item.get("name", ""))):
        yield Violation(where, f"{item.get('name')!r} is no tool's name")
    is_function = item.get("type") == "function_call"
    text = item.get("arguments" if is_function else "input")
    if not isinstance(text, str) or (strict and is_function and not is_object(text)):
        yield Violation(where, f"the arguments of {call} are not a JSON object as text")


def _check_output_pairing(array: Sequence[WireObject], *, strict: bool) -> Iterator[Violation]:
    """Yield outputs of no call before them, and calls that no output answers."""
    outputs: dict[str, str] = {}
    waiting: dict[str, int] = {}
    for place, item in enumerate(array):
        where, kind, call = f"input[{place}]", str(item.get("type")), str(item.get("call_id"))
        if kind in _CALLS:
            if call in outputs:
                yield Violation(where, f"call_id {call} stands twice")
            outputs[call], waiting[call] = f"{kind}_output", place
        elif kind in _OUTPUTS:
            if outputs.get(call) != kind:
                yield Violation(where, f"output {call} answers no call before it")
            elif waiting.pop(call, None) is None:
                yield Violation(where, f"call {call} is answered twice")
        elif strict and waiting and item.get("role", "assistant") != "assistant":
            yield Violation(where, f"call {next(iter(waiting))} is not answered before this")
    for call, place in waiting.items():
        yield Violation(f"input[{place}]", f"call {call} has no output")


def _check_reasoning_order(array: Sequence[WireObject]) -> Iterator[Violation]:
    """Yield reasoning that nothing of the model follows."""
    ids = [str(item["id"]) for item in array if item.get("type") == "reasoning" and "id" in item]
    yield from (
        Violation("input", f"reasoning {item} stands twice") for _, item in find_repeated(ids)
    )
    for place, (item, following) in enumerate(pairwise([*array, {"role": "nobody"}])):
        of_model = following.get("role", "assistant") == "assistant"
        answers = of_model and str(following.get("type")) not in _OUTPUTS
        if item.get("type") == "reasoning" and not answers:
            yield Violation(f"input[{place}]", "reasoning without the item it led to")
