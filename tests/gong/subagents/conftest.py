"""A session on a real tape that starts sub-agents, each with a script of its own."""

from __future__ import annotations

import json

import pytest

from tape.model.entries import AgentEnd, AgentStart, ToolResult, join_texts
from tests.gong.agent.conftest import Stage, call, seen

AFTER_AGENT = call("bash", command="until test -e ../agent-has-ended; do sleep 0.05; done")
"""A call that takes until a sub-agent has ended."""


class AgentStage(Stage):
    """A folder, a store, and hosts whose sub-agents play scripts."""

    def __init__(self, tmp_path):
        super().__init__(tmp_path)
        self.scripts = 0

    def script(self, *answers):
        """Return the name of a model that gives these answers."""
        self.scripts += 1
        file = self.folder.parent / f"child{self.scripts}.json"
        file.write_text(json.dumps(answers))
        return f"scripted/{file}"

    def task(self, *answers, **more):
        """Return the call of Task for a sub-agent that gives these answers."""
        prompt = more.pop("prompt", "do it")
        return call("Task", prompt=prompt, model=self.script(*answers), **more)

    def spawn(self, *answers, **more):
        """Return the call of spawn_agent for a sub-agent that gives these answers."""
        return call("spawn_agent", task="do it", model=self.script(*answers), **more)

    async def run(self, *calls, **settings):
        """Return a session after one call a turn, each in an answer of its own."""
        answers = [{"tool_calls": [one] if isinstance(one, dict) else [*one]} for one in calls]
        session = await self.session(*answers, {"text": "done"}, **settings)
        session.subscribe(self.note_end, agents=True)
        await seen(session, "go")
        return session

    def note_end(self, event):
        """Make the file for which `AFTER_AGENT` waits."""
        if event.kind == "subagent_end":
            (self.folder.parent / "agent-has-ended").touch()


@pytest.fixture
async def stage(tmp_path):
    stage = AgentStage(tmp_path)
    yield stage
    for host in stage.hosts:
        await host.close()


def results(session):
    """Return the texts of all results on the session's path."""
    data = (entry.data for entry in session.recorder.path)
    return [join_texts(one.content) for one in data if isinstance(one, ToolResult)]


def marks(session):
    """Return the starts and ends of sub-agents on the session's path."""
    data = (entry.data for entry in session.recorder.path)
    return [
        (one.agent, one.status if isinstance(one, AgentEnd) else "start")
        for one in data
        if isinstance(one, AgentStart | AgentEnd)
    ]


def branch_types(session, branch):
    """Return the types of the entries of a branch of the session's tape."""
    tape = session.recorder.tape
    return [entry.type for entry in tape.entries(tape.head(branch))]
