"""Input that is typed while the agent works: on the tape, delivered, taken back, interrupting."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

import pytest

from gong.agent.compaction import CompactionRequest
from gong.agent.recorder import Recorder

from .conftest import call, seen, types

SLEEP = {"tool_calls": [call("bash", command="echo $$ >pid; echo begun; sleep 30; echo ended")]}


def customs(session):
    return [e.data.kind for e in session.recorder.path if e.type == "custom"]


def at_first(session, kind, act):
    """Call `act` with the first event of a kind."""
    left = [act]

    def watch(event):
        if event.kind == kind and left:
            left.pop()(event)

    session.subscribe(watch)


async def test_plain_steering_waits_for_the_tool_m026_c12(stage):
    session = await stage.session(
        {"tool_calls": [call("bash", command="sleep 0.3; echo ended"), call("ls", path=".")]},
        {"text": "done"},
    )
    at_first(session, "tool_start", lambda _: session.steer("other"))
    found = await seen(session, "go")
    first, second = [event for event in found if event.kind == "tool_end"]
    assert "ended" in first.content[0].text
    assert second.content[0].text == "Skipped due to queued user message"


async def test_steering_that_interrupts_stops_the_tool_and_the_run_continues_m030_c12(stage):
    """J9-1.4"""
    session = await stage.session(
        {"tool_calls": [*SLEEP["tool_calls"], call("ls", path=".")]}, {"text": "as you wish"}
    )
    at_first(session, "tool_update", lambda _: session.steer("stop that", interrupt=True))
    found = await seen(session, "go")
    stopped, skipped = [event for event in found if event.kind == "tool_end"]
    assert stopped.content[0].text.startswith("begun\n\nCommand aborted")
    assert stopped.is_error
    assert "ended" not in stopped.content[0].text
    with suppress(ProcessLookupError):
        while True:  # until the last process of the group is reaped
            os.killpg(int((stage.folder / "pid").read_text()), 0)
            await asyncio.sleep(0.02)
    assert skipped.content[0].text == "Skipped due to queued user message"
    assert found[-1].stop_reason == "stop"
    assert [e.type for e in session.recorder.path if e.type != "custom"][-2:] == [
        "context",
        "assistant",
    ]
    assert "error" not in types(session), "an interruption is no abort"


async def test_an_interruption_with_nothing_running_is_plain_steering(stage):
    session = await stage.session({"text": "done"})
    session.steer("also this", interrupt=True)
    found = await seen(session, "go")
    assert [e.text for e in found if e.kind == "steering_injected"] == ["also this"]


async def test_what_is_typed_is_on_the_tape_from_queueing_to_delivery(stage):
    session = await stage.session({"tool_calls": [call("ls", path=".")]}, {"text": "done"})
    kinds = []
    session.subscribe(lambda event: kinds.append(event.kind))
    on_disk = []

    def steer(_):
        session.steer("mind the gap")
        with stage.reopened() as other:
            on_disk.extend(e.data.kind for e in other.path if e.type == "custom")

    at_first(session, "tool_start", steer)
    found = await seen(session, "go")
    assert on_disk == ["gong.queued"], "another process sees it at once"
    assert customs(session) == ["gong.queued", "gong.delivered"]
    [queued] = [event for event in found if event.kind == "message_queued"]
    [delivered] = [event for event in found if event.kind == "steering_injected"]
    assert queued.queued == delivered.queued
    assert queued.text == delivered.text == "mind the gap"


@pytest.mark.parametrize("size", [10, 100_000])
async def test_what_waits_survives_a_crash_and_is_delivered_once(stage, size):
    text = "x" * size
    session = await stage.session({"text": "one"})
    await seen(session, "go")
    session.steer(text)
    session.follow_up("and then")
    # As after kill -9: nothing is closed, another process opens the tape.
    session.recorder.writer.close()
    again = await stage.session({"text": "two"}, {"text": "three"}, recorder=stage.reopened())
    assert again.list_queued() == (text, "and then")
    found = await seen(again, "hello")
    assert [e.text for e in found if e.kind == "steering_injected"] == [text, "and then"]
    await again.close()
    last = await stage.session({"text": "four"}, recorder=stage.reopened())
    assert last.list_queued() == ()


async def test_what_is_taken_back_is_not_delivered_and_not_found_again(stage):
    session = await stage.session({"text": "one"}, {"text": "two"})
    await seen(session, "go")
    message = session.steer("no, wait")
    assert session.withdraw(message.id) == "no, wait"
    assert session.withdraw(message.id) is None
    assert customs(session) == ["gong.queued", "gong.withdrawn"]
    await seen(session, "again")
    assert "context" not in types(session)


async def test_what_waits_goes_along_when_a_compaction_begins_a_phase(stage):
    """M204: a session is loaded again after a compaction."""
    session = await stage.session(*[{"text": "word " * 200}] * 4)
    for prompt in ("one", "two", "three"):
        await seen(session, prompt + " word" * 200)
    session.steer("later")
    async for _ in session.compact(CompactionRequest("user", hard=True)):
        pass
    await session.close()
    with stage.reopened() as recorder:
        assert isinstance(recorder, Recorder)
        assert recorder.path[0].type == "anchor"
    again = await stage.session({"text": "ok"}, recorder=stage.reopened())
    assert again.list_queued() == ("later",)
