"""A first AGENTS.md for a project, from the files in its folder: nothing is run, nothing guessed.

What is read, and what it says:

    file                              in the notes
    --------------------------------  -------------------------------------------------
    README*                           the first heading and paragraph
    pyproject.toml                    name and description; pytest, ruff and mypy, where they have
                                      a table
    package.json                      name and description; its scripts as `npm run NAME`
    Cargo.toml, go.mod                the commands that build, test and check
    Makefile                          its targets as `make NAME`
    folders                           which there are

The title is the README's, else the name in pyproject.toml, Cargo.toml or package.json, else the
folder's. What the project is say its description there and the README's first paragraph.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAX_BYTES = 200_000
_MAX_ROWS = 20
_TARGET = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)\s*:(?!=)", re.MULTILINE)
_PYTHON_TOOLS = {
    "pytest": "pytest",
    "ruff": "ruff check .",
    "mypy": "mypy",
}
"""Tables of pyproject.toml under [tool], and the command of each."""
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_NO_PROSE = ("#", "[!", "!", "<", "=", "- ", "* ", "|", "```")
_IGNORED_FOLDERS = {"node_modules", "target", "dist", "build", "venv", "__pycache__"}


def describe_project(folder: Path) -> str:
    """Return the text of an AGENTS.md for a folder."""
    paragraphs = _read_paragraphs(folder)
    name, description = _read_metadata(folder)
    title = _find_title(paragraphs) or name or folder.name
    prose = (paragraph for paragraph in paragraphs if not paragraph.startswith(_NO_PROSE))
    introduction = dict.fromkeys(filter(None, (description, next(prose, ""))))
    sections = [f"# {title}", *introduction]
    commands = list(dict.fromkeys(_list_commands(folder)))[:_MAX_ROWS]
    if commands:
        sections.append("## Commands\n\n" + "\n".join(f"- `{command}`" for command in commands))
    folders = sorted(
        child.name
        for child in folder.iterdir()
        if child.is_dir() and child.name[0] != "." and child.name not in _IGNORED_FOLDERS
    )
    if folders:
        rows = "\n".join(f"- `{name}/`" for name in folders[:_MAX_ROWS])
        sections.append(f"## Layout\n\n{rows}")
    sections.append("## Conventions\n\n(Say here what a newcomer has to know.)")
    return "\n\n".join(sections) + "\n"


def _read_paragraphs(folder: Path) -> list[str]:
    """Return the paragraphs of the README, each on one line, a heading as one of its own."""
    text = "\n\n".join(_read_text(file) for file in sorted(folder.glob("README*")))
    marked = re.sub(r"^(.+)\n=+[ \t]*$", r"\n# \1\n", text, flags=re.MULTILINE)
    marked = re.sub(r"^(#{1,6} .*)$", r"\n\1\n", marked, flags=re.MULTILINE)
    lines = (" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", marked))
    return [line for line in lines if line]


def _find_title(paragraphs: list[str]) -> str:
    """Return the text of the first heading; empty where words stand before it, or none."""
    for paragraph in paragraphs:
        if paragraph.startswith("# "):
            return _LINK.sub(r"\1", paragraph).strip("# ")
        if not paragraph.startswith(_NO_PROSE):
            break
    return ""


def _read_metadata(folder: Path) -> tuple[str, str]:
    """Return the name and description of the project in its metadata; each may be empty."""
    tables = (
        _get_table(_read_toml(folder / "pyproject.toml"), "project"),
        _get_table(_get_table(_read_toml(folder / "pyproject.toml"), "tool"), "poetry"),
        _get_table(_read_toml(folder / "Cargo.toml"), "package"),
        _read_json(folder / "package.json"),
    )

    def find_text(name: str) -> str:
        texts = (table.get(name) for table in tables)
        lines = (" ".join(text.split()) for text in texts if isinstance(text, str))
        return next(filter(None, lines), "")

    return find_text("name"), find_text("description")


def _list_commands(folder: Path) -> Iterator[str]:
    """Yield the commands that the files of a project name."""
    for target in _TARGET.finditer(_read_text(folder / "Makefile")):
        yield f"make {target['name']}"
    for name in _get_table(_read_json(folder / "package.json"), "scripts"):
        yield f"npm run {name}"
    project = _read_toml(folder / "pyproject.toml")
    for name, command in _PYTHON_TOOLS.items():
        if name in _get_table(project, "tool"):
            yield command
    for file, commands in (
        ("Cargo.toml", ("cargo build", "cargo test", "cargo clippy")),
        ("go.mod", ("go build ./...", "go test ./...", "go vet ./...")),
    ):
        if (folder / file).is_file():
            yield from commands


def _read_json(file: Path) -> dict[str, Any]:
    """Return the object in a file; an empty one where it cannot be read."""
    try:
        document = json.loads(_read_text(file) or "{}")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _read_toml(file: Path) -> dict[str, Any]:
    """Return the document in a file; an empty one where it cannot be read."""
    try:
        return tomllib.loads(_read_text(file))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _get_table(document: Any, name: str) -> dict[str, Any]:
    """Return a table of a document; an empty one where there is none."""
    table = document.get(name) if isinstance(document, dict) else None
    return table if isinstance(table, dict) else {}


def _read_text(file: Path) -> str:
    """Return the beginning of a text file; empty where it cannot be read."""
    try:
        if not file.is_file():
            return ""
        with file.open("rb") as opened:
            return opened.read(_MAX_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return ""
