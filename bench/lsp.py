"""Language servers of others through the tool `lsp`, against a client with nothing around it.

TAPE_LANGUAGE_SERVERS names the folder where npm installed them (`.ci/run` does); there are no rows
without it. Both sides have a process of their own.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Row, Scale, by_turns, seconds
from msgspec import Raw

from gong.env.local import LocalEnvironment
from gong.env.variables import VariableRules
from gong.lsp.servers import KNOWN_SERVERS
from gong.lsp.session_languages import SessionLanguages
from gong.tools.builtin import build_registry
from gong.tools.tool import PreparedCall, ToolContext
from tape.model.entries import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.gong.lsp.bare_client import COMMANDS, SERVERS, BareClient

_STARTS = 5
_EDITS = 20
_TEXTS = {
    "basedpyright": ("shop.py", "python", "def run(x: int) -> int:\n    return x\n\n\nrun(1)\n"),
    "tsc": (
        *("shop.ts", "typescript"),
        "export function run(x: number): number {\n  return x;\n}\n\nrun(1);\n",
    ),
}


class Session:
    """The tools of a session with one language server, called by name."""

    def __init__(self, name: str, folder: Path, runner: asyncio.Runner) -> None:
        server = next(server for server in KNOWN_SERVERS if server.name == name)
        command = (str(SERVERS / server.command[0]), *server.command[1:])
        self._languages = SessionLanguages(
            (server._replace(command=command),),
            folder=str(folder),
            environ=os.environ,
            rules=VariableRules(),
        )
        self._env = LocalEnvironment(str(folder), os.environ)
        self._tools, self._runner = build_registry(), runner
        runner.run(self._languages.offer(self._tools, has_person=False))

    def use(self, name: str, **arguments: object) -> None:
        """Run one call; an error stops the benchmark."""
        self._runner.run(self._use(name, arguments))

    async def _use(self, name: str, arguments: dict[str, object]) -> None:
        call = ToolCall(id="c1", name=name, args=Raw(json.dumps(arguments).encode()))
        prepared = self._tools.prepare(call)
        assert isinstance(prepared, PreparedCall), prepared
        result = await self._tools.run(prepared, ToolContext(self._env, "c1", lambda _text: None))
        assert not result.is_error, result

    def close(self) -> None:
        self._runner.run(self._languages.close())


def lsp_rows(path: Path, scale: Scale) -> list[Row]:
    """Return two rows for each server that is there."""
    del scale
    rows = []
    for name, (program, *_) in COMMANDS.items():
        if (SERVERS / program).exists():
            folder = path / f"lsp-{name}"
            folder.mkdir()
            (folder / "tsconfig.json").write_text('{"compilerOptions": {"strict": true}}')
            file, language, text = _TEXTS[name]
            (folder / file).write_text(text)
            with asyncio.Runner() as runner:
                rows += [
                    _measure_start(name, folder / file, language, runner),
                    _measure_edits(name, folder / file, language, runner),
                ]
    return rows


def _measure_start(name: str, file: Path, language: str, runner: asyncio.Runner) -> Row:
    """Return how long the first question takes, from the start of the server on."""
    lines = file.read_text().split("\n")
    where = {"line": len(lines) - 2, "character": 0}
    about = {"textDocument": {"uri": file.as_uri()}, "position": where}

    def ours() -> float:
        session = Session(name, file.parent, runner)
        question = {"operation": "definition", "path": str(file), "symbol": "run"}
        taken = seconds(lambda: session.use("lsp", **question, line=len(lines) - 1))
        session.close()
        return taken

    def bare() -> float:
        clients = []

        def ask() -> None:
            clients.append(BareClient(name, file.parent))
            clients[0].show(file, language)
            clients[0].ask("textDocument/definition", about)

        taken = seconds(ask)
        clients[0].close()
        return taken

    pair = by_turns(_STARTS, ours, bare)
    return Row(f"first question to {name}", "a bare client", pair.ratio, "×", 1.2)


def _measure_edits(name: str, file: Path, language: str, runner: asyncio.Runner) -> Row:
    """Return how much later than the server an edit tells what is newly wrong."""
    text = file.read_text()
    session, client = Session(name, file.parent, runner), BareClient(name, file.parent)
    session.use("lsp", operation="diagnostics", path=str(file))
    client.show(file, language)
    client.list_diagnostics(file)

    def build(change: Callable[[str], object]) -> Callable[[], float]:
        count = 0

        def measure() -> float:
            nonlocal count
            count += 1
            changed = f"{text}missing_{count}\n"
            return seconds(lambda: change(changed))

        return measure

    def show(changed: str) -> None:
        file.write_text(changed)
        client.show(file, language)
        assert client.list_diagnostics(file)

    write = build(lambda changed: session.use("write", path=str(file), content=changed))
    pair = by_turns(_EDITS, write, build(show))
    session.close()
    client.close()
    late = (pair.ours - pair.floor) * 1_000
    note = f"{pair.ours * 1_000:.0f} ms in all, within 2 s"
    return Row(f"news of {name} after an edit", "a bare client", late, "ms more", 100.0, note=note)
