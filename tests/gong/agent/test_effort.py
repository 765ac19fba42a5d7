"""M017 M146: how hard a model thinks, from the flag to the wire; and limits that are learned."""

import pytest

from gong.agent import events
from gong.assembly.opening import open_session
from gong.config import Settings
from tape.model.entries import Model
from tests.wires.server import WireServer, json_reply

from .conftest import call, seen

SONNET, GPT4O, GPT5 = "anthropic/claude-sonnet-4-5", "openai/gpt-4o", "openai/gpt-5"


def request_of(session):
    return session.build_run_context().prepare_next_call().request


async def described(stage, name, chosen=None, **settings):
    """Return a session whose model is described, and is not called."""
    host = await stage.host({"text": "one"}, **settings)
    await seen(host.session, "go")
    host.session.use_model(host.models.describe(name))
    host.session.use_effort(chosen)
    return host.session


@pytest.mark.parametrize(
    ("settings", "effort", "sent"),
    [
        ({}, None, "medium"),
        ({"effort": "none"}, None, None),
        ({}, "none", None),
        ({"effort": "low"}, None, "low"),
        ({"effort": "low", "models": {SONNET: {"effort": "high"}}}, None, "high"),
        ({"effort": "low", "models": {SONNET: {"effort": "high"}}}, "medium", "medium"),
        ({"effort": "low"}, "none", None),
        ({"effort": "low", "models": {SONNET: {"effort": "none"}}}, None, None),
    ],
)
async def test_the_session_goes_before_the_models_row_and_that_before_the_file(
    stage, settings, effort, sent
):
    """M017 M221: medium is the usual effort of a model that thinks only when it is told to."""
    session = await described(stage, SONNET, effort, **settings)
    assert request_of(session).reasoning_effort == sent


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("bedrock/us.anthropic.claude-sonnet-5-5", "medium"),
        ("openrouter/anthropic/claude-haiku-4.5", "medium"),
        ("openai/gpt-5.1", "medium"),
        (GPT5, None),
        (GPT4O, None),
        ("anthropic/claude-unheard-of", None),
    ],
)
async def test_other_models_are_asked_for_no_effort(stage, name, sent):
    """M221"""
    session = await described(stage, name, providers={"bedrock": {"region": "us-east-1"}})
    assert request_of(session).reasoning_effort == sent


async def test_a_change_holds_from_the_next_call_of_the_same_run(stage):
    """M017 M234: also in the middle of a run, and the tape shows where."""
    session = await stage.session(
        {"tool_calls": [call("ls")]}, {"tool_calls": [call("ls")]}, {"text": "done"}
    )
    sent = []

    def watch(event):
        if isinstance(event, events.TurnStart):
            sent.append(request_of(session).reasoning_effort)
        if isinstance(event, events.ToolExecutionEnd) and len(sent) == 1:
            session.use_effort("high")

    session.subscribe(watch)
    await seen(session, "go")
    assert sent == [None, "high", "high"]
    (change,) = (one.data for one in session.recorder.path if isinstance(one.data, Model))
    assert change.effort == "high"


async def test_a_session_keeps_its_effort(stage):
    host = await stage.host({"text": "one"}, {"text": "two"})
    host.session.use_effort("high")
    await seen(host.session, "go")
    await host.close()
    again = await stage.host({"text": "two"}, recorder=stage.reopened())
    assert again.session.setup.config.effort == "high"
    assert request_of(again.session).reasoning_effort == "high"


async def test_a_new_session_with_an_effort_still_gets_its_title(stage):
    title = stage.folder.parent / "title.json"
    title.write_text('[{"text": "A title"}]')
    session = await stage.session({"text": "one"}, title_model=f"scripted/{title}")
    session.use_effort("high")
    session.ask_person()
    await seen(session, "go")
    await session._naming
    assert session.recorder.tape.refs().title == "A title"


@pytest.mark.parametrize(
    ("name", "sent", "words"),
    [(GPT4O, None, "openai/gpt-4o takes no effort"), (GPT5, "high", "has no effort xhigh: high")],
)
async def test_a_model_without_effort_is_not_sent_one_and_the_user_is_warned(
    stage, name, sent, words
):
    session = await described(stage, name, "xhigh")
    prepared = session.build_run_context().prepare_next_call()
    assert prepared.request.reasoning_effort == sent
    assert words in prepared.remark


async def test_the_warning_comes_once(stage):
    session = await stage.session(
        *[{"text": "one"}] * 3, models={f"scripted/{stage.folder.parent}/script0.json": {}}
    )
    context = session
    session.use_effort("high")
    name = session.setup.model.name
    assert context.setup.model.reasons is None
    session.use_model(
        type(session.setup.model)(
            **{
                **{
                    field: getattr(session.setup.model, field)
                    for field in session.setup.model.__slots__
                },
                "reasons": False,
            }
        )
    )
    told = [one for _ in range(3) for one in await seen(session, "go")]
    said = [one.message for one in told if isinstance(one, events.Warn)]
    assert said == [f"{name} takes no effort: high is left out"]


async def test_an_answer_may_be_as_long_as_the_model_can_and_the_window_has_room(stage):
    session = await described(stage, SONNET)
    assert request_of(session).max_tokens == 64_000
    small = {SONNET: {"context_window": 20_000}}
    tight = await described(stage, SONNET, models=small)
    assert 4_096 <= request_of(tight).max_tokens < 20_000
    assert request_of(await described(stage, GPT5)).max_tokens is None


@pytest.mark.parametrize(
    ("name", "asked", "sent"),
    [(SONNET, 9_000, 9_000), (SONNET, 90_000, 64_000), (GPT5, 9_000, 9_000), (GPT5, 0, None)],
)
async def test_a_session_may_limit_an_answer_below_the_models_own_limit(stage, name, asked, sent):
    """In each wire's own field, as from config.toml so from the library, from the next call on."""
    session = await described(stage, name, max_output_tokens=asked)
    assert request_of(session).max_tokens == sent
    session.configure(max_output_tokens=5_000)
    assert request_of(session).max_tokens == 5_000


OVERFLOW = {"class": "ContextLengthExceeded", "status": 400}


@pytest.mark.parametrize(
    ("message", "learned"),
    [("maximum context length is 9000 tokens", 9_000), ("too long", None)],
)
async def test_a_window_is_learned_from_the_first_overflow(stage, message, learned):
    """Where the message names none, it is estimated by what did not fit."""
    long = {"text": " ".join(f"word {n}" for n in range(2_000))}
    session = await stage.session(
        long, long, {"error": {**OVERFLOW, "message": message}}, *[{"text": "## Goal\nx"}] * 4
    )
    for _ in range(3):
        told = await seen(session, "go")
    window = session.build_run_context().window
    assert window == learned if learned else 4_000 < window < 20_000
    said = [one.message for one in told if isinstance(one, events.Warn)]
    assert any(f"is {window:,} tokens, as this overflow shows" in one for one in said)
    assert any(isinstance(one, events.CompactionEnd) for one in told)


@pytest.mark.parametrize(
    ("settings", "warns"),
    [
        ({}, True),
        ({"context_window": 32_000}, False),
        ({"models": {"house/llm": {"context_window": 32_000}}}, False),
    ],
)
async def test_an_unknown_window_is_reported_once(stage, settings, warns):
    async with WireServer(json_reply(400, {}), json_reply(400, {})) as server:
        providers = {"house": {"api": "openai-chat", "base_url": server.url}}
        settings = Settings(model="house/llm", providers=providers, **settings)
        host = await open_session(stage.front_end(settings, {"HOME": "/x"}))
        stage.hosts.append(host)
        told = [*await seen(host.session, "go"), *await seen(host.session, "go")]
    said = [one for one in told if isinstance(one, events.Warn) and "is unknown" in one.message]
    assert len(said) == warns


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("openai/gpt-5", "high"),
        ("openai/gpt-4.99", "high"),
        ("anthropic/claude-opus-4-6", "high"),
        ("openrouter/anthropic/claude-sonnet-4.6", "high"),
        ("google/gemini-3.8-flash", "high"),
        ("openai-chat/some", "high"),
        ("groq/openai/gpt-oss-120b", "high"),
        ("openai/gpt-6-astra", "xhigh"),
        ("anthropic/claude-later", "xhigh"),
        ("google/gemini-later", "xhigh"),
    ],
)
async def test_xhigh_goes_to_models_that_may_know_it(stage, name, sent):
    """The highest that an unknown model of an OpenAI API surely knows is high; it is said."""
    session = await described(stage, name, "xhigh")
    prepared = session.build_run_context().prepare_next_call()
    assert prepared.request.reasoning_effort == sent
    remark = prepared.remark and prepared.remark.endswith("has no effort xhigh: high is used")
    assert bool(remark) == (sent == "high")
