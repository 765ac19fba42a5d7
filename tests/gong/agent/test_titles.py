from __future__ import annotations

from gong.agent import events
from tests.gong.agent.conftest import seen, types


async def named(stage, *answers, **more):
    """Return a host whose titles come from a script of their own."""
    titles = await stage.host(*answers)
    name = f"{titles.session.setup.model.provider}/{titles.session.setup.model.id}"
    return (await stage.host({"text": "one"}, {"text": "two"}, title_model=name, **more)).session


async def test_a_cheap_model_names_a_new_session_once(stage):
    """A title from the first prompt; its tokens stand beside the conversation."""
    session = await named(stage, {"text": '"Fixing the port."\n'}, {"text": "never"})
    told = await seen(session, "why is the port 8143?")
    assert [event.title for event in told if isinstance(event, events.SessionNamed)] == [
        "Fixing the port"
    ]
    assert session.recorder.tape.title() == "Fixing the port"
    assert types(session) == ["start", "user", "assistant", "usage"]
    await seen(session, "and now?")
    assert session.recorder.tape.title() == "Fixing the port"
    assert isinstance(told[-1], events.RunEnd)


async def test_a_title_that_a_person_gave_stays(stage):
    session = await named(stage, {"text": "Machine title", "delay_ms": 100})

    def rename(event):
        if isinstance(event, events.MessageEnd):
            session.recorder.tape.rename("mine")

    session.subscribe(rename)
    await seen(session, "why is the port 8143?")
    assert session.recorder.tape.title() == "mine"


async def test_without_a_title_the_first_words_are_shown(stage):
    failure = {"error": {"class": "RateLimited", "message": "later", "status": 429}}
    session = await named(stage, failure)
    told = await seen(session, "why is the port 8143?")
    assert told[-1].stop_reason == "stop"
    assert session.recorder.tape.title() == "why is the port 8143?"
