"""C34: a sub-agent has the rules and the mode of its parent, and asks where its parent asks."""

from __future__ import annotations

import pytest

from gong.config import PermissionSettings
from gong.policy.modes import PermissionMode
from tape.model.entries import Approval, join_texts
from tests.gong.agent.conftest import call, seen
from tests.gong.subagents.conftest import results

DONE = {"text": "done"}
TOUCH = {"tool_calls": [call("bash", command="touch made")]}


def child_entries(session, agent="agent-1"):
    tape = session.recorder.tape
    return tape.entries(tape.head(agent))


def approvals(session, agent="agent-1"):
    data = (entry.data for entry in child_entries(session, agent))
    return [(one.decision, one.by) for one in data if isinstance(one, Approval)]


async def test_a_question_is_asked_in_the_parent(stage):
    rules = PermissionSettings()
    session = await stage.session(
        {"tool_calls": [stage.task(TOUCH, {"text": "ok"})]}, DONE, permissions=rules
    )
    session.ask_person()
    asked = []

    def answer(event):
        if event.kind == "approval_request":
            asked.append((event.agent, event.name, session.state.value))
            session.answer_approval(event.call_id, "once")

    session.subscribe(answer)
    await seen(session, "go")
    assert asked == [("agent-1", "bash", "awaiting_input")]
    assert approvals(session) == [("allow", "user")]
    assert (stage.folder / "made").exists()


async def test_what_is_allowed_for_the_session_holds_for_all(stage):
    again = {"tool_calls": [call("bash", command="touch made")]}
    session = await stage.session(
        {"tool_calls": [stage.task(TOUCH, {"text": "ok"})]},
        again,
        DONE,
        permissions=PermissionSettings(),
    )
    session.ask_person()
    asked = []

    def answer(event):
        if event.kind == "approval_request":
            asked.append(event.agent)
            session.answer_approval(event.call_id, "session")

    session.subscribe(answer)
    await seen(session, "go")
    assert asked == ["agent-1"]


async def test_without_a_person_what_would_be_asked_is_denied(stage):
    session = await stage.run(stage.task(TOUCH, {"text": "no"}), permissions=PermissionSettings())
    assert approvals(session) == [("deny", "headless")]
    assert not (stage.folder / "made").exists()


@pytest.mark.parametrize("mode", ["default", "plan", "accept_edits", "dont_ask", "locked"])
async def test_rules_that_deny_hold(stage, mode):
    rules = PermissionSettings(mode=mode, deny=("Bash(touch *)",))
    session = await stage.run(stage.task(TOUCH, {"text": "no"}), permissions=rules)
    [(decision, by)] = approvals(session)
    assert decision == "deny"
    assert by == "rule"


async def test_rules_that_allow_hold(stage):
    rules = PermissionSettings(mode="locked", allow=("Bash(touch *)",))
    await stage.run(stage.task(TOUCH, {"text": "ok"}), permissions=rules)
    assert (stage.folder / "made").exists()


async def test_a_rule_can_deny_sub_agents(stage):
    rules = PermissionSettings(mode="default", deny=("Task",))
    session = await stage.run(stage.task({"text": "no"}), permissions=rules)
    assert "Task" in results(session)[0]
    assert "denies" in results(session)[0] or "denied" in results(session)[0]
    assert session.subagents == {}


async def test_a_change_of_the_mode_holds_from_the_next_call(stage):
    """And the tape of the sub-agent says so."""
    session = await stage.session({"tool_calls": [stage.task(TOUCH, TOUCH, {"text": "ok"})]}, DONE)

    def change(event):
        if event.agent and event.kind == "tool_end":
            session.use_permission("plan")

    session.subscribe(change, agents=True)
    await seen(session, "go")
    assert approvals(session) == [("allow", "mode"), ("deny", "mode")]
    modes = [one.data.permission for one in child_entries(session) if one.type == "mode"]
    assert modes == ["plan"]


async def test_a_type_never_widens_the_mode(stage):
    session = await stage.run(
        stage.task(
            {"tool_calls": [call("bash", command="cat made")]},
            {"text": "ok"},
            subagent_type="Explore",
        ),
        permissions=PermissionSettings(mode="locked"),
    )
    [child] = session.subagents.values()
    assert child.plan.kind.mode is PermissionMode.PLAN
    assert approvals(session) == [("deny", "mode")]


async def test_a_sub_agent_of_a_sub_agent_asks_in_the_session(stage):
    inner = stage.task(TOUCH, {"text": "deep"})
    session = await stage.session(
        {"tool_calls": [stage.task({"tool_calls": [inner]}, {"text": "ok"})]},
        DONE,
        permissions=PermissionSettings(),
        max_subagent_depth=2,
    )
    session.ask_person()
    asked = []

    def answer(event):
        if event.kind == "approval_request":
            asked.append(event.agent)
            session.answer_approval(event.call_id, "no", "not now")

    session.subscribe(answer)
    await seen(session, "go")
    assert asked == ["agent-1-1"]
    texts = [
        join_texts(entry.data.content)
        for entry in child_entries(session, "agent-1-1")
        if entry.type == "tool.result"
    ]
    assert "not now" in texts[0]


async def test_a_dangerous_command_is_refused_in_every_mode(stage):
    danger = {"tool_calls": [call("bash", command="git push --force")]}
    session = await stage.run(stage.task(danger, {"text": "no"}))
    assert approvals(session) == [("deny", "danger")]


OUTSIDE = [
    call("read", path="../b.txt"),
    call("bash", command="cat ../b.txt"),
    call("grep", pattern="b", path=".."),
    call("find", pattern="*", path=".."),
    call("write", path="../made", content="x"),
    call("bash", command="echo x > ../made"),
    call("read", path="link"),
]


@pytest.mark.parametrize("mode", ["default", "accept_edits"])
async def test_a_sub_agent_is_restricted_to_its_folder(stage, mode):
    """M231: outside of working_dir has to be asked, as outside of the project; inside, nothing."""
    (stage.folder / "sub").mkdir()
    (stage.folder / "sub/a.txt").write_text("a")
    (stage.folder / "b.txt").write_text("b")
    (stage.folder / "sub/link").symlink_to("../b.txt")
    inside = [call("read", path="a.txt"), call("bash", command="cat a.txt"), call("ls")]
    answers = [{"tool_calls": [one]} for one in (*inside, *OUTSIDE)]
    session = await stage.run(
        stage.spawn(*answers, {"text": "ok"}, working_dir="sub"),
        call("wait", agent_id="agent-1"),
        call("read", path="b.txt"),
        permissions=PermissionSettings(mode=mode),
    )
    assert [one for one, _ in approvals(session)] == ["allow"] * 3 + ["deny"] * len(OUTSIDE)
    assert not (stage.folder / "made").exists()
    assert "b" in results(session)[-1]


async def test_a_sub_agent_of_one_that_is_restricted_is_so_too(stage):
    """M231."""
    (stage.folder / "sub").mkdir()
    (stage.folder / "b.txt").write_text("b")
    inner = stage.task({"tool_calls": [OUTSIDE[0]]}, {"text": "ok"})
    session = await stage.run(
        stage.spawn({"tool_calls": [inner]}, {"text": "ok"}, working_dir="sub"),
        call("wait", agent_id="agent-1"),
        permissions=PermissionSettings(),
        max_subagent_depth=2,
    )
    assert approvals(session, "agent-1-1") == [("deny", "headless")]
