"""What a sandbox changes of decisions: what its border covers runs unasked, nothing else does."""

import pytest

from gong.env.sandbox.binds import Border
from gong.env.sandbox.protected import Protection
from gong.env.sandbox.sandbox import Sandbox, SandboxRequest
from gong.policy.modes import PermissionMode
from gong.policy.permissions import PermissionPolicy
from gong.policy.rules import RuleSet


def build_policy(
    folder, mode=PermissionMode.DEFAULT, *, kind="bubblewrap", rules=((), (), ()), **more
):
    root = str(folder)
    (folder / ".git").mkdir(exist_ok=True)
    request = SandboxRequest(root, {"HOME": "/home/x"}, writes=True, **more)
    border = Border(roots=(root,), fixed=(f"{root}/.git",), temporary="/nonexistent/tmp")
    policy = PermissionPolicy(root, "/home/x", mode, RuleSet.parse(*rules))
    policy.sandbox = Sandbox(kind, request, border, Protection(), "/nonexistent")
    return policy


def decide(policy, command):
    ruling = policy.judge("bash", {"command": command})
    return ruling.decision, ruling.by


COVERED = [
    "npm test",
    "make && ./a.out > out.log",
    "rm -r build",
    "python3 -c 'print(open(\"x\").read())'",
    "curl https://example.org",
    "echo x > /var/x",
    "git commit -am x",
    "env",
    "mkdir a; cp b a/c",
    "x=$(date); eval $x",
]
KEPT = [
    ("cat .env", ("ask", "mode")),
    ("cat /home/x/notes", ("ask", "mode")),
    ("cat ~/.ssh/id_rsa", ("deny", "danger")),
    ("python3 load.py .env", ("ask", "mode")),
    ("echo x > .envrc", ("ask", "mode")),
    ("cp a .vscode/tasks.json", ("ask", "mode")),
    ("git checkout .", ("ask", "danger")),
    ("rm -rf ~", ("deny", "danger")),
    ("git push --force", ("deny", "danger")),
    ("npm ci", ("ask", "rule")),
    ("git push", ("deny", "rule")),
    ("gong trust --yes", ("ask", "own")),
]


@pytest.mark.parametrize("mode", [PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS])
@pytest.mark.parametrize("command", COVERED)
def test_what_the_border_covers_runs_unasked(tmp_path, command, mode):
    """M179: inside a sandbox calls that only ask are allowed."""
    assert decide(build_policy(tmp_path, mode), command)[0] == "allow"
    without = build_policy(tmp_path)
    without.sandbox = None
    assert decide(without, command)[0] == "ask"


@pytest.mark.parametrize(("command", "decision"), KEPT)
def test_rules_dangers_and_reading_are_judged_as_without_a_sandbox(tmp_path, command, decision):
    """M179: deny rules, dangers and rules that ask a person never relax."""
    rules = ((), ("Bash(git push:*)",), ("Bash(npm ci:*)",))
    assert decide(build_policy(tmp_path, rules=rules), command) == decision


@pytest.mark.parametrize("mode", [PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS])
@pytest.mark.parametrize("rule", ["Bash(git push:*)", "Edit(secret.txt)", "Read(secret.txt)"])
@pytest.mark.parametrize("kind", [1, 2])
def test_what_could_be_what_a_rule_names_is_asked_about(tmp_path, rule, kind, mode):
    """M179: rules that deny or ask do not relax where a line hides what it does."""
    rules: list[tuple[str, ...]] = [(), (), ()]
    rules[kind] = (rule,)
    policy = build_policy(tmp_path, mode, rules=rules)
    assert decide(policy, 'eval "$(cat a)"')[0] == "ask"
    assert decide(policy, 'bash -c "$x"')[0] == "ask"
    assert decide(policy, "npm test") == ("allow", "sandbox")


OTHERS = [
    ("web_fetch", {"url": "https://example.org"}),
    ("server__tool", {"a": 1}),
    ("python_tool", {}),
]


@pytest.mark.parametrize(("name", "arguments"), OTHERS)
def test_what_runs_outside_of_the_border_is_asked_about(tmp_path, name, arguments):
    """M179: gong's own requests, and tools that it does not know, are not covered."""
    assert build_policy(tmp_path).judge(name, arguments).decision == "ask"


@pytest.mark.parametrize(
    ("mode", "decision"),
    [
        (PermissionMode.PLAN, "deny"),
        (PermissionMode.LOCKED, "deny"),
        (PermissionMode.BYPASS, "allow"),
    ],
)
def test_other_modes_decide_as_before(tmp_path, mode, decision):
    assert decide(build_policy(tmp_path, mode), "npm test")[0] == decision


@pytest.mark.parametrize("weak", [{"kind": "landlock"}, {"unix_sockets": True}])
def test_a_weak_border_relaxes_nothing(tmp_path, weak):
    assert decide(build_policy(tmp_path, **weak), "npm test") == ("ask", "mode")


def test_files_are_edited_unasked_inside_and_refused_outside(tmp_path):
    policy = build_policy(tmp_path, PermissionMode.DEFAULT)

    def judge(path):
        ruling = policy.judge("write", {"path": path, "content": "x"})
        return ruling.decision, ruling.by

    (tmp_path / "link").symlink_to("/var")
    assert judge("src/a.py") == ("allow", "sandbox")
    assert judge(".vscode/tasks.json") == ("ask", "mode")
    assert judge(".git/config") == ("deny", "sandbox")
    assert judge("/home/x/a") == ("deny", "sandbox")
    assert judge("link/a") == ("deny", "sandbox")
    policy.mode = PermissionMode.BYPASS
    assert judge("/home/x/a") == ("deny", "sandbox")
