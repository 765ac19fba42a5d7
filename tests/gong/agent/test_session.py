from __future__ import annotations

import asyncio

import pytest

from gong.agent import events
from gong.agent.session import SessionState
from gong.errors import ConfigurationError, SessionBusy, SessionClosed
from tape.blocks import text_of
from tape.entries import Assistant
from tape.errors import Busy

from .conftest import call, seen, types


async def test_nothing_is_on_disk_before_the_first_prompt(stage):
    session = await stage.session({"text": "hi"})
    assert stage.store.folders() == []
    await seen(session, "hello there")
    (name,) = stage.store.folders()
    assert "-hello-there-" in name


async def test_a_second_prompt_during_a_run_is_refused(stage):
    """M006: one run at a time."""
    session = await stage.session({"text": "slow", "delay_ms": 300})
    run = asyncio.create_task(seen(session, "one"))
    await asyncio.sleep(0.05)
    assert session.state is SessionState.PROCESSING
    with pytest.raises(SessionBusy):
        await seen(session, "two")
    await run
    assert session.state is SessionState.IDLE
    assert types(session) == ["start", "user", "assistant"]


async def test_an_empty_prompt_is_refused_and_leaves_nothing(stage):
    session = await stage.session({"text": "hi"})
    with pytest.raises(ConfigurationError):
        await seen(session, "  \n")
    assert session.state is SessionState.IDLE
    assert stage.store.folders() == []


async def test_leaving_the_events_early_stops_the_run(stage):
    session = await stage.session(
        {"tool_calls": [call("bash", command="sleep 60")]}, {"text": "ok"}
    )
    stream = session.submit("go")
    async with asyncio.timeout(10):
        async for event in stream:
            if isinstance(event, events.ToolExecutionStart):
                break
        await stream.aclose()
    assert session.state is SessionState.IDLE
    assert session.recorder.path[-1].type == "error"


async def test_steering_while_idle_comes_with_the_next_prompt(stage):
    """M028: words for an idle session are delivered with the next submit."""
    session = await stage.session({"text": "ok"})
    session.steer("be brief")
    await seen(session, "go")
    assert types(session) == ["start", "user", "context", "assistant"]


async def test_a_fork_goes_on_from_the_newest_entry_and_leaves_the_old_branch_alone(stage):
    session = await stage.session({"text": "one"}, {"text": "two"}, {"text": "three"})
    await seen(session, "first")
    main = session.recorder.head()
    branch = session.fork("try")
    await seen(session, "second")
    assert (branch, session.recorder.branch) == ("try", "try")
    tape = session.recorder.tape
    assert tape.head("main").entry == main.entry
    assert [e.type for e in tape.entries(tape.head("try"))] == [
        "start", "user", "assistant", "branch", "user", "assistant",
    ]  # fmt: skip


async def test_a_change_of_model_is_recorded(stage):
    """M024: a change of model stands on the tape."""
    first = await stage.host({"text": "one"})
    other = await stage.host({"text": "two"})
    await seen(first.session, "hi")
    first.session.use_model(other.session.setup.model)
    await seen(first.session, "and you?")
    assert types(first.session) == ["start", "user", "assistant", "model", "user", "assistant"]


async def test_a_closed_session_takes_no_prompt(stage):
    session = await stage.session({"text": "hi"})
    await session.close()
    await session.close()
    assert session.state is SessionState.CLOSED
    with pytest.raises(SessionClosed):
        await seen(session, "hello")


async def test_a_second_session_on_a_tape_writes_a_branch_of_its_own(stage):
    one = await stage.session({"text": "one"}, {"text": "one more"})
    await seen(one, "first")
    beside = stage.reopened()
    two = await stage.session({"text": "two"}, recorder=beside)
    assert (beside.writer.instead_of, beside.branch) == ("main", "main.2")
    await seen(two, "from the other side")
    await seen(one, "again")
    tape = one.recorder.tape
    said = {
        branch: [
            text_of(e.data.content)
            for e in tape.entries(tape.head(branch))
            if isinstance(e.data, Assistant)
        ]
        for branch in ("main", "main.2")
    }
    assert said == {"main": ["one", "one more"], "main.2": ["one", "two"]}
    with pytest.raises(Busy):
        stage.reopened("main")


async def test_a_script_that_ends_too_early_is_a_failure_with_its_reason(stage):
    session = await stage.session({"tool_calls": [call("ls", path=".")]})
    found = await seen(session, "go")
    (failure,) = [event for event in found if isinstance(event, events.Failure)]
    assert (failure.error_class, failure.exit_code) == ("ScriptEnded", 1)
    assert types(session)[-1] == "error"
