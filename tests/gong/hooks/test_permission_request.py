"""Hooks that decide in place of the person: what they may decide, and what stays forbidden."""

from __future__ import annotations

import pytest

from gong.agent import events
from gong.config import PermissionSettings
from gong.hooks import Allow, Block
from tape.model.entries import Approval
from tests.gong.agent.conftest import call
from tests.gong.hooks.conftest import of, result_texts

TOUCH = {"tool_calls": [call("bash", command="touch made")]}
DONE = {"text": "done"}


def decisions(session):
    entries = (one.data for one in session.recorder.path)
    return [(one.decision, one.by, one.rule) for one in entries if isinstance(one, Approval)]


def answer_with(stage, decision):
    """Write a project with a trusted command hook that answers so, and keeps what it read."""
    said = f'{{"hookSpecificOutput":{{"hookEventName":"PermissionRequest","decision":{decision}}}}}'
    command = f"cat > asked.json; echo '{said}'"
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}
    stage.write(".gong/hooks.json", {"hooks": {"PermissionRequest": [hook]}})
    stage.trust()


async def test_a_command_hook_allows_although_no_person_can_be_asked_m174(stage):
    """M174: Claude's JSON in both directions; the approval entry names the hook."""
    answer_with(stage, '{"behavior":"allow"}')
    session, happened = await stage.run((), TOUCH, DONE)
    assert (stage.folder / "made").exists()
    [(decision, by, rule)] = decisions(session)
    assert (decision, by) == ("allow", "hook")
    assert "asked.json" in rule
    assert not of(events.ApprovalRequested, happened)
    asked = (stage.folder / "asked.json").read_text()
    assert '"hook_event_name":"PermissionRequest"' in asked
    assert '"tool_name":"Bash"' in asked
    assert '"rules":[{"toolName":"Bash","ruleContent":"touch:*"}]' in asked


async def test_a_command_hook_denies_and_ends_the_run(stage):
    answer_with(stage, '{"behavior":"deny","message":"not today","interrupt":true}')
    session, happened = await stage.run((), TOUCH, DONE)
    assert result_texts(happened) == ["Blocked by a hook: not today"]
    assert [one[:2] for one in decisions(session)] == [("deny", "hook")]
    assert [one.turns for one in of(events.RunEnd, happened)] == [1]
    assert not (stage.folder / "made").exists()


class Decider:
    """A Python hook that answers so, and counts."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def on_permission_request(self, tool, args):
        self.asked.append((tool, args["command"]))
        return self.answer


@pytest.mark.parametrize(
    ("answer", "decided"),
    [
        (Allow(), ("allow", "hook", "Decider")),
        (Block("no"), ("deny", "hook", "Decider")),
        (None, ("deny", "headless", None)),
    ],
)
async def test_a_python_hook_decides_or_leaves_it_to_the_person(stage, answer, decided):
    hook = Decider(answer)
    session, _ = await stage.run([hook], TOUCH, DONE)
    assert decisions(session) == [decided]
    assert hook.asked == [("bash", "touch made")]


async def test_a_person_is_asked_only_where_no_hook_decides(stage):
    session = await stage.hooked([Decider(Allow())], TOUCH, DONE)
    session.ask_person()
    async for event in session.submit("go"):
        assert event.kind != "approval_request"
    assert decisions(session) == [("allow", "hook", "Decider")]


@pytest.mark.parametrize(
    ("command", "mode"),
    [("rm -rf ~", "default"), ("touch x", "plan"), ("touch x", "locked"), ("ls", "default")],
)
async def test_a_hook_is_not_asked_about_a_call_that_needs_no_answer(stage, command, mode):
    hook = Decider(Allow())
    script = {"tool_calls": [call("bash", command=command)]}
    await stage.run([hook], script, DONE, permissions=PermissionSettings(mode=mode))
    assert hook.asked == []
    assert not (stage.folder / "x").exists()


async def test_a_hook_cannot_change_what_it_allows(stage):
    answer_with(stage, '{"behavior":"allow","updatedInput":{"command":"touch other"}}')
    session, happened = await stage.run((), TOUCH, DONE)
    assert [one[:2] for one in decisions(session)] == [("deny", "headless")]
    assert "PreToolUse hooks change arguments" in of(events.HookError, happened)[0].error
    assert not (stage.folder / "other").exists()
