"""Ratios: two things timed by turns in one run, medians divided; and the memory of a process.

A figure is never an absolute time: a busy machine slows both sides alike.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MIB = 1 << 20
_PEAK = Path(__file__).with_name("peak.py")


class Row(msgspec.Struct, frozen=True):
    """One measured thing against its floor."""

    measured: str
    floor: str
    figure: float
    unit: str
    target: float | None
    """None where the figure is for information only."""
    at_least: bool = False
    """The figure has to reach the target instead of staying below it."""
    note: str = ""
    """How it was measured, where that is not plain."""

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        if self.at_least:
            return self.figure >= self.target
        return self.figure <= self.target


class Scale(NamedTuple):
    """How much is measured."""

    views: tuple[int, ...]
    """Entries of the sessions that are opened."""
    small: int
    """Entries of a short session."""
    large: int
    """Entries of a long one."""
    rounds: int
    """Times that a cheap pair is measured."""


class Pair(NamedTuple):
    """Median seconds of two things."""

    ours: float
    floor: float

    @property
    def ratio(self) -> float:
        return self.ours / self.floor


def by_turns(rounds: int, ours: Callable[[], float], floor: Callable[[], float]) -> Pair:
    """Call two measurements by turns, each first every other time; each returns its seconds."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        for side in (0, 1) if turn % 2 else (1, 0):
            times[side].append((ours, floor)[side]())
    return Pair(median(times[0]), median(times[1]))


def seconds(work: Callable[[], object]) -> float:
    """Return how long work takes; the garbage of others is collected before, not meanwhile."""
    gc.collect()
    began = time.perf_counter()
    made = work()
    taken = time.perf_counter() - began
    del made  # letting go of the result is not part of making it
    return taken


def peak(*arguments: str) -> dict[str, int]:
    """Return bytes: {before, after} of the highest memory of a fresh process; see peak.py."""
    done = subprocess.run(
        [sys.executable, str(_PEAK), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stderr.split(b"\n")[-2])


def table(rows: Sequence[Row]) -> list[str]:
    """Return rows as aligned text, those that miss their target first."""
    order = {False: 0, None: 2, True: 1}
    texts = [("measured", "floor", "ratio", "target", "met?")]
    for row in sorted(rows, key=lambda row: order[row.met]):
        figure = f"{row.figure:.2f} {row.unit}"
        sign = "≥" if row.at_least else "≤"
        target = "–" if row.target is None else f"{sign} {row.target:g} {row.unit}"
        met = {True: "yes", False: "MISSED", None: "–"}[row.met]
        texts.append((row.measured, row.floor, figure, target, met))
    widths = [max(len(text[at]) for text in texts) for at in range(len(texts[0]))]
    return ["  ".join(map(str.ljust, text, widths)).rstrip() for text in texts]
