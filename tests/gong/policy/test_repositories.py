"""git in another repository asks, even to read; so does reading sensitive files in any way."""

from __future__ import annotations

import subprocess

import pytest

from gong.config import PermissionSettings
from gong.policy.permissions import build_policy
from gong.policy.rules import parse_rule


@pytest.fixture
def folder(tmp_path):
    """A repository with a folder, another repository in it, and a submodule's `.git` file."""
    work = tmp_path / "work"
    for one in (work, work / "nested", tmp_path / "other"):
        subprocess.run(["git", "init", "-q", one], check=True)
    (work / "src").mkdir()
    (work / "module").mkdir()
    (work / "module/.git").write_text("gitdir: ../.git/modules/module\n")
    (work / "link").symlink_to("nested")
    (work / ".env").write_text("KEY=1\n")
    return work


def judge(folder, command, mode="default", **rules):
    settings = PermissionSettings(mode=mode, **rules)
    policy = build_policy(settings, str(folder), {"HOME": str(folder.parent)})
    return policy, policy.judge("bash", {"command": command})


@pytest.mark.parametrize(
    "command",
    ["git status", "git -C . log", "git -C src log", "cd src && git log -3", "(cd src; git diff)"],
)
def test_git_in_the_own_repository_reads_unasked(folder, command):
    assert judge(folder, command)[1].decision == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "git -C nested log",
        "git -C src -C ../nested log",
        "git -C link status",
        "git -C module status",
        "git -C ../other log",
        'git -C "$X" log',
        "cd nested && git log",
        "cd src/../nested; git status",
        "(cd nested && git diff) | head",
        "pushd nested && git log",
        "GIT_DIR=nested/.git git log",
        "GIT_WORK_TREE=nested git status",
        "export GIT_DIR=nested/.git; git log",
        "git --git-dir=nested/.git log",
        "git --git-dir nested/.git log",
        "git --work-tree=nested status",
        "env -C nested git log",
        "bash -c 'cd nested && git log'",
    ],
)
@pytest.mark.parametrize("mode", ["default", "accept_edits"])
def test_git_in_another_repository_asks_m175(folder, command, mode):
    """M175: its settings name programs; no rule about git's words alone allows it."""
    policy, ruling = judge(folder, command, mode, allow=("Bash(git log:*)", "Bash(git diff:*)"))
    assert ruling.decision == "ask"
    policy.granted += map(parse_rule, ruling.offered)
    assert policy.judge("bash", {"command": command}).decision == (
        "allow" if ruling.offered else "ask"
    )


@pytest.mark.parametrize(
    ("command", "mode", "decision"),
    [
        ("cd nested && git log", "plan", "ask"),
        ("cd nested && git commit -m x", "plan", "deny"),
        ("cd nested && git log", "dont_ask", "allow"),
        ("cd nested && git log", "locked", "deny"),
        ("cd nested && git log", "bypass", "allow"),
    ],
)
def test_other_repositories_in_other_modes(folder, command, mode, decision):
    assert judge(folder, command, mode)[1].decision == decision


def test_files_of_a_clone_that_are_a_bare_repository_ask(folder):
    """Also where the session works in it, where no `.git` is, and behind a link."""
    bare = folder / "v/b.git"
    subprocess.run(["git", "init", "-q", "--bare", bare], check=True)
    (folder / "up").symlink_to("nested")
    for command in ("git -C v/b.git status", "cd v/b.git && git status", "git -C up/.. status"):
        assert judge(folder, command)[1].decision == ("allow" if "up" in command else "ask")
    (folder / "away").symlink_to(folder.parent / "other/in")
    (folder.parent / "other/in").mkdir()
    assert judge(folder, "git -C away/.. status")[1].decision == "ask"
    assert judge(bare, "git status")[1].decision == "ask"
    shared = folder / "c"
    shared.mkdir()
    (shared / "HEAD").write_text("ref: refs/heads/main\n")
    (shared / "commondir").write_text("../v/b.git\n")
    assert judge(folder, "git -C c status")[1].decision == "ask"


def test_a_rule_about_a_subcommand_holds_in_the_own_repository_only(folder):
    rules = {"allow": ("Bash(git commit:*)",)}
    assert judge(folder, "git commit -m x", **rules)[1].decision == "allow"
    assert judge(folder, "cd nested && git commit -m x", **rules)[1].decision == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *("cat .env", "head -1 .env", "tail .env", "sed -n 1p .env", "awk '{print}' .env"),
        *("grep -r KEY .env", "rg KEY .env", "grep KEY < .env", "grep --file=.env a", "wc .env"),
        *("rg x ~/.ssh", "ls ~/.ssh", "sort .env", "cut -d= -f2 .env", "cat src/../.env"),
        *("xxd .env", "base64 .env", "git show HEAD:.env", "git grep KEY -- .env", "jq . .env"),
        *("cat .e*", "find . -name .env | xargs cat", "rg -g .env KEY", "diff .env a"),
    ],
)
def test_a_sensitive_file_asks_with_any_program_m175(folder, command):
    """M175: as the read tool does."""
    assert judge(folder, command)[1].decision == "ask"


@pytest.mark.parametrize(
    ("arguments", "decision"),
    [
        ({"pattern": "K", "path": ".env"}, "ask"),
        ({"pattern": "K", "glob": ".env"}, "ask"),
        ({"pattern": "K", "path": "src", "glob": ".env"}, "ask"),
        ({"pattern": "K", "glob": "*.py"}, "allow"),
        ({"pattern": "K"}, "ask"),
    ],
)
def test_the_grep_tool_asks_for_sensitive_files(folder, arguments, decision):
    policy, _ = judge(folder, "true")
    assert policy.judge("grep", arguments).decision == decision
