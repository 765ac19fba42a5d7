"""`gong permissions`: checking calls, and the user's own rules."""

from __future__ import annotations

import json

import pytest


def check(gong, *calls, code=0, flags=()):
    lines = "".join(json.dumps({"tool": tool, "args": args}) + "\n" for tool, args in calls)
    done = gong("permissions", "check", "--jsonl", *flags, stdin=lines, code=code)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_check_answers_a_line_for_each_call_and_runs_nothing(gong, home):
    """M176: decision, offered rules and why; modes and rules come from flags."""
    touch = ("bash", {"command": "touch ran"})
    answers = check(gong, touch, ("read", {"path": "a"}), ("Bash", {"command": "rm -rf /"}))
    assert [one["decision"] for one in answers] == ["ask", "allow", "deny"]
    assert answers[0]["offered"] == ["Bash(touch:*)"]
    assert [one["decision"] for one in check(gong, touch, flags=("--yolo",))] == ["allow"]
    flags = ("--permission", "plan", "--allow", "Bash")
    assert [one["decision"] for one in check(gong, touch, flags=flags)] == ["deny"]
    flags = ("--allow", "Bash(touch:*)", "--deny", "Bash(touch r*)")
    assert [one["decision"] for one in check(gong, touch, flags=flags)] == ["deny"]
    assert not (home / "ran").exists()


def test_a_line_that_is_no_call_is_denied(gong):
    done = gong("permissions", "check", "--jsonl", stdin='{"x": 1}\n', code=2)
    assert json.loads(done.stdout)["decision"] == "deny"


def test_rules_are_added_and_removed_and_comments_stay(gong, home):
    """M176: rules that stick, in the user's own file."""
    file = home / ".config/gong/config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text('# mine\nmodel = "offline/rules"  # small\n')
    gong("permissions", "add", "Bash(npm test:*)", "Read(docs/**)")
    gong("permissions", "add", "--deny", "Bash(rm:*)")
    assert check(gong, ("bash", {"command": "npm test"}))[0]["decision"] == "allow"
    assert check(gong, ("bash", {"command": "rm a"}))[0]["rule"] == "Bash(rm:*)"
    shown = gong("permissions", "list").stdout
    assert shown.splitlines()[0] == "mode default"
    assert "deny   Bash(rm:*)" in shown
    gong("permissions", "rm", "Read(docs/**)", "Read(x)", code=3)
    assert file.read_text() == (
        '# mine\nmodel = "offline/rules"  # small\n\n[permissions]\n'
        'allow = ["Bash(npm test:*)"]\ndeny = ["Bash(rm:*)"]\n'
    )


def test_a_rule_for_this_project_holds_nowhere_else(gong, home, tmp_path):
    """M176: `list` says where each rule holds, and `rm` finds it."""
    touch = ("bash", {"command": "touch a"})
    gong("permissions", "add", "--project", "Bash(touch:*)")
    gong("permissions", "add", "Bash(make:*)")
    assert check(gong, touch)[0]["rule"] == "Bash(touch:*)"
    shown = [line.split() for line in gong("permissions", "list").stdout.splitlines()]
    assert shown[2:] == [
        ["allow", "Bash(make:*)", "everywhere"],
        ["allow", "Bash(touch:*)", "this", "project"],
    ]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert "touch" not in gong("permissions", "list", cwd=elsewhere).stdout
    gong("permissions", "rm", "Bash(touch:*)")
    assert check(gong, touch)[0]["decision"] == "ask"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "Bash()"), "has an empty pattern"),
        (("check", "--jsonl", "--permission", "no"), "unknown permission mode 'no'"),
        (("check", "--jsonl", "--allow", "(x)"), "is not a rule"),
        (("check",), "give either"),
        (("check", "bash", "{}", "--yolo", "--permission", "plan"), "give one of them"),
    ],
)
def test_wrong_rules_and_modes_are_named(gong, arguments, said):
    assert said in gong("permissions", *arguments, code=2).stderr
