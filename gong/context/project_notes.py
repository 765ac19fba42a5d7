"""A first AGENTS.md for a project, from what stands in its folder: nothing is run, nothing guessed.

What is read, and what it says:

    file                              in the notes
    --------------------------------  -------------------------------------------------
    README*                           the first heading and paragraph
    pyproject.toml                    pytest, ruff and mypy, where they have a table
    package.json                      its scripts as `npm run NAME`
    Cargo.toml, go.mod                the commands that build, test and check
    Makefile                          its targets as `make NAME`
    folders                           which there are
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MOST_BYTES = 200_000
_MOST_ROWS = 20
_TARGET = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)\s*:(?!=)", re.MULTILINE)
_PYTHON_TOOLS = {
    "pytest": "pytest",
    "ruff": "ruff check .",
    "mypy": "mypy",
}
"""Tables of pyproject.toml under [tool], and the command of each."""
_NO_PROSE = ("#", "[!", "!", "<", "=", "- ", "* ", "|", "```")
_IGNORED_FOLDERS = {"node_modules", "target", "dist", "build", "venv", "__pycache__"}


def describe_project(folder: Path) -> str:
    """Return the text of an AGENTS.md for a folder."""
    sections = [f"# {folder.name}", *_read_introduction(folder)]
    commands = list(dict.fromkeys(_list_commands(folder)))[:_MOST_ROWS]
    if commands:
        sections.append("## Commands\n\n" + "\n".join(f"- `{one}`" for one in commands))
    folders = sorted(
        one.name
        for one in folder.iterdir()
        if one.is_dir() and one.name[0] != "." and one.name not in _IGNORED_FOLDERS
    )
    if folders:
        rows = "\n".join(f"- `{name}/`" for name in folders[:_MOST_ROWS])
        sections.append(f"## Layout\n\n{rows}")
    sections.append("## Conventions\n\n(Say here what a newcomer has to know.)")
    return "\n\n".join(sections) + "\n"


def _read_introduction(folder: Path) -> Iterator[str]:
    """Yield the first paragraph of the README that is no heading, badge or markup."""
    for file in sorted(folder.glob("README*")):
        for paragraph in re.split(r"\n\s*\n", _read_text(file)):
            text = " ".join(paragraph.split())
            if text and not text.startswith(_NO_PROSE):
                yield text
                return


def _list_commands(folder: Path) -> Iterator[str]:
    """Yield the commands that the files of a project name."""
    for target in _TARGET.finditer(_read_text(folder / "Makefile")):
        yield f"make {target['name']}"
    try:
        package = json.loads(_read_text(folder / "package.json") or "{}")
    except ValueError:
        package = {}
    for name in _get_table(package, "scripts"):
        yield f"npm run {name}"
    try:
        project = tomllib.loads(_read_text(folder / "pyproject.toml"))
    except tomllib.TOMLDecodeError:
        project = {}
    for name, command in _PYTHON_TOOLS.items():
        if name in _get_table(project, "tool"):
            yield command
    for file, commands in (
        ("Cargo.toml", ("cargo build", "cargo test", "cargo clippy")),
        ("go.mod", ("go build ./...", "go test ./...", "go vet ./...")),
    ):
        if (folder / file).is_file():
            yield from commands


def _get_table(document: Any, name: str) -> dict[str, Any]:
    """Return a table of a document; an empty one where there is none."""
    found = document.get(name) if isinstance(document, dict) else None
    return found if isinstance(found, dict) else {}


def _read_text(file: Path) -> str:
    """Return the beginning of a text file; empty where it cannot be read."""
    try:
        if not file.is_file():
            return ""
        with file.open("rb") as opened:
            return opened.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
