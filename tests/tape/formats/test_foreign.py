"""Arrays as nobody should write them: they are read all the same, and nothing of them is lost."""

import re
from functools import cache

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tape.context.view import Target
from tape.formats.registry import FORMATS
from tape.model.line import decode_payload, encode_payload
from tests.tape.formats.histories import as_messages, emitted, put, repaired
from tests.tape.making import BUDGET

SEARCH = settings(
    max_examples=25 * BUDGET, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

KEYS = {
    "anthropic": [
        *("role", "content", "type", "text", "id", "name", "input", "tool_use_id", "is_error"),
        *("thinking", "signature", "data", "source", "media_type", "title", "cache_control"),
    ],
    "openai-chat": [
        *("role", "content", "type", "text", "id", "name", "function", "arguments", "tool_calls"),
        *("tool_call_id", "refusal", "reasoning_content", "image_url", "url", "file", "custom"),
        *("function_call", "reasoning_details", "input_audio", "format", "data", "file_data"),
    ],
    "openai-responses": [
        *("role", "content", "type", "text", "id", "name", "call_id", "arguments", "input"),
        *("output", "summary", "encrypted_content", "image_url", "phase", "refusal"),
        *("file_data", "filename", "detail"),
    ],
    "gemini": [
        *("role", "parts", "text", "thought", "thoughtSignature", "functionCall", "name", "args"),
        *("functionResponse", "response", "output", "error", "inlineData", "mimeType", "data"),
        *("function_call", "thought_signature", "id"),
    ],
}
WORDS = [
    *("user", "assistant", "model", "system", "developer", "tool", "function", "text", "thinking"),
    *("redacted_thinking", "tool_use", "tool_result", "image", "document", "base64", "custom"),
    *("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"),
    *("message", "reasoning", "input_text", "output_text", "input_image", "input_file", "refusal"),
    *("image_url", "input_audio", "file", "wav", "image/png", "aGk=", "data:image/png;base64,aGk="),
    *("a", "b", "", " ", "$blob", "\ud800"),
]
MARK = re.compile(rb"mark\d+")


def values(name):
    """Return JSON values made of the words of one API, with marks that must not get lost."""
    leaves = st.one_of(
        st.sampled_from(WORDS),
        st.integers(0, 999).map(lambda number: f"mark{number}"),
        st.none() | st.booleans() | st.integers(-5, 10**30) | st.floats(allow_nan=False),
    )
    keys = st.sampled_from([*KEYS[name], "mine", "$blob", "$json"])
    return st.recursive(
        leaves,
        lambda part: st.lists(part, max_size=3) | st.dictionaries(keys, part, max_size=5),
        max_leaves=6,
    )


@cache
def elements(name):
    """Return elements of an array that look much like messages."""
    value = values(name)
    content = "parts" if name == "gemini" else "content"
    roles = st.sampled_from(WORDS[:7])
    types = st.sampled_from(WORDS[7:27])
    keys = [key for key in KEYS[name] if key not in {"role", "type", content}]
    piece = st.builds(
        lambda kind, rest: {"type": kind, **rest},
        types,
        st.dictionaries(st.sampled_from(keys), value, max_size=5),
    )
    message = st.builds(
        lambda role, pieces, rest: {**rest, "role": role, content: pieces},
        roles,
        st.lists(piece | value, max_size=3) | value,
        st.dictionaries(st.sampled_from(keys), value, max_size=2),
    )
    return st.lists(message | message | piece | value, max_size=6)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@SEARCH
@given(st.data())
def test_anything_can_be_read_kept_and_sent_on(name, data):
    """M149: strings, nulls and unknown fields where lists and messages should be."""
    array = data.draw(elements(name))
    form = FORMATS[name]
    read = form.parse(array, put)
    kept = b"".join(map(encode_payload, read))
    assert set(MARK.findall(_bytes(array))) <= set(MARK.findall(kept))
    entries = [
        decode_payload(one.entry_type, msgspec.Raw(encode_payload(one)), str) for one in read
    ]
    assert list(map(encode_payload, entries)) == list(map(encode_payload, read))
    form.check(array)
    sent = emitted(name, repaired(read, Target("", form.api, "")))
    assert isinstance(sent, list)
    emitted(name, as_messages(read))


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_no_array_is_refused(name):
    for text in (b"{}", b"3", b"[", b'"[]"', b"\xff"):
        with pytest.raises(ValueError, match=r"."):
            FORMATS[name].parse(text, put)


def _bytes(value):
    return msgspec.json.encode(_clean(value))


def _clean(value):
    match value:
        case str():
            return value.replace("\ud800", "")
        case list():
            return [_clean(part) for part in value]
        case dict():
            return {key: _clean(part) for key, part in value.items()}
    return value
