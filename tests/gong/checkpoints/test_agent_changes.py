"""What sub-agents changed in the folder of their session goes back with its prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gong.agent.rewind import plan_redo, plan_undo
from gong.config import PermissionSettings
from gong.tools.agent_runs import AgentOrder
from tests.gong.agent.conftest import call, seen
from tests.gong.checkpoints.test_place_folder import commit, open_far, read_tree
from tests.gong.subagents.conftest import AgentStage, stage

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["stage"]

FREE = {"permissions": PermissionSettings(mode="bypass", read_before_write=False)}


def fill(folder: Path) -> None:
    for name in ("a", "b", "c"):
        (folder / name).write_text(f"{name}1\n")


def build_turn(stage: AgentStage) -> list[dict[str, object]]:
    """Return the answers of a session that changes files before, by and after a sub-agent."""
    inner = stage.task(
        {"tool_calls": [call("bash", command="echo c3 > c; mkdir d; echo new > d/e")]},
        {"text": "done"},
    )
    child = stage.task(
        {"tool_calls": [call("write", path="a", content="a3\n"), call("bash", command="rm b")]},
        {"tool_calls": [inner]},
        {"text": "done"},
    )
    return [
        {"tool_calls": [call("bash", command="echo a2 > a; echo c2 > c")]},
        {"tool_calls": [child]},
        {"tool_calls": [call("bash", command="echo a4 > a")]},
        {"text": "done"},
    ]


@pytest.mark.parametrize("where", ["here", "there"])
async def test_changes_of_sub_agents_go_back_and_forth(
    stage: AgentStage, tmp_path: Path, where: str
) -> None:
    """M125: those of their own sub-agents, too; on this machine and in another place."""
    far = tmp_path / "far"
    far.mkdir()
    for folder in (stage.folder, far):
        fill(folder)
    acted, other = (far, stage.folder) if where == "there" else (stage.folder, far)
    before, untouched = read_tree(acted), read_tree(other)
    session = await stage.session(*build_turn(stage), max_subagent_depth=2, **FREE)
    async with open_far(far) as env:
        if where == "there":
            session.use_environment(env)
        await seen(session, "go")
        after = read_tree(acted)
        assert {"a", "c", "d/e"} == {*after}
        plan = plan_undo(session)
        assert plan.unrecorded == ()
        report = session.apply_rewind(plan)
        assert (report.failed, report.kept) == ({}, ())
        assert read_tree(acted) == before
        session.apply_rewind(plan_redo(session))
        assert read_tree(acted) == after
        (acted / "d/e").write_text("mine\n")
        report = session.apply_rewind(plan_undo(session))
        assert [file.why for file in report.kept] == ["it was changed since"]
    assert read_tree(other) == untouched


async def test_what_an_agent_did_before_a_prompt_stays_when_that_is_undone(
    stage: AgentStage,
) -> None:
    fill(stage.folder)
    first, second = (
        stage.task({"tool_calls": [call("bash", command=f"echo {name} >> a")]}, {"text": "done"})
        for name in ("first", "second")
    )
    turns = [{"tool_calls": [first]}, {"text": "1"}, {"tool_calls": [second]}, {"text": "2"}]
    session = await stage.session(*turns, **FREE)
    await seen(session, "go")
    await seen(session, "go on")
    session.apply_rewind(plan_undo(session))
    assert (stage.folder / "a").read_text() == "a1\nfirst\n"
    session.apply_rewind(plan_undo(session))
    assert (stage.folder / "a").read_text() == "a1\n"


async def test_changes_in_a_worktree_stay_there(stage: AgentStage) -> None:
    fill(stage.folder)
    commit(stage.folder)
    session = await stage.session({"text": "done"}, **FREE)
    await seen(session, "go")
    change = {"tool_calls": [call("bash", command="echo a2 > a")]}
    order = AgentOrder("change it", model=stage.script(change, {"text": "done"}), worktree=True)
    report = await session.find_agents().run(order)
    assert "Its work is in the git worktree" in report.output
    assert plan_undo(session).files.files == ()
