"""The order of rooms, kept true by reading every import with ast.

A room may import what stands above it in `ORDER`, and modules of its own package folder. Imports
under TYPE_CHECKING and inside functions count like any other; `LAZY` names the exceptions.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.sources import ROOT, parse_package

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

ORDER = {
    "tape": [
        *("version", "errors", "damage", "clock", "text", "lookalikes", "own_program"),
        *("ids", "folders", "repository", "formats.sessions.registry", "places.reference"),
        *("index.tape_filter", "places.checkout", "index.reader", "index.full_text"),
        *("model", "store", "context", "files", "history", "formats", "index"),
        *("places.newest", "places", "blame", "check", "store.maintenance", "render"),
        *(
            "masking",
            "unite",
            "archive",
            "pages",
            "sessions",
            "remote",
            "testing",
            "tools",
            "stores",
            "serve",
        ),
        *("__init__", "cli", "__main__"),
    ],
    "gong": [
        *(
            "errors",
            "signals",
            "private_files",
            "front_matter",
            "python_objects",
            "html_page",
            "git_folders",
            "git_programs",
            "project",
            "trust",
            "logins.settings",
            "llm.apis",
            "llm.prices",
            "llm.models",
            "setting_values",
            "tool_settings",
            "ip_addresses",
            "child_programs",
            "env.variables",
            "config_file",
            "config",
        ),
        *(
            "credentials",
            "search_terms",
            "summary",
            "http_requests",
            "logins",
            "llm",
            "llm.wires",
            "llm.programs",
            "llm.offline",
            "sdk",
            "web",
        ),
        *(
            "env",
            "env.places",
            "env.conformance",
            "tools",
            "shell",
            "policy.commands",
            "policy.files",
            "policy",
            "plugins",
            "hooks",
            "checkpoints",
        ),
        *("mcp", "lsp", "skills"),
        *(
            "context",
            "agent",
            "subagents",
            "assembly",
            "workflow",
            "review",
            "evals",
            "host",
            "hosting",
            "rpc",
            "acp",
            "repl.mention_grammar",
            "repl.draw",
            "repl.commands",
            "repl.typing",
            "repl.conversation",
            "repl",
        ),
        *("__init__", "cli", "__main__"),
    ],
}
"""Rooms of each package, top to bottom: a new module gets its place here."""

KNOWS = {"tape": set(), "gong": {"tape"}}
"""Which other package of ours each package may import."""

LAZY = {
    ("gong.llm", "gong.llm.offline"),
    ("gong.cli", "gong.cli"),
}
"""From room, to room: an import inside a function that may point down or close a cycle.

The provider registry and the command group of gong load what they name only when it is used.
"""

OFFLINE = {
    *("asyncio", "http", "socket", "socketserver", "ssl", "urllib.request"),
    *("aiohttp", "anthropic", "httpcore2", "httpx", "httpx2", "openai", "requests", "urllib3"),
}
"""What the store never imports: it is synchronous and has no network."""

AWAITED = {"tape.stores"}
"""Rooms that other SDKs call from their event loop; nothing of tape imports them."""

OWN_THREADS = {"tape.remote.s3": "asyncio", "tape.remote.metrics_page": "http"}
"""Modules with a thread of its own that waits: for many answers at once, and for requests."""

SERVING = {"tape.serve"}
"""Rooms that listen on a port; of tape only the command line imports them."""


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module as a line of source names it."""

    file: Path
    line: int
    source: str
    importer: str
    target: str
    lazy: bool

    def complaint(self, why: str) -> str:
        return f"{self.file}:{self.line}: {self.source}\n    {why}"


def modules(root: Path) -> dict[str, Path]:
    """Return dotted name → file for every module of the packages in ORDER."""
    found = {}
    for package in ORDER:
        for file in sorted((root / package).rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports(root: Path) -> list[Import]:
    """Return every import of every module; `from a import b` counts as `a.b` where that exists."""
    known = modules(root)
    return [found for name, file in known.items() for found in _imports_of(name, file, root, known)]


def _imports_of(name: str, file: Path, root: Path, known: dict[str, Path]) -> Iterator[Import]:
    lines, short = file.read_text("utf-8").split("\n"), file.relative_to(root)
    tree = parse_package(root, short.parts[0])[short]
    for node, lazy in _import_nodes(tree, lazy=False):
        line = lines[node.lineno - 1].strip()
        targets = _targets(node, name, is_package=file.stem == "__init__", known=known)
        for target in dict.fromkeys(targets):
            yield Import(short, node.lineno, line, name, target, lazy)


def _import_nodes(
    tree: ast.AST, *, lazy: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, lazy
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _import_nodes(node, lazy=lazy or inside)


def _targets(
    node: ast.Import | ast.ImportFrom, name: str, *, is_package: bool, known: dict[str, Path]
) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = node.module or ""
    if node.level:
        parts = name.split(".")
        above = parts[: len(parts) - node.level + is_package]
        base = ".".join([*above, base] if base else above)
    for alias in node.names:
        inner = f"{base}.{alias.name}"
        ours = base.split(".")[0] in ORDER
        yield inner if inner in known or not ours else base


def room(module: str) -> str:
    """Return the room a module stands in: `tape.cli.ls` → `tape.cli`, `tape` → `tape.__init__`."""
    package, _, rest = module.partition(".")
    if not rest:
        return f"{package}.__init__"
    fits = [one for one in ORDER[package] if f"{rest}.".startswith(f"{one}.")]
    return f"{package}.{max(fits, key=len)}" if fits else f"{package}.{rest.split('.')[0]}"


def place(one: str) -> int:
    """Return how far down its package a room stands; -1 when it has no place."""
    package, _, rest = one.partition(".")
    return ORDER[package].index(rest) if rest in ORDER[package] else -1


def violations(root: Path) -> list[str]:
    """Return every broken rule as a text that shows the line and says what is wrong."""
    found = imports(root)
    return [*_homeless(root), *_wrong_ways(found), *_cycles(found)]


def _homeless(root: Path) -> Iterator[str]:
    for module, file in modules(root).items():
        if place(room(module)) < 0:
            yield f"{file.relative_to(root)}: give this room a place in ORDER, tests/test_layers.py"


def _wrong_ways(found: Iterable[Import]) -> Iterator[str]:
    for one in found:
        why = _wrong(one)
        if why:
            yield one.complaint(why)


def _wrong(one: Import) -> str | None:
    mine, theirs = one.importer.split(".")[0], one.target.split(".")[0]
    if theirs not in ORDER:
        awaited = one.target == "asyncio" and room(one.importer) in AWAITED
        awaited |= one.target.split(".")[0] == OWN_THREADS.get(one.importer)
        awaited |= room(one.importer) in SERVING
        offline = not awaited and any(f"{one.target}.".startswith(f"{bad}.") for bad in OFFLINE)
        return "tape is synchronous and has no network" if mine == "tape" and offline else None
    if mine != theirs:
        return _wrong_between(one, mine, theirs)
    here, there = room(one.importer), room(one.target)
    if here == there or (one.lazy and (here, there) in LAZY) or -1 in (place(here), place(there)):
        return None
    return None if place(there) < place(here) else f"{here} stands above {there}, not below it"


def _wrong_between(one: Import, mine: str, theirs: str) -> str | None:
    if theirs not in KNOWS[mine]:
        return f"{mine} knows nothing of {theirs}"
    if any(part.startswith("_") for part in one.target.split(".")):
        return f"{mine} uses only public modules of {theirs}"
    if room(one.target) == f"{theirs}.cli" and room(one.importer) != f"{mine}.cli":
        return f"only {mine}.cli may use the command line of {theirs}"
    return None


def _cycles(found: Iterable[Import]) -> Iterator[str]:
    edges: dict[str, dict[str, Import]] = {}
    for one in found:
        excepted = one.target.split(".")[0] in ORDER and (room(one.importer), room(one.target))
        if excepted and not (one.lazy and excepted in LAZY):
            edges.setdefault(one.importer, {}).setdefault(one.target, one)
    done: set[str] = set()
    for module in sorted(edges):
        yield from _cycles_from(module, edges, (), done)


def _cycles_from(
    module: str, edges: dict[str, dict[str, Import]], way: tuple[str, ...], done: set[str]
) -> Iterator[str]:
    if module in way:
        ring = (*way[way.index(module) :], module)
        steps = (edges[a][b] for a, b in pairwise(ring))
        shown = "\n    ".join(f"{one.file}:{one.line}: {one.source}" for one in steps)
        yield f"import cycle {' → '.join(ring)}\n    {shown}"
    elif module not in done:
        for target in edges.get(module, {}):
            yield from _cycles_from(target, edges, (*way, module), done)
        done.add(module)


def test_every_import_points_up():
    found = violations(ROOT)
    assert not found, "\n" + "\n".join(found)


def test_the_packages_are_there_to_be_read():
    assert {one.split(".")[0] for one in modules(ROOT)} == set(ORDER)


MADE_UP = [
    (
        "tape/model/line.py",
        "from ..context.view import View",
        "tape.model stands above tape.context",
    ),
    ("tape/model/line.py", "from ..context import view", "tape.model stands above tape.context"),
    ("tape/model/line.py", "import tape.context.view", "tape.model stands above tape.context"),
    ("tape/model/line.py", "from tape.context import view", "tape.model stands above tape.context"),
    (
        "tape/model/line.py",
        "def f():\n    from ..context.view import V",
        "tape.model stands above tape.context",
    ),
    (
        "tape/model/line.py",
        "if TYPE_CHECKING:\n    from ..context.view import V",
        (
            "tape/model/line.py:2: from ..context.view import V\n"
            "    tape.model stands above tape.context"
        ),
    ),
    ("tape/model/line.py", "from .. import thing", "tape.model stands above tape.__init__"),
    ("tape/context/view.py", "from ..model.line import Entry\nfrom ..errors import Damaged", None),
    ("tape/formats/md.py", "from ..cli import main", "tape.formats stands above tape.cli"),
    ("tape/formats/md.py", "from ..context.view import View", None),
    ("tape/formats/__init__.py", "from ..cli import main", "tape.formats stands above tape.cli"),
    ("tape/formats/__init__.py", "from .md import markdown", None),
    ("tape/__init__.py", "from .store.store import Store", None),
    ("tape/context/view.py", "from gong.errors import GongError", "tape knows nothing of gong"),
    ("tape/context/view.py", "import gong", "tape knows nothing of gong"),
    ("tape/store/store.py", "import socket", "tape is synchronous and has no network"),
    ("tape/store/store.py", "import urllib.request", "tape is synchronous and has no network"),
    ("tape/store/store.py", "from urllib import request", "tape is synchronous and has no network"),
    ("tape/store/store.py", "import urllib.parse", None),
    ("tape/shed.py", "", "tape/shed.py: give this room a place"),
    ("gong/tools/find.py", "from tape.model.entries import Text", None),
    ("gong/tools/find.py", "from tape._inner import Text", "gong uses only public modules of tape"),
    ("gong/tools/find.py", "from tape.cli import main", "only gong.cli may use the command line"),
    ("gong/cli/tape.py", "from tape.cli import main", None),
    ("gong/agent/loop.py", "from ..repl.x import X", "gong.agent stands above gong.repl"),
    ("gong/llm/client.py", "from .wires import a", "gong.llm stands above gong.llm.wires"),
    ("gong/llm/client.py", "def f():\n    from .offline import a", None),
    ("gong/llm/wires/b.py", "from ..types import Request", None),
]


@pytest.mark.parametrize(("file", "text", "complaint"), MADE_UP)
def test_an_example_import_is_judged(tmp_path, file, text, complaint):
    plant(
        tmp_path,
        {
            "tape/context/view.py": "",
            "gong/llm/wires/a.py": "",
            "gong/llm/offline/a.py": "",
            file: text,
        },
    )
    found = violations(tmp_path)
    assert len(found) == (complaint is not None), found
    assert complaint is None or complaint in found[0]


def test_a_cycle_inside_a_room_is_shown_line_by_line(tmp_path):
    plant(
        tmp_path,
        {
            "gong/env/a.py": "import os\nfrom .b import B",
            "gong/env/b.py": "if TYPE_CHECKING:\n    from .a import A",
        },
    )
    (shown,) = violations(tmp_path)
    assert shown.split("\n    ") == [
        "import cycle gong.env.a → gong.env.b → gong.env.a",
        "gong/env/a.py:2: from .b import B",
        "gong/env/b.py:2: from .a import A",
    ]


def test_a_command_group_may_load_its_commands_late(tmp_path):
    plant(
        tmp_path,
        {
            "gong/cli/__init__.py": "def f():\n    from .ls import ls",
            "gong/cli/ls.py": "from . import group",
        },
    )
    assert violations(tmp_path) == []


def test_a_command_group_may_not_load_its_commands_eagerly(tmp_path):
    plant(
        tmp_path,
        {"tape/cli/__init__.py": "from .ls import ls", "tape/cli/ls.py": "from . import group"},
    )
    assert [one.split("\n")[0] for one in violations(tmp_path)] == [
        "import cycle tape.cli → tape.cli.ls → tape.cli"
    ]


def plant(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
