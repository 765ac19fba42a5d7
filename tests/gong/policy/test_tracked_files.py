"""What git shows of files with credentials asks, though no word of the command names them."""

from __future__ import annotations

import os
import subprocess

import pytest

from gong.config import PermissionSettings
from gong.policy.files.git_index import list_tracked_credentials
from gong.policy.permissions import build_policy

SENSITIVE = [".env", "deploy/id_rsa", "deploy/server.pem"]


@pytest.fixture
def git(tmp_path):
    work = tmp_path / "work"
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def run(*words):
        command = ("git", "-c", "user.name=n", "-c", "user.email=e@x", *words)
        done = subprocess.run(command, cwd=work, env=variables, check=True, capture_output=True)
        return done.stdout.decode()

    names = ("a.py", "src/env.py", "long/" + "x" * 120 + "/env.py", *SENSITIVE)
    for name in names:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(f"K=1 {name}\n")
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
    environ = {"HOME": str(folder.parent), "PATH": os.environ["PATH"]}
    policy = build_policy(settings, str(folder), environ)
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
        f"git diff --cached {EMPTY}",
        "git log -c",
        "git log -pS K",
        "git log -p -n 1",
        "git log -p --author a.py",
        "git show ':/a: b'",
        "git show 'HEAD^{/a: b}'",
        "git show -Ss HEAD",
        f"git diff {EMPTY} HEAD:",
        "git grep K HEAD:",
        "git grep -eKl",
        "git grep -l --no-files-with-matches K",
        "git range-diff HEAD HEAD HEAD",
        "git -C src show HEAD",
        "cd src && git show HEAD",
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
        "git status -v",
        "git diff --cached",
        "git diff --staged HEAD",
        "git grep -nl K",
        "git grep K HEAD:src",
        "git diff HEAD:src HEAD:src",
        "git log -p -n 1 a.py",
        "git show HEAD -- . ':!*.env' ':(exclude)deploy' ':^.env'",
        "cd src && git grep K",
        "git -C src show HEAD -- env.py",
        "git cat-file -p HEAD",
    ],
)
def test_what_shows_none_of_them_does_not(folder, command):
    assert judge(folder, command).decision == "allow"


@pytest.mark.parametrize("command", ["git diff", "git diff HEAD", "git diff -- .env"])
def test_a_changed_file_is_shown_by_a_plain_diff(folder, command):
    (folder / ".env").write_text("K=changed\n")
    assert judge(folder, command).decision == "ask"
    assert judge(folder, "git diff -- a.py").decision == "allow"


def test_a_file_that_is_staged_is_shown_by_diffs_with_the_last_commit(folder, git):
    """Its bytes are those of the index, so that a look at the disk tells nothing."""
    (folder / "deploy/server.pem").write_text("K=changed\n")
    git("add", "deploy/server.pem")
    for command in ("git diff --cached", "git diff HEAD", "git status -v", "git status -vv"):
        assert judge(folder, command).offered == (f"Read({folder}/deploy/server.pem)",), command
    for command in ("git diff", "git diff --cached -- .env a.py", "git status"):
        assert judge(folder, command, allow=("Bash(git diff --cached -- .env a.py)",)).decision == (
            "allow"
        ), command


def test_commits_that_hold_none_of_them_are_shown(folder, git):
    """A repository may track test certificates; what does not touch them asks for nothing."""
    (folder / "a.py").write_text("K=2\n")
    git("commit", "-qam", "two")
    for command in ("git show", "git show HEAD", "git diff HEAD~1", "git diff HEAD~1..HEAD"):
        assert judge(folder, command).decision == "allow", command
    for command in ("git show HEAD~1", "git show HEAD HEAD~1", "git show --all", "git log -p"):
        assert len(judge(folder, command).offered) == len(SENSITIVE), command
    git("rm", "-q", "deploy/server.pem")
    git("commit", "-qm", "three")
    for command in ("git show HEAD", "git diff HEAD~1 HEAD", "git show -w HEAD -- deploy"):
        assert judge(folder, command).offered == (f"Read({folder}/deploy/server.pem)",), command


def test_the_object_of_a_file_names_it(folder, git):
    oid = git("rev-parse", "HEAD:deploy/server.pem").strip()
    for command in (f"git cat-file -p {oid}", f"git cat-file blob {oid[:7]}"):
        assert f"Read({folder}/deploy/server.pem)" in judge(folder, command).offered
    other = git("hash-object", "-w", "names").strip()
    assert judge(folder, f"git cat-file -p {other}").decision == "allow"


@pytest.mark.parametrize("command", ["git grep --untracked K", "git ls-files -o | xargs cat"])
def test_what_is_not_tracked_counts_where_git_takes_it(folder, command):
    (folder / ".env.local").write_text("K=1\n")
    assert f"Read({folder}/.env.local)" in judge(folder, command).offered


@pytest.mark.parametrize(
    "command",
    [
        'jq -n \'import "config" as $c {search: "/home/ada/.docker"}; $c\'',
        "jq 'include \"x\"; .' a.json",
        "ls -d src/.* | xargs cat",
        "echo .e* | xargs cat",
    ],
)
def test_other_ways_to_a_file_without_its_name(folder, command):
    assert judge(folder, command).decision == "ask"
    assert judge(folder, "jq '.include, .imports' a.json").decision == "allow"


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
def test_names_in_a_file_are_not_known(folder, command):
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
    assert list(list_tracked_credentials(str(folder.parent))) == []


@pytest.mark.parametrize(
    "change",
    [
        ("update-index", "--index-version", "4"),
        ("update-index", "--split-index"),
        ("update-index", "--skip-worktree", "deploy/id_rsa", "a.py"),
    ],
)
def test_the_index_tells_them_in_each_of_its_forms(folder, git, change):
    """With short paths, in two files, and with more flags."""
    before = list(list_tracked_credentials(str(folder)))
    git(*change)
    assert sorted(list_tracked_credentials(str(folder))) == sorted(before)
    assert not any(one.is_changed for one in before)
