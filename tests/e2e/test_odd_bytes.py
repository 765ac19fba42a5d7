"""Bytes that are not UTF-8, and zero bytes: typed, pasted or passed in, they throw nobody out."""

from __future__ import annotations

import os

import pytest

from tests.e2e.terminal import ENTER

PASTE, PASTED = "\x1b[200~", "\x1b[201~"
ODD_NAME = os.fsdecode(b"n\xe4me")


def read_prompts(place):
    return [
        block["text"]
        for entry in place.json("tape", "cat", "--json")
        if entry["type"] == "user"
        for block in entry["data"]["content"]
    ]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("h\udce4llo", "h\ufffdllo"),
        (f"{PASTE}p\udce4st\0e{PASTED}", "p\ufffdst\ufffde"),
        (f"{PASTE}/tmp/a\0.png{PASTED}", "/tmp/a\ufffd.png"),
    ],
    ids=["typed", "pasted", "the name of a picture"],
)
def test_words_reach_the_tape_with_a_mark_for_each_such_byte(place, open_chat, keys, said):
    terminal = open_chat()
    terminal.wait_for_keys()
    terminal.type(keys)
    terminal.wait_for("> ")
    terminal.type(ENTER)
    terminal.wait_for("I am the offline model")
    terminal.wait_for("ready", on_screen=True)
    assert read_prompts(place) == [said]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (f"{PASTE}!echo a\0b{PASTED}", "[exit code 0]"),
        (f"{PASTE}/image x\0{PASTED}", "cannot be read"),
        (f"{PASTE}/add-dir x\0{PASTED}", "is not a folder"),
        (f"/add-dir {ODD_NAME}", "the agent may work in"),
        (f"!ls -d {ODD_NAME}", "[exit code 0]"),
        ("/model \udcff", "unknown model"),
        ("/\udcff", "unknown command"),
        (f"see @{ODD_NAME}/f", "attached"),
    ],
)
def test_commands_get_such_bytes_or_say_what_is_wrong(place, open_chat, line, shown):
    (place.folder / ODD_NAME).mkdir()
    (place.folder / ODD_NAME / "f").write_text("one\n")
    terminal = open_chat()
    terminal.wait_for_keys()
    terminal.type(line)
    terminal.type(ENTER)
    text = terminal.wait_for(shown)
    terminal.wait_for("ready", on_screen=True)
    assert "Traceback" not in text
    assert "Press ENTER" not in text


@pytest.mark.parametrize(
    ("editor", "shown"),
    [
        ("#!/bin/sh\nprintf 'ab\\377\\000c\\n' > \"$1\"\n", "> ab\ufffd\ufffdc"),
        ("#!/bin/sh\nexit 3\n", "the editor cannot be used"),
    ],
    ids=["writes what is no text", "fails"],
)
def test_an_editor_may_leave_anything(place, open_chat, editor, shown):
    program = place.home / "editor"
    program.write_text(editor)
    program.chmod(0o755)
    place.env["EDITOR"] = str(program)
    place.env.pop("VISUAL", None)
    terminal = open_chat()
    terminal.wait_for_keys()
    terminal.type("draft\udcff\x07")
    text = terminal.wait_for(shown)
    assert "Press ENTER" not in text


def test_a_prompt_that_is_passed_in_is_marked_too(place):
    place.run("gong", "chat", "-m", "offline/rules", "-p", "h\udcff", stdin="a\0b")
    assert read_prompts(place) == ["h\ufffd\n\na\ufffdb"]


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["config", "set", "model", "b\udcff"], 2, "gong: this is not UTF-8: "),
        (["mcp", "add", "x", "--", "\udcff"], 2, "gong: this is not UTF-8: "),
        (["permissions", "check", "bash", '{"command":"ls \udcff"}'], 2, ""),
        (["permissions", "check", "bash", "ls \udcff"], 2, ""),
        (["tool", "read", '{"path":"\udcff"}'], 1, ""),
        (["init"], 0, ""),
    ],
)
def test_other_commands_name_what_is_not_text(place, argv, code, said):
    (place.folder / ODD_NAME).mkdir()
    done = place.run("gong", *argv, code=None)
    assert done.returncode == code, (done.stdout, done.stderr)
    assert done.stderr.startswith(said)
    assert "Error:" not in done.stderr
