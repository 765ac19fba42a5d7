"""A round's own work: from the entries that it appended to the next messages and their size."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

import sample
from measure import Row, Scale

from gong.context.sent_history import HistoryFold
from gong.llm.types import Request
from tape.context.view import Target
from tape.model.entries import ToolResult, User
from tape.model.line import Entry

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "another-model"
"""Not the model that answered so far, so that nothing was counted for it."""
TARGET = Target(sample.ENDPOINT, sample.API, MODEL)
LATER = 300
"""Entries that are appended while rounds are timed."""
MAX_MS, MAX_GROWTH = 1.0, 1.5


def rounds_rows(path: Path, scale: Scale) -> list[Row]:  # noqa: ARG001 (no data is made)
    """Measure rounds in sessions of different lengths, one round in each by turns."""
    sizes = [entries for entries in scale.views if entries >= 1_000]
    sessions = {entries: _Session(entries) for entries in sizes}
    times: dict[int, list[float]] = {entries: [] for entries in sizes}
    for _ in range(LATER // 4):
        for entries, session in sessions.items():
            times[entries].append(session.measure_round())
    rows = []
    for entries in sizes:
        took, anew = median(times[entries]), sessions[entries].anew
        at = f", at {entries:,} in view"
        rows.append(Row(f"a round's own work{at}", "none", took * 1_000, "ms", MAX_MS))
        rows.append(Row(f"a round's own work{at}", "all folded anew", took / anew, "×", None))
        if entries > sizes[0]:
            growth, before = took / median(times[sizes[0]]), f"at {sizes[0]:,}"
            rows.append(Row(f"a round's own work{at}", before, growth, "×", MAX_GROWTH))
    return rows


class _Session:
    """A path that grows, and the fold that follows it."""

    def __init__(self, entries: int) -> None:
        made = sample.payloads(entries + LATER)
        self._path = [
            Entry(f"{n:040x}", 1, None, n, "", "", payload) for n, payload in enumerate(made)
        ]
        self._later = self._path[entries:]
        del self._path[entries:]
        self._fold = HistoryFold()
        self._append_round()
        self.anew = self._prepare()

    def measure_round(self) -> float:
        """Append what a round appends; return the seconds until the next request is ready."""
        self._append_round()
        return self._prepare()

    def _append_round(self) -> None:
        while self._later:
            self._path.append(self._later.pop(0))
            if type(self._path[-1].data) in {ToolResult, User}:
                break

    def _prepare(self) -> float:
        began = time.perf_counter()
        sent = self._fold.follow(MODEL, TARGET, self._path, ())
        sent.size.compute_bound(Request(model=MODEL, messages=sent.messages))
        return time.perf_counter() - began
