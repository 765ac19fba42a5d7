"""Commands that a manifest names one by one, made files of the plugin when it is installed.

    "commands": {"about": {"source": "./README.md", "description": "About this plugin"},
                 "hi":    {"content": "Say hello to $ARGUMENTS", "allowedTools": ["Read"]}}

Each becomes `.claude-plugin/commands/NAME.md`, or stays in its file where that has the same name;
what the manifest says of it is put into the front matter. What cannot be made one stays in the
manifest, which warns of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from ..front_matter import parse_front_matter
from .installed import resolve_inside

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_FOLDER = ".claude-plugin/commands"
_NAME = re.compile(r"[\w-][\w.-]*(?::[\w-][\w.-]*)*")
_FIELDS = {
    "description": "description",
    "argumentHint": "argument-hint",
    "model": "model",
    "allowedTools": "allowed-tools",
}
"""Field of the manifest → field of a command's front matter."""


def write_named_commands(root: Path, rows: Iterable[Any]) -> list[Any]:
    """Write the commands that objects name, and return the rows with their files in their place.

    `root` is the plugin's folder, `rows` what its manifest names as `commands`. Raises
    ConfigurationError for a source that leads out of the plugin.
    """
    kept: list[Any] = []
    for row in rows:
        if not isinstance(row, dict):
            kept.append(row)
            continue
        unused = {
            name: value for name, value in row.items() if not _write_command(root, name, value)
        }
        if len(unused) < len(row) and (place := f"./{_FOLDER}") not in kept:
            kept.append(place)
        kept += [unused] if unused else []
    return kept


def _write_command(root: Path, name: str, command: Any) -> bool:
    """Write one command; return whether it could be made one."""
    if not _NAME.fullmatch(name) or not isinstance(command, dict):
        return False
    source, content = command.get("source"), command.get("content")
    within = f"{name.replace(':', '/')}.md"
    file = resolve_inside(root, f"{_FOLDER}/{within}")
    if isinstance(source, str):
        place = resolve_inside(root, source)
        if not place.is_file():
            return False
        content = place.read_bytes().decode("utf-8", "replace")
        if place == resolve_inside(root, f"commands/{within}"):
            file = place
    if not isinstance(content, str):
        return False
    fields = {ours: command[key] for key, ours in _FIELDS.items() if command.get(key)}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_add_fields(content, fields) if fields else content, encoding="utf-8")
    return True


def _add_fields(text: str, fields: Mapping[str, Any]) -> str:
    """Return a Markdown file with these fields in its front matter, in place of its own."""
    read = parse_front_matter(text)
    lines = [
        f"{name}: {msgspec.json.encode(value, enc_hook=str).decode()}\n"  # JSON is YAML
        for name, value in {**read.fields, **fields}.items()
    ]
    return f"---\n{''.join(lines)}---\n{read.body}\n"
