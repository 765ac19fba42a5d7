"""Permissions in real runs: without a person, and asked in a real terminal."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

import pytest

from gong.policy.saved_rules import move_project_rules, save_answered_rule
from tests.e2e.terminal import ENTER, Terminal
from tests.e2e.test_print import call, entries

if TYPE_CHECKING:
    from tests.e2e.conftest import Place

CTRL_U = "\x15"


@pytest.fixture
def asking(place: Place) -> Place:
    """A place without the setting that lets everything run."""
    del place.env["GONG_PERMISSION"]
    return place


def read_approvals(place: Place) -> list[dict[str, str]]:
    return [entry["data"] for entry in entries(place) if entry["type"] == "approval"]


def test_what_would_be_asked_is_denied_without_a_person_m177(asking):
    """M177: the model is told why, nothing is run, and the exit code is 7."""
    model = asking.script(call("bash", command="touch ran"), {"text": "I could not."})
    done = asking.run("gong", "-p", "x", "-m", model, code=7)
    assert done.stdout == "I could not.\n"
    assert not (asking.folder / "ran").exists()
    (result,) = [entry["data"] for entry in entries(asking) if entry["type"] == "tool.result"]
    text = result["content"][0]["text"]
    assert text.startswith("Not run: it needs a permission, and there is no one to ask (touch ran:")
    (approval,) = read_approvals(asking)
    assert (approval["decision"], approval["by"]) == ("deny", "headless")


def test_a_refusal_beside_other_work_is_no_failure(asking):
    """Exit 7 only where nothing else was done; reading is a decision on the tape, too."""
    (asking.folder / "a.txt").write_text("one\n")
    calls = call("read", path="a.txt"), call("bash", command="touch ran"), {"text": "done"}
    asking.run("gong", "-p", "x", "-m", asking.script(*calls))
    made = [(one["decision"], one["by"]) for one in read_approvals(asking)]
    assert made == [("allow", "reading"), ("deny", "headless")]


@pytest.mark.parametrize(
    "flags",
    [
        ("--yolo",),
        ("--permission", "dont_ask"),
        ("--allow", "Bash(touch:*)"),
        ("--permission", "locked", "--allow", "bash"),
        ("--permission", "accept_edits"),
    ],
)
def test_modes_and_rules_of_flags_let_a_call_run(asking, flags):
    """M175 M176: flags of `gong -p`."""
    model = asking.script(call("bash", command="touch ran"), {"text": "done"})
    asking.run("gong", "-p", "x", "-m", model, *flags)
    assert (asking.folder / "ran").exists()
    made = [(one["decision"], one["by"]) for one in read_approvals(asking)]
    by = "rule" if "--allow" in flags else "mode"
    assert made == [("allow", by)]


def test_rules_of_the_settings_and_the_mode_of_the_environment(asking):
    """M176, C41: [permissions] of config.toml; GONG_PERMISSION beats its mode."""
    asking.run("gong", "permissions", "add", "Bash(touch:*)")
    asking.run("gong", "permissions", "add", "--deny", "Bash(touch secret)")
    model = asking.script(call("bash", command="touch ran"), {"text": "done"})
    asking.run("gong", "-p", "x", "-m", model)
    assert (asking.folder / "ran").exists()
    model = asking.script(call("bash", command="touch secret"), {"text": "done"})
    asking.run("gong", "-p", "x", "-m", model, code=7)
    assert not (asking.folder / "secret").exists()
    done = asking.run("gong", "-p", "x", "-m", model, code=2, GONG_PERMISSION="all")
    assert "GONG_PERMISSION=all" in done.stderr


def test_each_key_of_the_settings_counts_m176(asking):
    """M176, C41: mode, allow, deny and ask of [permissions]; deny beats ask, and ask allow."""
    file = asking.home / ".config/gong/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        '[permissions]\nmode = "dont_ask"\nallow = ["Bash(touch:*)"]\n'
        'deny = ["shell(touch a)"]\nask = ["BASH(touch a)", "bash(touch b)"]\n'
    )
    calls = [call("bash", command=f"touch {name}") for name in "abc"]
    asking.run("gong", "-p", "x", "-m", asking.script(*calls, {"text": "x"}), GONG_PERMISSION="")
    made = [(one["decision"], one["by"], one.get("rule")) for one in read_approvals(asking)]
    assert made == [
        ("deny", "rule", "shell(touch a)"),
        ("deny", "headless", "bash(touch b)"),
        ("allow", "rule", "Bash(touch:*)"),
    ]


def test_a_refusal_is_chinese_where_the_locale_is(asking):
    """C19: English first, Chinese by locale."""
    model = asking.script(call("bash", command="touch ran"), {"text": "好"})
    asking.run("gong", "-p", "x", "-m", model, code=7, LC_ALL="zh_CN.UTF-8")
    (result,) = [entry["data"] for entry in entries(asking) if entry["type"] == "tool.result"]
    assert result["content"][0]["text"].startswith("未运行: 此操作需要许可")


@pytest.fixture
def ask(asking):
    """Say something in a terminal whose model runs commands, and wait for the question."""
    opened = []

    def ask(*commands: str) -> Terminal:
        calls = [call("bash", command=command) for command in commands]
        model = asking.script(*calls, {"text": "all done"})
        command = [str(asking.bin / "gong"), "chat", "-m", model]
        terminal = Terminal(command, cwd=asking.folder, env=asking.env, columns=100, rows=30)
        opened.append(terminal)
        terminal.wait_for("ready")
        terminal.wait_for_keys()
        terminal.say("go")
        return terminal

    yield ask
    for terminal in opened:
        terminal.__exit__()


def press(terminal: Terminal, key: str, wanted: str) -> None:
    """Answer the question, once it takes keys."""
    terminal.wait_for("waits for your answer", on_screen=True)
    terminal.type(key)
    terminal.wait_for(wanted)


def test_a_person_is_asked_and_always_is_kept(ask, asking):
    """M177 M178: the question shows the command and the rule; the same is not asked twice."""
    terminal = ask("touch one && touch two", "touch three")
    terminal.wait_for("? $ touch one && touch two")
    terminal.wait_for("2  touch …: in this session")
    press(terminal, "3", "allowed in this project from now on: Bash(touch:*)")
    terminal.wait_for("all done")
    assert (asking.folder / "three").exists()
    settings = tomllib.loads((asking.home / ".config/gong/config.toml").read_text())
    project = str(asking.folder.resolve())
    assert settings == {"permissions": {"projects": {project: {"allow": ["Bash(touch:*)"]}}}}
    assert [(one["by"], one["rule"]) for one in read_approvals(asking)] == [
        ("user", "Bash(touch:*)"),
        ("session", "Bash(touch:*)"),
    ]


def test_rules_of_a_project_hold_wherever_it_is(asking):
    """Paths are saved from its root; what earlier versions saved is read and removed, too."""
    root = str(asking.folder.resolve())
    file = asking.home / ".config/gong/config.toml"
    project = f"permissions.projects.{json.dumps(root)}"
    save_answered_rule(file, root, f"Edit({root}/src/a.py)", "project")
    save_answered_rule(file, root, "Edit(/elsewhere/b.py)", "project")
    saved = tomllib.loads(file.read_text())["permissions"]["projects"]
    assert saved == {root: {"allow": ["Edit(./src/a.py)", "Edit(/elsewhere/b.py)"]}}
    wish = '{"path": "../src/a.py", "content": "x"}'
    (asking.folder / "deep").mkdir()
    (asking.folder / ".git").mkdir()

    def decide(folder):
        return asking.json("gong", "permissions", "check", "write", wish, cwd=folder)["decision"]

    assert decide(asking.folder / "deep") == "allow"
    assert "Edit(./src/a.py)" in asking.run("gong", "permissions", "list").stdout
    moved = asking.folder.with_name("elsewhere")
    asking.folder.rename(moved)
    assert move_project_rules(file, root, str(moved))
    assert decide(moved / "deep") == "allow"
    file.write_text(f'[{project}]\nallow = ["Edit({root}/src/a.py)"]\n')
    moved.rename(asking.folder)
    assert decide(asking.folder / "deep") == "allow"
    asking.run("gong", "permissions", "rm", f"Edit({root}/src/a.py)")
    assert "src/a.py" not in file.read_text()


def test_a_refusal_takes_a_reason(ask, asking):
    """M177: the reason is told to the model, and the next call continues."""
    terminal = ask("rm -rf build")
    terminal.wait_for("▶ 1  yes, once")
    press(terminal, "4", "a reason or nothing, then Enter")
    terminal.type("keep it" + ENTER)
    terminal.wait_for("● $ rm -rf build · refused\n  keep it\n")
    terminal.wait_for("all done")
    (approval,) = read_approvals(asking)
    assert (approval["decision"], approval["by"], approval["reason"]) == ("deny", "user", "keep it")
    (result,) = [entry["data"] for entry in entries(asking) if entry["type"] == "tool.result"]
    assert result["content"][0]["text"] == "The user refused this call.\nReason: keep it"


def test_a_dangerous_command_is_asked_about_with_a_warning(ask):
    """The floor may be passed once, after reading, in default mode; here the answer is no."""
    terminal = ask("rm -rf ~")
    terminal.wait_for("DANGEROUS: removes a system, home or workspace folder")
    press(terminal, "n", "all done")


def test_a_person_edits_the_call_and_is_asked_about_the_new_one(ask, asking):
    """M177: `e` puts the command into the prompt; what it becomes is judged like any other."""
    terminal = ask("touch one")
    press(terminal, "e", "edit, then Enter")
    terminal.wait_for("> touch one", on_screen=True)
    terminal.type(" && rm -rf build" + ENTER)
    terminal.wait_for("? $ touch one && rm -rf build")
    press(terminal, "e", "edit, then Enter")
    terminal.type(CTRL_U + "touch two" + ENTER)
    terminal.wait_for("? $ touch two")
    press(terminal, "1", "all done")
    assert "● $ touch two · edited · allowed once" in terminal.text()
    assert (asking.folder / "two").exists()
    assert not (asking.folder / "one").exists()
    (approval,) = read_approvals(asking)
    assert (approval["decision"], approval["by"]) == ("allow", "user")
    (start,) = [entry["data"] for entry in entries(asking) if entry["type"] == "tool.start"]
    assert start["args"] == {"command": "touch two"}
    (result,) = [entry["data"] for entry in entries(asking) if entry["type"] == "tool.result"]
    assert result["content"][0]["text"] == (
        '[The user changed the arguments of this call before it ran: {"command":"touch two"}]'
    )
    asking.run("tape", "verify")


def test_an_edit_of_other_arguments_is_json(ask, asking):
    """What is no JSON object changes nothing, and an empty line leaves the call as it is."""
    (asking.folder / "kept").write_text("old\n")
    model = asking.script(
        {"tool_calls": [{"name": "write", "args": {"path": "new", "content": "x"}}]},
        {"text": "all done"},
    )
    command = [str(asking.bin / "gong"), "chat", "-m", model]
    with Terminal(command, cwd=asking.folder, env=asking.env, columns=100, rows=30) as terminal:
        terminal.wait_for("ready")
        terminal.wait_for_keys()
        terminal.say("go")
        press(terminal, "e", "edit, then Enter")
        terminal.type(CTRL_U + "not json" + ENTER)
        terminal.wait_for("not edited: ")
        press(terminal, "e", "edit, then Enter")
        terminal.type(CTRL_U + '{"path": "other", "content": "y"}' + ENTER)
        terminal.wait_for("? write other")
        press(terminal, "1", "all done")
    assert (asking.folder / "other").read_text() == "y"
    assert not (asking.folder / "new").exists()


def test_a_turn_with_two_questions_takes_no_more_rows_than_elsewhere(asking):
    """Issue 35: one edit and one command, asked about both; 54 rows before, 30 in Claude Code."""
    (asking.folder / "greet.py").write_text(
        'import sys\n\n\ndef greet(name):\n    """Say hello."""\n    print("Hi", name)\n\n\n'
        "def main():\n    greet(sys.argv[1])\n\n\nmain()\n"
    )
    edit = {"path": "greet.py", "oldText": '"Hi"', "newText": '"Hello"'}
    model = asking.script(
        {**call("read", path="greet.py"), "text": "I will read the file first."},
        call("edit", **edit),
        call("bash", command="python3 greet.py World > out.txt && cat out.txt"),
        {"text": "It says **Hello** now."},
    )
    command = [str(asking.bin / "gong"), "chat", "-m", model]
    for columns in (80, 44):
        (asking.folder / "greet.py").write_text(
            (asking.folder / "greet.py").read_text().replace("Hello", "Hi")
        )
        with Terminal(
            command, cwd=asking.folder, env=asking.env, columns=columns, rows=40
        ) as terminal:
            terminal.wait_for("ready")
            terminal.wait_for_keys()
            terminal.say("say Hello")
            terminal.wait_for("? edit greet.py")
            press(terminal, "1", "● edit greet.py · +1 −1 · allowed once")
            terminal.wait_for("may change something", on_screen=True)
            press(terminal, "y", "Hello now.")
            terminal.wait_for("ready", on_screen=True)
            rows = terminal.text().rstrip().split("\n")
            used = [row for row in rows if row] + [""] * 6
            assert len(used) <= 32, "\n".join(rows)
            assert "yes, once" not in "\n".join(rows)
