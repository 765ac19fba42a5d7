"""Sub-agents whose program was killed: balanced, ended and told of when the session continues."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import pytest
from msgspec import Raw

from gong.subagents.lost import find_known_agents, repair_history
from tape.model.entries import AgentEnd, Context, Custom, Repair, ToolCall, ToolResult, join_texts
from tests.gong.agent.conftest import call, seen
from tests.gong.subagents.conftest import marks, results

DONE = {"text": "done"}


def write(name):
    return {"tool_calls": [call("bash", command=f"echo {name} > {name}.txt")]}


HANG = {"tool_calls": [call("bash", command="touch hangs-$$; sleep 600")]}


def kill_in_the_middle(stage, parent, after=None):
    """Run a prompt in a process of its own, and kill it when two commands hang.

    Or after so many lines of its output; then the lines are those that it wrote until it died.
    """
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(stage.folder.parent),
        "TAPE_HOME": str(stage.store.path),
        "GONG_PERMISSION": "bypass",
    }
    command = (sys.executable, "-m", "gong", "-p", "divide the work", "-m", parent)
    process = subprocess.Popen(
        (*command, "--output-format", "stream-json"),
        cwd=stage.folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    lines, begun = [], Counter()
    for text in process.stdout:
        line = json.loads(text)
        lines.append(line)
        begun[line["kind"]] += bool(line.get("agent"))
        hangs = begun["tool_start"] == 5 and begun["subagent_end"] == 1
        if hangs if after is None else len(lines) >= after:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    return lines


def run_program(*words, cwd=None):
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)


def list_open_calls(tape, branch):
    """Return the calls of a branch that have neither a result nor a repair."""
    entries = tape.entries(tape.head(branch))
    calls = {
        block.id
        for entry in entries
        if entry.type == "assistant"
        for block in entry.data.content
        if isinstance(block, ToolCall)
    }
    settled = {entry.data.call_id for entry in entries if isinstance(entry.data, ToolResult)}
    for entry in entries:
        if isinstance(entry.data, Repair):
            settled |= {one.call_id for one in entry.data.injected}
    return calls - settled


async def test_three_agents_in_one_repository_and_the_program_is_killed(stage):
    """Every branch is balanced, and the model is told what became of each sub-agent."""
    run_program("git", "init", "-q", stage.folder)
    tasks = [
        stage.task(write("one"), {"text": "one is written"}),
        stage.task(write("two"), HANG, DONE, prompt="write two"),
        stage.task(write("three"), HANG, DONE, subagent_type="code-simplifier"),
    ]
    lines = kill_in_the_middle(stage, stage.script({"tool_calls": tasks}, DONE))
    assert {line.get("agent") for line in lines} == {None, "agent-1", "agent-2", "agent-3"}
    recorder = stage.reopened("main")
    known = find_known_agents(recorder.path)
    assert [(one.agent, one.status) for one in known.values()] == [
        *(("agent-1", "completed"), ("agent-2", ""), ("agent-3", "")),
    ]
    assert list_open_calls(recorder.tape, "agent-2")

    host = await stage.host({"text": "I see"}, recorder=recorder)
    await seen(host.session, "what happened?")
    session, tape = host.session, host.session.recorder.tape
    ends = [one.data for one in session.recorder.path if isinstance(one.data, AgentEnd)]
    assert [(one.agent, one.status) for one in ends] == [
        *(("agent-1", "completed"), ("agent-2", "interrupted"), ("agent-3", "interrupted")),
    ]
    for branch in ("main", "agent-1", "agent-2", "agent-3"):
        assert not list_open_calls(tape, branch), branch
    told = [
        join_texts(one.data.content)
        for one in session.recorder.path
        if isinstance(one.data, Context)
    ]
    how = (
        "was interrupted. It had not ended when the program did, 1 call had no result. It can"
        " continue where it was, by a message to it, or its work be done again."
    )
    assert told == [
        f"The sub-agent agent-2 (general-purpose: write two) {how}",
        f"The sub-agent agent-3 (code-simplifier: do it) {how}",
    ]
    await host.close()
    verified = run_program(
        *(sys.executable, "-m", "tape", "--store", stage.store.path, "verify"), cwd=stage.folder
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.slow
@pytest.mark.parametrize("after", [3, 12, 20, 27, 35, 50, 70])
async def test_a_kill_at_any_moment_leaves_nothing_open(stage, after):
    """Each start has one end, and each call a result, once the session continues."""
    tasks = [
        stage.task(write(name), {"text": f"{name} is written"}) for name in ("one", "two", "three")
    ]
    kill_in_the_middle(stage, stage.script({"tool_calls": tasks}, DONE), after)
    host = await stage.host({"text": "I see"}, recorder=stage.reopened("main"))
    await seen(host.session, "what happened?")
    session, tape = host.session, host.session.recorder.tape
    counts = Counter(agent for agent, _ in marks(session))
    assert set(counts.values()) <= {2}
    assert {status for _, status in marks(session)} <= {"start", "completed", "interrupted"}
    for branch in tape.refs().branches:
        assert not list_open_calls(tape, branch), branch


async def test_an_interrupted_sub_agent_continues_where_it_was(stage):
    session = await stage.run(stage.spawn({"text": "first"}))
    await session.find_agents().wait("agent-1")
    await stage.hosts[0].close()
    again = await stage.host(
        {"tool_calls": [call("send_input", agent_id="agent-1", message="and then?")]},
        {"tool_calls": [call("wait", agent_id="agent-1")]},
        DONE,
        recorder=stage.reopened("main"),
    )
    await seen(again.session, "ask it")
    *_, sent, waited = results(again.session)
    assert json.loads(sent) == {"agent_id": "agent-1", "status": "running"}
    assert json.loads(waited)["output"] == "first"  # a script is played from its first answer
    assert marks(again.session) == [("agent-1", "start"), ("agent-1", "completed")] * 2


async def test_a_mark_after_a_compaction_names_those_before_it(stage):
    session = await stage.run(
        stage.task({"text": "one"}), stage.spawn({"text": "x", "delay_ms": 60_000})
    )
    context = session.build_run_context()
    session.recorder.barrier()
    session.run_state.agents.record_open()
    known = find_known_agents(session.recorder.path[-1:])
    assert [(one.agent, one.status) for one in known.values()] == [
        ("agent-1", "completed"),
        ("agent-2", ""),
    ]
    assert context.recorder is session.recorder


async def test_a_history_that_is_whole_is_not_changed(stage):
    await stage.run(stage.task({"text": "one"}))
    await stage.hosts[0].close()
    with stage.reopened("agent-1") as history:
        before = len(history.path)
        assert repair_history(history) == (0, "one")
        assert len(history.path) == before


@pytest.mark.parametrize("shown", [b"[]", b"{}", b'[{"agent":1}]'])
def test_the_mark_of_another_program_is_no_error(shown):
    assert find_known_agents([SimpleNamespace(data=Custom("gong.agents", Raw(shown)))]) == {}
