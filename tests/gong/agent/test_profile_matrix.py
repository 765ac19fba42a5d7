"""Seed 001 §9.12: each row of its matrix for the tools of each model family.

A scripted model answers, and a local host that speaks the family's API.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from itertools import count

import pytest

from gong.assembly.opening import open_session
from gong.config import PermissionSettings, Settings
from gong.policy.modes import PermissionMode
from tape.model.entries import Context, Model, ToolResult, join_texts
from tests.gong.agent.conftest import Stage, call, seen
from tests.wires import anthropic, google
from tests.wires import openai_responses as responses
from tests.wires.server import Reply, WireServer
from tests.wires.table import WIRES

DONE = {"text": "done"}
PROFILES = ("openai", "anthropic", "gemini")


def turn(*calls):
    return {"tool_calls": [*calls]}


def read(path):
    return call("read_file", file_path=path)


def write(path, content):
    return call("write_file", file_path=path, content=content)


def edit(profile, path, old, new):
    """Return the edit of a line in the format of a family."""
    if profile == "openai":
        lines = ("*** Begin Patch", f"*** Update File: {path}", "@@", f"-{old}", f"+{new}")
        return call("apply_patch", patch="\n".join((*lines, "*** End Patch")))
    return call("edit_file", file_path=path, old_string=old, new_string=new)


def shell(command, **more):
    return call("shell", command=command, **more)


def results(session):
    entries = (one.data for one in session.recorder.path)
    return [one for one in entries if isinstance(one, ToolResult)]


def texts(session):
    return [join_texts(one.content) for one in results(session)]


def list_anthropic_events(calls):
    blocks = (anthropic.tool_block(*one) for one in calls)
    return [
        anthropic.start(),
        *(one for each in blocks for one in each),
        *anthropic.stop("tool_use"),
    ]


def list_openai_events(calls):
    items = (responses.function(*one) for one in calls)
    return [responses.start(), *(one for each in items for one in each), responses.end()]


def list_google_events(calls):
    parts = [google.call(name, json.loads(args), id=identity) for _, identity, name, args in calls]
    return [google.chunk(*parts), google.chunk(finish="STOP")]


HOSTS = {
    "anthropic": ("anthropic", list_anthropic_events),
    "openai": ("openai", list_openai_events),
    "gemini": ("google", list_google_events),
}
"""By profile: the preset, and the events of an answer that makes calls."""


class WiredStage(Stage):
    """Sessions that are answered over HTTP, in the API of the profile they are given."""

    def __init__(self, tmp_path):
        super().__init__(tmp_path)
        self.servers = []
        self.numbers = count()

    async def host(self, *answers, tools, **settings):
        preset, list_events = HOSTS[tools[0]]
        [wire] = [one for one in WIRES if one.preset == preset]
        replies = []
        for answer in answers:
            made = enumerate(answer.get("tool_calls", ()))
            calls = [
                (n, f"call_{next(self.numbers)}", one["name"], json.dumps(one["args"]))
                for n, one in made
            ]
            body = wire.write(*list_events(calls)) if calls else wire.said(answer["text"])
            replies.append(Reply(body))
        server = await WireServer(*replies).__aenter__()
        self.servers.append(server)
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.folder.parent)}
        environ[f"{preset.upper()}_BASE_URL"] = server.url
        settings = {"permissions": PermissionSettings(mode="bypass"), **settings}
        given = Settings(
            model=f"{preset}/model-x", context_window=1_000_000, tools=tools, **settings
        )
        host = await open_session(self.front_end(given, environ), None)
        self.hosts.append(host)
        return host


@pytest.fixture(params=PROFILES)
def profile(request):
    return request.param


@pytest.fixture(params=[Stage, WiredStage], ids=["scripted", "http"])
async def stage(request, tmp_path):
    stage = request.param(tmp_path)
    yield stage
    for host in stage.hosts:
        await host.close()
    for server in getattr(stage, "servers", ()):
        assert server.requests, "the host was never asked"
        await server.__aexit__()


@pytest.fixture
def play(stage, profile):
    """Return a session of the profile that has played these turns, and its events."""

    async def play(*turns, **settings):
        session = await stage.session(*turns, DONE, tools=(profile,), **settings)
        return session, await seen(session, "go")

    return play


async def test_row_01_a_file_is_made(play, stage):
    """M211"""
    await play(turn(write("hello.py", "print('Hello World')\n")))
    assert (stage.folder / "hello.py").read_text() == "print('Hello World')\n"


async def test_row_02_a_file_is_read_then_edited(play, stage, profile):
    """M211"""
    (stage.folder / "a.txt").write_text("one\ntwo\n")
    session, _ = await play(turn(read("a.txt")), turn(edit(profile, "a.txt", "two", "three")))
    assert (stage.folder / "a.txt").read_text() == "one\nthree\n"
    assert "two" in texts(session)[0]


async def test_row_03_several_files_are_edited_in_one_session(play, stage, profile):
    """M211"""
    for name in ("a", "b"):
        (stage.folder / name).write_text(f"{name}\n")
    edits = [edit(profile, name, name, name * 2) for name in ("a", "b")]
    await play(turn(read("a"), read("b")), turn(edits[0]), turn(edits[1]))
    assert [(stage.folder / name).read_text() for name in ("a", "b")] == ["aa\n", "bb\n"]


async def test_row_04_a_command_runs(play):
    """M211"""
    session, _ = await play(turn(shell("echo $((6 * 7))")))
    assert "42" in texts(session)[0]


async def test_row_05_a_command_is_ended_at_its_time_limit(play):
    """M211"""
    begun = time.monotonic()
    session, _ = await play(turn(shell("echo so far; sleep 60", timeout_ms=300)))
    assert time.monotonic() - begun < 30
    assert "so far" in texts(session)[0]
    assert "timed out" in texts(session)[0].lower()


async def test_row_06_files_are_found_by_text_and_by_name(play, stage):
    """M211"""
    (stage.folder / "a.py").write_text("needle = 1\n")
    (stage.folder / "b.txt").write_text("hay\n")
    session, _ = await play(turn(call("grep", pattern="needle"), call("glob", pattern="*.txt")))
    assert "a.py" in texts(session)[0]
    assert "b.txt" in texts(session)[1]


async def test_row_07_a_task_of_several_steps(play, stage, profile):
    """M211"""
    (stage.folder / "a.py").write_text("x = 1\n")
    steps = (
        turn(call("grep", pattern="x =")),
        turn(read("a.py")),
        turn(edit(profile, "a.py", "x = 1", "x = 2")),
        turn(shell("cat a.py")),
    )
    session, happened = await play(*steps)
    assert "x = 2" in texts(session)[-1]
    assert happened[-1].turns == len(steps) + 1


async def test_row_08_a_long_output_is_cut_and_kept(play):
    """M211"""
    session, happened = await play(turn(shell("seq 1 60000")))
    [end] = [event for event in happened if event.kind == "tool_end"]
    assert len(texts(session)[0]) < 100_000
    assert len(session.read_output(end).splitlines()) >= 60_000


async def test_row_09_calls_that_read_run_in_parallel(play, stage):
    """M211"""
    for name in ("a", "b", "c"):
        (stage.folder / name).write_text(name)
    session, happened = await play(turn(read("a"), read("b"), read("c")))
    kinds = [event.kind for event in happened if event.kind in {"tool_start", "tool_end"}]
    assert kinds == ["tool_start"] * 3 + ["tool_end"] * 3
    assert [one.name for one in results(session)] == ["read_file"] * 3


async def test_row_10_steering_in_the_middle_of_a_task(stage, profile):
    """M211"""
    session = await stage.session(turn(shell("echo one")), DONE, tools=(profile,))

    def steer(event):
        if event.kind == "tool_end":
            session.steer("rather two")

    session.subscribe(steer)
    happened = await seen(session, "go")
    assert [one.text for one in happened if one.kind == "steering_injected"] == ["rather two"]
    steered = [one.data for one in session.recorder.path if isinstance(one.data, Context)]
    assert [join_texts(one.content) for one in steered if one.origin == "steering"] == [
        "rather two"
    ]


async def test_row_11_the_effort_changes(play):
    """M211"""
    session, _ = await play()
    session.use_effort("high")
    await seen(session, "again")
    efforts = [one.data.effort for one in session.recorder.path if isinstance(one.data, Model)]
    assert efforts == ["high"]


async def test_row_12_a_sub_agent_is_started_and_waited_for(play, stage, profile):
    """M129 M130 M131 M192 M211: by the tools of the family."""
    script = stage.folder.parent / "child.json"
    script.write_text(json.dumps([turn(write("hello.py", "1\n")), {"text": "it is written"}]))
    if profile == "openai":
        start = call("spawn_agent", task="write it", model=f"scripted/{script}")
        steps = [turn(start), turn(call("wait", agent_id="agent-1"))]
    else:
        steps = [turn(call("Task", prompt="write it", model=f"scripted/{script}"))]
    session, _ = await play(*steps)
    assert "it is written" in texts(session)[-1]
    assert not results(session)[-1].is_error
    assert (stage.folder / "hello.py").read_text() == "1\n"


async def test_row_13_a_loop_is_noticed(play):
    """M211"""
    _, happened = await play(*[turn(shell("echo again"))] * 10)
    told = [event for event in happened if event.kind == "loop_detection"]
    assert told, "nothing was noticed"
    assert not told[0].stopped
    assert len({one.message for one in told}) == len(told)  # each pattern once


async def test_row_14_a_failure_is_reported_and_the_model_continues(play, stage):
    """M211"""
    (stage.folder / "there").write_text("found\n")
    session, _ = await play(turn(read("gone")), turn(read("there")))
    assert [one.is_error for one in results(session)] == [True, False]
    assert "found" in texts(session)[1]


async def test_row_15_each_family_has_its_own_format_of_edits(stage, profile):
    """M211"""
    (stage.folder / "a").write_text("old\n")
    session = await stage.session(
        turn(read("a")), turn(edit(profile, "a", "old", "new")), DONE, tools=(profile,)
    )
    own = "apply_patch" if profile == "openai" else "edit_file"
    assert own in session.setup.tools.active
    assert session.permission == PermissionMode.BYPASS
    await asyncio.wait_for(seen(session, "go"), 60)
    assert [(one.name, one.is_error) for one in results(session)] == [
        ("read_file", False),
        (own, False),
    ]
    assert (stage.folder / "a").read_text() == "new\n"


@pytest.mark.slow
async def test_the_smoke_test_of_the_loop(stage, profile):
    """M211: §9.13 in one session: a file, an edit, its run, a long output, steering, a time-out.

    The family of OpenAI has 10 s for a command; the others are given less here.
    """
    child = stage.folder.parent / "child.json"
    child.write_text(json.dumps([{"text": "hello.py is fine"}]))
    if profile == "openai":
        spawn = call("spawn_agent", task="test hello.py", model=f"scripted/{child}")
        agent = [turn(spawn), turn(call("wait", agent_id="agent-1"))]
    else:
        agent = [turn(call("Task", prompt="test hello.py", model=f"scripted/{child}"))]
    (stage.folder / "big.txt").write_text("x" * 100_000)
    hello, goodbye = "print('Hello World')", "print('Goodbye')"
    session = await stage.session(
        *(turn(write("hello.py", f"{hello}\n")), DONE),
        *(turn(read("hello.py")), turn(edit(profile, "hello.py", hello, goodbye)), DONE),
        *(turn(shell("python3 hello.py")), DONE),
        *(turn(shell("cat big.txt")), DONE),
        *(turn(shell("echo routes")), {"text": "one endpoint"}),
        *(*agent, DONE),
        *(turn(shell("sleep 30")), DONE),
        tools=(profile,),
    )
    await seen(session, "make hello.py")
    assert (stage.folder / "hello.py").read_text() == f"{hello}\n"
    await seen(session, "say goodbye")
    assert (stage.folder / "hello.py").read_text() == f"{goodbye}\n"
    await seen(session, "run it")
    assert "Goodbye" in texts(session)[-1]
    [end] = [one for one in await seen(session, "read big.txt") if one.kind == "tool_end"]
    assert session.read_output(end).rstrip("\n") == "x" * 100_000
    assert "[WARNING: Tool output was truncated." in texts(session)[-1]
    leave = session.subscribe(lambda one: one.kind == "tool_start" and session.steer("one only"))
    told = await seen(session, "make an application with several routes")
    leave()
    assert [one.text for one in told if one.kind == "steering_injected"] == ["one only"]
    told = await seen(session, "let an agent test it")
    assert [one.kind for one in told if one.agent] == ["subagent_start", "subagent_end"]
    assert "hello.py is fine" in texts(session)[-1]
    limit = 10_000
    if profile != "openai":  # only now: all before may take as long as a busy machine needs
        limit = 500
        session.configure(default_command_timeout_ms=limit)
    told = await seen(session, "sleep for half a minute")
    assert f"timed out after {limit}ms" in texts(session)[-1]
    assert told[-1].stop_reason == "stop"
