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
from gong.tools.builtin import build_registry
from gong.tools.tool import PreparedCall, ToolContext
from tape.model.entries import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILES = 500
LINES = 200
WORD = "needle"


class Hand:
    """Tools in one folder, called by name."""

    def __init__(self, folder: Path, runner: asyncio.Runner, path: str | None = None) -> None:
        environ = os.environ if path is None else {**os.environ, "PATH": path}
        self._env = LocalEnvironment(str(folder), environ)
        self._tools, self._runner = build_registry(), runner

    def use(self, name: str, **arguments: object) -> None:
        """Run one call; an error stops the benchmark."""
        call = ToolCall(id="c1", name=name, args=Raw(json.dumps(arguments).encode()))
        prepared = self._tools.prepare(call)
        assert isinstance(prepared, PreparedCall), prepared
        context = ToolContext(self._env, "c1", lambda _text: None)
        result = self._runner.run(self._tools.run(prepared, context))
        assert not result.is_error, result


def tools_rows(path: Path, scale: Scale) -> list[Row]:
    """Return a row for each tool and each thing it is held against."""
    folder = _project(path / "tools", scale)
    with asyncio.Runner() as runner:
        hand, alone = Hand(folder, runner), Hand(folder, runner, "/nonexistent")
        pairs = [*_pairs(hand, folder), *_searches(hand, alone, folder)]
        rows = [row for one in pairs if (row := _row(*one, scale.rounds))]
        large = _large_file_pairs(hand, path, scale)
        return rows + [row for one in large if (row := _row(*one, min(scale.rounds, 15)))]


Pair = tuple[str, "Callable[[], object]", str, "Callable[[], object] | list[str]", float | None]


def _pairs(hand: Hand, folder: Path) -> list[Pair]:
    file = folder / "d0/f0.txt"
    return [
        ("read", lambda: hand.use("read", path=str(file)), "read_bytes", file.read_bytes, None),
        ("read", lambda: hand.use("read", path=str(file)), "cat", ["cat", str(file)], 1.0),
        ("ls", lambda: hand.use("ls", path=str(folder)), "ls", ["ls", "-A", str(folder)], 1.0),
        ("bash", lambda: hand.use("bash", command="true"), "bash -c", ["bash", "-c", "true"], 2.0),
    ]


def _large_file_pairs(hand: Hand, path: Path, scale: Scale) -> list[Pair]:
    """Return calls about one large file: 50 MB, unless in a hurry."""
    file, count = path / "large.txt", 10 * scale.large
    with file.open("w") as out:
        for number in range(count):
            out.write(f"line {number:07} of a file that is large, as logs are\n")
        out.write(f"{WORD}\n")
    first = count - 20
    sed = ["sed", "-n", f"{first},{first + 9}p", str(file)]
    rg = ["rg", "--json", WORD, str(file)]
    size = f"{file.stat().st_size >> 20} MB"
    return [
        (
            f"read of ten lines of {size}",
            lambda: hand.use("read", path=str(file), offset=first, limit=10),
            "sed",
            sed,
            2.0,
        ),
        (
            f"grep of one file of {size}",
            lambda: hand.use("grep", pattern=WORD, path=str(file)),
            "rg",
            rg,
            1.5,
        ),
    ]


def _searches(hand: Hand, alone: Hand, folder: Path) -> list[Pair]:
    """Return the searches as they are, and those that find no other program."""
    rg = ["rg", "--json", WORD, str(folder)]
    fd = [shutil.which("fd") or "fdfind", "--glob", "*7.txt", str(folder)]
    pattern = f"{WORD[:-1]}[{WORD[-1]}]$"
    return [
        ("grep", lambda: hand.use("grep", pattern=WORD), "rg", rg, 1.5),
        ("grep of a text without rg", lambda: alone.use("grep", pattern=WORD), "rg", rg, None),
        (
            "grep of a pattern without rg",
            lambda: alone.use("grep", pattern=pattern),
            "rg",
            rg,
            None,
        ),
        ("find", lambda: hand.use("find", pattern="*7.txt"), "fd", fd, 1.5),
        ("find without fd", lambda: alone.use("find", pattern="*7.txt"), "fd", fd, None),
    ]


def _row(
    name: str,
    ours: Callable[[], object],
    against: str,
    floor: Callable[[], object] | list[str],
    target: float | None,
    rounds: int,
) -> Row | None:
    note = "" if isinstance(floor, list) else "a call against the one system call in it"
    if isinstance(floor, list):
        if shutil.which(floor[0]) is None:
            return None
        command = floor
        floor = lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)  # noqa: E731
    ours()
    pair = by_turns(rounds, lambda: seconds(ours), lambda: seconds(floor))
    return Row(f"tool {name} against {against}", against, pair.ratio, "×", target, note=note)


def _project(folder: Path, scale: Scale) -> Path:
    """Make a repository of text files, a few lines of which hold the word."""
    (folder / ".git").mkdir(parents=True)
    count = max(FILES * scale.rounds // 200, 50)
    text = "".join(f"line {number} of a file\n" for number in range(LINES))
    for number in range(count):
        place = folder / f"d{number % 20}/f{number}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + (f"{WORD}\n" if number % 25 == 0 else ""), "utf-8")
    return folder
