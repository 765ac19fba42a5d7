"""`isolation: worktree`: a sub-agent in a folder of its own, by git."""

from __future__ import annotations

import subprocess

import pytest

from gong.config import PermissionSettings
from gong.tools.agent_runs import AgentOrder
from tests.gong.agent.conftest import call, seen
from tests.gong.env.sandbox.world import needs_bubblewrap

DONE = {"text": "done"}


def git(folder, *words):
    done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(stage):
    folder = stage.folder
    subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
    git(folder, "config", "user.name", "t")
    git(folder, "config", "user.email", "t@t.example")
    (folder / "file").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


async def run_in_worktree(stage, *answers, **settings):
    session = await stage.session(DONE, **settings)
    await seen(session, "go")
    order = AgentOrder("change it", model=stage.script(*answers), worktree=True)
    return await session.find_agents().run(order)


async def test_work_in_a_worktree_leaves_the_folder_as_it_is(stage, repository):
    change = {"tool_calls": [call("bash", command="echo two > file; pwd")]}
    report = await run_in_worktree(stage, change, {"text": "changed"})
    assert report.success
    assert (repository / "file").read_text() == "one\n"
    said, _, place = report.output.partition("\n\nIts work is in the git worktree ")
    folder, _, branch = place.removesuffix(".").partition(", on branch ")
    assert said == "changed"
    assert branch.startswith("gong/")
    assert branch.endswith("-agent-1")
    assert git(folder, "diff", "--stat") != ""
    assert git(folder, "branch", "--show-current") == branch
    assert folder in git(repository, "worktree", "list")


async def test_a_worktree_without_changes_is_removed(stage, repository):
    report = await run_in_worktree(stage, {"tool_calls": [call("ls")]}, {"text": "looked"})
    assert report.output == "looked"
    assert git(repository, "worktree", "list").count("\n") == 0
    assert git(repository, "branch", "--list", "gong/*") == ""


async def test_a_commit_in_a_worktree_is_kept(stage, repository):
    commit = "echo two > file; git commit -qam second"
    change = {"tool_calls": [call("bash", command=commit)]}
    report = await run_in_worktree(stage, change, {"text": "committed"})
    assert "Its work is in the git worktree" in report.output
    assert git(repository, "log", "--oneline", "--branches=gong/*").count("\n") == 1
    assert git(repository, "log", "--oneline").count("\n") == 0


async def test_the_folder_of_its_rules_is_the_worktree(stage, repository):
    accepts = PermissionSettings(mode="accept_edits")
    writes = {"tool_calls": [call("write", path="new", content="x\n")]}
    report = await run_in_worktree(stage, writes, DONE, permissions=accepts)
    assert "Its work is in the git worktree" in report.output
    assert not (repository / "new").exists()


async def test_hooks_of_the_repository_do_not_run(stage, repository):
    hook = repository / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {repository}/ran\n")
    hook.chmod(0o755)
    await run_in_worktree(stage, {"text": "looked"})
    assert not (repository / "ran").exists()


async def test_without_a_repository_there_is_no_worktree(stage):
    with pytest.raises(Exception, match="is in no git repository"):
        await run_in_worktree(stage, {"text": "looked"})


@needs_bubblewrap
async def test_a_sub_agent_in_a_worktree_stays_in_a_sandbox(stage, repository):
    """M220: the border of its parent moves to the worktree."""
    commit = f"echo two > file; git commit -qam second; echo x > {repository}/.git/config"
    calls = (
        call("bash", command=commit),
        call("write", path=str(repository / "new"), content="x\n"),
    )
    change = {"tool_calls": [*calls]}
    report = await run_in_worktree(stage, change, DONE, sandbox="workspace-write")
    assert "Its work is in the git worktree" in report.output
    assert git(repository, "log", "--oneline", "--branches=gong/*").count("\n") == 1
    assert git(repository, "config", "user.name") == "t"
    assert not (repository / "new").exists()
