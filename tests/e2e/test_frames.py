"""The bytes that `gong chat` writes to a terminal: whole frames, and none while nothing happens."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager

import pexpect
import pytest

from tests.e2e.conftest import BIN
from tests.e2e.terminal import CTRL_D, ENTER, PATIENCE_SECONDS, Terminal

FRAME = re.compile(r"\x1b\[\?2026h(.*?)\x1b\[\?2026l", re.DOTALL)
KNOWS_FRAMES, KNOWS_KITTY = "\x1b[?2026;2$y", "\x1b[?0u"
QUIET_SECONDS = 3.0


class AnsweringTerminal(Terminal):
    """A terminal that answers questions about itself, and keeps the bytes that it gets."""

    def __init__(self, *arguments, answers=(), **options):
        super().__init__(*arguments, **options)
        self.answers, self.bytes = dict(answers), ""

    def _read(self):
        try:
            data = self.child.read_nonblocking(65_536, timeout=0.05)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        text = data.decode("utf-8", "replace")
        self.bytes += text
        for question, answer in self.answers.items():
            if question in text:
                self.child.send(answer)
        # The emulator shows `CSI < u`, which it does not know, as a letter.
        self._stream.feed(data.replace(b"\x1b[<u", b"").replace(b"\x1b[>1u", b""))
        return True

    def wait_for_bytes(self, wanted):
        self.wait_until(lambda: wanted in self.bytes, repr(wanted))

    def watch(self, seconds):
        """Return the bytes of so many seconds."""
        before, end = len(self.bytes), time.monotonic() + seconds
        while time.monotonic() < end:
            self._read()
        return self.bytes[before:]


@pytest.fixture
def chat(place):
    @contextmanager
    def chat(*argv, answers=(), columns=80, rows=24):
        with AnsweringTerminal(
            [str(BIN / "gong"), "chat", *argv],
            cwd=place.folder,
            env=place.env,
            columns=columns,
            rows=rows,
            answers=answers,
        ) as terminal:
            terminal.wait_for("ready", on_screen=True)
            terminal.wait_for_keys()
            yield terminal

    return chat


def converse(terminal):
    """Talk, with a command that writes much, and leave."""
    terminal.say("run seq 200")
    terminal.wait_for("main · ready", on_screen=True)
    terminal.type(CTRL_D)
    terminal.wait_for_end()


def test_every_frame_is_marked_where_the_terminal_knows_the_marks(chat):
    with chat("-m", "offline/rules", answers={"\x1b[?2026$p": KNOWS_FRAMES}) as now:
        now.say("x")
        now.wait_for_bytes("\x1b[?2026h")
        now.wait_for("main · ready", on_screen=True)
        begun = now.bytes.index("\x1b[?2026h")
        converse(now)
    between = FRAME.sub("", now.bytes[begun:])
    assert between == ""
    for frame in FRAME.findall(now.bytes):
        assert "\x1b[?2026" not in frame
        if "\x1b[?25l" in frame:  # the cursor is hidden while a frame is drawn, and back in it
            assert frame.rindex("\x1b[?25h") > frame.rindex("\x1b[?25l")


def test_no_frame_is_marked_where_the_terminal_does_not_know_the_marks(chat):
    for answer in ("", "\x1b[?2026;0$y"):
        with chat("-m", "offline/rules", answers={"\x1b[?2026$p": answer}) as now:
            converse(now)
        assert now.bytes.count("\x1b[?2026$p") == 1
        assert "\x1b[?2026h" not in now.bytes
        assert "2026" not in now.text()


def test_nothing_is_cleared_and_the_cursor_never_goes_home(chat):
    with chat("-m", "offline/rules", columns=40, rows=10) as now:
        now.type("some words")
        now.wait_for("> some words")
        now.resize(60, 12)
        now.type("\x15")
        converse(now)
    assert now.bytes.count("\x1b[J") == now.bytes.count(" \x1b[J\b") > 0  # tmux: see frames.py
    for sequence in (r"\x1b\[[23]J", r"\x1b\[H", r"\x1b\[\d+;\d+[Hf]", r"\x1b\[\?1049h"):
        assert not re.search(sequence, now.bytes), sequence


def test_nothing_is_drawn_while_nothing_happens(chat):
    with chat("-m", "offline/rules") as now:
        now.say("list .")
        now.wait_for("main · ready", on_screen=True)
        now.watch(1)  # the last frame, and a reply to it
        assert now.watch(QUIET_SECONDS) == ""
        now.type("a draft")
        now.wait_for("> a draft")
        now.watch(1)
        assert now.watch(QUIET_SECONDS) == ""


def test_the_time_of_a_run_is_drawn_while_it_runs(chat):
    with chat("-m", "offline/rules") as now:
        now.say("run sleep 900")
        now.wait_for("working 2 s", on_screen=True)
        now.type("\x03")
        now.wait_for("main · Ctrl+C again quits", on_screen=True)
        now.wait_for("main · ready", on_screen=True)


def test_the_cursor_is_at_the_caret(chat):
    with chat("-m", "offline/rules", columns=40, answers={"\x1b[?2026$p": KNOWS_FRAMES}) as now:
        now.type("散歩 👍 ab" + "\x1b[D")
        now.wait_for("> 散歩")
        row = next(at for at, text in enumerate(now.rows()) if text.startswith("> "))
        now.wait_until(
            lambda: (now.screen.cursor.y, now.screen.cursor.x) == (row, 2 + 4 + 1 + 2 + 1 + 1),
            "the cursor before the b",
        )
        assert not now.screen.cursor.hidden


def test_shift_enter_is_a_new_line_where_the_terminal_tells_it(chat):
    answers = {"\x1b[?u": KNOWS_KITTY}
    with chat("-m", "offline/rules", answers=answers) as now:
        now.wait_for_bytes("\x1b[>1u")
        now.type("one\x1b[13;2utwo")
        now.wait_for("> one\n  two", on_screen=True)
        now.type("\x1b[97;5u" + "\x1b[107;5u")  # Ctrl+A, Ctrl+K: the second line is gone
        now.wait_until_gone("two")
        now.type(ENTER)
        now.wait_for("main · ready", on_screen=True)
        assert now.bytes.count("\x1b[>1u") - now.bytes.count("\x1b[<u") == 1
        now.type("\x1b[100;5u")
        assert now.wait_for_end() == 0
    assert now.bytes.count("\x1b[>1u") == now.bytes.count("\x1b[<u")
    assert now.bytes.rindex("\x1b[<u") > now.bytes.rindex("\x1b[>1u")


def test_other_programs_get_the_keyboard_as_it_was(place):
    """Ctrl+Z gives the terminal back, `fg` takes it again."""
    answers, env = {"\x1b[?u": KNOWS_KITTY}, {**place.env, "PS1": "shell> "}
    with AnsweringTerminal(
        ["bash", "--norc", "-i"], cwd=place.folder, env=env, answers=answers
    ) as now:
        now.wait_for("shell>")
        now.type(f"{BIN / 'gong'} chat -m offline/rules\r")
        now.wait_for("ready", on_screen=True)
        now.wait_for_bytes("\x1b[>1u")
        now.type("\x1b[122;5u")
        now.wait_for("Stopped")
        assert now.bytes.count("\x1b[>1u") == now.bytes.count("\x1b[<u")
        now.type("fg\r")
        now.wait_for("ready", on_screen=True)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while now.bytes.count("\x1b[>1u") == now.bytes.count("\x1b[<u"):
            assert time.monotonic() < deadline
            now._read()
        now.type("\x1b[100;5u")
        now.wait_for("shell>", on_screen=True)
