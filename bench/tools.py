"""Tool calls on a hot cache against the system call they wrap, and the program people would use.

A call goes the whole way: lookup, arguments, body, truncation. Programs that are not on PATH have
no row.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from measure import Row, Scale, by_turns, seconds
from msgspec import Raw

from gong.env.local import LocalEnvironment
from gong.tools.builtin import builtin
from gong.tools.registry import Prepared
from gong.tools.tool import ToolContext
from tape.blocks import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILES = 500
LINES = 200
WORD = "needle"


class Hand:
    """Tools in one folder, called by name."""

    def __init__(self, folder: Path, runner: asyncio.Runner) -> None:
        self._env = LocalEnvironment(str(folder), os.environ)
        self._tools, self._runner = builtin(), runner

    @property
    def names(self) -> tuple[str, ...]:
        return self._tools.names

    def use(self, name: str, **arguments: object) -> None:
        """Run one call; an error stops the benchmark."""
        call = ToolCall(id="c1", name=name, args=Raw(json.dumps(arguments).encode()))
        prepared = self._tools.prepare(call)
        assert isinstance(prepared, Prepared), prepared
        context = ToolContext(self._env, "c1", lambda _text: None)
        result = self._runner.run(self._tools.run(prepared, context))
        assert not result.is_error, result


def tools_rows(path: Path, scale: Scale) -> list[Row]:
    """Return a row for each tool and each thing it is held against."""
    folder = _project(path / "tools", scale)
    with asyncio.Runner() as runner:
        hand = Hand(folder, runner)
        return [row for one in _pairs(hand, folder) if (row := _row(*one, scale.rounds))]


Pair = tuple[str, "Callable[[], object]", str, "Callable[[], object] | list[str]", float | None]


def _pairs(hand: Hand, folder: Path) -> list[Pair]:
    file = folder / "d0/f0.txt"
    pairs: list[Pair] = [
        ("read", lambda: hand.use("read", path=str(file)), "read_bytes", file.read_bytes, None),
        ("read", lambda: hand.use("read", path=str(file)), "cat", ["cat", str(file)], 1.0),
        ("ls", lambda: hand.use("ls", path=str(folder)), "ls", ["ls", "-A", str(folder)], 1.0),
        ("bash", lambda: hand.use("bash", command="true"), "bash -c", ["bash", "-c", "true"], 2.0),
    ]
    if "grep" in hand.names:
        search = ["rg", "--json", WORD, str(folder)]
        pairs.append(("grep", lambda: hand.use("grep", pattern=WORD), "rg", search, 1.5))
    if "find" in hand.names:
        names = [shutil.which("fd") or "fdfind", "--glob", "*7.txt", str(folder)]
        pairs.append(("find", lambda: hand.use("find", pattern="*7.txt"), "fd", names, 1.5))
    return pairs


def _row(
    name: str,
    ours: Callable[[], object],
    against: str,
    floor: Callable[[], object] | list[str],
    target: float | None,
    rounds: int,
) -> Row | None:
    if isinstance(floor, list):
        if shutil.which(floor[0]) is None:
            return None
        command = floor
        floor = lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)  # noqa: E731
    ours()
    pair = by_turns(rounds, lambda: seconds(ours), lambda: seconds(floor))
    note = "" if target else "a call against the one system call in it"
    return Row(f"tool {name} against {against}", against, pair.ratio, "×", target, note=note)


def _project(folder: Path, scale: Scale) -> Path:
    """Make a folder of text files, a few lines of which hold the word."""
    count = max(FILES * scale.rounds // 200, 50)
    text = "".join(f"line {number} of a file\n" for number in range(LINES))
    for number in range(count):
        place = folder / f"d{number % 20}/f{number}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + (f"{WORD}\n" if number % 25 == 0 else ""), "utf-8")
    return folder
