"""What is wrong with a skill: the rules of the standard, and fields that nobody reads.

A finding is an error where the standard forbids it, and a warning where the skill works and part
of it has no effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..errors import ConfigurationError
from ..policy.rules import parse_rule
from .skill import NAME, split_tools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from .skill import Skill

STANDARD_FIELDS = frozenset(
    ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
)
CLAUDE_FIELDS = frozenset((
    "when_to_use", "when-to-use", "argument-hint", "arguments", "disable-model-invocation",
    "user-invocable", "disallowed-tools", "model", "effort", "context", "agent", "hooks",
    "paths", "shell", "version",
))  # fmt: skip
OWN_FIELDS = frozenset(("aliases",))
_KNOWN = STANDARD_FIELDS | CLAUDE_FIELDS | OWN_FIELDS
_NO_EFFECT = {
    "hooks": "hooks of a skill are not run: put them into config.toml, or into a plugin",
    "shell": "commands always run in bash",
}
MAX_NAME_CHARS, MAX_STANDARD_DESCRIPTION_CHARS, _MAX_COMPATIBILITY_CHARS = 64, 1024, 500
_MAX_LINES = 500
_TYPES = {"string", "integer", "int", "number", "float", "boolean", "bool"}


class SkillFinding(NamedTuple):
    """One thing that is wrong."""

    level: Literal["error", "warning"]
    text: str


def check_skill(skill: Skill, folder: Path) -> list[SkillFinding]:
    """Return what is wrong with a skill whose file is in a folder; nothing if all is well."""
    findings = [*_check_standard(skill, folder), *_check_values(skill), *_check_fields(skill)]
    return sorted(findings, key=lambda finding: finding.level != "error")


def _check_standard(skill: Skill, folder: Path) -> Iterator[SkillFinding]:
    data = skill.metadata
    if skill.warning is not None:
        yield SkillFinding("error", skill.warning)
        return
    if skill.is_command:
        if "description" not in data:
            yield SkillFinding("warning", "it has no description: its first line is shown")
        return
    yield from (SkillFinding("error", text) for text in _check_names(data, folder.name))
    yield from (SkillFinding("error", text) for text in _check_extras(data))
    if isinstance(data.get("allowed-tools"), list):
        text = "allowed-tools is a list: the standard has one text with blanks"
        yield SkillFinding("warning", text)


def _check_names(data: Mapping[str, Any], folder: str) -> Iterator[str]:
    """Yield what is wrong with the two required fields."""
    name, description = data.get("name"), data.get("description")
    if not isinstance(name, str) or not name:
        yield "it has no name"
    elif not NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS:
        yield (
            f"the name {name!r} is not of {MAX_NAME_CHARS} small letters, digits and single hyphens"
        )
    elif name != folder:
        yield f"its name is {name}, its folder {folder}"
    if not isinstance(description, str) or not description.strip():
        yield "it has no description"
    elif len(description) > MAX_STANDARD_DESCRIPTION_CHARS:
        yield (
            f"the description has {len(description):,} characters,"
            f" {MAX_STANDARD_DESCRIPTION_CHARS:,} are allowed"
        )


def _check_extras(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the other fields of the standard."""
    compatibility, extra = data.get("compatibility"), data.get("metadata")
    is_short = isinstance(compatibility, str) and 0 < len(compatibility) <= _MAX_COMPATIBILITY_CHARS
    if compatibility is not None and not is_short:
        yield f"compatibility is not a text of up to {_MAX_COMPATIBILITY_CHARS} characters"
    pairs = extra.items() if isinstance(extra, dict) else [(None, None)]
    if extra is not None and not all(isinstance(text, str) for pair in pairs for text in pair):
        yield "metadata is not a mapping of texts to texts"


def _check_values(skill: Skill) -> Iterator[SkillFinding]:
    for field in ("allowed-tools", "disallowed-tools"):
        for text in split_tools(skill.metadata.get(field)):
            try:
                parse_rule(text)
            except ConfigurationError as error:
                yield SkillFinding("error", f"{field}: {error}")
    names = [argument.name for argument in skill.arguments]
    if len(set(names)) < len(names):
        yield SkillFinding("error", "two arguments have the same name")
    for argument in skill.arguments:
        if argument.type not in _TYPES:
            there = "string, integer, number, boolean"
            yield SkillFinding(
                "error", f"argument {argument.name}: no type is called {argument.type}: {there}"
            )
    if not skill.body.strip():
        yield SkillFinding("error", "it has no text")
    lines = skill.body.count("\n") + 1
    if lines > _MAX_LINES:
        yield SkillFinding(
            "warning",
            f"the text has {lines:,} lines: put what is seldom needed into files beside it",
        )


def _check_fields(skill: Skill) -> Iterator[SkillFinding]:
    for field in skill.metadata:
        if field in _NO_EFFECT:
            yield SkillFinding("warning", _NO_EFFECT[field])
        elif field not in _KNOWN:
            yield SkillFinding("warning", f"the field {field} is unknown and has no effect")
