"""A terminal for tests: a program in a real pseudo-terminal, and the screen a person would see."""

from __future__ import annotations

import os
import signal
import termios
import time
from typing import TYPE_CHECKING, Self

import pexpect
import pyte

from tests import warm
from tests.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

AGAIN_SECONDS = 0.5
PATIENCE_SECONDS = 120
CTRL_C, CTRL_D, CTRL_J, ESC, ENTER, ALT_ENTER = "\x03", "\x04", "\n", "\x1b", "\r", "\x1b\r"
UP, DOWN = "\x1b[A", "\x1b[B"


def _spawn(command, cwd, env, size):
    child = pexpect.spawn(
        command[0],
        list(command[1:]),
        cwd=str(cwd),
        env=env,
        dimensions=size,
        timeout=PATIENCE_SECONDS,
    )
    child.delaybeforesend = None
    return child


class Terminal:
    """A running program, its keyboard and its screen. A context manager."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        columns: int = 80,
        rows: int = 24,
    ) -> None:
        env = {"TERM": "xterm-256color", **env}
        self.child = warm.start_in_terminal(
            command, cwd=cwd, env=env, rows=rows, columns=columns
        ) or _spawn(command, cwd, env, (rows, columns))
        self.screen = Screen(columns, rows, self.child.send)
        self._stream = pyte.ByteStream(self.screen)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.child.closed:
            self.close_window(kill_after=2)

    def type(self, keys: str) -> None:
        """Press keys."""
        self.child.send(keys)

    def wait_for_keys(self) -> None:
        """Return once single keys are read; before, the terminal makes Ctrl+J of Enter."""
        self.wait_until(
            lambda: not termios.tcgetattr(self.child.child_fd)[3] & termios.ICANON, "raw keys"
        )

    def say(self, line: str) -> None:
        """Type a line and press Enter, once it stands on the screen: as a person would."""
        self.type(line)
        self.wait_for(f"> {line[-30:]}" if len(line) <= 30 else line[-30:])
        self.type(ENTER)

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size."""
        self.screen.resize(rows, columns)
        self.child.setwinsize(rows, columns)

    def rows(self) -> list[str]:
        """Return the rows on the screen."""
        return self.screen.read_rows()

    def text(self) -> str:
        """Return the scrollback and the screen."""
        return self.screen.read_text()

    def colours(self) -> set[str]:
        """Return the colours of what is on the screen."""
        cells = [cell for row in self.screen.buffer.values() for cell in row.values()]
        return {cell.fg for cell in cells} | {cell.bg for cell in cells}

    def wait_for(self, text: str, *, on_screen: bool = False) -> str:
        """Return all text once some stands there; fail with the screen when it never does."""
        return self.wait_until(
            lambda: text in ("\n".join(self.rows()) if on_screen else self.text()), repr(text)
        )

    def wait_until_gone(self, text: str) -> str:
        """Return all text once some is no longer on the screen."""
        return self.wait_until(lambda: text not in "\n".join(self.rows()), f"no {text!r}")

    def wait_until(self, condition, wanted: str) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > deadline or not self._read():
                raise AssertionError(f"waited for {wanted}, but saw:\n{self.text().rstrip()}")
        return self.text()

    def wait_for_end(self, keys: str = "") -> int:
        """Return the exit code once the program has ended; `keys` are pressed until it does."""
        pressed, deadline = time.monotonic(), time.monotonic() + PATIENCE_SECONDS
        while self._read():
            if keys and time.monotonic() - pressed > AGAIN_SECONDS:
                pressed = time.monotonic()
                self.type(keys)
            assert time.monotonic() < deadline, f"it did not end:\n{self.text().rstrip()}"
        self.child.wait()
        assert self.child.exitstatus is not None, f"ended by signal {self.child.signalstatus}"
        return self.child.exitstatus

    def close_window(self, kill_after: float = PATIENCE_SECONDS) -> None:
        """Take the terminal away, as a closed window does, and return once the program has ended.

        One that is still there after `kill_after` seconds is killed. pexpect's own close() gives
        the program less than half a second, and then fails.
        """
        if isinstance(self.child, warm.InTerminal):
            self.child.close_window()
        else:
            self.child.ptyproc.fileobj.close()
            self.child.ptyproc.closed = self.child.closed = True
        deadline = time.monotonic() + kill_after
        while self.child.isalive():
            if time.monotonic() > deadline:
                assert kill_after < PATIENCE_SECONDS, "the program outlived its window"
                os.kill(self.child.pid, signal.SIGKILL)
            time.sleep(0.02)

    def _read(self) -> bool:
        """Take what the program wrote; False when it has ended."""
        try:
            self._stream.feed(self.child.read_nonblocking(65_536, timeout=0.05))
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        return True
