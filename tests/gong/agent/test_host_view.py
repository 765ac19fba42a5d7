"""What a host reads of a session, and what it changes between two turns."""

from __future__ import annotations

import asyncio
import os
import uuid
from contextlib import aclosing
from dataclasses import replace

import pytest
from msgspec import Raw

from gong.agent import events
from gong.agent.session import SessionState
from gong.agent.session_config import SessionConfig
from gong.llm.types import ToolChoice
from tape.model.entries import (
    Assistant,
    Context,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    join_texts,
)
from tests.gong.agent.conftest import call, seen
from tests.gong.env.memory import MemoryEnvironment


def watch_calls(model, calls):
    """Return the model; each request that goes to it is kept with its name."""

    async def stream(request):
        calls.append((model.name, request))
        async with aclosing(model.stream(request)) as inner:
            async for event in inner:
                yield event

    return replace(model, stream=stream)


async def test_the_record_of_a_session_has_every_part(stage):
    """M010: id, profile, environment, history, events, config, state, client and both queues."""
    session = await stage.session({"text": "hi"}, max_turns=9)
    kinds = []
    session.subscribe(lambda event: kinds.append(event.kind))
    await seen(session, "hello")
    session.steer("be brief")
    session.follow_up("and then?")
    setup = session.setup
    assert uuid.UUID(session.recorder.tape.id).hex == session.recorder.tape.id
    assert (setup.model.profile, setup.env.working_directory) == ("default", str(stage.folder))
    assert [(one.role, join_texts(one.content)) for one in session.list_messages()] == [
        ("user", "hello"),
        ("assistant", "hi"),
    ]
    assert (kinds[0], kinds[-3:]) == (
        "session_start",
        ["agent_end", "message_queued", "message_queued"],
    )
    assert setup.config == SessionConfig(max_turns=9, read_before_write=True)
    assert (session.state, callable(setup.model.stream)) == (SessionState.IDLE, True)
    assert [(one.origin, one.text) for one in session.list_waiting()] == [
        ("steering", "be brief"),
        ("follow_up", "and then?"),
    ]
    assert session.subagents == {}


async def test_a_host_changes_effort_model_timeout_and_environment_between_two_turns(stage):
    """M009: each holds for the next call; the history stays."""
    first = await stage.host({"text": "one"})
    second = await stage.host(
        {"tool_calls": [call("bash", command="echo begun; sleep 30")]},
        {"tool_calls": [call("read", path="a.txt")]},
        {"text": "two"},
    )
    session, calls = first.session, []
    names = [host.session.setup.model.name for host in (first, second)]
    session.use_model(watch_calls(session.setup.model, calls))
    await seen(session, "begin")
    session.configure(effort="high", default_command_timeout_ms=300)
    session.use_model(watch_calls(second.session.setup.model, calls))
    elsewhere = MemoryEnvironment({"a.txt": b"of another place\n"}, str(stage.folder))
    session.subscribe(lambda event: event.kind == "turn_end" and session.use_environment(elsewhere))
    await seen(session, "again")
    assert [name for name, _ in calls] == [names[0], *[names[1]] * 3]
    assert [request.reasoning_effort for _, request in calls] == [None, "high", "high", "high"]
    assert [len(request.messages) for _, request in calls] == [1, 3, 5, 7]
    found = [e.data for e in session.recorder.path if isinstance(e.data, ToolResult)]
    assert [join_texts(one.content) for one in found] == [
        "begun\n\nCommand timed out after 0.3 seconds",
        "of another place\n",
    ]


async def test_a_watcher_gets_what_callbacks_of_a_screen_would(stage):
    """M038: text, thinking, use and result of a tool, start and end of a message, error."""
    session = await stage.session(
        {
            "thinking": "hm",
            "text": "I look.",
            "chunk": 99,
            "tool_calls": [call("ls", path=".")],
        },
        {"error": {"class": "InvalidRequest", "message": "no more"}},
    )
    happened = []

    def watch(event):
        match event:
            case events.MessageStart():
                happened.append(("message start",))
            case events.MessageUpdate(part="text" | "thinking", delta=delta):
                happened.append((event.part, delta))
            case events.MessageEnd(stop_reason=reason):
                happened.append(("message end", reason))
            case events.ToolExecutionStart(name=name, args=args):
                happened.append(("tool use", name, bytes(args)))
            case events.ToolExecutionEnd(name=name, content=content):
                happened.append(("tool result", name, join_texts(content)))
            case events.RunFailure(message=message):
                happened.append(("error", message))

    session.subscribe(watch)
    await seen(session, "go")
    assert happened == [
        ("message start",),
        ("thinking", "hm"),
        ("text", "I look."),
        ("message end", "tool_calls"),
        ("tool use", "ls", b'{"path":"."}'),
        ("tool result", "ls", "(empty directory)"),
        ("error", "no more"),
    ]


async def test_the_turns_of_a_history_are_entries_with_their_time(stage):
    """M013: user, assistant, tool results, system and steering, each with what the row names."""
    look = {"thinking": "hm", "text": "I look.", "tool_calls": [call("ls", path=".")]}
    usage = {"usage": {"input": 7, "output": 3}}
    session = await stage.session({**look, **usage}, {"text": "done"})
    (stage.folder / "a.txt").touch()
    session.steer("be brief")
    session.record_command("date", "noon", "exit code 0", shared=True)
    await seen(session, "go")
    path = session.recorder.path
    times = [entry.time for entry in path]
    assert times == sorted(times)
    assert all(times)
    by_type = {entry.type: entry.data for entry in path if entry.type != "custom"}
    assert join_texts(by_type["user"].content) == "go"
    steering = [e.data for e in path if isinstance(e.data, Context) and e.data.role == "user"]
    assert [one.origin for one in steering] == ["document", "steering"]
    answer = next(entry.data for entry in path if isinstance(entry.data, Assistant))
    assert [type(block) for block in answer.content] == [Thinking, Text, ToolCall]
    assert (answer.usage.input, answer.usage.output) == (7, 3)
    (result,) = [entry.data for entry in path if isinstance(entry.data, ToolResult)]
    assert (result.call_id, join_texts(result.content)) == (answer.content[2].id, "a.txt")


async def test_each_round_makes_one_call_with_the_whole_request(stage):
    """M014: system, tools, free choice, effort and options; a limit is looked at before it."""
    look = {"tool_calls": [call("ls", path=".")]}
    host = await stage.host(look, {"text": "one"}, {"text": "two"}, look, look, tools=("ls",))
    session, calls = host.session, []
    session.use_model(replace(watch_calls(session.setup.model, calls), options=Raw(b'{"a":1}')))
    session.configure(effort="high")
    session.steer("first this")
    session.follow_up("then that")
    await seen(session, "go")
    requests = [request for _, request in calls]
    assert [len(one.messages) for one in requests] == [2, 4, 6]
    for one in requests:
        assert one.system.startswith("You are gong")
        assert ([tool.name for tool in one.tools], one.tool_choice) == (["ls"], ToolChoice("auto"))
        assert (one.reasoning_effort, bytes(one.options)) == ("high", b'{"a":1}')
    session.configure(max_tool_rounds_per_input=1)
    found = await seen(session, "again")
    assert len(calls) == 4, "no call is made beyond the limit"
    assert [event.limit for event in found if event.kind == "turn_limit"] == ["round"]


async def test_a_close_ends_what_runs_and_then_the_session(stage):
    """M022: the run and its processes first, events to their end, session_end last."""
    command = "trap '' TERM; echo $$ >pid; echo begun; while :; do sleep 0.05; done"
    session = await stage.session({"tool_calls": [call("bash", command=command)]}, {"text": "x"})
    kinds, begun = [], asyncio.Event()
    session.subscribe(lambda event: kinds.append(event.kind))
    session.subscribe(lambda event: event.kind == "tool_update" and begun.set())
    run = asyncio.create_task(seen(session, "go"))
    await begun.wait()
    await session.close()
    assert (await run)[-1].stop_reason == "aborted"
    assert kinds[-2:] == ["agent_end", "session_end"]
    assert session.state is SessionState.CLOSED
    with pytest.raises(ProcessLookupError):
        os.killpg(int((stage.folder / "pid").read_text()), 0)
