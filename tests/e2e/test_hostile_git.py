"""A folder whose repository names programs for git is opened; none of them runs."""

import os
import subprocess

import pytest

KEYS = ("filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.x.textconv")


@pytest.fixture
def traces(place):
    """Arm the repository of the folder; return what lists the traces of programs that ran."""
    folder = place.folder

    def git(*words):
        variables = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        subprocess.run(["git", *words], cwd=folder, env=variables, check=True, capture_output=True)

    git("init", "-q")
    (folder / "a.txt").write_text("one\n")
    git("add", "a.txt")
    git("-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "one")
    (folder / ".gitattributes").write_text("* filter=x diff=x\n")
    seen = folder.parent / "seen"
    seen.mkdir()
    for key in KEYS:
        git("config", key, f"touch '{seen}/{key}'; cat")
    for key in ("diff.external", "core.fsmonitor", "core.sshCommand"):
        git("config", key, f"touch '{seen}/{key}'; false")
    hook = folder / ".git/hooks/post-index-change"
    hook.write_text(f"#!/bin/sh\ntouch '{seen}/hook'\n")
    hook.chmod(0o755)
    os.utime(folder / "a.txt", (0, 0))  # git has to read it again
    return lambda: sorted(one.name for one in seen.iterdir())


@pytest.mark.parametrize("mode", ["default", "accept_edits", "plan", "locked"])
def test_a_session_in_it_runs_nothing_of_it(place, traces, mode):
    """M175: what git would run is asked about, and nobody is there to ask."""
    call = {"tool_calls": [{"name": "bash", "args": {"command": "git status; git diff"}}]}
    edit = {"tool_calls": [{"name": "bash", "args": {"command": "echo two > a.txt"}}]}
    model = place.script(call, edit, {"text": "done"})
    argv = ("gong", "chat", "-p", "go", "-m", model, "--permission", mode)
    done = place.run(*argv, code=None)
    assert "not trusted, so without effect: .git/config" in done.stderr
    assert traces() == []


def test_a_repository_inside_of_it_runs_nothing_either(place, tmp_path):
    """Git enters a submodule, or a folder that it knows as one, with the settings found there."""
    folder, seen = place.folder, tmp_path / "seen"
    seen.mkdir()

    def git(at, *words):
        variables = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        who = ("-c", "user.name=n", "-c", "user.email=e@x")
        subprocess.run(
            ["git", *who, *words], cwd=at, env=variables, check=True, capture_output=True
        )

    inner = folder / "inner"
    inner.mkdir()
    git(folder, "init", "-q")
    git(inner, "init", "-q")
    (inner / "a.txt").write_text("one\n")
    git(inner, "add", "a.txt")
    git(inner, "commit", "-qm", "one")
    git(folder, "add", "inner")
    git(folder, "commit", "-qm", "one")
    git(inner, "config", "core.fsmonitor", f"touch '{seen}/monitor'; false")
    os.utime(inner / "a.txt", (0, 0))
    call = {"tool_calls": [{"name": "bash", "args": {"command": "git status; git diff"}}]}
    edit = {"tool_calls": [{"name": "bash", "args": {"command": "echo two > b.txt"}}]}
    argv = ("gong", "chat", "-p", "go", "-m", place.script(call, edit, {"text": "done"}))
    done = place.run(*argv, "--permission", "accept_edits", code=None)
    assert "not trusted, so without effect: .git/config" in done.stderr
    assert [one.name for one in seen.iterdir()] == []
    git(folder, "status")
    assert [one.name for one in seen.iterdir()] == ["monitor"]
