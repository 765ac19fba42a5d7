"""Measure what starting each command costs, as a ratio to importing click, sqlite3 and msgspec.

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

LIMIT = 2.2
FLOOR = [sys.executable, "-c", "import click, sqlite3, msgspec"]
BIN = Path(sys.executable).parent
COMMANDS = ("tape --version", "tape --help", "tape ls", "gong --version", "gong --help")


def seconds(command: list[str], home: str) -> float:
    env = {"PATH": os.environ["PATH"], "HOME": home, "LC_ALL": "C.UTF-8"}
    began = time.perf_counter()
    subprocess.run(
        command, cwd=home, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True
    )
    return time.perf_counter() - began


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    commands = {"floor": FLOOR}
    for shown in COMMANDS:
        program, *arguments = shown.split()
        commands[shown] = [str(BIN / program), *arguments]
    with tempfile.TemporaryDirectory() as home:
        seconds([str(BIN / "tape"), "new", "--json"], home)
        for command in commands.values():
            seconds(command, home)  # warm: byte code is compiled, the index is built
        times = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                times[name].append(seconds(command, home))
    floor = median(times["floor"])
    slow = 0
    print(f"{'command':<16} {'median ms':>9} {'ratio':>6}   limit {LIMIT}")
    for name, taken in times.items():
        ratio = median(taken) / floor
        slow += ratio > LIMIT
        print(f"{name:<16} {median(taken) * 1000:>9.1f} {ratio:>6.2f}{' !' * (ratio > LIMIT)}")
    return int(slow > 0)


if __name__ == "__main__":
    raise SystemExit(main())
