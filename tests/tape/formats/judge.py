"""A second opinion on arrays: what a provider must find paired, who said what, and which pairs.

It knows nothing of `tape.formats`, so that a mistake there does not excuse itself.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

CALLS = {"function_call", "custom_tool_call"}
OUTPUTS = {"function_call_output", "custom_tool_call_output"}


def faults(name: str, array: list[Any]) -> list[str]:
    """Return what a provider would refuse about calls and results."""
    return [*_RULES[name](array)]


def _blocks(message: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict) and part.get("type") == kind]


def _anthropic(array):
    used = [one["id"] for message in array for one in _blocks(message, "tool_use")]
    yield from (f"{one} is used twice" for one, times in Counter(used).items() if times > 1)
    for place, (before, message) in enumerate(pairwise([{}, *array, {}])):
        asked = [one["id"] for one in _blocks(before, "tool_use")]
        given = [one["tool_use_id"] for one in _blocks(message, "tool_result")]
        if sorted(asked) != sorted(given):
            yield f"messages.{place}: asked {asked}, given {given}"
        if given and message["role"] != "user":
            yield f"messages.{place}: a result that is not the user's"
        if asked and before["role"] != "assistant":
            yield f"messages.{place}: a call that is not the assistant's"


def _openai_chat(array):
    waiting: set[str] = set()
    for place, message in enumerate([*array, {"role": "end"}]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"messages.{place}: answers nothing"
            waiting.discard(message["tool_call_id"])
            continue
        if waiting:
            yield f"messages.{place}: {waiting} not answered"
        calls = [call["id"] for call in message.get("tool_calls") or []]
        waiting = set(calls)
        if len(calls) > len(waiting):
            yield f"messages.{place}: an id twice"


def _openai_responses(array):
    asked = Counter(item["call_id"] for item in array if item.get("type") in CALLS)
    given = Counter(item["call_id"] for item in array if item.get("type") in OUTPUTS)
    if asked != given or any(times > 1 for times in asked.values()):
        yield f"asked {asked}, given {given}"
    seen = set()
    for item, after in pairwise([*array, {"role": "end"}]):
        if item.get("type") in CALLS:
            seen.add(item["call_id"])
        if item.get("type") in OUTPUTS and item["call_id"] not in seen:
            yield f"{item['call_id']} is answered before it is asked"
        is_led_to = after.get("role", "assistant") == "assistant"
        if item.get("type") == "reasoning" and (not is_led_to or after.get("type") in OUTPUTS):
            yield "reasoning that leads to nothing"


def _gemini(array):
    for place, (before, turn) in enumerate(pairwise([{"role": ""}, *array, {"role": "end"}])):
        asked = sum("functionCall" in part for part in before.get("parts", ()))
        given = sum("functionResponse" in part for part in turn.get("parts", ()))
        if asked != given:
            yield f"contents.{place}: asked {asked}, given {given}"
        if any("functionCall" in part for part in turn.get("parts", ())) and (
            before["role"] != "user" or turn["role"] != "model"
        ):
            yield f"contents.{place}: calls that follow no user"


_RULES = {
    "anthropic": _anthropic,
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "gemini": _gemini,
}


def said(name: str, array: list[Any]) -> list[str]:
    """Return what users and assistants said, in order, without what tools did."""
    return [text for message in array for text in _said(message) if text.strip()]


def _said(message):
    if not isinstance(message, dict):
        return
    if message.get("role") not in {"user", "assistant", "model"}:
        return
    content = message.get("parts", message.get("content"))
    for part in [content] if isinstance(content, str | dict) else content or []:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict) and str(part.get("type", "text")).endswith("text"):
            yield from [part["text"]] if isinstance(part.get("text"), str) else []


def pairs(name: str, array: list[Any]) -> dict[str, tuple[Any, Any]]:
    """Return id → what was asked and what was given, of ids that stand once on both sides."""
    asked: list[tuple[int, str, Any]] = []
    given: list[tuple[int, str, Any]] = []
    for place, element in enumerate(array):
        for is_call, call_id, value in _halves(name, element):
            (asked if is_call else given).append((place, call_id, value))
    times = Counter(call_id for _, call_id, _ in asked)
    answers: dict[str, tuple[int, Any]] = {}
    for place, call_id, value in given:
        answers.setdefault(call_id, (place, value))
    twice = Counter(call_id for _, call_id, _ in given)
    return {
        call_id: (value, answers[call_id][1])
        for place, call_id, value in asked
        if times[call_id] == twice[call_id] == 1 and answers[call_id][0] > place
    }


def _halves(name, element):
    """Yield the calls and results of an element: whether it is a call, its id, what it says."""
    if isinstance(element, dict):
        yield from _HALVES[name](element)


def _of_anthropic(message):
    if message.get("role") == "assistant":
        for part in _blocks(message, "tool_use"):
            yield True, part.get("id"), (part.get("name"), part.get("input"))
    if message.get("role") == "user":
        for part in _blocks(message, "tool_result"):
            yield False, part.get("tool_use_id"), part.get("content")


def _of_openai_chat(message):
    if message.get("role") == "assistant":
        for call in message.get("tool_calls") or []:
            yield True, call.get("id"), call.get("function")
    if message.get("role") == "tool":
        yield False, message.get("tool_call_id"), message.get("content")


def _of_openai_responses(item):
    if item.get("type") in CALLS:
        yield True, item.get("call_id"), (item["name"], item.get("arguments"))
    if item.get("type") in OUTPUTS:
        yield False, item.get("call_id"), item.get("output")


def _of_gemini(turn):
    parts = turn.get("parts")
    for part in parts if isinstance(parts, list) else []:
        call, response = part.get("functionCall"), part.get("functionResponse")
        if call and "id" in call and turn.get("role") == "model":
            yield True, call["id"], (call["name"], call.get("args"))
        if response and "id" in response and turn.get("role") == "user":
            yield False, response["id"], response.get("response")


_HALVES = {
    "anthropic": _of_anthropic,
    "openai-chat": _of_openai_chat,
    "openai-responses": _of_openai_responses,
    "gemini": _of_gemini,
}
