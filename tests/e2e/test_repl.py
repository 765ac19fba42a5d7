"""`gong chat` in a real pseudo-terminal: what a person types and sees."""

import json
import os
import shutil
import sysconfig
import termios
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.terminal import ALT_ENTER, CTRL_C, CTRL_D, CTRL_J, ENTER, ESC, Terminal
from tests.measured import MEASURED

GONG = str(Path(sysconfig.get_path("scripts")) / "gong")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "README.md").write_text("# Sand\n" + "grain\n" * 41)
    return tmp_path / "work"


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def environ(home):
    variables = {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    return {**MEASURED, **variables, "GONG_PERMISSION": "bypass"}


@pytest.fixture
def chat(folder, environ):
    """Open `gong chat` in a terminal."""
    open_terminals = []

    def chat(*arguments, columns=80, rows=24, **variables):
        terminal = Terminal(
            [GONG, "chat", *arguments],
            cwd=folder,
            env={**environ, **variables},
            columns=columns,
            rows=rows,
        )
        open_terminals.append(terminal)
        terminal.wait_for("ready")
        return terminal

    yield chat
    for terminal in open_terminals:
        terminal.__exit__()


@pytest.fixture
def script(folder):
    """Write the answers of a model and return its name."""

    def script(*answers):
        (folder / "script.json").write_text(json.dumps(answers))
        return "scripted/script.json"

    return script


def test_a_conversation_with_tools(chat):
    """M197 M198: line by line, without -t."""
    now = chat("-m", "offline/rules", LANG="C.UTF-8")  # a process of its own, no fork
    now.say("read README.md then run wc -l README.md")
    now.wait_for("wc -l README.md printed: 42 README.md")
    now.wait_for("main · ready", on_screen=True)
    shown = now.text()
    assert (
        "> read README.md then run wc -l README.md\n"
        "\n"
        "● read README.md\n"
        "● $ wc -l README.md\n"
        "  42 README.md\n"
        "\n"
        "README.md has 42 lines; it begins: # Sand\n"
    ) in shown
    now.say("/quit")
    assert now.wait_for_end() == 0
    assert "continue with: gong chat -c" in now.text()


@pytest.mark.parametrize("key", [CTRL_J, "\\" + ENTER], ids=["ctrl-j", "backslash"])
def test_a_prompt_of_several_lines(chat, key, home):
    """UX: Enter sends, Ctrl+J and a backslash before Enter begin a line, however fast they come."""
    terminal = chat("-m", "offline/rules")
    terminal.wait_for_keys()
    terminal.type(f"think about{key}tea" + ENTER)
    terminal.wait_for("> think about\n  tea")
    terminal.wait_for("ready")
    (entries,) = home.glob(".tape/tapes/*/phases/0001-main-start/entries.jsonl")
    asked = [one["data"] for one in map(json.loads, entries.read_text().splitlines())]
    assert [one["content"] for one in asked if [*one] == ["content"]] == [
        [{"type": "text", "text": "think about\ntea"}]
    ]


def test_going_on_where_it_ended(chat):
    first = chat("-m", "offline/rules")
    first.say("list .")
    first.wait_for("main · ready", on_screen=True)
    first.type(CTRL_D)
    assert first.wait_for_end() == 0
    second = chat("-c", "-m", "offline/rules")
    assert "continuing " in second.text()
    assert ":main, " in second.text()


def test_ctrl_c_stops_a_command_and_the_prompt_is_back(chat):
    now = chat("-m", "offline/rules")
    now.say("run sleep 900")
    now.wait_for("· bash", on_screen=True)
    now.type(CTRL_C)
    now.wait_for("stopped")
    now.wait_for("main · Ctrl+C again quits", on_screen=True)
    now.say("list .")
    now.wait_for("● ls .")


def test_ctrl_c_twice_leaves(chat):
    now = chat("-m", "offline/rules")
    now.say("run sleep 30")
    now.wait_for("· bash", on_screen=True)
    now.type(CTRL_C + CTRL_C)
    assert now.wait_for_end() == 0
    assert "stopped\nsession " in now.text()


def test_ctrl_c_twice_leaves_with_nothing_going_on(chat):
    now = chat("-m", "offline/rules")
    now.type("half a line")
    now.wait_for("> half a line")
    now.type(CTRL_C)
    now.wait_for("Ctrl+C again quits", on_screen=True)
    now.wait_until_gone("half a line")
    now.type(CTRL_C)
    assert now.wait_for_end() == 0


def test_steering_and_a_follow_up_while_a_tool_runs(chat, folder, script):
    wait = {"name": "bash", "args": {"command": "until test -e go; do sleep 0.05; done"}}
    model = script({"tool_calls": [wait]}, {"text": "one"}, {"text": "two"})
    now = chat("-m", model)
    now.say("begin")
    now.wait_for("· bash", on_screen=True)
    now.say("be brief")
    now.wait_for("steering: be brief", on_screen=True)
    now.type("tell me more" + ALT_ENTER)
    now.wait_for("queue 2", on_screen=True)
    (folder / "go").touch()
    now.wait_for("two")
    now.wait_for("main · ready", on_screen=True)
    shown = now.text()
    order = [shown.index(part) for part in ("\n> be brief", "\none", "\n> tell me more", "\ntwo")]
    assert order == sorted(order)
    assert "queue" not in "\n".join(now.rows())


def test_esc_stops_an_answer(chat, script):
    model = script({"text": "word " * 2000, "chunk": 5, "chunk_delay_ms": 20})
    now = chat("-m", model)
    now.say("begin")
    now.wait_for("word word")
    now.type(ESC)
    now.wait_for("stopped")
    now.wait_for("ready", on_screen=True)


def test_ctrl_z_suspends_it_and_fg_draws_it_again(folder, environ):
    shell = {**environ, "PS1": "shell> "}
    with Terminal(["bash", "--norc", "-i"], cwd=folder, env=shell) as now:
        now.wait_for("shell>")
        now.type(f"{GONG} chat -m offline/rules\r")
        now.wait_for("ready", on_screen=True)
        now.say("run until test -e go; do sleep 0.05; done; echo gone")
        now.wait_for("· bash", on_screen=True)
        now.type("a draft")
        now.wait_for("> a draft", on_screen=True)
        now.type("\x1a")
        now.wait_for("Stopped")
        now.wait_until_gone("> a draft")
        now.type("touch go\r")
        now.wait_for("shell> touch go")
        now.type("fg\r")
        now.wait_for("printed: gone")
        now.wait_for("> a draft", on_screen=True)
        now.wait_for("main · ready", on_screen=True)
        now.type(CTRL_C)
        now.wait_until_gone("> a draft")
        now.say("/quit")
        now.wait_for("continue with: gong chat -c\nshell>")
        now.type("stty -a\r")
        now.wait_for(" icanon")


def test_fork_and_model_and_what_is_no_command(chat):
    now = chat("-m", "offline/rules")
    now.say("/fork")
    now.wait_for("the session is empty: there is nothing to fork")
    now.say("/model nobody/knows")
    now.wait_for("unknown model 'nobody/knows'")
    now.wait_for("set one with /model")
    now.say("/modell")
    now.wait_for("did you mean /model?")
    now.say("list .")
    now.wait_for("main · ready", on_screen=True)
    now.say("/fork other")
    now.wait_for("Switched to new branch other; main is unchanged")
    now.wait_for("other · ready", on_screen=True)


def test_ten_thousand_lines_of_output_do_not_flood(chat):
    now = chat("-m", "offline/rules")
    now.say("run seq 10000")
    now.wait_for("main · ready", on_screen=True)
    shown = now.text()
    assert "  … 9995 more lines of 10000 (Ctrl+O shows all)\n  9996\n" in shown
    assert "seq 10000 printed 10000 lines; the last: 10000\n" in shown
    assert len([row for row in shown.split("\n") if row.strip().isdecimal()]) <= 10


def test_a_narrow_window_and_wide_words(chat, folder):
    (folder / "文.txt").write_text("今日は良い天気ですね、散歩に行きましょう。" * 3 + "\n")
    now = chat("-m", "offline/rules")
    now.resize(40, 20)
    now.say("run cat < 文.txt")
    now.wait_for("printed:")
    now.wait_for("main · ready", on_screen=True)
    assert "\n  今日は良い天気ですね、散歩に行きまし…\n" in now.text()
    now.say("run sleep 30")
    now.wait_for("working", on_screen=True)
    now.resize(30, 10)
    now.type(CTRL_C)
    now.wait_for("main · Ctrl+C again quits", on_screen=True)
    now.say("list .")
    now.wait_for("● ls .")


def test_no_color_means_no_colours(chat):
    shown = []
    for variables in ({}, {"NO_COLOR": "1"}):
        now = chat("-m", "offline/rules", **variables)
        now.say("list .")
        now.wait_for("main · ready", on_screen=True)
        shown.append(now.colours())
    assert shown[0] > {"default"}
    assert shown[1] == {"default"}


def test_a_folder_that_vanished_is_one_line(chat, folder):
    now = chat("-m", "offline/rules")
    shutil.rmtree(folder)
    now.say("run pwd")
    now.wait_for("main · ready", on_screen=True)
    now.say("/help")
    now.wait_for("show this list")


def test_a_closed_window_leaves_no_command_behind(chat, folder):
    now = chat("-m", "offline/rules")
    now.say("run echo $$ > pid; sleep 900")
    now.wait_for("· bash", on_screen=True)
    now.wait_until(lambda: (folder / "pid").exists() and (folder / "pid").read_text(), "its pid")
    pid = int((folder / "pid").read_text())
    now.close_window()
    deadline = time.monotonic() + 120
    while _lives(pid):
        assert time.monotonic() < deadline, "the command outlived its window"
        time.sleep(0.05)


def _lives(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def test_a_terminal_that_cannot_move_its_cursor_still_converses(chat, folder, environ):
    command = [GONG, "chat", "-m", "offline/rules"]
    with Terminal(command, cwd=folder, env={**environ, "TERM": "dumb"}) as now:
        now.wait_for("/help")
        now.wait_for_keys()
        now.type("list .\r")
        now.wait_for("This folder holds")
        now.type("/quit\r")
        assert now.wait_for_end() == 0


def test_enter_is_enter_from_the_first_prompt_to_the_last(folder, environ):
    """Nothing typed while one prompt gives way to the next waits there with Ctrl+J for Enter."""
    command = [GONG, "chat", "-m", "offline/rules"]
    # A process of its own: a fork has no time in which it shows that it starts.
    with Terminal(command, cwd=folder, env={**environ, "LANG": "C.UTF-8"}) as now:
        now.wait_for("starting")
        now.wait_for_keys()
        lines = []
        deadline = time.monotonic() + 60
        while "ready" not in now.text() and time.monotonic() < deadline:
            for _ in range(50):
                lines.append(bool(termios.tcgetattr(now.child.child_fd)[3] & termios.ICANON))
                time.sleep(0.0005)
            now._read()
        assert "ready" in now.text()
        assert not any(lines)
