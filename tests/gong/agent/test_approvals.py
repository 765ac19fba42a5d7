"""Questions about calls, for host programs."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from msgspec.structs import astuple

from gong.agent.events import ApprovalRequested
from gong.agent.session import SessionState
from gong.config import PermissionSettings
from gong.errors import ConfigurationError
from gong.policy.approval import ApprovalAnswer
from gong.policy.decision import Verdict
from gong.shell.parser import parse_command_line
from tape.model.entries import Approval
from tests.gong.agent.conftest import call, seen, types

DEFAULT = PermissionSettings()


def approvals(session):
    return [one.data for one in session.recorder.path if isinstance(one.data, Approval)]


async def test_a_host_answers_questions_m177_m178(stage):
    """M177 M178: the event tells the call; a wrong call id is an error; the session waits."""
    touch = {"tool_calls": [call("bash", command="touch one")]}
    again = {"tool_calls": [call("bash", command="touch two")]}
    session = await stage.session(touch, again, {"text": "done"}, permissions=DEFAULT)
    session.ask_person()
    asked = []

    def answer(event):
        if isinstance(event, ApprovalRequested):
            asked.append((event.name, event.offered, session.state))
            with pytest.raises(ConfigurationError, match="no question is open"):
                session.answer_approval("c_0", "once")
            session.answer_approval(event.call_id, "session")

    session.subscribe(answer)
    await seen(session, "go")
    assert asked == [("bash", ("Bash(touch:*)",), SessionState.AWAITING_INPUT)]
    assert session.state is SessionState.IDLE
    assert (stage.folder / "two").exists()
    assert [(one.decision, one.by) for one in approvals(session)] == [
        ("allow", "user"),
        ("allow", "session"),
    ]


async def test_a_command_is_analysed_once_for_all_who_ask_about_it(stage, monkeypatch):
    """The policy before and after the wait, the rules it offers, the record of changed files."""
    lines = []

    def parse(text):
        lines.append(text)
        return parse_command_line(text)

    monkeypatch.setattr("gong.policy.commands.judge.parse_command_line", parse)
    command = "touch one && ls"
    turn = {"tool_calls": [call("bash", command=command)]}
    session = await stage.session(turn, {"text": "done"}, permissions=DEFAULT)
    session.ask_person()

    def answer(event):
        if isinstance(event, ApprovalRequested):
            session.answer_approval(event.call_id, "once")

    session.subscribe(answer)
    await seen(session, "go")
    assert (stage.folder / "one").exists()
    assert lines.count(command) == 1


async def test_a_question_without_an_answer_is_denied_after_its_time(stage):
    """C33: a host may set a time."""
    touch = {"tool_calls": [call("bash", command="touch one")]}
    session = await stage.session(touch, {"text": "done"}, permissions=DEFAULT)
    session.ask_person(timeout=0.01)
    await seen(session, "go")
    assert [(one.decision, one.by) for one in approvals(session)] == [("deny", "timeout")]


async def test_a_stopped_run_leaves_no_question(stage):
    touch = {"tool_calls": [call("bash", command="touch one")]}
    session = await stage.session(touch, {"text": "done"}, permissions=DEFAULT)
    session.ask_person()
    open_calls = []

    def stop(event):
        if isinstance(event, ApprovalRequested):
            open_calls.append(event.call_id)
            asyncio.get_running_loop().call_soon(session.abort)

    session.subscribe(stop)
    await seen(session, "go")
    assert session.state is SessionState.IDLE
    with pytest.raises(ConfigurationError):
        session.answer_approval(open_calls[0], "once")


async def test_the_mode_may_change_during_a_session(stage):
    """M175: it holds from the next call."""
    turns = [{"tool_calls": [call("bash", command=f"touch {name}")]} for name in ("one", "two")]
    session = await stage.session(*turns, {"text": "done"}, permissions=DEFAULT)
    watched = []

    def change(event):
        watched.append(event.kind)
        if event.kind == "tool_end":
            session.use_permission("accept_edits")

    session.subscribe(change)
    await seen(session, "go")
    assert [one.decision for one in approvals(session)] == ["deny", "allow"]
    with pytest.raises(ConfigurationError, match="unknown permission mode"):
        session.use_permission("no")


async def allow_quietly(_):
    return Verdict(allowed=True)


async def refuse_quietly(_):
    return Verdict(allowed=False, text="not today")


async def fail(_):
    raise ValueError("broken")


@pytest.mark.parametrize(
    ("policy", "decision", "by", "reason"),
    [
        (allow_quietly, "allow", "policy", None),
        (refuse_quietly, "deny", "policy", "not today"),
        (fail, "deny", "failure", "ValueError: broken"),
    ],
)
async def test_what_a_policy_of_a_host_decides_is_recorded(stage, policy, decision, by, reason):
    """Every decision is an entry, that of a policy which fails too."""
    session = await stage.session({"tool_calls": [call("ls")]}, {"text": "done"})
    session.setup = replace(session.setup, policy=policy)
    await seen(session, "go")
    assert [astuple(one)[1:] for one in approvals(session)] == [(decision, by, None, reason)]


@pytest.mark.parametrize(
    ("mode", "made"),
    [
        ("default", [("allow", "reading")] * 3 + [("deny", "headless")]),
        ("bypass", [("allow", "mode")] * 4),
        ("plan", [("allow", "reading")] * 3 + [("deny", "mode")]),
    ],
)
async def test_reading_and_bypass_are_decisions_too(stage, mode, made):
    """Each call has one, directly before its start; a call that is denied has no start."""
    (stage.folder / "a.txt").write_text("one\n")
    calls = [
        *(call("read", path="a.txt"), call("bash", command="cat a.txt | wc -l")),
        *(call("todo", todos=[]), call("bash", command="touch ran")),
    ]
    permissions = PermissionSettings(mode=mode)
    session = await stage.session({"tool_calls": calls}, {"text": "x"}, permissions=permissions)
    await seen(session, "go")
    assert [(one.decision, one.by) for one in approvals(session)] == made
    kinds = types(session)
    before = [kinds[at - 1] for at, kind in enumerate(kinds) if kind == "tool.start"]
    assert set(before) <= {"approval", "checkpoint"}


@pytest.mark.parametrize(
    "word", ["deny", "reject", "", None, False, True, "allow", "yes", "ONCE", 1]
)
async def test_only_a_known_decision_answers_a_question(stage, word):
    """M178: anything else is an error, and the question stays open."""
    touch = {"tool_calls": [call("bash", command="touch one")]}
    session = await stage.session(touch, {"text": "done"}, permissions=DEFAULT)
    session.ask_person()
    refused = []

    def answer(event):
        if isinstance(event, ApprovalRequested):
            with pytest.raises(ConfigurationError, match="is not a decision about a call"):
                session.answer_approval(event.call_id, word)
            refused.append(session.state)
            session.answer_approval(event.call_id, "no")

    session.subscribe(answer)
    await seen(session, "go")
    assert refused == [SessionState.AWAITING_INPUT]
    assert not (stage.folder / "one").exists()
    assert [(one.decision, one.by, one.rule) for one in approvals(session)] == [
        ("deny", "user", None)
    ]


@pytest.mark.parametrize("decision", ["deny", "", None, False, True])
async def test_an_asker_of_a_host_that_answers_something_else_denies(stage, decision):
    touch = {"tool_calls": [call("bash", command="touch one")]}
    session = await stage.session(touch, {"text": "done"}, permissions=DEFAULT)

    async def ask(request):
        return ApprovalAnswer(decision)

    session.setup.policy.ask = ask
    await seen(session, "go")
    assert not (stage.folder / "one").exists()
    assert [(one.decision, one.by) for one in approvals(session)] == [("deny", "failure")]
    assert session.setup.policy.granted == []


@pytest.mark.parametrize("allowed", ["deny", "no", 1, "allow"])
async def test_a_verdict_allows_with_true_alone(stage, allowed):
    async def policy(prepared):
        return Verdict(allowed)

    touch = {"tool_calls": [call("bash", command="touch one")]}
    session = await stage.session(touch, {"text": "done"})
    session.setup = replace(session.setup, policy=policy)
    await seen(session, "go")
    assert not (stage.folder / "one").exists()
