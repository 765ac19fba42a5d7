"""Whatever happened before, the body of the next call is one its provider accepts (M144, M153)."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from gong.llm.models import load_presets
from gong.llm.types import Request, ToolSpec
from gong.llm.wires.openai_chat import request as openai_chat_request
from gong.llm.wires.openai_responses import request as openai_responses_request
from tape.formats.encoder import MISTRAL_IDS
from tape.formats.openai_chat import rules as chat_rules
from tape.formats.openai_responses import rules as responses_rules
from tests.tape.formats.histories import TARGETS, histories, repaired
from tests.tape.making import BUDGET

SEARCH = settings(
    max_examples=25 * BUDGET, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
READ = ToolSpec("read", "Read a file.", Raw(b'{"type":"object","properties":{}}'))
PRESETS = load_presets({})
CHAT = ["openai-chat", "deepseek", "mistral", "openrouter", "groq", "vllm"]
FORMATS = ["anthropic", "openai-chat", "openai-responses", "gemini"]


def made(messages, system="Be \ud83d brief."):
    return Request(
        model="anthropic/claude-x", messages=messages, system=system, tools=(READ,), session="t"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAT)
@SEARCH
@given(st.data())
def test_chat_completions(name, data):
    preset = PRESETS[name]
    history = data.draw(histories(data.draw(st.sampled_from(FORMATS))))
    messages = repaired(history, TARGETS["openai-chat"])
    body = msgspec.json.decode(
        openai_chat_request.OpenAIChatRequestEncoder(preset).encode_request(made(messages)).body
    )
    ids = {"ids": MISTRAL_IDS} if name == "mistral" else {}
    assert chat_rules.check_array(body["messages"], strict=True, **ids) == []
    assert body["messages"][0]["role"] == preset.quirks.system_role


@pytest.mark.slow
@SEARCH
@given(st.data())
def test_responses(data):
    preset = PRESETS["openai"]
    history = data.draw(histories(data.draw(st.sampled_from(FORMATS))))
    messages = repaired(history, TARGETS["openai-responses"])
    body = msgspec.json.decode(
        openai_responses_request.OpenAIResponsesRequestEncoder(preset)
        .encode_request(made(messages))
        .body
    )
    assert responses_rules.check_array(body["input"], strict=True) == []
    assert (body["store"], body["instructions"]) == (False, "Be \ufffd brief.")
