"""What people type in `gong chat`: history, queued messages, and the keys for them."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.conftest import BIN
from tests.e2e.terminal import ALT_ENTER, CTRL_C, CTRL_D, ENTER, Terminal
from tests.gong.env.sandbox.world import needs_bubblewrap

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
UP, DOWN, ALT_UP, CTRL_R = "\x1b[A", "\x1b[B", "\x1b[1;3A", "\x12"


@pytest.fixture
def chat(place):
    @contextmanager
    def chat(*argv, cwd=None, columns=80, rows=24, **variables):
        with Terminal(
            [str(BIN / "gong"), "chat", *argv],
            cwd=cwd or place.folder,
            env={**place.env, **variables},
            columns=columns,
            rows=rows,
        ) as terminal:
            terminal.wait_for("ready", on_screen=True)
            terminal.wait_for_keys()
            yield terminal

    return chat


def press_until(terminal, key, text):
    """Press a key, again where it did nothing yet, until a text stands on the screen."""

    def is_shown():
        return text in "\n".join(terminal.rows())

    for _ in range(50):
        terminal.type(key)
        for _ in range(10):
            terminal._read()
            if is_shown():
                return
    terminal.wait_for(text, on_screen=True)


def test_the_prompts_of_the_project_come_back(place, chat):
    """UX: history is per project, from its tapes, newest first."""
    other = place.home / "other"
    other.mkdir()
    for cwd, prompt in ((None, "list ."), (other, "far away"), (None, "first line\nsecond line")):
        place.run("gong", "chat", "-m", "offline/rules", "-p", prompt, cwd=cwd)
    with chat("-m", "offline/rules") as now:
        press_until(now, UP, "> first line\n  second line")
        now.type(UP + UP)
        now.wait_for("> list .", on_screen=True)
        now.type(UP + UP)
        now.type(DOWN)
        now.wait_for("> first line", on_screen=True)
        now.type(CTRL_C)
        now.wait_until_gone("second line")
        now.type(CTRL_R + "lis")
        now.wait_for("`lis': list .", on_screen=True)
        now.type(ENTER)
        now.type(ENTER)
        now.wait_for("main · ready", on_screen=True)
        assert "● ls ." in now.text()
        assert "far away" not in now.text()


def test_the_newest_queued_message_is_taken_back(place, chat):
    """UX: Alt+Up, or Up in an empty prompt, takes a message out of the queue to change it."""
    wait = {"name": "bash", "args": {"command": "until test -e go; do sleep 0.05; done"}}
    model = place.script({"tool_calls": [wait]}, {"text": "one"}, {"text": "two"})
    with chat("-m", model) as now:
        now.say("begin")
        now.wait_for("· bash", on_screen=True)
        now.type("later" + ALT_ENTER)
        now.wait_for("queue 1", on_screen=True)
        now.say("be brief")
        now.wait_for("queue 2", on_screen=True)
        now.type("typed" + ALT_UP)
        now.wait_for("> be brief\n  typed", on_screen=True)
        now.wait_for("queue 1", on_screen=True)
        now.type("\x1b[3~" * 6 + "\x15")
        now.wait_until_gone("be brief")
        now.type(UP)
        now.wait_for("> later", on_screen=True)
        now.wait_until_gone("queue 1")
        now.type(" on" + ALT_ENTER)
        now.wait_for("queue 1", on_screen=True)
        (place.folder / "go").touch()
        now.wait_for("two")
        now.wait_for("main · ready", on_screen=True)
        shown = now.text()
    assert "\n> later on\n" in shown
    assert "\n> be brief\n" not in shown


def find_documents(place):
    """Return the texts of what was given to the model beside the words, in order."""
    (entries,) = place.home.glob(".tape/tapes/*/phases/0001-main-start/entries.jsonl")
    lines = [json.loads(line) for line in entries.read_text().splitlines()]
    data = [one["data"] for one in lines if one["type"] == "context"]
    return [
        [block.get("text", block["type"]) for block in one["content"]]
        for one in data
        if one["origin"] == "document"
    ]


def find_prompts(place):
    (entries,) = place.home.glob(".tape/tapes/*/phases/0001-main-start/entries.jsonl")
    lines = [json.loads(line) for line in entries.read_text().splitlines()]
    return [one["data"]["content"][0]["text"] for one in lines if one["type"] == "user"]


def test_commands_are_completed_as_they_are_typed(chat):
    with chat("-m", "offline/rules") as now:
        now.type("/mod")
        now.wait_for("/model [NAME]", on_screen=True)
        now.wait_for("show or switch the model", on_screen=True)
        now.type("\x1b[B\r")
        now.wait_until_gone("show or switch the model")
        now.wait_for("> /mod", on_screen=True)
        now.type(CTRL_C)
        now.wait_until_gone("> /mod")
        now.type("/effort h")
        now.wait_for("xhigh", on_screen=True)
        now.type("\t")
        now.wait_for("> /effort high", on_screen=True)
        now.type(ENTER)
        now.wait_for("effort: high, from the next call on")


def test_files_of_another_place_are_completed_and_given_along(place, chat):
    """M126: those over there, not those here."""
    far = place.folder / "../far"
    (far / "node_modules").mkdir(parents=True)
    (far / "calc there.py").write_text("one\n")
    (far / "node_modules/calc.py").write_text("two\n")
    (place.folder / "calc here.py").write_text("three\n")
    lead = place.folder / "../lead"
    lead.write_text(f'#!/bin/sh\nfor text; do :; done\ncd {far.resolve()}\nexec sh -c "$text"\n')
    lead.chmod(0o755)
    config = Path(place.env["HOME"], ".config/gong/config.toml")
    config.parent.mkdir(parents=True, exist_ok=True)
    with config.open("a") as file:
        file.write(f'\n[env.box]\nplace = "ssh://far"\nprogram = ["{lead.resolve()}"]\n')
    model = place.script({"text": "one"})
    with chat("-m", model, "--env", "box") as now:
        now.type("look at @calc")
        now.wait_for("calc there.py", on_screen=True)
        assert "calc here.py" not in now.text()
        now.type("\t")
        now.wait_for('@"calc there.py"', on_screen=True)
        now.type(' @"calc here.py"' + ENTER)
        now.wait_for("attached calc there.py: 1 lines")
        now.wait_for("main · ready", on_screen=True)
    assert find_documents(place) == [['<file path="calc there.py">\none\n</file>']]


def test_files_that_a_rule_denies_to_read_are_not_given_along(place, chat):
    (place.folder / ".env").write_text("KEY=hidden-in-here\n")
    (place.folder / "notes.txt").write_text("may be read\n")
    model = place.script({"text": "one"})
    with chat("-m", model, "--deny", "Read(.env)") as now:
        now.say("see @.env and @notes.txt")
        now.wait_for("@.env is not attached: the rule Read(.env) denies to read it")
        now.wait_for("main · ready", on_screen=True)
    assert find_documents(place) == [['<file path="notes.txt">\nmay be read\n</file>']]


def test_files_are_completed_and_given_along(place, chat):
    """UX: @ finds files that git lists, by parts of their names; the content goes along."""
    subprocess.run(["git", "init", "-q"], cwd=place.folder, check=True)
    (place.folder / "src").mkdir()
    (place.folder / "src" / "parser.py").write_text("".join(f"line {n}\n" for n in range(1, 31)))
    (place.folder / ".gitignore").write_text("hidden.py\n")
    (place.folder / "hidden.py").write_text("x")
    (place.folder / "my notes.txt").write_text("note\n")
    model = place.script({"text": "one"}, {"text": "two"})
    with chat("-m", model) as now:
        now.type("look at @prs")
        now.wait_for("src/parser.py", on_screen=True)
        assert "hidden.py" not in now.text()
        now.type("\t")
        now.wait_for("> look at @src/parser.py", on_screen=True)
        now.type(":10-11, @not")
        now.wait_for("my notes.txt", on_screen=True)
        now.type("\t")
        now.wait_for('@"my notes.txt"', on_screen=True)
        now.type(" @nobody" + ENTER)
        now.wait_for("attached src/parser.py: lines 10-11 of 30")
        now.wait_for("attached my notes.txt: 1 lines")
        now.wait_for("main · ready", on_screen=True)
    assert find_prompts(place) == ['look at @src/parser.py:10-11, @"my notes.txt" @nobody']
    assert find_documents(place) == [
        ['<file path="src/parser.py" lines="10-11" of="30">\nline 10\nline 11\n</file>'],
        ['<file path="my notes.txt">\nnote\n</file>'],
    ]


def paste(terminal, text):
    terminal.type(f"\x1b[200~{text}\x1b[201~")


def test_a_long_paste_is_folded_and_goes_to_the_model_whole(place, chat):
    """UX: over 1,000 characters or 15 lines; no line of it is sent early."""
    text = "\n".join(f"row {n}" for n in range(1, 121))
    with chat("-m", place.script({"text": "one"}, {"text": "two"})) as now:
        now.type("see ")
        paste(now, text)
        now.wait_for("> see [Pasted text #1: 120 lines]", on_screen=True)
        now.type("\x7f")
        now.wait_until_gone("Pasted text")
        paste(now, text)
        now.wait_for("> see [Pasted text #1: 120 lines]", on_screen=True)
        now.type(" and ")
        paste(now, "two\r\nlines")
        now.wait_for("and two\n  lines", on_screen=True)
        now.type(ENTER)
        now.wait_for("one")
        now.wait_for("main · ready", on_screen=True)
        assert "row 60" not in now.text()
    assert find_prompts(place) == [f"see {text} and two\nlines"]


def test_a_picture_is_attached(place, chat):
    """M202: by /image, by the path that a terminal pastes for a dropped file; within limits."""
    (place.folder / "dot.png").write_bytes(PNG)
    (place.folder / "large.png").write_bytes(PNG + bytes(1_000_000))
    (place.folder / "no.png").write_text("text")
    with chat("-m", place.script({"text": "one"})) as now:
        now.say("/image dot.png")
        now.wait_for("> [Image #1: dot.png]", on_screen=True)
        paste(now, f"'{place.folder}/dot.png' ")
        now.wait_for("> [Image #1: dot.png] [Image #2: dot.png]", on_screen=True)
        now.type("\x7f\x7f")
        now.wait_until_gone("Image #2")
        paste(now, f"{place.folder}/large.png")
        now.wait_for("max_image_size is 976.6KB")
        paste(now, f"{place.folder}/no.png")
        now.wait_for("no.png is not attached: models take PNG")
        now.type("what is it?" + ENTER)
        now.wait_for("one")
        now.wait_for("main · ready", on_screen=True)
    assert find_documents(place) == [["[Picture dot.png: image/png, 1x1, 70B]", "image"]]


def test_pictures_are_refused_where_settings_or_the_model_say_so(place, chat):
    """M202 J11-2.4: block_images of the settings file, and models that take none."""
    (place.folder / "dot.png").write_bytes(PNG)
    config = place.home / "config"
    config.mkdir()
    (config / "config.toml").write_text("block_images = true\n")
    with chat("-m", "offline/rules", GONG_CONFIG_DIR=str(config)) as now:
        now.say("/image dot.png")
        now.wait_for("dot.png is not attached: block_images is set")
    (config / "config.toml").write_text('[models."deepseek/deepseek-v4-pro"]\nvision = false\n')
    with chat(
        "-m", "deepseek/deepseek-v4-pro", GONG_CONFIG_DIR=str(config), DEEPSEEK_API_KEY="x"
    ) as now:
        now.say("/image dot.png")
        now.wait_for("deepseek/deepseek-v4-pro takes no pictures")


def test_a_picture_from_the_clipboard(place, chat):
    """C37: whichever program the desktop has for it; a message where there is none."""
    programs = place.home / "programs"
    programs.mkdir()
    (place.home / "dot.png").write_bytes(PNG)
    (programs / "xclip").write_text(f"#!/bin/sh\ncat {place.home}/dot.png\n")
    (programs / "xclip").chmod(0o755)
    with chat("-m", "offline/rules") as now:
        now.type("\x16")
        now.wait_for("no picture in the clipboard")
    with chat("-m", "offline/rules", PATH=f"{programs}:{place.env['PATH']}") as now:
        now.type("\x16")
        now.wait_for("> [Image #1: clipboard]", on_screen=True)


def test_the_prompt_is_written_in_an_editor(place, chat):
    editor = place.home / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s again\\nand more" "$(cat "$1")" > "$1"\n')
    editor.chmod(0o755)
    with chat("-m", place.script({"text": "one"}), VISUAL=str(editor)) as now:
        now.type("begin\x07")
        now.wait_for("> begin again\n  and more", on_screen=True)
        now.type(ENTER)
        now.wait_for("main · ready", on_screen=True)
        now.say("/editor")
        now.wait_for(">  again\n  and more", on_screen=True)
    assert find_prompts(place) == ["begin again\nand more"]


def test_shell_commands_of_the_user(place, chat):
    """UX: !cmd is shown; !!cmd goes to the model with the next words."""
    with chat("-m", place.script({"text": "one"})) as now:
        now.say("!echo sec$((1+1))ret; exit 3")
        now.wait_for("sec2ret")
        now.wait_for("[exit code 3]")
        now.say("!!echo pub$((1+1))lic")
        now.wait_for("pub2lic")
        now.wait_for("the model gets this with your next prompt")
        now.say("go on")
        now.wait_for("main · ready", on_screen=True)
        now.say("!sleep 900")
        now.type(CTRL_C)
        now.say("exit")
        assert now.wait_for_end() == 0
    assert find_documents(place) == [
        ["The user ran this command:\n$ echo pub$((1+1))lic\npub2lic\n[exit code 0]"]
    ]


@needs_bubblewrap
def test_shell_commands_of_the_user_are_inside_the_sandbox(place, chat):
    """M220: those typed with !, too."""
    outside = place.home / "outside"
    with chat("-m", place.script({"text": "one"}), "--sandbox", "workspace-write") as now:
        now.say(f"!echo in > here; echo x > {outside}")
        now.wait_for("[exit code")
        now.say("exit")
        assert now.wait_for_end() == 0
    assert not outside.exists()
    assert (place.folder / "here").exists()


def test_keys_of_the_settings(place, chat):
    """M198"""
    config = place.home / "config"
    config.mkdir()
    (config / "config.toml").write_text(
        '[keys]\nsubmit = "ctrl+x"\nmode = ["f5", "alt+m"]\nhistory = "ctrl+y"\n'
    )
    with chat("-m", place.script({"text": "one"}), GONG_CONFIG_DIR=str(config)) as now:
        now.type("first" + ENTER + "second")
        now.wait_for("> first\n  second", on_screen=True)
        now.type("\x18")
        now.wait_for("main · ready", on_screen=True)
        now.type("\x1b[Z")
        now.type("\x1b[15~")
        now.wait_for("default · ", on_screen=True)
        now.type("\x1bm")
        now.wait_for("accept_edits · ", on_screen=True)
        now.type("/keys\x18")
        now.wait_for("f5, alt+m *          mode")
    assert find_prompts(place) == ["first\nsecond"]
    for wrong, said in (
        ('modee = "f5"', "there is no action modee: did you mean mode?"),
        ('mode = "ctlr+e"', "there is no key ctlr+e: did you mean ctrl+e?"),
        ('mode = "ctrl+c"', "ctrl+c cannot be a key"),
        ('mode = "x"', "x cannot be a key of an action"),
        ('mode = "f5"\neditor = "F5"', "f5 is set for editor and for mode"),
    ):
        (config / "config.toml").write_text(f"[keys]\n{wrong}\n")
        with Terminal(
            [str(BIN / "gong"), "chat", "-m", "offline/rules"],
            cwd=place.folder,
            env={**place.env, "GONG_CONFIG_DIR": str(config)},
        ) as now:
            now.wait_for(said)
            assert now.wait_for_end() == 2


def test_the_last_answer_is_copied(place, chat):
    with chat("-m", place.script({"text": "the answer"})) as now:
        now.say("ask")
        now.wait_for("main · ready", on_screen=True)
        sent = []
        feed = now._stream.feed
        now._stream.feed = lambda data: (sent.append(data), feed(data))
        now.say("/copy")
        now.wait_for("copied 10 characters")
        encoded = base64.b64encode(b"the answer")
        assert b"\x1b]52;c;" + encoded + b"\x07" in b"".join(sent)


def test_keys_are_echoed_immediately_among_ten_thousand_files(place, chat):
    """Files are found in a thread: a key waits for none of 10,000."""
    for at in range(100):
        folder = place.folder / f"folder{at}"
        folder.mkdir()
        for number in range(100):
            (folder / f"file_{number}_of_{at}.py").touch()
    with chat("-m", "offline/rules") as now:
        now.type("@file_7")
        now.wait_for("folder0/file_7_of_0.py", on_screen=True)
        now.type("\x15")
        now.wait_until_gone("file_7_of_0.py")
        for typed in ("words", "@fle99"):
            for at in range(1, len(typed) + 1):
                now.type(typed[at - 1])
                now.wait_for(f"> {typed[:at]}", on_screen=True)
            now.type("\x15")
            now.wait_until_gone(typed)


def list_colours(terminal, text):
    """Return the colours of the newest line with a text."""
    for number, shown in reversed([*enumerate(terminal.rows())]):
        if text in shown:
            row = terminal.screen.buffer[number]
            return {row[column].fg for column in range(terminal.screen.columns)} - {"default"}
    return set()


def test_a_theme_colours_what_follows(place, chat):
    """UX: /theme, and [terminal] theme for good."""
    depth = {"PROMPT_TOOLKIT_COLOR_DEPTH": "DEPTH_24_BIT"}
    with chat("-m", "offline/rules", **depth) as now:
        now.type("/nope" + ENTER)
        now.wait_for("unknown command /nope", on_screen=True)
        assert list_colours(now, "unknown command /nope") == {"red"}
        now.type("/theme sepia" + ENTER)
        now.wait_for("there is no theme sepia: terminal, dark, light, plain", on_screen=True)
        now.type("/theme light" + ENTER)
        now.wait_for('theme = "light" in [terminal]', on_screen=True)
        now.type("/neither" + ENTER)
        now.wait_for("unknown command /neither", on_screen=True)
        assert list_colours(now, "unknown command /neither") == {"b3261e"}
        now.type("/theme" + ENTER)
        now.wait_for("themes: terminal, dark, light *, plain", on_screen=True)
    config = place.home / ".config/gong"
    config.mkdir(parents=True)
    (config / "config.toml").write_text('[terminal]\ntheme = "plain"\n')
    with chat("-m", "offline/rules", **depth) as now:
        now.type("/nope" + ENTER)
        now.wait_for("unknown command /nope", on_screen=True)
        assert list_colours(now, "unknown command /nope") == set()


def test_a_command_of_the_user_shows_its_output_while_it_runs(open_chat):
    """17: `!command` shows the end of its output live, and Ctrl+C ends it."""
    now = open_chat()
    now.type("!echo $((40 + 2)) lines; sleep 100\r")
    now.wait_for("  42 lines", on_screen=True)
    now.type("\x03")
    now.wait_for("[stopped]", on_screen=True)
    now.wait_until_gone("$ echo")
    assert "42 lines" in now.rows()


def test_the_status_line_is_red_after_a_failure_until_the_next_run(place, chat):
    """17: what failed is seen at once, and no longer than it matters."""
    failing = {"error": {"class": "InvalidRequest", "message": "no way"}}
    model = place.script(failing, {"text": "fine again"})
    with chat("-m", model) as now:
        assert list_colours(now, " ready") == set()
        now.type("begin" + ENTER)
        now.wait_for("no way", on_screen=True)
        now.wait_until(lambda: list_colours(now, " ready") == {"red"}, "a red status line")
        now.type("again" + ENTER)
        now.wait_for("fine again", on_screen=True)
        now.wait_until(lambda: list_colours(now, " ready") == set(), "a plain status line")


@pytest.mark.parametrize("how", ["bell", "osc9", "off"])
def test_a_question_rings(place, chat, how):
    """17: the bell, a message of the desktop, or nothing, by [terminal] notify."""
    config = place.home / ".config/gong"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f'[terminal]\nnotify = "{how}"\n')
    with chat("-m", "offline/rules", GONG_PERMISSION="default") as now:
        now.type("run touch made" + ENTER)
        now.wait_for("yes, once", on_screen=True)
        now.wait_until(lambda: now.screen.bells == (how == "bell"), "the right number of bells")
        now.type(CTRL_C)


def test_the_same_command_twice_shows_the_output_of_each(open_chat):
    now = open_chat()
    wait = "!echo begun $$; sleep 2; echo over"
    for _ in range(2):
        now.say(wait)
    now.wait_until(lambda: "\n".join(now.rows()).count("  begun ") == 2, "two tails")
    now.wait_until(lambda: now.text().count("\nover\n") == 2, "both outputs")


def read_data(place, kind):
    return [entry["data"] for entry in place.json("tape", "cat", "--json") if entry["type"] == kind]


def test_an_output_for_the_model_survives_the_end_of_the_program(place, chat):
    """C16: `!!` is an entry when it has run, and reaches the next prompt after `-c`."""
    with chat("-m", "offline/rules") as now:
        now.say("!!echo lo$((1+1))st")
        now.wait_for("the model gets this with your next prompt")
        os.kill(now.child.pid, signal.SIGKILL)
    shown = "The user ran this command:\n$ echo lo$((1+1))st\nlo2st\n[exit code 0]"
    assert find_documents(place) == [[shown]]
    with chat("-c", "-m", "offline/rules") as now:
        now.say("what was it")
        now.wait_for("I found nothing")
        now.wait_for("main · ready", on_screen=True)
    said = place.run("tape", "context").stdout
    assert "\n  $ echo lo$((1+1))st\n  lo2st\n  [exit code 0]\n" in said
    assert said.index("lo2st") < said.index("what was it")


def test_a_command_that_only_the_person_sees_is_a_note(place, chat):
    """`!command` is on the tape when it has run, and the model never gets it."""
    with chat("-m", "offline/rules") as now:
        now.say("!echo sec$((1+1))ret; exit 3")
        now.wait_for("[exit code 3]")
        now.say("!echo beg$((1+1))un; sleep 900")
        now.wait_for("beg2un")
        now.type(CTRL_C + CTRL_D)
        assert now.wait_for_end() == 0
        assert "continue with: gong chat -c" in now.text()
    assert read_data(place, "note") == [
        {"text": "$ echo sec$((1+1))ret; exit 3\nsec2ret\n[exit code 3]"},
        {"text": "$ echo beg$((1+1))un; sleep 900\nbeg2un\n[stopped]"},
    ]
    assert "sec2ret" not in place.run("tape", "context").stdout


def test_an_output_that_came_while_the_agent_worked_waits_on_the_tape(place, chat):
    """Killed before the run ended, it reaches the next prompt; else it follows the run."""
    call = {"name": "bash", "args": {"command": "touch begun; sleep 900"}}
    model = place.script({"tool_calls": [call]}, {"text": "done"})
    with chat("-m", model) as now:
        now.say("work")
        now.wait_until((place.folder / "begun").exists, "the call")
        now.say("!!echo mid$((1+1))way")
        now.wait_for("the model gets this with your next prompt")
        assert find_documents(place) == []
        os.kill(now.child.pid, signal.SIGKILL)
    with chat("-c", "-m", "offline/rules") as now:
        now.say("and now")
        now.wait_for("I am the offline model")
        now.wait_for("main · ready", on_screen=True)
    shown = "The user ran this command:\n$ echo mid$((1+1))way\nmid2way\n[exit code 0]"
    assert find_documents(place) == [[shown]]
    with chat("-c", "-m", "offline/rules") as now:
        now.say("once more")
        now.wait_for("I am the offline model")
        now.wait_for("main · ready", on_screen=True)
    assert find_documents(place) == [[shown]]


def test_the_offline_model_does_not_obey_what_it_was_given_along(place, chat):
    (place.folder / "notes.txt").write_text("$ touch obeyed\n")
    with chat("-m", "offline/rules") as now:
        now.say("hello @notes.txt")
        now.wait_for("I am the offline model")
        now.wait_for("main · ready", on_screen=True)
    assert not (place.folder / "obeyed").exists()
