"""What the Gemini API refuses about `contents`: pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..violations import TOOL_NAME, Violation, check_objects, is_blank

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..wire import WireObject

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


def check_array(array: Sequence[Any], *, strict: bool = False) -> list[Violation]:
    """Return what is wrong with an array of contents.

    `strict` wants the first call of each turn signed, as Gemini 3 does, and no empty text.
    """
    violations = check_objects(array, "contents")
    if violations:
        return violations
    if array and array[0].get("role") != "user":
        violations.append(Violation("contents[0]", "the first turn must be the user's"))
    for place, turn in enumerate(array):
        violations += _check_turn(f"contents[{place}]", turn, strict=strict)
    violations += _check_function_pairing(array)
    return violations


def _get_turn_parts(turn: WireObject) -> list[WireObject]:
    parts = turn.get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _get_part_fields(turn: WireObject, field: str) -> list[WireObject]:
    return [part[field] for part in _get_turn_parts(turn) if isinstance(part.get(field), dict)]


def _check_turn(where: str, turn: WireObject, *, strict: bool) -> Iterator[Violation]:
    role = str(turn.get("role"))
    if role not in {"user", "model"}:
        yield Violation(where, f"role {role} is none of user, model")
    parts = turn.get("parts")
    if not isinstance(parts, list) or not parts or len(_get_turn_parts(turn)) != len(parts):
        yield Violation(where, "parts must be a list of objects, and not empty")
    for place, part in enumerate(_get_turn_parts(turn)):
        yield from _check_turn_part(f"{where}.parts[{place}]", part, role, strict=strict)
    signed = [
        part.get("thoughtSignature") for part in _get_turn_parts(turn) if "functionCall" in part
    ]
    if strict and signed and not signed[0]:
        yield Violation(where, "the first function call has no thoughtSignature")


def _check_turn_part(
    where: str, part: WireObject, role: str, *, strict: bool
) -> Iterator[Violation]:
    signature = part.get("thoughtSignature")
    if signature is not None and not (isinstance(signature, str) and _BASE64.fullmatch(signature)):
        yield Violation(where, "thoughtSignature must be base64")
    if strict and "text" in part and is_blank(part["text"]) and signature is None:
        yield Violation(where, "text must not be empty")
    for field, speaker in (("functionCall", "model"), ("functionResponse", "user")):
        if field in part:
            function = part[field]
            fields = function if isinstance(function, dict) else {}
            if not TOOL_NAME.fullmatch(str(fields.get("name", ""))):
                yield Violation(where, f"{fields.get('name')!r} is no tool's name")
            key = "args" if field == "functionCall" else "response"
            if not isinstance(fields.get(key, {} if key == "args" else None), dict):
                yield Violation(where, f"{key} must be an object")
            if role != speaker:
                yield Violation(where, f"{field} belongs to a {speaker} turn")


def _check_function_pairing(array: Sequence[WireObject]) -> Iterator[Violation]:
    """Yield call turns that the next turn does not answer, and response turns of no call."""
    for place, turn in enumerate(array):
        before = array[place - 1] if place else {}
        after = array[place + 1] if place + 1 < len(array) else {}
        where, calls = f"contents[{place}]", _get_part_fields(turn, "functionCall")
        answers = _get_part_fields(after, "functionResponse")
        if calls and before.get("role") != "user":
            yield Violation(where, "a function call turn must come right after a user turn")
        if len(calls) != len(answers) and calls:
            why = f"{len(calls)} function calls, {len(answers)} function responses in the next turn"
            yield Violation(where, why)
        elif sorted(_get_function_names(calls)) != sorted(_get_function_names(answers)) and calls:
            yield Violation(where, "function responses name other functions than the calls")
        if _get_part_fields(turn, "functionResponse") and not _get_part_fields(
            before, "functionCall"
        ):
            yield Violation(where, "a function response turn must come right after its calls")


def _get_function_names(functions: list[WireObject]) -> list[str]:
    return [str(function.get("name")) for function in functions]
