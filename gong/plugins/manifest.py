"""The manifest of a plugin: Agent Plugins 1.0.0, or Claude Code's.

plugin.json                  closed schema: an unknown field is reported and ignored, anything
else that is wrong refuses the plugin; $schema is never fetched. One
without $schema is read as the other one is
.claude-plugin/plugin.json   open: only the name is needed; read where the first is missing, or
is of another program
.claude-plugin/marketplace.json   an entry in it may say the same, beside the plugin's own or alone
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
STANDARD_FILE, CLAUDE_FILE = "plugin.json", ".claude-plugin/plugin.json"
_NAME = re.compile(r"(?!\.*\Z)[a-z0-9.-]{1,64}")
_CLAUDE_NAME = re.compile(r"(?!\.)[a-z0-9._-]{1,64}")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9._]+")
_DOMAIN = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+")
_TEXTS = ("version", "description", "homepage", "repository", "license")
_AUTHOR_FIELDS = frozenset(("name", "email", "url"))
_FIELDS = frozenset(("$schema", "name", "author", "keywords", "extensions", *_TEXTS))
_PARTS = ("commands", "agents", "skills", "hooks", "mcpServers")
_MARKET_FIELDS = frozenset(("source", "category", "tags", "strict", "$schema"))
_NOT_USED = ("lspServers", "outputStyles", "themes", "monitors", "channels")
"""Parts that other programs have, and that mean nothing here."""


@dataclass(frozen=True, slots=True)
class PluginManifest:
    """What a plugin says about itself."""

    name: str
    kind: Literal["standard", "claude"]
    fields: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    """Fields that have no effect."""

    @property
    def version(self) -> str:
        """Its version; empty if it names none."""
        version = self.fields.get("version")
        return version if isinstance(version, str) else ""

    @property
    def description(self) -> str:
        """What it is for; empty if it does not say."""
        text = self.fields.get("description")
        return text if isinstance(text, str) else ""


def read_manifest(root: Path) -> PluginManifest:
    """Return the manifest of the plugin in a folder. Raises ConfigurationError."""
    standard, claude = root / STANDARD_FILE, root / CLAUDE_FILE
    if standard.is_file():
        fields = read_object(standard)
        if "$schema" in fields and (fields["$schema"] == SCHEMA or not claude.is_file()):
            return parse_standard_manifest(fields, str(standard))
        if not claude.is_file():
            return parse_claude_manifest(fields, str(standard))
    if claude.is_file():
        return parse_claude_manifest(read_object(claude), str(claude))
    raise ConfigurationError(
        f"{root} is not a plugin: it has no {STANDARD_FILE} and no {CLAUDE_FILE}"
    )


def read_object(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file. Raises ConfigurationError."""
    try:
        return msgspec.json.decode(file.read_bytes().removeprefix(b"\xef\xbb\xbf"), type=dict)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ConfigurationError(f"{file} is not a JSON object: {error}") from error


def parse_standard_manifest(fields: Mapping[str, Any], source: str) -> PluginManifest:
    """Return a manifest of Agent Plugins 1.0.0. Raises ConfigurationError for a violation."""
    for wrong in _list_violations(fields):
        raise ConfigurationError(f"{source}: {wrong}")
    unknown = [f"unknown field {name}" for name in fields if name not in _FIELDS]
    author = fields.get("author", {})
    unknown += [f"unknown field author.{name}" for name in author if name not in _AUTHOR_FIELDS]
    return PluginManifest(fields["name"], "standard", fields, tuple(unknown))


def parse_claude_manifest(fields: Mapping[str, Any], source: str) -> PluginManifest:
    """Return a manifest of Claude Code. Raises ConfigurationError without a usable name."""
    text = fields.get("name")
    text = name = "-".join(text.lower().split()) if isinstance(text, str) else ""
    if not _CLAUDE_NAME.fullmatch(text):
        name = _NOT_IN_NAMES.sub("-", text).strip("-._")  # npm's @owner/name, for example
    if not _CLAUDE_NAME.fullmatch(name):
        raise ConfigurationError(f"{source}: name is missing, or is not a name for a plugin")
    warnings = [f"the name {text} is read as {name}"] if name != text else []
    warnings += [f"{key} has no effect here" for key in _NOT_USED if fields.get(key)]
    return PluginManifest(name, "claude", fields, tuple(warnings))


def merge_entry(own: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a plugin's own manifest with those of its marketplace's entry.

    Its own come first, and the parts that each names are all there. An entry with `strict: false`
    says all of what it names: its fields come first, and `strict` stays.
    """
    fields = {key: value for key, value in entry.items() if key not in _MARKET_FIELDS}
    if entry.get("strict") is False:
        return {**own, **fields, "strict": False}
    merged = {**fields, **own}
    for key in _PARTS:
        rows = [row for table in (own, fields) for row in _to_rows(table.get(key))]
        if rows:
            merged[key] = rows
    return merged


def _to_rows(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def encode_manifest(name: str, description: str) -> bytes:
    """Return a plugin.json of the standard. Raises ConfigurationError for a wrong name."""
    fields = {"$schema": SCHEMA, "name": name, "version": "0.1.0", "description": description}
    parse_standard_manifest(fields, STANDARD_FILE)
    return msgspec.json.format(msgspec.json.encode(fields)) + b"\n"


def _list_violations(fields: Mapping[str, Any]) -> Iterator[str]:
    if fields.get("$schema") != SCHEMA:
        yield f"$schema is not {SCHEMA}"
    name, author = fields.get("name"), fields.get("author", {})
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield "name is not of 1 to 64 small letters, digits, dots and hyphens"
    for key in _TEXTS:
        if not isinstance(fields.get(key, ""), str):
            yield f"{key} is not a text"
    if not isinstance(author, dict):
        yield "author is not an object"
    elif not all(isinstance(author.get(key, ""), str) for key in _AUTHOR_FIELDS):
        yield "a field of author is not a text"
    keywords = fields.get("keywords", [])
    if not isinstance(keywords, list) or not all(isinstance(keyword, str) for keyword in keywords):
        yield "keywords is not a list of texts"
    extensions = fields.get("extensions", {})
    if not isinstance(extensions, dict) or not all(
        _DOMAIN.fullmatch(key) and isinstance(extension, dict)
        for key, extension in extensions.items()
    ):
        yield "extensions is not an object of objects by reversed domain"
