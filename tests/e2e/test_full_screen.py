"""`gong chat --tui`: the same conversation on the whole screen, with a pane beside it."""

import base64
import shutil
import subprocess
import time
from functools import partial

import pytest

from tests.e2e.conftest import BIN
from tests.e2e.terminal import ENTER, PATIENCE_SECONDS
from tests.e2e.test_typing import list_colours

PAGE_UP, PAGE_DOWN = "\x1b[5~", "\x1b[6~"


@pytest.fixture
def chat(open_chat):
    return partial(open_chat, "--tui")


def ask(now, prompt, answer):
    """Wait for an answer that the prompt itself does not show, and for the end of the run."""
    assert answer not in prompt
    now.type(prompt + ENTER)
    now.wait_for(answer, on_screen=True)
    now.wait_for(" · ready", on_screen=True)


def split_panes(now):
    rows = [row.partition("│") for row in now.rows()]
    return [left.rstrip() for left, _, _ in rows], [right.rstrip() for _, _, right in rows]


def test_the_pane_shows_files_and_the_transcript_scrolls(place, chat):
    """M198: split chat and input, status, panes, transcript left in the scrollback."""
    now = chat(columns=110, rows=14)
    ask(now, "run echo one > b.txt; seq 9", "printed 9 lines")
    ask(now, "run seq 1000 1007", "the last: 1007")
    transcript, pane = split_panes(now)
    assert pane[:2] == ["Files", "A b.txt"]
    assert "Session" in pane
    assert not any("echo one > b.txt" in row for row in transcript)
    now.type(PAGE_UP * 3)
    now.wait_for("> run echo one > b.txt; seq 9", on_screen=True)
    now.type(PAGE_DOWN * 3)
    now.wait_for("the last: 1007", on_screen=True)
    now.type("/quit" + ENTER)
    assert now.wait_for_end() == 0
    assert "the last: 1007" in now.text()
    assert "continue with: gong chat -c" in now.text()


def test_a_narrow_window_has_no_pane_and_a_resize_wraps_again(chat):
    """The pane is there once it has something to show that the status line does not."""
    now = chat(columns=100, rows=30)
    ask(now, "run echo " + "word " * 20, "printed: word")
    assert not any("│" in row for row in now.rows())
    ask(now, "run echo one > b.txt; echo more", "printed: more")
    now.wait_for("│", on_screen=True)
    now.resize(50, 20)
    now.wait_until_gone("│")
    assert not any("│" in row for row in now.rows())
    now.resize(100, 30)
    now.wait_for("│", on_screen=True)
    now.resize(40, 20)
    now.wait_until_gone("│")


def test_a_drag_copies_through_the_terminal(chat):
    now = chat(columns=60, rows=20)
    ask(now, "run echo copied", "printed: copied")
    row = next(n for n, text in enumerate(now.rows()) if text.startswith("  copied"))
    written = []
    feed = now._stream.feed
    now._stream.feed = lambda data: (written.append(data), feed(data))
    for code, column, end in ((0, 3, "M"), (32, 9, "M"), (0, 9, "m")):
        now.type(f"\x1b[<{code};{column};{row + 1}{end}")
    wanted = base64.b64encode(b"copied")
    now.wait_until(lambda: b"\x1b]52;c;" + wanted in b"".join(written), "the copied text")


def test_the_wheel_scrolls_and_new_lines_leave_the_place(chat):
    now = chat(columns=60, rows=16)
    ask(now, "run seq 1 5", "the last: 5")
    ask(now, "run seq 11 15", "the last: 15")
    now.type("\x1b[<64;5;5M" * 9)
    now.wait_for("gong · offline/rules", on_screen=True)
    now.type("run seq 21 25" + ENTER)
    now.wait_for("main · ready", on_screen=True)
    now.type("\x1b[<65;5;5M" * 30)
    now.wait_for("the last: 25", on_screen=True)


def test_a_theme_colours_the_whole_screen(chat):
    """M198"""
    """What is drawn of the transcript follows the theme, also what stood there before."""
    now = chat(columns=100, rows=20)
    ask(now, "run echo one", "printed: one")
    now.type("/nope" + ENTER)
    now.wait_for("unknown command /nope", on_screen=True)
    assert list_colours(now, "unknown command /nope") == {"red"}
    now.type("/theme plain" + ENTER)
    now.wait_for("theme plain;", on_screen=True)
    now.wait_until(lambda: not list_colours(now, "unknown command /nope"), "no colour")


@pytest.mark.parametrize("screen", [(), ("--tui",)])
def test_a_wide_window_is_used_and_no_row_is_cut(place, open_chat, screen):
    """At 120 columns: the prompt, calls, diffs, answers and the status line."""
    (place.folder / "a.py").write_text("".join(f"line_{n} = {n}\n" for n in range(9)))
    now = open_chat(*screen, columns=120, rows=30)
    words = " ".join(f"word{number}" for number in range(40))
    ask(now, "read a.py then replace line_4 = 4 with line_4 = 44 in a.py", "is changed")
    now.wait_for("line_4 = 44", on_screen=True)
    ask(now, f"run echo {words}", "printed: word0")
    shown = now.text()
    rows = shown.split("\n")
    assert 80 < max(len(row) for row in rows if "word" in row) <= 120
    assert {*words.split()} <= {*shown.split()}
    status = now.rows()[-1] if not screen else "\n".join(now.rows()[-3:])
    assert "offline/rules" in status
    assert "main" in status


EMOJI = (
    "👨‍👩‍👧‍👦 family; 🇩🇪🇫🇷 flags; ❤️ heart; 1️⃣ key; 👍🏽 thumb; 👩🏽‍🚀 astronaut;"
    " 🏳️‍🌈 rainbow; ✌︎ two; ☎️ call; क्‍ष letter"
)


def test_emoji_of_several_characters_leave_no_ghosts(place, chat):
    """Rows with them are drawn over by others, and nothing of them stays."""
    (place.folder / "emoji.txt").write_text("".join(f"{n} {EMOJI}\n" for n in range(30)))
    now = chat(columns=100, rows=16)
    ask(now, "run cat emoji.txt; touch x", "printed 30 lines")
    assert any("👨 family; DEFR flags; ❤ heart; 1 key" in row for row in now.rows())
    now.type(f"say {EMOJI[:30]} x")
    now.wait_for("> say 👨 family", on_screen=True)
    now.type("\x15" + PAGE_UP * 4)
    now.wait_for("> run cat emoji.txt", on_screen=True)
    now.type(PAGE_DOWN * 6 + "\x0f")
    now.type(PAGE_UP + PAGE_DOWN)
    ask(now, "run seq 1 9", "the last: 9")
    ask(now, "run seq 11 19", "the last: 19")
    assert not any(word in "\n".join(now.rows()) for word in ("family", "heart", "👨", "letter"))


@pytest.mark.skipif(not shutil.which("tmux"), reason="needs tmux")
def test_emoji_leave_no_ghosts_in_tmux(place):
    """It joins what other terminals draw one after the other."""
    (place.folder / "emoji.txt").write_text("".join(f"{n} {EMOJI}\n" for n in range(9)))
    tmux = ["tmux", "-S", str(place.home / "tmux"), "-f", "/dev/null"]

    def call(*words):
        return subprocess.run(
            [*tmux, *words], env=place.env, cwd=place.folder, capture_output=True, check=True
        ).stdout.decode()

    def wait_for(text):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in (shown := call("capture-pane", "-p")):
            assert time.monotonic() < deadline, shown
        return shown

    call("new-session", "-d", "-x", "100", "-y", "16", f"{BIN}/gong chat --tui -m offline/rules")
    try:
        wait_for("ready")
        call("send-keys", "run cat emoji.txt; touch x", "Enter")
        shown = wait_for("printed 9 lines")
        assert "👨 family; DEFR flags; ❤ heart; 1 key" in shown
        call("send-keys", "run seq 1 9", "Enter")
        wait_for("the last: 9")
        call("send-keys", "run seq 11 19", "Enter")
        shown = wait_for("the last: 19")
        assert not any(word in shown for word in ("family", "heart", "👨", "letter"))
    finally:
        call("kill-server")
