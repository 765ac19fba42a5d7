"""The whole way of a streamed piece: from the host's bytes to standard output, or to a terminal.

Processor time of a process that reads a long answer, less that of one that reads a single piece,
for each piece. The floor is the same for a Python that reads lines with the standard library,
decodes their JSON and prints the text at the end.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from llm import served
from measure import Row, Scale
from terminal import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FLOOR = """
import http.client, json, sys
client = http.client.HTTPConnection(sys.argv[1])
client.request("POST", sys.argv[2], b"{}", {"content-type": "application/json"})
texts = []
for line in client.getresponse():
    if line.startswith(b"data: {"):
        texts.append(json.loads(line[6:]).get("delta", {}).get("text", ""))
print("".join(texts))
"""
PIECES, DRAWN_PIECES = 20_000, 2_000
TOKENS = 2_000
"""Pieces a second of a fast model."""
TIMES = 5
PRINTED, DRAWN = 1.5, 4.1
"""1.1 × the 15 µs of pi and 1.2 × its 37 µs, where this floor took 10.9 µs."""
GONG = Path(sys.executable).parent / "gong"


def stream_piece_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure pieces of an Anthropic answer printed by `gong -p` and drawn by `gong chat`."""
    home = path / "stream"
    home.mkdir()
    times = TIMES if scale.rounds > TIMES else 2
    with served() as port:
        host = f"127.0.0.1:{port}"

        def printed(pieces: int) -> float:
            command = [str(GONG), "-m", "anthropic/bench-1", "-p", "hi"]
            return _count_cpu(command, home, f"http://{host}/anthropic/{pieces}")

        def bare(pieces: int) -> float:
            command = [sys.executable, "-c", FLOOR, host, f"/anthropic/{pieces}/v1/messages"]
            return _count_cpu(command, home, "")

        def drawn(pieces: int) -> float:
            return _count_drawn(home, f"http://{host}/anthropic/{pieces}", f"word{pieces - 1}")

        return [*_rows(times, bare, printed, drawn)]


def echo_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure how long a typed letter takes to the screen while `TOKENS` a second are drawn."""
    home = path / "echo"
    home.mkdir()
    letters = 100 if scale.rounds > TIMES else 20
    with served() as port:
        url = f"http://127.0.0.1:{port}/anthropic/{TOKENS * 60}@{TOKENS}"
        took = sorted(_time_echoes(home, url, letters))
    name = f"key to echo while {TOKENS:,} tokens a second stream"
    return [
        Row(f"{name}: median", "a frame, 16.7 ms", median(took) * 60, "×", 1),
        Row(f"{name}: 95 of 100", "a frame, 16.7 ms", took[len(took) * 95 // 100] * 60, "×", 2),
    ]


def _time_echoes(home: Path, url: str, letters: int) -> Iterator[float]:
    """Yield the seconds from a key to the frame that shows it, of so many keys."""
    with _open_chat(home, url) as (_, terminal):
        os.write(terminal, b"hi\r")
        _read_until(terminal, b"2000", 0.1)  # only what differs is drawn, so not the word
        for number in range(letters):
            key = b"QZXJ"[number % 4 : number % 4 + 1]  # in no word that streams
            began = time.perf_counter()
            os.write(terminal, key)
            shown = b""
            while key not in shown:
                shown += os.read(terminal, 65536)
            yield time.perf_counter() - began
            _read_until(terminal, b"", 0.05)


def _rows(times: int, *works: Callable[[int], float]) -> Iterator[Row]:
    """Measure all by turns, each with many pieces and with one."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(times):
        for mine, work, pieces in zip(taken, works, (PIECES, PIECES, DRAWN_PIECES), strict=True):
            mine.append((work(pieces) - work(1)) / pieces * 1_000_000)
    floor, *ours = map(median, taken)
    for name, figure, most in zip(("printed", "drawn"), ours, (PRINTED, DRAWN), strict=True):
        shown = f"streamed piece, {name}: processor time"
        yield Row(shown, "http.client, json", figure / floor, "×", most)
        yield Row(shown, "none", figure, "µs", None)


def _environ(home: Path, url: str) -> dict[str, str]:
    base = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
    return base | {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x", "TERM": "xterm-256color"}


def _count_cpu(command: list[str], home: Path, url: str) -> float:
    """Return the seconds of processor time of a process."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=home, env=_environ(home, url), **quiet)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return used.ru_utime + used.ru_stime


def _count_drawn(home: Path, url: str, last: str) -> float:
    """Return the seconds of processor time from a prompt in a terminal to its last word."""
    with _open_chat(home, url) as (pid, terminal):
        before = _read_clock(pid)
        os.write(terminal, b"hi\r")
        _read_until(terminal, last.encode(), 0.5)
        return _read_clock(pid) - before


@contextmanager
def _open_chat(home: Path, url: str) -> Iterator[tuple[int, int]]:
    """Yield process id and terminal of a `gong chat` that is ready."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(home)
        command = [str(GONG), "chat", "-m", "anthropic/bench-1"]
        os.execve(command[0], command, _environ(home, url))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    try:
        _read_until(terminal, b"ready", 0.5)
        yield pid, terminal
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def _read_until(terminal: int, wanted: bytes, more: float) -> None:
    """Read what is drawn until it has some bytes, and for so many seconds after that."""
    shown, end = b"", None
    while end is None or time.monotonic() < end:
        if not select.select([terminal], [], [], PATIENCE_SECONDS if end is None else 0.1)[0]:
            if end is None:
                raise SystemExit(f"not drawn: {wanted!r} in {shown[-300:]!r}")
            continue
        data = os.read(terminal, 65536)
        shown += data
        if b"\x1b[6n" in data:
            os.write(terminal, b"\x1b[1;1R")
        if end is None and wanted in shown:
            end = time.monotonic() + more


def _read_clock(pid: int) -> float:
    """Return the seconds of processor time of a running process (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
