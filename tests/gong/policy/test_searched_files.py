"""Files that a call reads but does not name: sensitive ones ask, and rules about files hold."""

from __future__ import annotations

import time

import pytest

from gong.policy.deadline import LIMIT_SECONDS
from gong.policy.modes import parse_mode
from gong.policy.permissions import PermissionPolicy
from gong.policy.rules import RuleSet

ASKING = {
    "grep -r KEY .": [".env", "sub/.env.local", "sub/server.pem"],
    "grep -rn KEY": [".env", "sub/.env.local", "sub/server.pem"],
    "egrep -d recurse KEY .": [".env", "sub/.env.local", "sub/server.pem"],
    "grep --recursive KEY sub": ["sub/.env.local", "sub/server.pem"],
    "grep -r KEY --exclude='.env*' .": ["sub/server.pem"],
    "rg KEY": ["sub/server.pem"],
    "rg -nuu KEY sub": ["sub/.env.local", "sub/server.pem"],
    "rg --hidden KEY": ["sub/.env.local", "sub/server.pem"],
    "rg KEY -g '.env*' sub": ["sub/.env.local"],
    "cat sub/*": ["sub/server.pem"],
    "head -n 1 */*": ["sub/server.pem"],
    "sed -n 1p sub/*": ["sub/server.pem"],
    "find . -type f -exec cat {} +": [".env", "sub/.env.local", "sub/server.pem"],
    "find sub | xargs head": ["sub/.env.local", "sub/server.pem"],
    "find . -name 'server*' -exec head {} +": ["sub/server.pem"],
    "git ls-files | xargs cat": [".env", "sub/server.pem"],
    "timeout 5 grep -r KEY": [".env", "sub/.env.local", "sub/server.pem"],
    "bash -c 'cat sub/*'": ["sub/server.pem"],
    "for f in sub/*; do cat $f; done": ["sub/server.pem"],
    "cat notes": [".env"],
    "cat < sub/server.*": ["sub/server.pem"],
    "cd s*b && cat server.p*": ["sub/server.pem"],
}
"""Commands, and the files that they read unnamed, by where they really lie."""
FREE = [
    *("grep -r KEY src", "grep -rn KEY --include='*.py' .", "rg KEY src", "ps | rg KEY"),
    *("cat src/*", "find . -name '*.py' -exec cat {} +", "find . -name '*.py' | xargs grep KEY"),
    *("find . -type f | xargs wc -l", "ls -la", "ls sub/*", "find . -type f", "git grep KEY"),
]


@pytest.fixture
def folder(tmp_path):
    names = (".git/HEAD", ".env", "sub/.env.local", "sub/server.pem", "src/a.py", "src/secrets.py")
    for name in names:
        path = tmp_path / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("KEY=1\n")
    (tmp_path / "work/.gitignore").write_text("/.env\n")
    (tmp_path / "work/notes").symlink_to(".env")
    packages = tmp_path / "work/node_modules/x"
    packages.mkdir(parents=True)
    (packages / "test.pem").write_text("KEY=1\n")
    return tmp_path / "work"


def judge(folder, command, mode="default", **rules):
    policy = PermissionPolicy(str(folder), "/home/ada", parse_mode(mode), RuleSet.parse(**rules))
    return policy.judge("bash", {"command": command})


@pytest.mark.parametrize("command", ASKING)
def test_sensitive_files_ask_though_no_word_names_them(folder, command):
    ruling = judge(folder, command)
    offered = [f"Read({folder}/{name})" for name in ASKING[command]]
    named = [one for one in ruling.offered if one.startswith("Read(")]
    assert (ruling.decision, sorted(named)) == ("ask", sorted(offered))
    assert judge(folder, command, allow=ruling.offered).decision == "allow"
    assert judge(folder, command, "plan").decision == "ask"
    assert judge(folder, command, "bypass").decision == "allow"


@pytest.mark.parametrize("command", FREE)
def test_what_reads_none_of_them_is_free(folder, command):
    assert judge(folder, command).decision == "allow"


def test_a_rule_about_files_holds_for_those_that_are_not_named(folder):
    """Also in dont_ask; where the command leaves them out, it may run."""
    rules = {"deny": ["Read(src/**)"]}
    for mode in ("default", "dont_ask"):
        assert judge(folder, "grep -r KEY src", mode, **rules).decision == "deny"
        assert judge(folder, "cat src/*", mode, **rules).decision == "deny"
    assert judge(folder, "grep -r KEY --include='*.md' .", **rules).decision == "allow"
    assert judge(folder, "grep -r KEY sub", "dont_ask").decision == "allow"
    assert judge(folder, "grep -r KEY sub", "locked", allow=["Bash(grep:*)"]).decision == "deny"
    assert judge(folder, "grep -r KEY src", "locked", allow=["Bash(grep:*)"]).decision == "allow"


def test_a_rule_about_files_holds_beside_one_that_allows_every_command(folder):
    rules = {"allow": ["Bash"], "deny": ["Read(src/**)"]}
    assert judge(folder, "grep -r KEY .", **rules).decision == "deny"
    assert judge(folder, "grep -r KEY sub", **rules).decision == "allow"


def test_a_rule_for_a_whole_line_allows_no_file_that_the_line_does_not_name(folder):
    assert judge(folder, "rg KEY", allow=["Bash(rg KEY)"]).decision == "ask"
    assert judge(folder, "cat .env", allow=["Bash(cat .env)"]).decision == "allow"
    read = f"Read({folder}/sub/server.pem)"
    assert judge(folder, "rg KEY | sh", allow=["Bash(rg KEY | sh)"]).offered == (read,)
    assert judge(folder, "rg KEY | sh").offered == ("Bash(rg KEY | sh)", read)


def test_a_tool_that_reads_by_wildcards_asks_too(folder):
    policy = PermissionPolicy(str(folder), "/home/ada")
    for given in ({"paths": ["sub/*"]}, {"path": "s*b/*"}):
        ruling = policy.judge("read_many_files", given)
        assert (ruling.decision, ruling.offered) == ("ask", (f"Read({folder}/sub/server.pem)",))


@pytest.mark.parametrize("name", ["grep", "Grep", "grep_search"])
def test_the_tool_that_searches_asks_too(folder, name):
    """It passes over what .gitignore leaves out."""
    policy = PermissionPolicy(str(folder), "/home/ada")
    ruling = policy.judge(name, {"pattern": "KEY"})
    rules = tuple(f"Read({folder}/sub/{one})" for one in (".env.local", "server.pem"))
    assert (ruling.decision, ruling.offered) == ("ask", rules)
    assert policy.judge(name, {"pattern": "KEY", "path": "src"}).decision == "allow"
    assert policy.judge(name, {"pattern": "KEY", "glob": "*.py"}).decision == "allow"


def test_accept_edits_changes_no_file_elsewhere_through_a_link(folder):
    (folder / "out").symlink_to("/home/ada/.bashrc")
    for command in ("echo x | tee out", "cp src/a.py out", "echo x > out"):
        assert judge(folder, command, "accept_edits").decision == "ask", command
    assert judge(folder, "cp src/a.py src/b.py", "accept_edits").decision == "allow"


def test_ten_thousand_files_are_looked_through_in_the_time_of_a_judgement(tmp_path):
    """What takes longer than its time is asked about: each search of a large project."""
    (tmp_path / ".gitignore").write_text("*.log\n/out/\n")
    for number in range(100):
        folder = tmp_path / f"out/{number}" if number < 10 else tmp_path / f"src/{number}"
        folder.mkdir(parents=True)
        for name in range(100):
            (folder / f"{name}.py").touch()
    (tmp_path / "out/5/server.pem").touch()
    (tmp_path / "src/50/server.pem").touch()
    judge(tmp_path, "true")
    begun = time.thread_time()
    ruling = judge(tmp_path, "rg TODO")
    assert time.thread_time() - begun < LIMIT_SECONDS
    assert ruling.offered == (f"Read({tmp_path}/src/50/server.pem)",)
