"""Ten million entries: what people do every day costs what it does among a hundredth of them.

Two stores of tapes with a hundred entries each, and a folder that each is pushed to. Commands run
in both by turns, as processes; compared is processor time. Making them takes an hour and 20 GB, so
this is no part of `make bench`:

    .venv/bin/python bench/millions.py [--entries N] [--rounds N] [--dir PATH]

With --dir what was made stays there, and is used again.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from many import (
    Place,
    compare,
    continue_newest,
    make_place,
    pick_session,
    run_tape,
    search_in_vain,
    write_first,
)
from measure import Row, table

if TYPE_CHECKING:
    from collections.abc import Callable

ENTRIES, FEWER = 10_000_000, 100
TURNS = 50
"""Prompts with their answers in each tape, which makes 101 entries with its start."""
ROUNDS = 5
TARGET = 1.5


def prepare(path: Path, entries: int) -> Place:
    """Return a store of so many entries with its index, all of it pushed to a folder."""
    home = path / f"millions-{entries}"
    if not (home / "done").exists():
        shutil.rmtree(home, ignore_errors=True)
        place = make_place(home, entries // (2 * TURNS), TURNS)
        say(f"made {entries:,} entries")
        run_tape(place, "ls")
        say("listed them")
        (home / "remote").mkdir()
        run_tape(place, "remote", "add", "team", str(home / "remote"), "--mode", "manual")
        run_tape(place, "push", "--all", "--yes", "--raw")
        run_tape(place, "pull")
        (home / "done").touch()
    tapes = entries // (2 * TURNS)
    root = home / f"home-{tapes}"
    return Place(root, root / "p0", root / "none")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def push_one(place: Place) -> float:
    """Push a tape that was just written."""
    write_first(place)
    return run_tape(place, "push")


def push_one_of_all(place: Place) -> float:
    """Push it from the whole store."""
    write_first(place)
    return run_tape(place, "push", "--all")


def pull_one(place: Place) -> float:
    """Pull a tape that somebody else pushed."""
    colleague = Place(place.home / "colleague", place.home / "colleague", place.home)
    if not colleague.home.exists():
        colleague.home.mkdir()
        remote = place.home.parent / "remote"
        run_tape(colleague, "remote", "add", "team", str(remote), "--mode", "manual")
    write_first(colleague)
    run_tape(colleague, "push", "--all", "--yes")
    return run_tape(place, "pull")


WORK: dict[str, Callable[[Place], float]] = {
    "ls": lambda place: run_tape(place, "ls"),
    "search for a word that is nowhere": search_in_vain,
    "gong -c": continue_newest,
    "/resume": pick_session,
    "push with nothing new": lambda place: run_tape(place, "push"),
    "push --all with nothing new": lambda place: run_tape(place, "push", "--all"),
    "push of one tape": push_one,
    "push --all of one tape": push_one_of_all,
    "pull with nothing new": lambda place: run_tape(place, "pull"),
    "pull of one tape": pull_one,
}


def measure(path: Path, entries: int, rounds: int) -> list[Row]:
    few, many = prepare(path, entries // FEWER), prepare(path, entries)
    rows = []
    for name, work in WORK.items():
        ratio = compare(few, many, rounds, work)
        floor = f"among {entries // FEWER:,}"
        rows.append(Row(f"{name}, among {entries:,} entries", floor, ratio, "×", TARGET))
        say(f"{ratio:8.2f} ≤ {TARGET} {name}")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--entries", type=int, default=ENTRIES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--dir", type=Path, help="where the stores are made, and stay")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tape-millions-") as folder:
        rows = measure(options.dir or Path(folder), options.entries, options.rounds)
    print("\n".join(table(rows)))
    return int(any(row.met is False for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
