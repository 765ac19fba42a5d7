"""A run is stopped at each of its events: what is on the tape is complete, and the session goes on.

In a usual run each third event is taken, with TEST_BUDGET=2 every one.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from gong.config import PermissionSettings
from gong.tools.tool import AgentTool, AnyObject, ToolOutcome
from tape.check.finding import Counts
from tape.check.verify import verify
from tape.context.repair import repair
from tape.context.view import Target, view
from tape.model.entries import Assistant, ToolResult, ToolStart, join_texts, select_tool_calls
from tests.gong.agent.conftest import Stage, call, seen
from tests.tape.making import BUDGET

TURNS = (
    {
        "thinking": "First I look.",
        "text": "Looking.",
        "tool_calls": [call("read", path="a.txt"), call("ls")],
    },
    {"tool_calls": [call("edit", path="a.txt", oldText="one", newText="two")]},
    {"tool_calls": [call("bash", command="echo out; cat a.txt"), call("bash", command="false")]},
    {"tool_calls": [call("bash", command="touch asked")]},
    {"text": "Done."},
)
AFTER = ({"text": "again"},) * len(TURNS)
TARGET = Target("https://x.example", "anthropic", "model-x")


async def record_run(tmp_path, stop_at):
    """Play the turns, stopped at an event; return stage, session and the kinds of events."""
    tmp_path.mkdir()
    stage, kinds = Stage(tmp_path), []
    (stage.folder / "a.txt").write_text("one\n")
    rules = PermissionSettings(mode="default", allow=("Bash(echo:*)", "Bash(false)", "Edit"))
    session = await stage.session(*TURNS, *AFTER, permissions=rules)
    session.ask_person()
    session.steer("also this")

    def watch(event):
        kinds.append(event.kind)
        if event.kind == "approval_request":
            session.answer_approval(event.call_id, "once")
        if len(kinds) == stop_at:
            session.abort()

    session.subscribe(watch)
    await seen(session, "go")
    return stage, session, kinds


@pytest.mark.slow
def list_unbalanced_calls(path):
    """Return calls that have not exactly one result directly behind them, in their order."""
    messages = [*repair(view(path, ()), TARGET).messages]
    wrong = []
    while messages:
        message = messages.pop(0)
        wrong += [message] if message.role == "tool" else []
        for made in select_tool_calls(message.content):
            follows = messages.pop(0) if messages else None
            wrong += [] if getattr(follows, "call_id", None) == made.id else [made]
    return wrong


@pytest.mark.slow
async def test_a_run_that_is_stopped_at_any_event_leaves_a_balanced_tape(tmp_path):
    """Each call that was started has its result; the tape verifies; the next prompt is answered."""
    stage, _, kinds = await record_run(tmp_path / "whole", None)
    for host in stage.hosts:
        await host.close()
    assert {"tool_update", "approval_request", "message_update", "agent_end"} <= {*kinds}
    for stop_at in range(1, len(kinds) + 1, 1 if BUDGET > 1 else 3):
        stage, session, until = await record_run(tmp_path / str(stop_at), stop_at)
        where = f"stopped at event {stop_at}, {until[:stop_at][-1]}"
        assert session.state == "idle", where
        await session.close()
        with stage.reopened() as recorder:
            data = [one.data for one in recorder.path]
            started = {one.call_id for one in data if isinstance(one, ToolStart)}
            ended = [one.call_id for one in data if isinstance(one, ToolResult)]
            assert started <= {*ended}, where
            assert len(ended) == len({*ended}), where
            assert list_unbalanced_calls(recorder.path) == [], where
            assert [*verify(recorder.tape, Counts())] == [], where
        session = (await stage.host({"text": "again"}, recorder=stage.reopened())).session
        assert (await seen(session, "go on"))[-1].stop_reason == "stop", where
        assert isinstance(session.recorder.path[-1].data, Assistant), where
        for host in stage.hosts:
            await host.close()


async def test_many_calls_that_read_run_a_few_at_a_time_and_stop_together(tmp_path):
    """Of 300 calls side by side none is started after the stop, and each has its result."""
    stage = Stage(tmp_path)
    waiting = [call("watch", number=number) for number in range(300)]
    session = await stage.session({"tool_calls": waiting}, *AFTER)
    started, running, most = [], 0, 0

    async def watch(arguments, _context):
        nonlocal running, most
        started.append(arguments.value["number"])
        running += 1
        most = max(most, running)
        try:
            if len(started) <= 100:
                return ToolOutcome.from_text("seen")
            if len(started) == 100 + most:
                session.abort()
            await asyncio.Event().wait()
        finally:
            running -= 1

    schema = {"type": "object", "properties": {"number": {"type": "integer"}}}
    tool = AgentTool("watch", "Watches.", AnyObject, watch, replay="safe", schema=schema)
    session.setup.tools.register(tool)
    session.setup.tools.activate(("watch",))
    await seen(session, "go")
    assert (most, running) == (16, 0)
    assert sorted(started) == [*range(116)]
    done = [one.data for one in session.recorder.path if isinstance(one.data, ToolResult)]
    assert [join_texts(one.content) for one in done[:100]] == ["seen"] * 100
    assert list_unbalanced_calls(session.recorder.path) == []
    await session.close()


class SlowRecorder:
    """Finds what a call has changed, and never comes to its end."""

    checkpoint = None

    def __init__(self):
        self.finds = asyncio.Event()

    async def begin_call(self, prepared, env, blobs, path):
        return self

    async def find_changes(self):
        self.finds.set()
        await asyncio.sleep(3600)

    def close(self):
        pass


async def test_a_program_that_cancels_all_tasks_ends(stage):
    """As the end of an event loop does, also while it is looked for what a call changed."""
    session = await stage.session({"tool_calls": [call("bash", command="true")]}, {"text": "done"})
    recorder = SlowRecorder()
    session.setup = replace(session.setup, file_recorder=recorder)
    running = asyncio.create_task(seen(session, "go"))
    await recorder.finds.wait()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for one in others:
        one.cancel()
    done, waits = await asyncio.wait(others, timeout=20)
    assert (running in done, waits) == (True, set())
