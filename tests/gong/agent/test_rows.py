"""Rows of the mission about the loop, its events and its sessions, each seen from outside."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing, suppress
from dataclasses import replace

import pytest

from gong.agent import events
from gong.agent.session import SessionState
from gong.errors import SessionBusy, SessionClosed
from gong.llm.types import ToolCallDelta
from tape.model.entries import Assistant, Error, Repair, ToolResult, join_texts
from tests.gong.agent.conftest import call, seen, types


def names(found):
    return [type(event).__name__ for event in found]


def listen(session):
    """Keep every request that goes to the model from now on, and every event of its stream."""
    requests, streamed, model = [], [], session.setup.model

    async def stream(request):
        requests.append(request)
        async with aclosing(model.stream(request)) as inner:
            async for event in inner:
                streamed.append(event)
                yield event

    session.use_model(replace(model, stream=stream))
    return requests, streamed


def roles(request):
    return [message.role for message in request.messages]


def on(session, kind, do):
    """Do something once, at the first event of a kind."""

    def watch(event):
        if isinstance(event, kind):
            leave()
            do()

    leave = session.subscribe(watch)


async def test_follow_ups_are_served_one_by_one_when_calls_and_words_are_used_up(stage):
    """M001: the inner loop runs out before the outer one goes on; the run ends once, last."""
    look = {"tool_calls": [call("ls", path=".")]}
    session = await stage.session(look, look, {"text": "1"}, look, {"text": "2"}, {"text": "3"})
    session.follow_up("second")
    session.follow_up("third")
    found = await seen(session, "first")
    assert types(session) == [
        *("start", "user"),
        *("assistant", "approval", "tool.start", "tool.result") * 2,
        *("assistant", "context"),
        *("assistant", "approval", "tool.start", "tool.result"),
        *("assistant", "context", "assistant"),
    ]
    assert names(found).count("RunEnd") == 1
    assert (found[-1].stop_reason, found[-1].turns) == ("stop", 6)
    assert session.list_queued() == ()


async def test_a_turn_injects_mends_asks_runs_and_goes_round_in_this_order(stage):
    """M002: what waits comes in first, then the view is mended, then the model is asked."""
    session = await stage.session(
        {"tool_calls": [call("bash", command="sleep 60"), call("bash", command="echo never")]},
        {"tool_calls": [call("bash", command="echo hi")]},
        {"text": "done"},
    )
    on(session, events.ToolExecutionStart, session.abort)
    await seen(session, "begin")
    requests, _ = listen(session)
    session.steer("mind the gap")
    before = len(types(session))
    found = await seen(session, "go on")
    # The model is told of the stop; the second call never ran, so it gets a placeholder result.
    assert types(session)[before:] == [
        *(
            "context",
            "user",
            "context",
            "repair",
            "assistant",
            "approval",
            "tool.start",
            "tool.result",
            "assistant",
        ),
    ]
    assert [roles(request) for request in requests] == [
        ["user", "assistant", "tool", "tool", *["user"] * 3],
        ["user", "assistant", "tool", "tool", *["user"] * 3, "assistant", "tool"],
    ]
    order = [name for name in names(found) if name not in {"MessageUpdate", "ToolExecutionUpdate"}]
    assert order == [
        *("UserInput", "RunStart", "SteeringInjected"),
        *("TurnStart", "AgentState", "MessageStart", "MessageEnd"),
        *("AgentState", "ToolExecutionStart", "ToolExecutionEnd", "TurnEnd"),
        *("TurnStart", "AgentState", "MessageStart", "MessageEnd", "TurnEnd"),
        *("AgentState", "RunEnd"),
    ]


@pytest.mark.parametrize("stop", ["error", "aborted"])
async def test_an_error_and_a_stop_end_the_run_immediately(stage, stop):
    """M003: what waits is neither served nor lost."""
    failing = {"error": {"class": "InvalidRequest", "message": "no"}, "delay_ms": 20}
    session = await stage.session(failing, {"text": "one"}, {"text": "two"})
    session.follow_up("later")
    if stop == "aborted":
        on(session, events.TurnStart, session.abort)
    found = await seen(session, "go")
    assert (found[-1].stop_reason, found[-1].turns) == (stop, 1)
    assert session.list_queued() == ("later",)
    assert types(session) == ["start", "user", "error"]
    await seen(session, "again")
    assert session.list_queued() == ()
    assert types(session)[3:] == ["context", "user", "assistant", "context", "assistant"]


async def test_an_answer_without_calls_ends_the_run_when_nothing_waits(stage):
    """M003"""
    session = await stage.session({"text": "one"}, {"text": "never asked for"})
    assert (await seen(session, "go"))[-1].turns == 1
    assert types(session) == ["start", "user", "assistant"]


async def test_an_answer_grows_while_it_streams_and_is_whole_at_its_end(stage):
    """Its pieces make up its blocks; one entry is written, when it has ended."""
    script = {"blocks": [{"type": "thinking", "text": "hm, hm"}, {"type": "text", "text": "so"}]}
    session = await stage.session({**script, "chunk": 2})
    entries = []
    session.subscribe(lambda _: entries.append(len(session.recorder.path)))
    found = await seen(session, "go")
    grown: dict[tuple[str, int], str] = {}
    for event in found:
        if isinstance(event, events.MessageUpdate):
            grown[event.kind, event.block] = grown.get((event.kind, event.block), "") + event.delta
    assert list(grown.values()) == ["hm, hm", "so"]
    (end,) = (event for event in found if isinstance(event, events.MessageEnd))
    assert [block.text for block in end.content] == ["hm, hm", "so"]
    answer = session.recorder.path[-1]
    assert (answer.id, answer.data.content) == (end.entry, end.content)
    at_end = names(found).index("MessageEnd")
    assert (set(entries[:at_end]), set(entries[at_end:])) == ({1, 2}, {3})


async def test_a_run_that_had_to_try_again_has_ended_when_its_tools_have(stage):
    """M007 J9-4.7: pi #1465; nothing says that it is over while a tool runs."""
    session = await stage.session(
        {"error": {"class": "ServerError", "message": "busy", "retry_after": 0.01}},
        {"tool_calls": [call("bash", command="sleep 0.1; echo ran >mark")]},
        {"text": "done"},
    )
    states = []
    session.subscribe(
        lambda event: states.append((type(event).__name__, session.state.value)),
    )
    await seen(session, "go")
    assert (stage.folder / "mark").exists()
    order = [name for name, _ in states]
    assert order.index("Warn") < order.index("ToolExecutionEnd") < order.index("RunEnd")
    assert {state for _, state in states} == {"processing"}
    assert session.state is SessionState.IDLE


async def test_a_later_prompt_is_asked_with_the_tools_results_of_an_earlier_one(stage):
    """M007 J9-1.8: several inputs one after another keep the context."""
    (stage.folder / "a.txt").write_text("the word is gong\n")
    session = await stage.session(
        {"tool_calls": [call("read", path="a.txt")]}, {"text": "read"}, {"text": "gong"}
    )
    requests, _ = listen(session)
    await seen(session, "read it")
    await seen(session, "what is the word?")
    assert roles(requests[-1]) == ["user", "assistant", "tool", "assistant", "user"]
    assert "the word is gong" in str(requests[-1].messages[2])


LONG = {
    "a model that says nothing": [{"text": "late", "delay_ms": 900_000}],
    "an answer": [{"text": "x" * 900, "chunk": 1, "chunk_delay_ms": 200}],
    "a wait before another try": [
        {"error": {"class": "RateLimited", "message": "later", "retry_after": 30}}
    ],
    "a command": [{"tool_calls": [call("bash", command="echo $$ > pid; cat pid; exec sleep 900")]}],
}
BEGUN = {
    "a model that says nothing": events.TurnStart,
    "an answer": events.MessageUpdate,
    "a wait before another try": events.Warn,
    "a command": events.ToolExecutionUpdate,
}


async def until_gone(pid):
    """Wait for the end of a process; the test's time limit is the only one."""
    with suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("case", LONG)
async def test_every_slow_step_can_be_stopped(stage, case):
    """M021: and the session goes on."""
    session = await stage.session(*LONG[case], {"text": "here again"})
    on(session, BEGUN[case], session.abort)
    async with asyncio.timeout(25):
        found = await seen(session, "go")
    assert names(found)[-1] == "RunEnd"
    assert session.state is SessionState.IDLE
    pid = stage.folder / "pid"
    if pid.exists():  # several updates may stop it twice: then nobody waits for its end
        await until_gone(int(pid.read_text()))
    again = await seen(session, "are you there?")
    assert (again[-1].stop_reason, join_texts(session.recorder.path[-1].data.content)) == (
        "stop",
        "here again",
    )


async def test_words_come_in_as_a_prompt_between_tools_and_after_the_answer(stage):
    """M026 J9-3.1: the three ways, in one run."""
    session = await stage.session(
        {"tool_calls": [call("ls", path="."), call("bash", command="echo never")]},
        {"text": "one"},
        {"text": "two"},
    )
    requests, _ = listen(session)

    def speak():
        session.follow_up("afterwards")
        session.steer("not that")

    on(session, events.ToolExecutionStart, speak)
    found = await seen(session, "begin")
    said = [(e.text, e.origin) for e in found if isinstance(e, events.SteeringInjected)]
    assert said == [("not that", "steering"), ("afterwards", "follow_up")]
    assert [roles(request)[-1] for request in requests] == ["user"] * 3
    assert types(session)[-4:] == ["context", "assistant", "context", "assistant"]


async def test_all_who_watch_see_every_event_in_the_same_order(stage):
    """M032: many watchers, one of which comes late and leaves early."""
    session = await stage.session(
        {"tool_calls": [call("bash", command="echo hi")]}, {"text": "done"}
    )
    seen_by: list[list] = [[], [], []]
    leave_early = []
    session.subscribe(seen_by[0].append)
    session.subscribe(seen_by[1].append)

    def come_late():
        leave_early.append(session.subscribe(seen_by[2].append))

    def leave():
        leave_early.pop()()

    on(session, events.MessageEnd, come_late)
    on(session, events.ToolExecutionEnd, leave)
    found = await seen(session, "go")
    assert seen_by[0] == seen_by[1] == found
    assert set(names(found)) == {
        *("RunStart", "TurnStart", "MessageStart", "MessageUpdate", "MessageEnd"),
        *("ToolExecutionStart", "ToolExecutionUpdate", "ToolExecutionEnd"),
        *("TurnEnd", "RunEnd", "SessionStart", "UserInput", "AgentState"),
    }
    assert {"ToolExecutionStart", "ToolExecutionUpdate"} <= set(names(seen_by[2]))
    assert not {"RunStart", "RunEnd"} & set(names(seen_by[2]))


async def test_the_end_of_a_tool_carries_all_of_its_output_and_the_model_gets_a_part(stage):
    """M034: a call that fails carries its error."""
    session = await stage.session(
        {"tool_calls": [call("bash", command="seq 1 9000"), call("read", path="none")]},
        {"text": "ok"},
    )
    requests, _ = listen(session)
    found = await seen(session, "go")
    long, failed = (event for event in found if isinstance(event, events.ToolExecutionEnd))
    assert long.full == "".join(f"{n}\n" for n in range(1, 9001))
    assert "[Showing lines 7001-9000 of 9000." in join_texts(long.content)
    assert "\\n6999\\n" not in str(requests[-1].messages)
    assert (failed.is_error, failed.full) == (True, None)
    assert "ENOENT" in join_texts(failed.content)


async def test_arguments_are_shown_while_the_model_writes_them(stage):
    """Each piece as it comes; together they are the arguments."""
    session = await stage.session(
        {"tool_calls": [call("bash", command="echo 'hello there'")], "chunk": 4}, {"text": "ok"}
    )
    _, streamed = listen(session)
    found = await seen(session, "go")
    pieces = [
        event.delta
        for event in found
        if isinstance(event, events.MessageUpdate) and event.part == "tool_call" and event.delta
    ]
    assert pieces == [event.delta for event in streamed if isinstance(event, ToolCallDelta)]
    assert len(pieces) > 3
    (answer, *_) = [e.data for e in session.recorder.path if isinstance(e.data, Assistant)]
    assert "".join(pieces).encode() == bytes(answer.content[0].args)


class TestTheSevenThatTheSeedLeftToItsFramework:
    """M215"""

    async def test_a_session_begins_idle_and_ends_closed_for_good(self, stage):
        session = await stage.session({"text": "hi"})
        assert session.state is SessionState.IDLE
        await seen(session, "hello")
        await session.close()
        await session.close()
        assert session.state is SessionState.CLOSED
        with pytest.raises(SessionClosed):
            await seen(session, "hello?")

    async def test_recorded_words_survive_a_session_that_was_never_closed(self, stage):
        first = await stage.session({"tool_calls": [call("bash", command="echo; sleep 60")]})
        begun = asyncio.Event()
        on(first, events.ToolExecutionUpdate, begun.set)
        run = asyncio.create_task(seen(first, "go"))
        await begun.wait()
        with stage.reopened() as recorder:
            assert recorder.path == first.recorder.path
            host = await stage.host({"text": "back"}, recorder=recorder)
            await seen(host.session, "go on")
            (repair,) = [e.data for e in recorder.path if isinstance(e.data, Repair)]
            assert len(repair.injected) == 1
            assert recorder.path[-1].type == "assistant"
        first.abort()
        await run

    async def test_effects_come_in_the_order_of_their_calls(self, stage):
        calls = [call("bash", command=f"sleep 0.0{9 - n}; echo {n} >>order") for n in range(4)]
        session = await stage.session({"tool_calls": calls}, {"text": "done"})
        await seen(session, "go")
        assert (stage.folder / "order").read_text() == "0\n1\n2\n3\n"

    async def test_it_is_processing_from_the_prompt_to_the_end_of_the_run_however_it_ends(
        self, stage
    ):
        session = await stage.session({"text": "a"}, {"error": {"class": "InvalidRequest"}})
        states = []
        session.subscribe(lambda event: states.append(session.state))
        for _ in range(2):
            assert session.state is SessionState.IDLE
            await seen(session, "go")
            assert set(states) == {SessionState.PROCESSING}
        assert session.state is SessionState.IDLE

    async def test_the_limit_of_rounds_ends_it_softly_and_the_next_prompt_counts_from_zero(
        self, stage
    ):
        look = {"tool_calls": [call("ls", path=".")]}
        session = await stage.session(look, look, {"text": "done"}, max_rounds=2)
        found = await seen(session, "go")
        assert [(e.limit, e.turns) for e in found if isinstance(e, events.TurnLimit)] == [
            ("round", 2)
        ]
        assert session.state is SessionState.IDLE
        assert (await seen(session, "go on"))[-1].stop_reason == "stop"

    async def test_a_host_continues_its_own_work_while_it_waits_for_the_answer(self, stage):
        session = await stage.session({"text": "late", "delay_ms": 60})
        run = asyncio.create_task(seen(session, "go"))
        steps = 0
        while not run.done():
            steps += 1
            await asyncio.sleep(0)
        assert steps > 3
        assert join_texts(session.recorder.path[-1].data.content) == "late"

    async def test_several_agents_work_in_parallel_without_sharing_history(self, stage):
        # Each command waits for those of all others: one after another they would never end.
        meet = "echo {0} >{0}; until [ -s 0 -a -s 1 -a -s 2 -a -s 3 ]; do sleep 0.02; done; cat {0}"
        sessions = [
            await stage.session(
                {"tool_calls": [call("bash", command=meet.format(n))]}, {"text": str(n)}
            )
            for n in range(4)
        ]
        await asyncio.gather(*(seen(one, f"prompt {n}") for n, one in enumerate(sessions)))
        assert len({one.recorder.tape.id for one in sessions}) == 4
        for n, one in enumerate(sessions):
            path = [entry.data for entry in one.recorder.path]
            (result,) = [data for data in path if isinstance(data, ToolResult)]
            assert (join_texts(result.content), join_texts(path[-1].content)) == (f"{n}\n", str(n))
            assert not [data for data in path if isinstance(data, Error)]


async def test_a_second_prompt_neither_disturbs_nor_ends_the_first(stage):
    """M006 J9-4.1: pi #403."""
    session = await stage.session({"text": "a long answer", "chunk": 1, "chunk_delay_ms": 5})
    refused = []

    async def second():
        with pytest.raises(SessionBusy):
            await seen(session, "two")
        refused.append(True)

    tasks = []
    on(session, events.MessageUpdate, lambda: tasks.append(asyncio.create_task(second())))
    await seen(session, "one")
    await asyncio.gather(*tasks)
    assert refused == [True]
    assert join_texts(session.recorder.path[-1].data.content) == "a long answer"
