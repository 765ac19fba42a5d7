"""What git shows of files with credentials asks, though no word of the command names them."""

from __future__ import annotations

import os
import subprocess

import pytest

from gong.config import PermissionSettings
from gong.policy.permissions import build_policy
from gong.policy.tracked_files import list_tracked_credentials

SENSITIVE = [".env", "deploy/id_rsa", "deploy/server.pem"]


@pytest.fixture
def git(tmp_path):
    work = tmp_path / "work"
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def run(*words):
        command = ("git", "-c", "user.name=n", "-c", "user.email=e@x", *words)
        subprocess.run(command, cwd=work, env=variables, check=True, capture_output=True)

    names = ("a.py", "src/env.py", "long/" + "x" * 120 + "/env.py", *SENSITIVE)
    for name in names:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("K=1\n")
    run("init", "-q")
    run("add", "-A", "-f")
    run("commit", "-qm", "one")
    (work / "names").write_text(".env\n")
    return run


@pytest.fixture
def folder(tmp_path, git):
    return tmp_path / "work"


def judge(folder, command, mode="default", **rules):
    settings = PermissionSettings(mode=mode, **rules)
    policy = build_policy(settings, str(folder), {"HOME": str(folder.parent)})
    return policy.judge("bash", {"command": command})


EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@pytest.mark.parametrize(
    "command",
    [
        "git show HEAD",
        "git show",
        "git log -p",
        "git log -1 --patch",
        "git log --stat -p",
        "git grep K",
        "git grep -n K -- deploy .env",
        f"git diff {EMPTY}",
        f"git diff {EMPTY} HEAD",
        "git diff --cached",
        "git diff-tree -p HEAD",
        "git stash show -p",
        "git show HEAD | head",
        "bash -c 'git show HEAD'",
    ],
)
def test_what_git_may_show_asks_for_each_file(folder, command):
    ruling = judge(folder, command)
    offered = sorted(one for one in ruling.offered if one.startswith("Read("))
    assert (ruling.decision, offered) == ("ask", [f"Read({folder}/{one})" for one in SENSITIVE])
    assert judge(folder, command, allow=ruling.offered).decision == "allow"
    denied = judge(folder, command, "dont_ask", deny=("Read(.env)",))
    assert denied.decision == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "git log",
        "git log -S password",
        "git log -Spassword",
        "git log --stat",
        "git log -p -- a.py src",
        "git log -L1,2:a.py",
        "git show --stat HEAD",
        "git show --name-only HEAD",
        "git show HEAD:a.py",
        "git show HEAD -- a.py",
        "git grep -l K",
        "git grep K -- '*.py'",
        "git grep K src",
        "git diff",
        "git diff HEAD",
        f"git diff {EMPTY} -- a.py",
        f"git diff --name-only {EMPTY}",
        "git status",
    ],
)
def test_what_shows_none_of_them_does_not(folder, command):
    assert judge(folder, command).decision == "allow"


@pytest.mark.parametrize("command", ["git diff", "git diff HEAD", "git diff -- .env"])
def test_a_changed_file_is_shown_by_a_plain_diff(folder, command):
    (folder / ".env").write_text("K=changed\n")
    assert judge(folder, command).decision == "ask"
    assert judge(folder, "git diff -- a.py").decision == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "ls -a | xargs cat",
        "ls -A | xargs head",
        "git ls-files | xargs cat",
        "git ls-files -z | xargs -0 head",
    ],
)
def test_hidden_files_count_where_they_are_listed(folder, command):
    assert f"Read({folder}/.env)" in judge(folder, command).offered


@pytest.mark.parametrize(
    "command",
    [
        "strings @names",
        "nm @names",
        "xzcat --files=names",
        "xzcat --files0=names",
        "wc --files0-from=names",
        "wc --files0-from names",
        "du --files0-from=names",
        "sort --files0-from=names",
        "file -f names",
        "file --files-from names",
        "xargs -a names cat",
        "xargs cat < names",
        "cat $(cat names)",
        "tar cf - -T names",
        "rsync --files-from=names . /tmp/x",
    ],
)
def test_names_that_stand_in_a_file_are_not_known(folder, command):
    assert judge(folder, command).decision == "ask"


def test_the_index_tells_the_files_in_any_repository(folder, git):
    found = [one.path for one in list_tracked_credentials(str(folder / "deploy"))]
    assert found == [f"{folder}/{one}" for one in SENSITIVE]
    assert not any(one.is_changed for one in list_tracked_credentials(str(folder)))
    git("worktree", "add", "-q", "-b", "side", str(folder.parent / "side"))
    side = folder.parent / "side"
    assert [one.path for one in list_tracked_credentials(str(side))] == [
        f"{side}/{one}" for one in SENSITIVE
    ]
    git("update-index", "--index-version", "4")
    assert list(list_tracked_credentials(str(folder))) == []
    assert list(list_tracked_credentials(str(folder.parent))) == []
