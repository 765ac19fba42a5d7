"""Todo lists, questions and plans: tools, entries, events, and what a host answers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gong.agent.compaction import CompactionRequest
from gong.agent.dialogue import find_todos
from gong.agent.recorder import find_newest_anchor
from gong.agent.session import SessionState
from gong.config import PermissionSettings
from gong.errors import ConfigurationError, SessionBusy
from gong.tools.ask import DECIDE_YOURSELF
from gong.tools.dialogue import Todo
from tape.context.repair import repair
from tape.context.view import Target, view
from tape.model.entries import TODOS_KIND, Custom, ToolResult, join_texts
from tests.gong.agent.conftest import call, seen, types

DEFAULT = PermissionSettings()
STORE_QUESTION = {
    "question": "Which store?",
    "header": "Store",
    "options": [{"label": "SQLite", "description": "one file"}, {"label": "Postgres"}],
}
PARTS_QUESTION = {
    "question": "Which parts?",
    "options": [{"label": "docs"}, {"label": "tests"}],
    "multi_select": True,
}
ASKS = {"tool_calls": [call("ask_user", questions=[STORE_QUESTION, PARTS_QUESTION])]}
DONE = {"text": "done"}


def results(session):
    """Return the texts of the tool results on the path."""
    entries = (entry.data for entry in session.recorder.path)
    return [join_texts(one.content) for one in entries if isinstance(one, ToolResult)]


def react(session, kind, action):
    """Call `action` with each event of a kind, after the code that emitted it.

    A failure in it ends the run, so that nothing waits for an answer.
    """
    loop = asyncio.get_running_loop()

    def act(event):
        try:
            action(event)
        except BaseException:
            session.abort()
            raise

    def watch(event):
        if event.kind == kind:
            loop.call_soon(act, event)

    session.subscribe(watch)


async def test_a_host_answers_a_question_m012_m194_m225(stage):
    """M012 M194 M225: event and answer are a pair; the session awaits input until the answer."""
    session = await stage.session(ASKS, DONE)
    session.ask_person()
    states = []

    def answer(event):
        states.append(session.state)
        with pytest.raises(SessionBusy):
            anext(session.submit("more")).send(None)
        session.answer(event.question_id, {"Which store?": "SQLite", "Which parts?": ["docs"]})
        with pytest.raises(ConfigurationError, match="no question"):
            session.answer(event.question_id, "SQLite")

    react(session, "question", answer)
    session.subscribe(lambda event: event.kind == "tool_end" and states.append(session.state))
    found = await seen(session, "go")
    assert states == [SessionState.AWAITING_INPUT, SessionState.PROCESSING]
    assert session.state is SessionState.IDLE
    (asked,) = [event for event in found if event.kind == "question"]
    assert asked.waits
    assert [one.question for one in asked.questions] == ["Which store?", "Which parts?"]
    assert results(session) == [
        "The user answered:\n\nWhich store?\n→ SQLite\n\nWhich parts?\n→ docs"
    ]
    details = next(e.data.details for e in session.recorder.path if e.type == "tool.result")
    assert json.loads(bytes(details))["answers"] == {
        "Which store?": ["SQLite"],
        "Which parts?": ["docs"],
    }


@pytest.mark.parametrize(
    ("answers", "given"),
    [
        ("other words", ["other words", "(no answer)"]),
        (["SQLite", ["docs", "tests"]], ["SQLite", "docs; tests"]),
        ({"Which parts?": ("tests",)}, ["(no answer)", "tests"]),
    ],
)
async def test_answers_may_have_several_shapes(stage, answers, given):
    session = await stage.session(ASKS, DONE)
    session.ask_person()
    react(session, "question", lambda event: session.answer(event.question_id, answers))
    await seen(session, "go")
    assert [line[2:] for line in results(session)[0].split("\n") if line[:1] == "→"] == given


async def test_questions_of_the_same_text_have_an_answer_each(stage):
    """M225: the second is numbered, for whoever answers by the text."""
    twice = [{"question": "Which?"}, {"question": "Which?"}, {"question": "Which? (2)"}]
    session = await stage.session({"tool_calls": [call("ask_user", questions=twice)]}, DONE)
    session.ask_person()
    react(session, "question", lambda event: session.answer(event.question_id, ["a", "b", "c"]))
    (asked,) = [event for event in await seen(session, "go") if event.kind == "question"]
    texts = ["Which?", "Which? (2)", "Which? (2) (2)"]
    assert [one.question for one in asked.questions] == texts
    assert results(session) == [
        "The user answered:\n\nWhich?\n→ a\n\nWhich? (2)\n→ b\n\nWhich? (2) (2)\n→ c"
    ]


async def test_answering_what_was_not_asked_is_an_error_m225(stage):
    """M225: without a question, with too many answers, of another kind; the question stays open."""
    session = await stage.session(ASKS, DONE)
    session.ask_person()
    with pytest.raises(ConfigurationError, match="no question c_1 is open"):
        session.answer("c_1", "yes")
    refused = []

    def answer(event):
        for wrong in ({"Which door?": "left"}, ["a", "b", "c"]):
            with pytest.raises(ConfigurationError) as error:
                session.answer(event.question_id, wrong)
            refused.append(str(error.value))
        with pytest.raises(ConfigurationError, match="is answered with answers"):
            session.answer(event.question_id, approve=True)
        session.answer(event.question_id, "SQLite")

    react(session, "question", answer)
    await seen(session, "go")
    assert refused == ["it was not asked: Which door?", "3 answers to 2 questions"]


@pytest.mark.parametrize("how", ["nobody", "afk", "timeout"])
async def test_without_a_person_the_model_decides_itself_m194(stage, how):
    """M194: the result says so, and the event that nobody is waited for."""
    session = await stage.session(ASKS, DONE)
    if how == "timeout":
        session.ask_person(timeout=0.01)
    elif how == "afk":
        session.ask_person()
        session.ask_nobody()
    found = await seen(session, "go")
    assert results(session) == [DECIDE_YOURSELF]
    assert [event.waits for event in found if event.kind == "question"] == [how == "timeout"]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("I read it.\n\n**Shall I go on?**\n", "awaiting_input"),
        ("用哪一个？", "awaiting_input"),
        ("Which one?\n\n1. **The first**\n   is quick\n\n2. the second", "awaiting_input"),
        ("Wohin?\n* a\n* b\n", "awaiting_input"),
        ("Shall I go on? (y/N)", "awaiting_input"),
        ("**Which one?** [first/second/none]:\n", "awaiting_input"),
        ("Which one? 🙂", "awaiting_input"),
        ("Why? (See a.py)", "idle"),
        ("What is left?\n- only one", "idle"),
        ("Done:\n- a?b\n- c", "idle"),
        ("Why? Because.", "idle"),
        ("```\na ? b : c ?\n```", "idle"),
    ],
)
async def test_an_answer_that_ends_with_a_question_awaits_input(stage, text, state):
    """M012: an open question in text, also with options behind it; the next prompt answers it.

    More is refused then.
    """
    session = await stage.session({"text": text}, DONE, {"text": "Sure?"})
    await seen(session, "go")
    assert session.state.value == state
    session.fork("other")
    assert session.state.value == state
    run = session.submit("yes")
    await anext(run)
    assert session.state is SessionState.PROCESSING
    with pytest.raises(SessionBusy):
        await anext(session.submit("more"))
    assert [event async for event in run][-1].kind == "agent_end"
    assert session.state is SessionState.IDLE
    await seen(session, "go on")
    assert session.state is SessionState.AWAITING_INPUT
    await session.close()
    assert session.state is SessionState.CLOSED


async def test_a_question_beside_calls_or_at_a_limit_is_not_open(stage):
    """M012"""
    asks = {"text": "Shall I?", "tool_calls": [call("ls")]}
    session = await stage.session(asks, asks, max_turns=1)
    await seen(session, "go")
    assert session.state is SessionState.IDLE


async def test_a_stop_while_waiting_ends_in_idle_with_a_balanced_tape_m012(stage):
    session = await stage.session(ASKS, DONE)
    session.ask_person()
    react(session, "question", lambda _: session.abort())
    found = await seen(session, "go")
    assert session.state is SessionState.IDLE
    assert found[-1].stop_reason == "aborted"
    assert results(session) == ["The user did not answer."]
    asked = next(event for event in found if event.kind == "question")
    with pytest.raises(ConfigurationError, match="no question"):
        session.answer(asked.question_id, "SQLite")


async def test_steering_while_waiting_interrupts_or_follows_the_answer(stage):
    session = await stage.session(ASKS, ASKS, DONE)
    session.ask_person()
    asked = []

    def react_once(event):
        asked.append(event.question_id)
        if len(asked) == 1:
            session.steer("never mind", interrupt=True)
        else:
            session.steer("and be quick")
            session.answer(event.question_id, "SQLite")

    react(session, "question", react_once)
    found = await seen(session, "go")
    steered = [event.text for event in found if event.kind == "steering_injected"]
    assert steered == ["never mind", "and be quick"]
    first, second = results(session)
    assert first == "The user did not answer."
    assert "SQLite" in second


CRASH = """
import asyncio, os, signal, sys
import gong

async def main():
    async with gong.open_session(".", model=sys.argv[1], store="tapes") as session:
        session.ask_person()
        session.subscribe(lambda e: e.kind == "question" and os.kill(os.getpid(), signal.SIGKILL))
        await gong.answer_prompt(session, "go")

asyncio.run(main())
"""


async def test_a_crash_while_waiting_leaves_a_balanced_history(stage, tmp_path):
    """The question is on disk before anybody is asked; repair gives it a result."""
    script = tmp_path / "asks.json"
    script.write_text(json.dumps([ASKS, DONE]))
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(Path.cwd())}
    command = [sys.executable, "-c", CRASH, f"scripted/{script}"]
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=tmp_path, env=environ, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL
    stage.store = type(stage.store)(tmp_path / "tapes")
    recorder = stage.reopened()
    assert [entry.type for entry in recorder.path][-1] == "tool.start"
    repaired = repair(view(recorder.path, recorder.kept), Target("", "", ""))
    assert repaired.messages[-1].role == "tool"
    host = await stage.host({"text": "again"}, recorder=recorder)
    found = await seen(host.session, "go on")
    assert found[-1].stop_reason == "stop"


def todo(*items):
    todos = [{"content": content, "status": status} for content, status in items]
    return {"tool_calls": [call("todo", todos=todos)]}


FIRST = [("read", "completed"), ("write", "in_progress"), ("test", "pending")]


async def test_the_whole_list_is_replaced_shown_and_recorded_m194(stage):
    """M194: todos in session and UI."""
    session = await stage.session(todo(*FIRST), todo(("test", "completed")), DONE)
    assert session.todos == ()
    found = await seen(session, "go")
    told = [event.todos for event in found if event.kind == "todos"]
    assert [len(one) for one in told] == [3, 1]
    assert session.todos == (Todo("test", "completed"),)
    assert results(session)[0] == "The todo list is now:\n[x] read\n[>] write\n[ ] test"
    marks = [e.data for e in session.recorder.path if isinstance(e.data, Custom)]
    assert [one.kind for one in marks] == [TODOS_KIND, TODOS_KIND]
    assert json.loads(bytes(marks[0].data))[0] == {"content": "read", "status": "completed"}


async def test_two_in_progress_are_advised_against_and_a_wrong_status_is_an_error(stage):
    both = todo(("a", "in_progress"), ("b", "in_progress"))
    session = await stage.session(both, todo(("a", "doing")), todo(), DONE)
    found = await seen(session, "go")
    first, second, third = results(session)
    assert first.endswith("(Keep only one of them in progress at a time.)")
    assert "Invalid arguments" in second
    assert third == "The todo list is empty now."
    assert session.todos == ()
    assert [len(event.todos) for event in found if event.kind == "todos"] == [2, 0]


async def test_the_list_is_there_again_after_a_compaction_and_a_restart_m194(stage):
    """The anchor's state has it, and the model sees what is left to do word for word."""
    long = {"text": "word " * 4000}
    session = await stage.session(long, todo(*FIRST), long, long, {"text": "a summary"}, DONE)
    for prompt in ("one", "two", "three"):
        await seen(session, prompt)
    async for _ in session.compact(CompactionRequest("user", hard=True)):
        pass
    anchor = find_newest_anchor(session.recorder.path)
    assert [one["content"] for one in json.loads(bytes(anchor.state.todos))] == [
        *("read", "write", "test")
    ]
    assert [one.content for one in session.todos] == ["read", "write", "test"]
    assert "context" in types(session)
    sent = repr(view(session.recorder.path, session.recorder.kept))
    assert "[>] write" in sent
    await session.close()
    recorder = stage.reopened()
    assert len(find_todos((*recorder.kept, *recorder.path))) == 3
    host = await stage.host(DONE, recorder=recorder)
    assert [one.status for one in host.session.todos] == [*("completed", "in_progress", "pending")]


def plan_script():
    touch = {"tool_calls": [call("bash", command="touch made")]}
    leave = {"tool_calls": [call("exit_plan_mode", plan="1. touch a file")]}
    return [{"tool_calls": [call("enter_plan_mode")]}, touch, leave, touch, DONE]


@pytest.mark.parametrize("approve", [True, False])
async def test_a_plan_waits_for_approval_m194(stage, approve):
    """M194: until then nothing may be changed; afterwards the mode of before holds."""
    session = await stage.session(*plan_script())
    session.ask_person()
    modes = []

    def decide(event):
        modes.append((session.setup.policy.mode, event.plan, event.mode))
        with pytest.raises(ConfigurationError, match="approve=True or False"):
            session.answer(event.question_id, "yes")
        session.answer(event.question_id, approve=approve, reason="" if approve else "too short")

    react(session, "plan_proposed", decide)
    await seen(session, "go")
    assert modes == [("plan", "1. touch a file", "bypass")]
    assert "plan" in results(session)[1].lower()
    assert (stage.folder / "made").exists() is approve
    assert session.setup.policy.mode == ("bypass" if approve else "plan")
    if not approve:
        assert results(session)[2].endswith("\nReason: too short")


@pytest.mark.parametrize(
    ("mode", "afk", "approved"),
    [("accept_edits", False, False), ("accept_edits", True, True), ("bypass", False, True)],
)
async def test_an_unread_plan_is_approved_only_by_afk_and_yolo(stage, mode, afk, approved):
    session = await stage.session(*plan_script(), permissions=PermissionSettings(mode=mode))
    if afk:
        session.ask_nobody()
    found = await seen(session, "go")
    assert [event.waits for event in found if event.kind == "plan_proposed"] == [False]
    assert session.setup.policy.mode == (mode if approved else "plan")
    said = results(session)[2]
    assert ("is approved" if approved else "is not approved") in said
    assert "No user is present" in said


@pytest.mark.parametrize("how", ["silence", "left", "left to afk"])
async def test_silence_of_a_person_approves_no_plan_m194(stage, how):
    """M194: not after the time limit, nor when the person leaves; not even back into bypass."""
    session = await stage.session(*plan_script())
    session.ask_person(timeout=0.01 if how == "silence" else None)

    def leave(_):
        if how != "silence":
            session.ask_nobody(approve_plans=how == "left to afk")

    react(session, "plan_proposed", leave)
    await seen(session, "go")
    assert session.setup.policy.mode == "plan"
    assert any("is not approved" in text for text in results(session))
    assert not (stage.folder / "made").exists()


async def test_questions_end_with_the_person_m194(stage):
    """M194: the model decides at once, without the time limit."""
    session = await stage.session(ASKS, DONE)
    session.ask_person()
    react(session, "question", lambda _: session.ask_nobody())
    await seen(session, "go")
    assert results(session) == [DECIDE_YOURSELF]


@pytest.mark.parametrize("identity", [[], {}, None, 3])
async def test_an_id_of_another_type_names_no_question_m225(stage, identity):
    """M225: of questions and of calls."""
    session = await stage.session(DONE)
    for answer in (session.answer, session.answer_approval):
        with pytest.raises(ConfigurationError, match="no question"):
            answer(identity, "once")


async def test_there_is_nothing_to_approve_outside_of_plan_mode(stage):
    leave = {"tool_calls": [call("exit_plan_mode", plan="go")]}
    session = await stage.session(leave, DONE)
    found = await seen(session, "go")
    assert "Plan mode is not on" in results(session)[0]
    assert not [event for event in found if event.kind == "plan_proposed"]


async def test_plan_mode_survives_a_compaction_and_a_restart(stage):
    """After the plan, the mode that the continued session was given holds."""
    long = {"text": "word " * 4000}
    script = [{"tool_calls": [call("enter_plan_mode")]}, long, long, {"text": "a summary"}]
    session = await stage.session(*script)
    for prompt in ("one", "two"):
        await seen(session, prompt)
    async for _ in session.compact(CompactionRequest("user", hard=True)):
        pass
    await session.close()
    leave = {"tool_calls": [call("exit_plan_mode", plan="go")]}
    mild = PermissionSettings(mode="accept_edits")
    host = await stage.host(leave, DONE, recorder=stage.reopened(), permissions=mild)
    assert host.session.setup.policy.mode == "plan"
    host.session.ask_nobody()
    await seen(host.session, "go on")
    assert host.session.setup.policy.mode == "accept_edits"
    await host.session.close()
    host = await stage.host(DONE, recorder=stage.reopened())
    assert host.session.setup.policy.mode == "accept_edits"


async def test_a_person_begins_and_ends_plan_mode(stage):
    """What holds after it is what held before, whatever modes came between."""
    session = await stage.session(DONE)
    assert session.leave_plan_mode() is None
    session.use_permission("plan")
    session.use_permission("plan")
    assert session.leave_plan_mode() == "bypass"
    session.use_permission("plan")
    session.use_permission("accept_edits")
    session.use_permission("plan")
    assert session.leave_plan_mode() == "accept_edits"


@pytest.mark.parametrize("approve", ["no", "deny", 1, "yes"])
async def test_a_plan_is_approved_by_true_alone_m194(stage, approve):
    """M194: any other value is an error, and the plan waits on."""
    session = await stage.session(*plan_script())
    session.ask_person()
    states = []

    def answer(event):
        with pytest.raises(ConfigurationError, match="approved with True or False"):
            session.answer(event.question_id, approve=approve)
        states.append(session.state)
        session.answer(event.question_id, approve=False)

    react(session, "plan_proposed", answer)
    await seen(session, "go")
    assert states == [SessionState.AWAITING_INPUT]
    assert session.setup.policy.mode == "plan"


@pytest.mark.parametrize("answers", [5, [5], {"Which?": 5}, [[5]], b"a", [b"a"]])
async def test_answers_are_texts_m225(stage, answers):
    """M225: anything else is an error, and the question stays open."""
    session = await stage.session(ASKS, DONE)
    session.ask_person()
    refused = []

    def answer(event):
        with pytest.raises(ConfigurationError):
            session.answer(event.question_id, answers)
        refused.append(answers)
        session.abort()

    react(session, "question", answer)
    await seen(session, "go")
    assert refused == [answers]
