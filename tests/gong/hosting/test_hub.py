"""The sessions of one process, in this one: questions, and answers that nobody waits for."""

from __future__ import annotations

import asyncio
import json
import os

import pytest

from gong.agent import events
from gong.config import Settings
from gong.errors import ConfigurationError
from gong.hosting.hub import SessionHub, UnknownSession
from tape.index.library import Library
from tape.store.store import Store

ASK = {"question": "Which?", "header": "Which", "options": [{"label": "a"}, {"label": "b"}]}
ANSWERS = [
    {"tool_calls": [{"name": "ask_user", "args": {"questions": [ASK]}}]},
    {"tool_calls": [{"name": "bash", "args": {"command": "touch made.txt"}}]},
    {"text": "done"},
]


class Watcher:
    """Notes events, and wakes who waits for a kind of them."""

    def __init__(self):
        self.seen = []
        self._changed = asyncio.Event()

    def take(self, event):
        self.seen.append(event)
        self._changed.set()

    async def wait_for(self, kind):
        while not (found := [one for one in self.seen if isinstance(one, kind)]):
            self._changed.clear()
            await self._changed.wait()
        return found[0]


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([{"text": "whole"}], ""),
        ([{"text": "half", "stop_reason": "length"}], "the answer was cut at the limit of its"),
        ([{"thinking": "hm"}] * 2, "the answer has no text: the model only thought"),
    ],
)
async def test_an_answer_that_is_not_whole_says_why(tmp_path, answers, why):
    """M237: in the outcome, which `gong rpc` and `gong serve` answer."""
    (tmp_path / "script.json").write_text(json.dumps(answers))
    hub = SessionHub(
        Library(Store(tmp_path / "store"), None),
        lambda _: Settings(model=f"scripted/{tmp_path}/script.json"),
        {"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        Watcher().take,
        program="test/1",
    )
    session = (await hub.open_new(str(tmp_path))).id
    done = (await hub.prompt(session, "go"))._asdict()
    await hub.close_all()
    assert done["incomplete"].startswith(why)
    assert bool(done["incomplete"]) == bool(why)


async def test_an_answer_without_an_open_question_is_an_error(tmp_path):
    """M178, M225: before the question, after its answer, and in another session."""
    (tmp_path / "work").mkdir()
    script = tmp_path / "script.json"
    script.write_text(json.dumps(ANSWERS))
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    watcher = Watcher()
    hub = SessionHub(
        Library(Store(tmp_path / "store"), None),
        lambda _: Settings(model=f"scripted/{script}"),
        environ,
        watcher.take,
        program="test/1",
    )
    work = str(tmp_path / "work")
    session, other = [(await hub.open_new(work)).id for _ in range(2)]

    def refuse(kind, one, identity):
        with pytest.raises((ConfigurationError, UnknownSession)) as caught:
            hub.approve(one, identity, "once") if kind == "call" else hub.answer(one, identity, "a")
        return str(caught.value)

    assert refuse("call", session, "c1") == "no question is open about the call c1"
    assert refuse("question", session, "q1") == "no question q1 is open"
    run = asyncio.create_task(hub.prompt(session, "go"))
    question = (await watcher.wait_for(events.QuestionAsked)).question_id
    assert refuse("question", other, question) == f"no question {question} is open"
    assert refuse("call", session, question).startswith("no question is open about the call")
    hub.answer(session, question, "a")
    assert refuse("question", session, question) == f"no question {question} is open"
    call = (await watcher.wait_for(events.ApprovalRequested)).call_id
    assert refuse("call", other, call).startswith("no question is open about the call")
    hub.approve(session, call, "no")
    assert refuse("call", session, call).startswith("no question is open about the call")
    assert (await run).text == "done"
    await hub.close_all()
    assert refuse("call", session, call).startswith("no session")
    assert not (tmp_path / "work/made.txt").exists()
