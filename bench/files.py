"""What recording the files of commands adds to a round of bash, in a repository of 10,000 files.

Two sessions of the scripted model work in the same folder, one that records what commands do to
files and one that does not; prompts with ten calls each run in one and in the other by turns.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from contextlib import aclosing
from typing import TYPE_CHECKING

from measure import Row, Scale

from gong.assembly.opening import FrontEnd, open_session
from gong.config import CheckpointSettings, PermissionSettings, Settings
from tape.index.library import Library
from tape.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from gong.agent.session import Session

FILES, FOLDERS = 10_000, 500
CALLS = 10
"""Calls of each prompt."""
COMMANDS = {
    "changes nothing": "test -e d1 || touch d1",
    "writes a file": "date +%N > d1/s1/f1.py",
    "makes a file": "date +%N > d2/s2/new$RANDOM.txt",
    "only reads": "ls d1",
}
TARGETS = {"changes nothing": 1.15, "only reads": 1.05}


def files_rows(path: Path, scale: Scale) -> list[Row]:
    """Return a row for each kind of command."""
    folder = _make_repository(path / "files")
    with asyncio.Runner() as runner:
        return runner.run(_measure(path, folder, max(scale.rounds // 10, 10)))


async def _measure(path: Path, folder: Path, turns: int) -> list[Row]:
    rows = []
    for name, command in COMMANDS.items():
        sessions = {
            commands: await _open(path, folder, command, turns + 1, commands=commands)
            for commands in (True, False)
        }
        first = {commands: await _time_prompt(one) for commands, one in sessions.items()}
        times: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(turns):
            for commands, session in sessions.items():
                times[commands].append(await _time_prompt(session))
        for session in sessions.values():
            await session.close()
        # The least: what a busy machine adds to a round has nothing to do with it.
        ratio = min(times[True]) / min(times[False])
        each = min(times[False]) / CALLS * 1_000
        measured, note = f"a round of bash that {name}", f"the floor takes {each:.1f} ms"
        target = TARGETS.get(name)
        rows.append(Row(measured, "the same, not recorded", ratio, "×", target, note=note))
        if name == "changes nothing":
            more = (first[True] - first[False]) * 1_000
            rows.append(Row("the first look at 10,000 files", "none", more, "ms", None))
    return rows


async def _open(path: Path, folder: Path, command: str, prompts: int, *, commands: bool) -> Session:
    call = {"tool_calls": [{"name": "bash", "args": {"command": command}}]}
    script = path / f"script-{commands}.json"
    script.write_text(json.dumps([*[call] * CALLS, {"text": "done"}] * prompts))
    settings = Settings(
        model=f"scripted/{script}",
        loop_detection=False,
        permissions=PermissionSettings(mode="bypass"),
        checkpoints=CheckpointSettings(commands=commands),
    )
    environ = {"PATH": os.environ["PATH"], "HOME": str(path)}
    library = Library(Store(path / "store"), None)
    opened = await open_session(FrontEnd(library, settings, environ, str(folder), "bench/1"))
    return opened.session


async def _time_prompt(session: Session) -> float:
    began = time.perf_counter()
    async with aclosing(session.submit("go")) as stream:
        async for _ in stream:
            pass
    return time.perf_counter() - began


def _make_repository(folder: Path) -> Path:
    for at in range(FOLDERS):
        inner = folder / f"d{at // 25}" / f"s{at % 25}"
        inner.mkdir(parents=True)
        for n in range(FILES // FOLDERS):
            (inner / f"f{n}.py").write_text(f"x = {at * FOLDERS + n}\n" * 20)
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-qm", "all")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder
