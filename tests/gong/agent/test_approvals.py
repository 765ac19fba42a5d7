"""Questions about calls, for host programs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime

import pytest
from msgspec.structs import astuple

from gong.agent.events import ApprovalRequested, ToolExecutionEnd, ToolExecutionStart
from gong.agent.session import SessionState
from gong.config import PermissionSettings
from gong.errors import ConfigurationError
from gong.policy.approval import ApprovalAnswer
from gong.policy.decision import Verdict
from gong.shell.parser import parse_command_line
from tape.formats.wire import decode_json
from tape.model.entries import Approval, ToolResult, join_texts
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


@pytest.mark.parametrize(
    ("decision", "warns"), [("always", True), ("session", True), ("once", False)]
)
async def test_a_lasting_decision_that_no_rule_keeps_warns(stage, decision, warns):
    """M178: it allows this call alone."""
    permissions = PermissionSettings(ask=("Bash(touch:*)",))
    touch = {"tool_calls": [call("bash", command="touch one")]}
    session = await stage.session(touch, {"text": "done"}, permissions=permissions)
    session.ask_person()

    def answer(event):
        if isinstance(event, ApprovalRequested):
            assert event.offered == ()
            session.answer_approval(event.call_id, decision)

    session.subscribe(answer)
    happened = await seen(session, "go")
    assert (stage.folder / "one").exists()
    assert [event.message for event in happened if event.kind == "warning"] == (
        ["bash: no rule covers this call, so it is allowed this once alone"] if warns else []
    )


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


PATCH = "*** Begin Patch\n*** Update File: {}\n@@\n-{}\n+two\n*** End Patch\n"
UNREAD = PermissionSettings(read_before_write=False)


async def ask_about(stage, *calls, decision="once"):
    """Return the session, its questions and its results after a turn that makes these calls."""
    turn = {"tool_calls": [call(name, **args) for name, args in calls]}
    tools = ("edit", "write", "apply_patch")
    session = await stage.session(turn, {"text": "done"}, permissions=UNREAD, tools=tools)
    session.ask_person()
    asked = []

    def answer(event):
        if isinstance(event, ApprovalRequested):
            asked.append(event)
            session.answer_approval(event.call_id, decision)

    session.subscribe(answer)
    await seen(session, "go")
    results = [one.data for one in session.recorder.path if isinstance(one.data, ToolResult)]
    return session, asked, results


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("edit", {"path": "a.txt", "oldText": "one", "newText": "two"}),
        ("write", {"path": "a.txt", "content": "two\n"}),
        ("apply_patch", {"input": PATCH.format("a.txt", "one")}),
    ],
)
async def test_a_question_shows_what_the_file_becomes_m177(stage, name, arguments):
    """M177: the diff, with numbers; nothing is changed before the answer."""
    (stage.folder / "a.txt").write_text("one\n")
    _, (event,), (result,) = await ask_about(stage, (name, arguments), decision="no")
    details = decode_json(bytes(event.details))
    diff = details["diff"] if "diff" in details else details["files"][0]["diff"]
    assert [line.split() for line in diff.splitlines()] == [["-", "1", "one"], ["+", "1", "two"]]
    assert result.is_error
    assert (stage.folder / "a.txt").read_text() == "one\n"


async def test_an_impossible_change_asks_no_question_m177(stage):
    """M177: a patch is parsed and compared with its file before a person reads it."""
    (stage.folder / "a.txt").write_text("one\n")
    calls = (
        ("apply_patch", {"input": PATCH.format("a.txt", "three")}),
        ("apply_patch", {"input": "*** Begin Patch\nnonsense"}),
        ("edit", {"path": "a.txt", "oldText": "three", "newText": "two"}),
    )
    session, asked, results = await ask_about(stage, *calls)
    assert (asked, approvals(session)) == ([], [])
    assert "Failed to find expected lines in a.txt" in join_texts(results[0].content)
    assert "Invalid patch" in join_texts(results[1].content)
    assert "Could not find the exact text" in join_texts(results[2].content)


async def test_a_file_that_may_not_be_read_unasked_is_not_compared_before_the_answer(stage):
    """Its lines would reach the model in the error."""
    (stage.folder / ".env").write_text("KEY=secret\n")
    patch = ("apply_patch", {"input": PATCH.format(".env", "KEY=secre")})
    _, (event,), (result,) = await ask_about(stage, patch, decision="no")
    assert not bytes(event.details)
    assert "secret" not in join_texts(result.content)


async def test_an_edited_call_tells_what_ran(stage):
    """M177: the event of its end has the arguments, for whoever shows the call."""
    turn = {"tool_calls": [call("bash", command="touch a")]}
    session = await stage.session(turn, {"text": "done"}, permissions=DEFAULT)
    session.ask_person()

    def answer(event):
        if isinstance(event, ApprovalRequested):
            is_first = b"touch a" in bytes(event.args)
            edited = {"command": "touch b"} if is_first else None
            session.answer_approval(event.call_id, "edit" if is_first else "once", arguments=edited)

    session.subscribe(answer)
    (end,) = [one for one in await seen(session, "go") if isinstance(one, ToolExecutionEnd)]
    assert decode_json(bytes(end.args)) == {"command": "touch b"}


CIRCLE = {}
CIRCLE["command"] = CIRCLE


@pytest.mark.parametrize("wrong", [{"command": object()}, CIRCLE, {(): 1}])
async def test_an_edit_that_is_no_json_leaves_the_question_open(stage, wrong):
    turn = {"tool_calls": [call("bash", command="touch a")]}
    session = await stage.session(turn, {"text": "done"}, permissions=DEFAULT)
    session.ask_person()
    errors = []

    def answer(event):
        if isinstance(event, ApprovalRequested):
            with pytest.raises(ConfigurationError) as caught:
                session.answer_approval(event.call_id, "edit", arguments=wrong)
            errors.append(str(caught.value))
            session.answer_approval(event.call_id, "no")

    session.subscribe(answer)
    await seen(session, "go")
    (text,) = errors
    assert text.startswith("the arguments of a call are a JSON object: ")
    assert not (stage.folder / "a").exists()


@pytest.mark.parametrize("wrong", [{"command": object()}, CIRCLE, [1], "x"])
async def test_a_policy_that_edits_to_no_json_refuses_only_its_call(stage, wrong):
    turn = {"tool_calls": [call("bash", command="touch a")]}
    session = await stage.session(turn, {"text": "done"})

    async def edit(_):
        return Verdict(True, arguments=wrong)

    session.use_policy(edit)
    (end,) = [event for event in await seen(session, "go") if isinstance(event, ToolExecutionEnd)]
    start = "Not run: the policy that decides about calls failed: "
    assert join_texts(end.content).startswith(start)
    assert not (stage.folder / "a").exists()


async def test_the_time_that_a_person_thinks_is_not_the_tools(stage):
    turn = {"tool_calls": [call("bash", command="touch a")]}
    session = await stage.session(turn, {"text": "done"}, permissions=DEFAULT)
    session.ask_person()
    loop = asyncio.get_running_loop()

    def answer(event):
        if isinstance(event, ApprovalRequested):
            loop.call_later(1.0, session.answer_approval, event.call_id, "once")

    session.subscribe(answer)
    times = {type(one): one for one in await seen(session, "go")}
    start, end = times[ToolExecutionStart], times[ToolExecutionEnd]
    whole = datetime.fromisoformat(end.time) - datetime.fromisoformat(start.time)
    assert end.duration_ms <= whole.total_seconds() * 1000 - 990
