"""Conversations as four APIs carry them, and what can happen to one on its way."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

TEXTS = st.sampled_from(["words", "more words", "é\u2028", '{"a":1}', "a\nb "])
NAMES = st.sampled_from(["read", "bash"])
ARGS = st.sampled_from([{}, {"path": "a"}, {"n": 1.5, "deep": {"x": [None, True]}}])
OUTPUTS = st.sampled_from(["done", "", "two\nlines"])


@st.composite
def conversations(draw, name: str) -> list[Any]:
    """Return an array that its provider accepts, with no element shared."""
    array: list[Any] = []
    number = 0
    for _ in range(draw(st.integers(1, 5))):
        array += _asked(name, draw(TEXTS), draw(st.booleans()))
        for _ in range(draw(st.integers(0, 3))):
            calls = []
            for _ in range(draw(st.integers(1, 3))):
                number += 1
                calls.append((f"call_{number}", draw(NAMES), draw(ARGS), draw(OUTPUTS)))
            array += _WORK[name](draw(st.none() | TEXTS), calls, draw(st.booleans()))
        array += _answered(name, draw(TEXTS), draw(st.booleans()))
    if name == "anthropic":  # which takes no white space at the very end
        array.append({"role": "user", "content": "and then?"})
    return array


def _asked(name, text, is_list):
    if name == "gemini":
        return [{"role": "user", "parts": [{"text": text}]}]
    kind = "input_text" if name == "openai-responses" else "text"
    return [{"role": "user", "content": [{"type": kind, "text": text}] if is_list else text}]


def _answered(name, text, is_list):
    if name == "gemini":
        return [{"role": "model", "parts": [{"text": text}]}]
    if name == "anthropic" and is_list:
        return [{"role": "assistant", "content": [{"type": "text", "text": text}]}]
    return [{"role": "assistant", "content": text}]


def _anthropic(text, calls, is_list):
    said = [{"type": "text", "text": text}] if text else []
    asked = [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a, _ in calls]
    given = []
    for call_id, _, _, output in calls:
        content = [{"type": "text", "text": output}] if is_list and output else output
        given.append({"type": "tool_result", "tool_use_id": call_id, "content": content})
    return [{"role": "assistant", "content": said + asked}, {"role": "user", "content": given}]


def _openai_chat(text, calls, is_list):
    asked = [
        {"id": i, "type": "function", "function": {"name": n, "arguments": _json(a)}}
        for i, n, a, _ in calls
    ]
    given = [{"role": "tool", "tool_call_id": i, "content": o} for i, _, _, o in calls]
    content = {} if text is None and is_list else {"content": text}
    return [{"role": "assistant", "tool_calls": asked, **content}, *given]


def _openai_responses(text, calls, is_list):
    said = [{"role": "assistant", "content": text}] if text else []
    thought = {"type": "reasoning", "id": f"rs_{calls[0][0]}", "summary": []}
    asked = [
        {"type": "function_call", "call_id": i, "name": n, "arguments": _json(a)}
        for i, n, a, _ in calls
    ]
    given = [{"type": "function_call_output", "call_id": i, "output": o} for i, _, _, o in calls]
    return [*([thought] if is_list else []), *said, *asked, *given]


def _gemini(text, calls, with_ids):
    said = [{"text": text}] if text else []
    asked, given = [], []
    for call_id, name, args, output in calls:
        ids = {"id": call_id} if with_ids else {}
        asked.append({"functionCall": {**ids, "name": name, "args": args}})
        given.append({"functionResponse": {**ids, "name": name, "response": {"output": output}}})
    return [{"role": "model", "parts": said + asked}, {"role": "user", "parts": given}]


_WORK = {
    "anthropic": _anthropic,
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "gemini": _gemini,
}


def _json(args) -> str:
    return json.dumps(args)


@st.composite
def broken(draw, name: str) -> list[Any]:
    """Return a conversation something happened to, mostly more than once."""
    array = draw(conversations(name))
    for _ in range(draw(st.integers(1, 4))):
        change = draw(st.sampled_from(_CHANGES))
        array = change(draw, name, array)
    return array


def _cut(draw, name, array):
    return array[: draw(st.integers(0, len(array)))]


def _dropped(draw, name, array):
    place = draw(st.integers(0, len(array)))
    return array[:place] + array[place + 1 :]


def _doubled(draw, name, array):
    place = draw(st.integers(0, len(array)))
    return array[: place + 1] + array[place:]


def _swapped(draw, name, array):
    place = draw(st.integers(0, len(array)))
    return array[:place] + array[place : place + 2][::-1] + array[place + 2 :]


def _moved(draw, name, array):
    if not array:
        return array
    place = draw(st.integers(0, len(array) - 1))
    rest = array[:place] + array[place + 1 :]
    to = draw(st.integers(0, len(rest)))
    return [*rest[:to], array[place], *rest[to:]]


def _inserted(draw, name, array):
    place = draw(st.integers(0, len(array)))
    key = "parts" if name == "gemini" else "content"
    model = "model" if name == "gemini" else "assistant"
    say = [{"text": "between"}] if name == "gemini" else "between"
    strange = st.sampled_from(
        [
            {"role": "user", key: say},
            {"role": model, key: say},
            {"role": "system", key: say},
            {"role": "user", key: []},
            {"role": model, key: None},
            {"role": model, key: [{"text": "  "}] if name == "gemini" else "  "},
            {"role": "stranger", key: say},
            {"role": "user", key: [{"type": "hologram", "of": "a"}, {"type": "text", "text": "b"}]},
            {"role": "user", key: {"type": "text", "text": "alone"}},
            {"type": "compaction", "encrypted_content": "x"},
            3,
        ]
    )
    return [*array[:place], draw(strange), *array[place:]]


def _without_part(draw, name, array):
    """Drop or double one part of one element."""
    key = "parts" if name == "gemini" else "content"
    lists = [
        (place, field)
        for place, element in enumerate(array)
        if isinstance(element, dict)
        for field in (key, "tool_calls")
        if isinstance(element.get(field), list) and element[field]
    ]
    if not lists:
        return array
    place, field = draw(st.sampled_from(lists))
    parts = array[place][field]
    at = draw(st.integers(0, len(parts) - 1))
    again = draw(st.booleans())
    changed = parts[: at + 1] + parts[at:] if again else parts[:at] + parts[at + 1 :]
    return [*array[:place], {**array[place], field: changed}, *array[place + 1 :]]


def _renamed(draw, name, array):
    """Let every call have the id of the first, as hosts that count from one do."""
    third = draw(st.sampled_from(["", "x" * 80, 3]))
    return _replaced(array, {"call_2": "call_1", "call_3": third})


def _replaced(value, ids):
    match value:
        case str():
            return ids.get(value, value)
        case list():
            return [_replaced(part, ids) for part in value]
        case dict():
            return {key: _replaced(part, ids) for key, part in value.items()}
    return value


_CHANGES = (
    *(_cut, _dropped, _dropped, _doubled, _swapped, _moved),
    *(_inserted, _without_part, _renamed),
)
