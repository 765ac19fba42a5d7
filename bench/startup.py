"""Measure what starting each command costs, as a ratio to a Python that does nothing.

`command_rows` gives the rows of `make bench`. Compared is processor time, which a busy machine
changes less than the time on a clock. Importing click alone takes 3.6 times an empty Python.

Run it with the project's Python: `.venv/bin/python bench/startup.py [ROUNDS]`, for a store of 1,000
tapes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Row, Scale, by_turns

from tape import Beginning, Text, User, open_store

NOTHING = [sys.executable, "-c", "pass"]
BIN = Path(sys.executable).parent
TAPES = 1000
ROUNDS = 15
COMMANDS = {
    "tape --version": 2,
    "gong --version": 2,
    "tape --help": 5.5,
    "gong --help": 5.5,
    "tape ls --help": 5.5,
    "tape ls": 5.5,
    "tape ls --json": 5.5,
    "tape ls -n 20": 5.5,
    "tape --store .tape ls": 5.5,
    "gong tape ls": 5.5,
    "tape search Hello": 5.5,
    "tape ls --all": 18.3,
    "tape stats": 5.5,
    "tape show": 5.5,
    "tape log": 5.5,
    "tape status": 5.5,
    "tape branches": 5.5,
    "gong chat --help": 5.5,
}
"""What is measured, and the most it may take, as a ratio; None: it is for information only."""


def seconds(command: list[str], home: str) -> float:
    """Run a command and return the processor time that it took."""
    env = {"PATH": os.environ["PATH"], "HOME": home, "LC_ALL": "C.UTF-8"}
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=home, env=env, stderr=subprocess.DEVNULL, **quiet)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return used.ru_utime + used.ru_stime


def fill(home: str, tapes: int = TAPES) -> None:
    """Make the tapes, and wait until the index trusts their folder."""
    with open_store(Path(home) / ".tape") as (store, _):
        store.durable = False
        for n in range(tapes):
            beginning = Beginning(home, "bench/1", f"Session {n}", f"session {n}")
            with store.create(beginning) as tape, tape.writer(durability="none") as writer:
                writer.append(User((Text("Hello"),)))
    time.sleep(0.2)


def command_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure whole processes, lists of a tenth of a long session."""
    (path / "home").mkdir()
    return measure(str(path / "home"), scale.large // 10, min(scale.rounds, ROUNDS))


def measure(home: str, tapes: int, rounds: int) -> list[Row]:
    fill(home, tapes)
    rows = []
    for shown, target in COMMANDS.items():
        program, *arguments = shown.split()
        command = [str(BIN / program), *arguments]
        seconds(command, home)  # warm: byte code is compiled, the index is built
        pair = by_turns(
            rounds,
            lambda command=command: seconds(command, home),
            lambda: seconds(NOTHING, home),
        )
        name = f"{shown}, of {tapes:,}" if " ls" in shown else shown
        rows.append(Row(name, "python -c pass", pair.ratio, "×", target, note="processor time"))
    return rows


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as home:
        rows = measure(home, TAPES, rounds)
    for row in rows:
        limit = "" if row.target is None else f"≤ {row.target}{'' if row.met else ' !'}"
        print(f"{row.measured:<32} {row.figure:>6.2f} × {limit}")
    return int(any(row.met is False for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
