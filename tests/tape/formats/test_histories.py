"""Whatever happened, each of the four arrays is one its provider accepts (M144, M146, M153)."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tape.formats.anthropic import emit as anthropic
from tape.formats.anthropic import rules as anthropic_rules
from tape.formats.encoder import MISTRAL_IDS
from tape.formats.gemini import emit as gemini
from tape.formats.gemini import rules as gemini_rules
from tape.formats.openai_chat import emit as openai_chat
from tape.formats.openai_chat import rules as openai_chat_rules
from tape.formats.openai_responses import emit as openai_responses
from tape.formats.openai_responses import rules as openai_responses_rules
from tape.formats.registry import FORMATS
from tests.tape.formats.histories import (
    TARGETS,
    as_messages,
    emitted,
    histories,
    load,
    put,
    repaired,
)
from tests.tape.formats.sending import encode_with
from tests.tape.making import BUDGET

SEARCH = settings(
    max_examples=20 * BUDGET, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def mistral(array, *, strict):
    return openai_chat_rules.check_array(array, strict=strict, ids=MISTRAL_IDS)


FREEFORM = frozenset({"bash"})
CASES = {
    "anthropic": ("anthropic", anthropic, {}, anthropic_rules.check_array),
    "anthropic verbatim": (
        "anthropic",
        anthropic,
        {"verbatim": True, "thinking_as_text": True},
        anthropic_rules.check_array,
    ),
    "openai-chat": ("openai-chat", openai_chat, {}, openai_chat_rules.check_array),
    "openai-chat verbatim": ("openai-chat", openai_chat, {"verbatim": True}, None),
    "freeform": ("openai-chat", openai_chat, {"freeform": FREEFORM}, openai_chat_rules.check_array),
    "mistral": (
        "openai-chat",
        openai_chat,
        {
            "ids": MISTRAL_IDS,
            "thinking_as_text": True,
            "tool_result_name": True,
            "filler_after_tools": True,
            "content": "string",
        },
        mistral,
    ),
    "deepseek": (
        "openai-chat",
        openai_chat,
        {"replay_reasoning": True, "content": "list"},
        openai_chat_rules.check_array,
    ),
    "openai-responses": (
        "openai-responses",
        openai_responses,
        {},
        openai_responses_rules.check_array,
    ),
    "openai-responses freeform": (
        "openai-responses",
        openai_responses,
        {"freeform": FREEFORM, "stored": True, "thinking_as_text": True},
        openai_responses_rules.check_array,
    ),
    "gemini": ("gemini", gemini, {}, None),
    "gemini 3": (
        "gemini",
        gemini,
        {"signed_calls": True, "media_in_results": True, "thinking_as_text": True},
        gemini_rules.check_array,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@SEARCH
@given(st.data())
def test_what_is_sent_breaks_no_rule_of_its_provider(case, data):
    name, form, options, check = CASES[case]
    history = data.draw(histories(name))
    target = (
        TARGETS[name] if data.draw(st.booleans()) else replace(TARGETS[name], sees_images=False)
    )
    sent = encode_with(form.build_encoder)(
        repaired(history, target), type(form.DEFAULT_OPTIONS)(**options), load
    )
    if check is None:
        assert FORMATS[name].check(sent) == []
    else:
        assert check(sent, strict=True) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@SEARCH
@given(st.data())
def test_no_words_are_lost_and_their_order_stays(name, data):
    history = data.draw(histories(name))
    messages = [one for one in repaired(history, TARGETS[name]) if one.role == "user"]
    said = [
        block.text
        for message in messages
        for block in message.content
        if hasattr(block, "text") and block.text.strip()
    ]
    texts = [text for text in _strings(emitted(name, messages)) if text in said]
    assert texts == [text.replace("\ud83d", "\ufffd") for text in said if "\ud83d" not in text]


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@SEARCH
@given(st.data())
def test_an_array_that_is_read_and_written_stays_the_same(name, data):
    messages = repaired(data.draw(histories(name)), TARGETS[name])
    sent = emitted(name, messages)
    read = FORMATS[name].parse(msgspec.json.encode(sent), put)
    assert emitted(name, as_messages(read)) == sent
    assert FORMATS[name].parse(sent, put) == read


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@SEARCH
@given(st.data())
def test_a_longer_history_begins_with_the_bytes_of_a_shorter_one(name, data):
    messages = repaired(data.draw(histories(name)), TARGETS[name])
    growing, before = FORMATS[name].encoder(load), []
    for size in range(len(messages) + 1):
        if size < len(messages) and messages[size].role == "tool":
            continue  # only whole batches are sent
        elements = growing.elements(messages[:size])
        assert elements == FORMATS[name].encoder(load).elements(messages[:size])
        shared = before[:-1]
        assert elements[: len(shared)] == shared
        before = elements


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@SEARCH
@given(st.data())
def test_an_encoder_with_another_history_starts_over(name, data):
    one, other = (repaired(data.draw(histories(name)), TARGETS[name]) for _ in range(2))
    encoder = FORMATS[name].encoder(load)
    encoder.array(one)
    assert encoder.array(other) == FORMATS[name].encoder(load).array(other)


def _strings(value):
    match value:
        case str():
            yield value
        case list():
            for part in value:
                yield from _strings(part)
        case dict():
            for part in value.values():
                yield from _strings(part)
