"""SubagentStart and SubagentStop, and the other hooks in the session of a sub-agent."""

from __future__ import annotations

import json

from gong.assembly.opening import open_session
from gong.config import Settings
from tests.gong.agent.conftest import call, seen
from tests.gong.subagents.conftest import results

DONE = {"text": "done"}


async def run_with_hooks(stage, hooks, *answers):
    """Return a session with command hooks, after one prompt, and what the hooks read."""
    log = stage.folder.parent / "log.jsonl"
    keep = f"cat >> {log}; echo >> {log}"
    rows = [{"event": event, "command": command or keep} for event, command in hooks]
    host = await stage.host(*answers, hooks=tuple(rows))
    await seen(host.session, "go")
    read = log.read_text().split("\n") if log.exists() else []
    return host.session, [json.loads(line) for line in read if line]


async def test_the_start_and_the_stop_of_a_sub_agent_are_asked_about(stage):
    """M174: SubagentStart and SubagentStop, with id and type of the sub-agent."""
    task = stage.task({"text": "found"}, subagent_type="Explore")
    events = [(one, "") for one in ("SubagentStart", "SubagentStop", "Stop", "SessionStart")]
    session, read = await run_with_hooks(stage, events, {"tool_calls": [task]}, DONE)
    assert [(one["hook_event_name"], one.get("agent_id")) for one in read] == [
        ("SessionStart", None),
        ("SubagentStart", "agent-1"),
        ("SubagentStop", "agent-1"),
        ("Stop", None),
    ]
    stop = read[2]
    assert stop["agent_type"] == "Explore"
    assert stop["last_assistant_message"] == "found"
    assert stop["agent_transcript_path"].endswith("entries.jsonl")
    assert "agent-1" in stop["agent_transcript_path"]
    assert results(session) == ["found"]


async def test_a_hook_may_keep_a_sub_agent_at_work(stage):
    block = "if [ -e asked ]; then exit 0; fi; touch asked; echo not yet >&2; exit 2"
    task = stage.task({"text": "early"}, {"text": "late"})
    session, _ = await run_with_hooks(
        stage, [("SubagentStop", block)], {"tool_calls": [task]}, DONE
    )
    assert results(session) == ["late"]


async def test_hooks_see_the_calls_of_sub_agents_and_may_block_them(stage):
    block = "echo not here >&2; exit 2"
    write = {"tool_calls": [call("write", path="made", content="x")]}
    task = stage.task(write, {"text": "no"})
    await run_with_hooks(stage, [("PreToolUse", block)], {"tool_calls": [task]}, DONE)
    assert not (stage.folder / "made").exists()


async def test_a_sub_agent_is_no_session_of_a_person(stage):
    events = [(one, "") for one in ("UserPromptSubmit", "SessionEnd", "Setup")]
    task = stage.task({"text": "found"})
    _, read = await run_with_hooks(stage, events, {"tool_calls": [task]}, DONE)
    assert [one["hook_event_name"] for one in read] == ["Setup", "UserPromptSubmit"]


async def test_python_hooks_are_asked_too(stage):
    seen_calls = []

    class Hook:
        def before_tool_call(self, tool, args, facts=None):
            seen_calls.append(tool)

    script = stage.script({"tool_calls": [stage.task({"tool_calls": [call("ls")]}, DONE)]}, DONE)
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(stage.folder.parent)}
    front = stage.front_end(Settings(model=script), environ)
    host = await open_session(
        type(front)(
            **{**{name: getattr(front, name) for name in front.__slots__}, "hooks": (Hook(),)}
        )
    )
    stage.hosts.append(host)
    await seen(host.session, "go")
    assert seen_calls == ["Task", "ls"]
