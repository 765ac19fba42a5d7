"""An answer that repeats its text is ended, kept and told."""

from __future__ import annotations

from gong.repl.draw.notices import describe_limit
from tape.model.entries import Assistant, join_texts
from tests.gong.agent.conftest import seen, types

ENDLESS = {"text": "Let me look at this once more. " * 2_000}


async def test_an_answer_that_repeats_itself_ends_softly_c14(stage):
    """C14: what came so far is kept; a new prompt continues."""
    session = await stage.session(ENDLESS, {"text": "better"})
    happened = await seen(session, "go")
    [told] = [event for event in happened if event.kind == "loop_detection"]
    assert (told.what, told.stopped) == ("text", True)
    assert describe_limit(told) == (
        "stopped: the answer repeats the same text; a new prompt continues (gong chat -c)"
    )
    [answer] = [one.data for one in session.recorder.path if isinstance(one.data, Assistant)]
    assert 3_000 <= len(join_texts(answer.content)) < 6_000
    assert (answer.stop_reason, answer.partial) == ("stop", True)
    assert happened[-1].kind == "agent_end"
    assert happened[-1].stop_reason == "stop"
    await seen(session, "again")
    assert types(session)[-2:] == ["user", "assistant"]


async def test_a_session_may_let_answers_repeat_themselves(stage):
    session = await stage.session(ENDLESS, loop_detection=False)
    happened = await seen(session, "go")
    assert not [event for event in happened if event.kind == "loop_detection"]
    [answer] = [one.data for one in session.recorder.path if isinstance(one.data, Assistant)]
    assert join_texts(answer.content) == ENDLESS["text"]
