"""Words that cannot be written as UTF-8, and zero bytes: each border marks them and keeps the rest.

The terminal's border and that of the command line are in tests/e2e/test_odd_bytes.py.
"""

from __future__ import annotations

import json
import os

import pytest
from msgspec import Raw

from gong.agent import events
from gong.agent.documents import AttachedDocument
from gong.config import PermissionSettings, Settings
from gong.errors import ConfigurationError
from gong.host import answer_prompt, open_session
from gong.hosting.hub import SessionHub
from gong.llm.client import Client
from gong.rpc.dispatch import answer_request
from gong.sdk.generation import generate
from tape.index.library import Library
from tape.model.entries import Approval, Context, ToolCall, ToolResult, User, join_texts
from tape.store.store import Store
from tests.gong.agent.conftest import call, seen

ODD, MARKED = "a\ud800b\0c", "a\ufffdb\ufffdc"
DONE = {"text": "done"}
QUESTION = {"question": "Which?", "options": [{"label": "one"}, {"label": "two"}]}


def list_data(session, *kinds):
    return [one.data for one in session.recorder.path if isinstance(one.data, kinds)]


def list_said(session, *kinds):
    return [join_texts(one.content) for one in list_data(session, *kinds)]


async def submit(stage):
    session = await stage.session(DONE)
    told = [one.text for one in await seen(session, ODD) if one.kind == "user_input"]
    return [*told, *list_said(session, User)]


async def answer_in_a_host(stage):
    session = await stage.session(DONE)
    await answer_prompt(session, ODD)
    return list_said(session, User)


async def queue(stage):
    session = await stage.session(DONE, DONE)
    queued = [session.steer(ODD).text, session.follow_up(ODD).text, *session.list_queued()]
    await seen(session, "go")
    return [*queued, *[one for one in list_said(session, User, Context) if one[:1] == "a"]]


async def attach(stage):
    session = await stage.session(DONE)
    session.attach(AttachedDocument(ODD))
    await seen(session, "go")
    told = [one for one in list_data(session, Context) if one.origin == "document"]
    return [join_texts(one.content) for one in told]


async def react(stage, answer, *answers, **settings):
    """Return a session after a run whose events `answer` has answered."""
    session = await stage.session(*answers, DONE, **settings)
    session.ask_person()
    session.subscribe(lambda event: answer(session, event))
    await seen(session, "go")
    return session


async def answer_a_question(stage):
    def answer(session, event):
        if isinstance(event, events.QuestionAsked):
            session.answer(event.question_id, {"Which?": [ODD]})

    asks = {"tool_calls": [call("ask_user", questions=[QUESTION])]}
    return list_said(await react(stage, answer, asks), ToolResult)


async def refuse_a_plan(stage):
    def answer(session, event):
        if isinstance(event, events.PlanProposed):
            session.answer(event.question_id, approve=False, reason=ODD)

    plan = {"tool_calls": [call("exit_plan_mode", plan="do it")]}
    permissions = PermissionSettings(mode="plan")
    return list_said(await react(stage, answer, plan, permissions=permissions), ToolResult)


async def refuse_a_call(stage):
    def answer(session, event):
        if isinstance(event, events.ApprovalRequested):
            session.answer_approval(event.call_id, "no", ODD)

    runs = {"tool_calls": [call("bash", command="touch one")]}
    session = await react(stage, answer, runs, permissions=PermissionSettings())
    return [one.reason for one in list_data(session, Approval)]


async def edit_a_call(stage):
    decisions = [("edit", {"path": "one", "content": "a\ud800b\ufffdc"}), ("once", None)]

    def answer(session, event):
        if isinstance(event, events.ApprovalRequested):
            decision, arguments = decisions.pop(0)
            session.answer_approval(event.call_id, decision, arguments=arguments)

    writes = {"tool_calls": [call("write", path="one", content="x")]}
    await react(stage, answer, writes, permissions=PermissionSettings())
    return [(stage.folder / "one").read_text("utf-8")]


async def prepare_a_call(stage):
    """What runs is what the tape shows of a model's call."""
    session = await stage.session(DONE)
    args = Raw(rb'{"path":"one","content":"a\ud800b\ufffdc"}')
    prepared = session.setup.tools.prepare(ToolCall(id="c1", name="write", args=args))
    return [prepared.values["content"]]


def build_hub(tmp_path, take=lambda _: None):
    script = tmp_path / "script.json"
    script.write_text(json.dumps([DONE, DONE]))
    return SessionHub(
        Library(Store(tmp_path / "hub"), None),
        lambda _: Settings(model=f"scripted/{script}"),
        {"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        take,
        program="test/1",
    )


async def ask_as_json(stage):
    hub = build_hub(stage.folder.parent)

    async def ask(method, **params):
        line = json.dumps({"id": 1, "method": method, "params": params}).encode()
        return await answer_request(hub, line.replace(b"BYTES", b"a\xffb\\u0000c"))

    name = (await ask("session/new", cwd=str(stage.folder)))["result"]["session"]
    session = hub.find(name).session
    await ask("follow_up", session=name, text="BYTES")
    await ask("prompt", session=name, text=ODD)
    said = list_said(session, User)
    await hub.close_all()
    return said


async def generate_text(stage):
    asked, script = [], stage.folder.parent / "answers.json"
    script.write_text(json.dumps([DONE]))

    def note(request, more):
        asked.append(request)
        return more(request)

    client = Client.from_env({}, middleware=[note])
    await generate(f"scripted/{script}", client=client, prompt=ODD, system=ODD)
    return [asked[0].system, join_texts(asked[0].messages[0].content)]


BORDERS = [
    *(submit, answer_in_a_host, queue, attach, answer_a_question, refuse_a_plan, refuse_a_call),
    *(edit_a_call, prepare_a_call, ask_as_json, generate_text),
]


@pytest.mark.parametrize("border", BORDERS)
async def test_each_border_marks_what_is_no_text(stage, border):
    said = await border(stage)
    assert said
    for text in said:
        assert MARKED in text
        assert text == text.encode().decode().replace("\0", "")


@pytest.mark.parametrize("words", [None, 5, b"x", ["a"], "", " \n"])
async def test_what_are_no_words_is_refused_and_nothing_is_queued(stage, words):
    session = await stage.session(DONE)
    for put in (session.steer, session.follow_up):
        with pytest.raises(ConfigurationError, match=r"^the message is (empty|a text)"):
            put(words)
    with pytest.raises(ConfigurationError, match=r"^the prompt is (empty|a text)"):
        await seen(session, words)
    assert session.list_queued() == ()
    assert [one.kind for one in await seen(session, "go")][-1] == "agent_end"


@pytest.mark.parametrize("folder", ["a\0b", ""])
async def test_what_can_name_no_folder_is_refused(tmp_path, folder):
    hub = build_hub(tmp_path)
    with pytest.raises(ConfigurationError):
        await hub.open_new(folder)
    line = json.dumps({"id": 1, "method": "session/new", "params": {"cwd": folder}}).encode()
    answer = await answer_request(hub, line)
    assert answer["error"]["data"]["class"] == "ConfigurationError"
    if folder:
        with pytest.raises(ConfigurationError, match="has a zero byte"):
            async with open_session(folder, model="offline/rules", store=tmp_path / "tapes"):
                pass


def test_an_event_with_such_words_is_written_all_the_same():
    event = events.ToolExecutionUpdate("c1", ODD, "running", "")
    line = json.loads(events.encode_event(event))
    assert (line["type"], line["output"]) == ("tool_update", "a\ufffdb\0c")
