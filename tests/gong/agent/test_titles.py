"""Titles of sessions by a model: once, beside the conversation, and nothing waits for them."""

from __future__ import annotations

from time import monotonic

import pytest

from gong.agent import events
from gong.assembly.opening import open_session
from gong.config import Settings
from gong.errors import UnknownModel
from gong.llm.models import load_presets
from tests.gong.agent.conftest import seen, types


async def named(stage, *answers, **more):
    """Return a session whose titles come from a script of their own."""
    titles = await stage.host(*answers)
    name = f"{titles.session.setup.model.provider}/{titles.session.setup.model.id}"
    session = (await stage.host({"text": "one"}, {"text": "two"}, title_model=name, **more)).session
    session.ask_person()
    return session


async def test_a_cheap_model_names_a_new_session_once(stage):
    """A title from the first prompt, after its answer; its tokens stand beside the conversation."""
    session = await named(stage, {"text": '"Fixing the port."\n'}, {"text": "never"})
    told = []
    session.subscribe(told.append)
    run = await seen(session, "why is the port 8143?")
    assert isinstance(run[-1], events.RunEnd)
    await session._naming
    assert [event.title for event in told if isinstance(event, events.SessionNamed)] == [
        "Fixing the port"
    ]
    assert types(session) == ["start", "user", "assistant", "usage"]
    await seen(session, "and now?")
    assert session.recorder.tape.title() == "Fixing the port"
    assert types(session)[-2:] == ["user", "assistant"]


async def test_nothing_waits_for_a_title(stage):
    """Neither the end of the run, nor the next one, nor the end of the session."""
    session = await named(stage, {"text": "Late", "delay_ms": 600_000})
    begun = monotonic()
    await seen(session, "why is the port 8143?")
    await seen(session, "and now?")
    await session.close()
    assert monotonic() - begun < 60
    assert types(session) == ["start", "user", "assistant", "user", "assistant"]


async def test_a_title_that_a_person_gave_stays(stage):
    session = await named(stage, {"text": "Machine title", "delay_ms": 100})
    await seen(session, "why is the port 8143?")
    session.recorder.tape.rename("mine")
    await session._naming
    assert "usage" in types(session)
    assert session.recorder.tape.title() == "mine"


async def test_no_model_is_asked_where_a_person_gave_a_title_first(stage):
    session = await named(stage, {"text": "Machine title"})

    def rename(event):
        if isinstance(event, events.MessageEnd):
            session.recorder.tape.rename("mine")

    session.subscribe(rename)
    await seen(session, "why is the port 8143?")
    await session.close()
    assert types(session) == ["start", "user", "assistant"]


async def test_without_a_title_the_first_words_are_shown(stage):
    """A failure is silent."""
    failure = {"error": {"class": "RateLimited", "message": "later", "status": 429}}
    session = await named(stage, failure)
    told = []
    session.subscribe(told.append)
    await seen(session, "why is the port 8143?")
    await session._naming
    assert told[-1].stop_reason == "stop"
    assert session.recorder.tape.title() == "why is the port 8143?"


async def test_off_asks_no_model(stage):
    session = (await stage.host({"text": "one"}, title_model="off")).session
    session.ask_person()
    await seen(session, "why is the port 8143?")
    assert session._naming is None


async def test_an_unknown_model_ends_the_start(stage):
    with pytest.raises(UnknownModel, match="nonsense"):
        await stage.host({"text": "one"}, title_model="nonsense")


@pytest.mark.parametrize(
    ("model", "environ", "has_person", "namer"),
    [
        ("anthropic/claude-opus-5-5", {}, True, "anthropic/claude-haiku-5-5"),
        ("openai/gpt-6.1-sol", {}, True, "openai/gpt-6-luna"),
        ("anthropic/claude-opus-5-5", {}, False, None),
        ("anthropic/x", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, True, None),
        ("ollama/llama4", {}, True, None),
        ("offline/rules", {}, True, None),
    ],
)
async def test_the_small_model_of_the_provider_titles_by_default(
    stage, model, environ, has_person, namer
):
    """Where a person is there, and at the provider's own address: a gateway need not have it."""
    keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
    settings = Settings(model=model)
    host = await open_session(stage.front_end(settings, {**stage.environ, **keys, **environ}))
    chosen = host.session.setup.choose_namer(host.session.setup.model, has_person)
    assert (chosen and chosen.name) == namer
    await host.close()


def test_small_models_are_priced():
    """A title must not cost more than is known."""
    from gong.llm.models import Catalogue

    catalogue = Catalogue.from_rows({})
    for name, preset in load_presets({}).items():
        if preset.small_model:
            owner = preset.key_of or name
            small = catalogue.find_info(f"{owner}/{preset.small_model}")
            assert small is not None
            assert small.price is not None
            assert small.price.output <= 3
