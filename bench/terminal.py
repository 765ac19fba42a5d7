"""Measure start → prompt of `gong chat` in a terminal, as a ratio to prompt-toolkit alone.

`terminal_rows` gives the row of `make bench`.

Run it with the project's Python: `.venv/bin/python bench/terminal.py [ROUNDS]`. Both are started
by turns in pseudo-terminals; the clock stops when the prompt's `>` is written.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path
from statistics import median

from measure import Row, Scale, by_turns

FLOOR = "from prompt_toolkit import PromptSession as P; P().prompt('> ')"
GONG = Path(sys.executable).parent / "gong"
COMMANDS = {
    "prompt-toolkit": [sys.executable, "-c", FLOOR],
    "gong chat": [str(GONG), "chat", "-m", "offline/rules"],
}
TARGET = 1.25
PATIENCE_SECONDS = 20
_SEQUENCE = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")


def seconds_to_prompt(command: list[str], home: str) -> float:
    began = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(home)
        env = {"PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm-256color"}
        os.execve(command[0], command, env)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    shown = b""
    try:
        while b">" not in _SEQUENCE.sub(b"", shown):
            if not select.select([terminal], [], [], PATIENCE_SECONDS)[0]:
                raise SystemExit(f"no prompt: {shown!r}")
            data = os.read(terminal, 65536)
            shown += data
            if b"\x1b[6n" in data:
                os.write(terminal, b"\x1b[1;1R")
        return time.perf_counter() - began
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def terminal_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure the start of a session in a terminal."""
    home = str(path / "terminal")
    Path(home).mkdir()
    floor, ours = COMMANDS.values()
    for command in (floor, ours):
        seconds_to_prompt(command, home)  # compiles byte code
    pair = by_turns(
        min(scale.rounds, 9),
        lambda: seconds_to_prompt(ours, home),
        lambda: seconds_to_prompt(floor, home),
    )
    name = "gong chat: start to prompt in a terminal"
    return [Row(name, "prompt-toolkit alone", pair.ratio, "×", TARGET, note="a process")]


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as home:
        for turn in range(rounds + 1):
            for name, command in COMMANDS.items():
                one = seconds_to_prompt(command, home)
                if turn:  # the first one compiles byte code
                    taken[name].append(one)
    floor, ours = taken.values()
    ratio = median(one / other for one, other in zip(ours, floor, strict=True))
    for name, times in taken.items():
        print(f"{name:<16} {median(times) * 1000:>8.1f} ms")
    print(f"ratio {ratio:.2f}, target {TARGET}{' MISSED' * (ratio > TARGET)}")
    return int(ratio > TARGET)


if __name__ == "__main__":
    raise SystemExit(main())
