"""Small tapes for tests: a clock and ids that repeat, and the shortest way to a store."""

from __future__ import annotations

import os
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from tape.model.entries import Assistant, Text, ToolCall, ToolResult, User
from tape.model.line import decode_line
from tape.store.store import Beginning, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from tape.model.line import Entry
    from tape.store.refs import Head
    from tape.store.tape import Tape

Row = TypeVar("Row")
Column = TypeVar("Column")

BUDGET = int(os.environ.get("TEST_BUDGET", "1"))
"""How many times longer than usual to search: for a night, not for every commit."""
SHARE = 10 if "TAPE_ENGINE" in os.environ else 1
"""Of how many kills one is tried where each store has a remote: that is copied for each as well."""
DAY = 1_795_000_000_000_000
"""Microseconds of a moment in November 2026."""


def crossed(
    rows: Iterable[Row], columns: Sequence[Column], each: int = 1
) -> list[tuple[Row, Column]]:
    """Return rows with columns: in a usual run `each` of them to a row, in turn; else all."""
    return [
        (row, column)
        for number, row in enumerate(rows)
        for place, column in enumerate(columns)
        if BUDGET > 1 or (place - number) % len(columns) < each
    ]


def numbered() -> Callable[[int], str]:
    """Return a source of hex digits that counts instead of being random."""
    numbers = count(1)
    return lambda size: f"{next(numbers):0{2 * size}x}"[::-1]


def store_in(path: Path, clock: Callable[[], int] | None = None) -> Store:
    """Return a store that waits for no disk; its clock stands still unless it is given one."""
    return Store(path, clock=clock or (lambda: DAY), random=numbered(), durable=False)


def beginning(words: str = "") -> Beginning:
    """Return what a tape made by a test knows."""
    return Beginning("/src", "test/1", slug=words)


def say(text: str) -> User:
    """Return a prompt."""
    return User((Text(text=text),))


def answer(*calls: str, text: str = "") -> Assistant:
    """Return an answer that calls a tool once for each id."""
    blocks = tuple(ToolCall(id=call, name="bash") for call in calls)
    return Assistant((Text(text=text), *blocks) if text else blocks)


def result(call: str, text: str = "done") -> ToolResult:
    """Return what a tool answered to a call."""
    return ToolResult(call, "bash", (Text(text=text),))


def write(tape: Tape, *texts: str, branch: str | None = None) -> list[Entry]:
    """Append prompts to a branch and return their entries."""
    with tape.writer(branch) as writer:
        return [writer.append(say(text)) for text in texts]


def entries(tape: Tape, branch: str | None = None) -> list[Entry]:
    """Return the entries of a branch, each read by itself."""
    return [
        decode_line(line, segment.source.expand)
        for segment in tape.path(tape.head(branch))
        for _, line in segment.lines()
    ]


def texts(tape: Tape, branch: str | None = None) -> list[str]:
    """Return the prompts on a branch, oldest first."""
    return [
        block.text
        for entry in entries(tape, branch)
        if isinstance(entry.data, User)
        for block in entry.data.content
        if isinstance(block, Text)
    ]


def at(tape: Tape, entry: str) -> Head:
    """Return the place of an entry."""
    (hit,) = tape.find_entry(entry)
    return hit.head


def folder_of(store: Store, tape: Tape) -> Path:
    """Return the folder of a tape."""
    return store.tapes / tape.folder.name
