"""What the next request is after a stop at forty moments of a turn that has everything."""

import asyncio
import json
from contextlib import aclosing, suppress
from dataclasses import replace
from itertools import pairwise, product

import pytest

from gong.agent import events
from gong.agent.recorder import find_newest_anchor
from gong.errors import ConfigurationError
from tape.formats.registry import FORMATS
from tape.model.entries import join_texts
from tests.gong.agent.conftest import Stage, call, seen
from tests.gong.agent.test_compaction import GOOD, noise
from tests.gong.agent.test_stops import MOMENTS, read_words

EDIT = call("edit", path="a.txt", oldText="one", newText="two")


QUESTION = {"question": "Which store?", "options": [{"label": "SQLite"}, {"label": "Postgres"}]}
WIRES = {
    "anthropic/claude-sonnet-4-5": ("anthropic", "messages"),
    "openai/gpt-5": ("openai-responses", "input"),
    "openai-chat/gpt-4o": ("openai-chat", "messages"),
    "google/gemini-2.5-pro": ("gemini", "contents"),
}
"""Model → its array format, and the field that holds the array."""
LATER = "and then this"
PROMPTS = {"change the file", LATER, "and now this"}


def write_turn(stage):
    """Return a turn of all kinds: thinking, tools, a question, a sub-agent, a compaction."""
    child = stage.folder.parent / "child.json"
    looks = {"text": "I look.", "tool_calls": [call("read", path="a.txt")]}
    child.write_text(json.dumps([looks, {"text": "The child is done."}]))
    task = call("Task", prompt="count", description="count", model=f"scripted/{child}")
    overflow = {"error": {"class": "ContextLengthExceeded", "message": "too long", "status": 400}}
    return (
        {"thinking": "First I look around.", "text": "I look at the file.", "chunk": 9}
        | {"tool_calls": [call("read", path="a.txt"), call("bash", command="echo out")]},
        {"text": "Which one?", "tool_calls": [call("ask_user", questions=[QUESTION])]},
        {"text": "A child counts.", "tool_calls": [task]},
        overflow,
        {"text": GOOD, "chunk": 400},
        {"text": "I change it.", "tool_calls": [EDIT]},
        {"text": "It says two now, and the rest is as it was.", "chunk": 9},
        {"text": "And that is done, too.", "chunk": 9},
    )


async def play_long_turn(folder, moment):
    """Play it with a follow-up that waits; stop at its event `moment`, then prompt again."""
    folder.mkdir()
    stage = Stage(folder)
    (stage.folder / "a.txt").write_text("one\n")
    host = await stage.host(*([{"text": f"answer {n} {noise(n, 60)}"} for n in range(5)]))
    session = host.session
    for number in range(5):
        await seen(session, f"prompt {number}: {noise(number, 60)}")
    turn = await stage.host(*write_turn(stage))
    session.use_model(turn.session.setup.model)
    session.ask_person()
    loop, found = asyncio.get_running_loop(), []

    def answer(event):
        with suppress(ConfigurationError):  # it was stopped since
            session.answer(event.question_id, [("SQLite",)])

    def watch(event):
        found.append(event)
        if isinstance(event, events.RunStart):
            session.follow_up(LATER)
        if len(found) == moment:
            session.abort()
        elif isinstance(event, events.QuestionAsked):
            loop.call_soon(answer, event)

    leave = session.subscribe(watch)
    await asyncio.wait_for(seen(session, "change the file"), 60)
    leave()
    return stage, host, found


async def read_next_request(host, stage):
    """Return the request that a next prompt makes."""
    requests, session = [], host.session
    final = await stage.host(*[{"text": "yes"}] * 3)
    model = final.session.setup.model

    async def stream(request):
        requests.append(request)
        async with aclosing(model.stream(request)) as inner:
            async for event in inner:
                yield event

    session.use_model(replace(model, stream=stream))
    await seen(session, "and now this")
    return requests


@pytest.mark.slow
async def test_wherever_a_long_turn_is_stopped_the_next_request_is_accepted(tmp_path):
    """By every wire; no prompt is lost, none becomes one with another, and read text is kept."""
    stage, _, found = await play_long_turn(tmp_path / "whole", None)
    for host in stage.hosts:
        await host.close()
    kinds = {event.kind for event in found}
    assert {"question", "compaction_end", "tool_end", "subagent_end"} <= kinds, kinds
    for number in range(MOMENTS):
        moment = 1 + (len(found) - 2) * number // (MOMENTS - 1)
        stage, host, seen_events = await play_long_turn(tmp_path / str(number), moment)
        requests = await read_next_request(host, stage)
        where = f"stopped at event {moment}, {seen_events[min(moment, len(seen_events)) - 1].kind}"
        for (name, (form, field)), request in product(WIRES.items(), requests):
            body = json.loads(host.models.client.body(name, request))
            assert FORMATS[form].check(body[field]) == [], (where, name)
        told = [join_texts(message.content) for message in requests[0].messages]
        assert told[-1] == "and now this", where
        assert "change the file" in told or find_newest_anchor(host.session.recorder.path), where
        told = [join_texts(message.content) for message in requests[-1].messages]
        prompts = [place for place, text in enumerate(told) if text in PROMPTS]
        assert all(after - before > 1 for before, after in pairwise(prompts)), (where, told)
        assert LATER in told, where  # it was sent before the stop, or waited behind it
        assert host.session.list_queued() == (), where
        if seen_events[-1].stop_reason == "aborted" and read_words(seen_events):
            assert any(read_words(seen_events) in text for text in told), where
        for one in stage.hosts:
            await one.close()
