"""What people type in `gong chat`: history, queued messages, and the keys for them."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from tests.e2e.conftest import BIN
from tests.e2e.terminal import ALT_ENTER, CTRL_C, ENTER, Terminal

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
