"""Measure what starting each command costs, as a ratio to importing click, sqlite3 and msgspec.

`command_rows` gives the rows of `make bench`, whose ratio is to a Python that does nothing.

The store holds 1 000 tapes. The second ratio is to a Python that does nothing.

Run it with the project's Python: `.venv/bin/python bench/startup.py [ROUNDS]`. Every round runs
every command once, so that a busy machine slows all of them alike; the table shows medians.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from measure import Row, Scale, by_turns

from tape import Beginning, Text, User, open_store

FLOOR = [sys.executable, "-c", "import click, sqlite3, msgspec"]
NOTHING = [sys.executable, "-c", "pass"]
BIN = Path(sys.executable).parent
TAPES = 1000
COMMANDS = {
    "tape --version": 0.5,
    "tape --help": 1.2,
    "tape ls --help": None,
    "tape ls": 1.3,
    "tape ls --all": None,
    "tape search session": 1.3,
    "tape show": None,
    "gong --version": 0.6,
    "gong --help": 1.2,
    "gong chat --help": None,
}
"""What is measured, and the most it may cost, as a ratio to the floor; None: no limit is set."""


ROWS = {
    "tape --version": 2.2,
    "gong --version": 2.2,
    "tape --help": 5.5,
    "gong --help": 5.5,
    "tape ls": 5.5,
    "tape ls --json": 5.5,
    "tape ls -n 20": 5.5,
    "tape --store .tape ls": 5.5,
    "tape search session": 5.5,
    "tape ls --all": 18.3,
}
"""The rows of `make bench`, and the most each may take, as a ratio to an empty Python."""


def seconds(command: list[str], home: str) -> float:
    env = {"PATH": os.environ["PATH"], "HOME": home, "LC_ALL": "C.UTF-8"}
    began = time.perf_counter()
    subprocess.run(
        command, cwd=home, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True
    )
    return time.perf_counter() - began


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
    """Measure whole processes: texts that are known, and lists of a tenth of a long session."""
    home, tapes = str(path / "home"), scale.large // 10
    (path / "home").mkdir()
    fill(home, tapes)
    rows = []
    for shown, target in ROWS.items():
        program, *arguments = shown.split()
        command = [str(BIN / program), *arguments]
        seconds(command, home)  # warm
        pair = by_turns(
            min(scale.rounds, 15),
            lambda command=command: seconds(command, home),
            lambda: seconds(NOTHING, home),
        )
        name = f"{shown}, of {tapes:,}" if " ls" in shown else shown
        rows.append(Row(name, "python -c pass", pair.ratio, "×", target, note="a process"))
    return rows


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    commands = {"floor": FLOOR, "nothing": NOTHING}
    for shown in COMMANDS:
        program, *arguments = shown.split()
        commands[shown] = [str(BIN / program), *arguments]
    with tempfile.TemporaryDirectory() as home:
        fill(home)
        for command in commands.values():
            seconds(command, home)  # warm: byte code is compiled, the index is built
        times = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                times[name].append(seconds(command, home))
    floor, nothing = median(times["floor"]), median(times["nothing"])
    slow = 0
    print(f"{'command':<20} {'median ms':>9} {'ratio':>6} {'limit':>6} {'of nothing':>11}")
    for name, taken in times.items():
        ratio, limit = median(taken) / floor, COMMANDS.get(name)
        slow += limit is not None and ratio > limit
        print(
            f"{name:<20} {median(taken) * 1000:>9.1f} {ratio:>6.2f} {limit or '–':>6} "
            f"{median(taken) / nothing:>11.2f}{' !' * (limit is not None and ratio > limit)}"
        )
    return int(slow > 0)


if __name__ == "__main__":
    raise SystemExit(main())
