"""Real providers, asked only when INTEGRATION_TEST=1 is set, each only where its key is.

    export INTEGRATION_TEST=1 ANTHROPIC_API_KEY=…
    .venv/bin/python -m pytest tests/gong/llm/test_real_providers.py

It costs a few hundred tokens for each provider.
"""

import os

import pytest
from msgspec import Struct

from gong import errors
from gong.llm import Client, Tool, generate, stream_text
from gong.llm.models import load_presets
from gong.llm.types import Finish, StreamStart, TextDelta
from tape.context.view import Message
from tape.model.entries import Text

PRESETS = [preset for preset in load_presets({}).values() if preset.default_model or preset.key_of]
IS_ASKED = os.environ.get("INTEGRATION_TEST") == "1"


class Asked(Struct):
    city: str


def model_of(preset):
    """Return the provider's own first choice, or that of the provider whose key it takes."""
    model = preset.default_model or load_presets({})[preset.key_of].default_model
    return f"{preset.name}/{model}"


@pytest.fixture(params=PRESETS, ids=lambda preset: preset.name)
def model(request):
    preset = request.param
    if not IS_ASKED:
        pytest.skip("INTEGRATION_TEST=1 is not set")
    if not any(os.environ.get(name) for name in preset.keys):
        pytest.skip(f"none of {', '.join(preset.keys)} is set")
    return model_of(preset)


@pytest.fixture
async def client():
    async with Client.from_env() as made:
        yield made


@pytest.mark.integration
async def test_a_sum(model, client):
    """M210 J9-2.1 J11-1.1: 2+2 is 4."""
    done = await generate(model, prompt="What is 2+2? Answer with the digit alone.", client=client)
    assert "4" in done.text
    assert done.usage.output > 0


@pytest.mark.integration
async def test_a_streamed_haiku_is_the_final_text(model, client):
    """M210 J9-2.3 J11-1.3: start, deltas, end."""
    stream = stream_text(model, prompt="Write a haiku about tapes.", client=client)
    events = [event async for event in stream]
    done = await stream.result()
    assert isinstance(events[0], StreamStart)
    assert any(isinstance(event, Finish) for event in events)
    pieces = [event.delta for event in events if isinstance(event, TextDelta)]
    assert len(pieces) > 1
    assert "".join(pieces) == done.text


@pytest.mark.integration
async def test_a_tool_goes_there_and_back(model, client):
    """M210 J9-2.2 J11-1.2: a call of a tool, and an answer made from its result."""
    tool = Tool(
        "weather", "Tell the weather of a city.", Asked, lambda asked: f"{asked.city}: 31 °C"
    )
    done = await generate(
        model, prompt="How warm is it in Lima? Use the tool.", tools=(tool,), client=client
    )
    assert done.steps[0].tool_calls[0].name == "weather"
    assert "31" in done.text


@pytest.mark.integration
async def test_earlier_words_are_known(model, client):
    """M210 J9-2.4 J11-1.4: two turns."""
    said = (
        Message("user", (Text("My name is Alice and I am 30."),)),
        Message("assistant", (Text("Hello, Alice."),)),
        Message("user", (Text("What is my name, and how old am I?"),)),
    )
    done = await generate(model, messages=said, client=client)
    assert "Alice" in done.text
    assert "30" in done.text


@pytest.mark.integration
async def test_an_unknown_model_is_not_found(model, client):
    unknown = f"{model.partition('/')[0]}/no-such-model-at-all"
    with pytest.raises(errors.ModelNotFound):
        await generate(unknown, prompt="Hello", client=client)
