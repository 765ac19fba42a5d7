"""/workflow in a session on the same store."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from gong.agent.front_end import FrontEnd
from gong.assembly.opening import open_session
from gong.config import Settings
from gong.repl.commands.table import answer_command
from tape.index.library import open_store


@asynccontextmanager
async def opened(place, model="offline/rules"):
    with open_store(place.home / ".tape") as library:
        front = FrontEnd(library, Settings(model=model), place.env, str(place.repo), "test/1")
        host = await open_session(front)
        try:
            yield host
        finally:
            await host.close()


async def test_workflows_are_listed_and_shown(place):
    place.start(place.write_plan("a", ("b", "a")))
    shown, _ = place.show()
    async with opened(place) as host:
        listed = answer_command("/workflow", host, busy=False)
        graph = answer_command(f"/workflow {shown['id'][:8]}", host, busy=True)
        unknown = answer_command("/workflow zz", host, busy=False)
    assert listed.text == f"{shown['id'][:8]}  completed 2/2  make files"
    assert "make a" in graph.text
    assert unknown.failed


async def test_a_workflow_is_planned_and_run_beside_the_conversation(place, monkeypatch):
    """M187: /workflow REQUIREMENT, then /workflow run ID; one model plays all the roles."""
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    file = place.root / "all.json"
    plan = {"requirement": "make a file", "tasks": [{"id": "a", "title": "make a"}]}
    answers = {**plan, "verdict": "pass", "score": 80, "report": "good"}
    file.write_text(json.dumps([{"text": json.dumps(answers)}]))
    async with opened(place, f"scripted/{file}") as host:
        planned = await answer_command("/workflow make a file", host, busy=False).later
        assert "make a" in planned.text, planned.text
        name = planned.text.split()[0]
        assert f"/workflow run {name} carries it out" in planned.text
        told = await answer_command(f"/workflow run {name}", host, busy=False).later
        assert f"/workflow cancel {name}" in told.text
        for _ in range(300):
            await asyncio.sleep(0.1)
            shown = answer_command(f"/workflow {name}", host, busy=True).text
            if "completed 1/1" in shown:
                break
        else:
            pytest.fail(shown)
        ended = await answer_command(f"/workflow cancel {name}", host, busy=False).later
        assert "there is nothing to stop" in ended.text
