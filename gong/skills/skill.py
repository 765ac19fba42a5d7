"""What a skill is, and how one is read from SKILL.md or from a command file.

The fields are those of the standard (agentskills.io), of Claude Code's skills and commands, and
`aliases` and `arguments` with types. Nothing is refused here: a field of a wrong shape counts as
left out, and `check` says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..front_matter import parse_front_matter, read_flag

if TYPE_CHECKING:
    from collections.abc import Mapping

SkillTrust = Literal["own", "trusted", "refused", "new"]
"""Own are those of the user, of plugins and of gong; the others are as `gong.trust` has them."""
FILE_NAME = "SKILL.md"
_TOOL = re.compile(r"[^\s,()]+(?:\([^)]*\))?")


@dataclass(frozen=True, slots=True)
class SkillArgument:
    """One named argument of a skill."""

    name: str
    type: str = "string"
    """string, integer, number or boolean."""
    required: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill, or one command of `.claude/commands`, which is a skill in one file."""

    name: str
    """As it is called: `commit`; of a command in folders `git:fix`."""
    description: str
    path: str
    """Its file, absolute."""
    source: str
    """project, user, shipped, or plugin:NAME."""
    body: str
    """Its text, as it is in the file."""
    metadata: Mapping[str, Any]
    """All fields as they were read."""
    trust: SkillTrust = "own"
    is_command: bool = False
    plugin: str = ""
    """The root folder of its plugin; empty for none."""
    warning: str | None = None
    """Why its metadata cannot be read."""
    aliases: tuple[str, ...] = ()
    arguments: tuple[SkillArgument, ...] = ()
    argument_hint: str = ""
    when_to_use: str = ""
    allowed_tools: tuple[str, ...] = ()
    """Rules of permission that hold while it is used."""
    disallowed_tools: tuple[str, ...] = ()
    """Rules of refusal that hold while it is used."""
    model: str | None = None
    effort: str | None = None
    forks: bool = False
    """Whether it wants to run in a sub-agent."""
    agent: str = ""
    """The type of that sub-agent."""
    paths: tuple[str, ...] = ()
    """Patterns of files: without one of them in the folder the skill is not offered."""
    for_model: bool = True
    for_user: bool = True

    @property
    def is_active(self) -> bool:
        """Whether it may be used."""
        return self.trust in {"own", "trusted"}

    @property
    def folder(self) -> str:
        """The folder that it is in."""
        return str(Path(self.path).parent)

    @property
    def qualified_name(self) -> str:
        """Its name with that of its plugin: `release-tools:notes`; else its name."""
        kind, _, plugin = self.source.partition(":")
        return f"{plugin}:{self.name}" if kind == "plugin" else self.name

    @property
    def hint(self) -> str:
        """Its arguments as a person reads them; empty for none."""
        if self.argument_hint:
            return self.argument_hint
        return " ".join(
            f"<{argument.name}>" if argument.required else f"[{argument.name}]"
            for argument in self.arguments
        )

    @property
    def summary(self) -> str:
        """What it does and when to use it, in one line."""
        return " ".join(f"{self.description} {self.when_to_use}".split())


@dataclass(slots=True)
class SkillSet:
    """The skills for one folder."""

    skills: list[Skill] = field(default_factory=list)
    """One of each name, the nearest first."""
    shadowed: list[Skill] = field(default_factory=list)
    """Those that a nearer one of the same name replaces."""
    warnings: list[str] = field(default_factory=list)

    def find(self, name: str) -> Skill | None:
        """Return the skill of a name, an alias, or a name with `skill:` or a plugin before it."""
        name = name.lstrip("/").removeprefix("skill:")
        for skill in (*self.skills, *self.shadowed):
            if name == skill.qualified_name:
                return skill
        return next(
            (skill for skill in self.skills if name == skill.name or name in skill.aliases), None
        )

    def list_active(self) -> list[Skill]:
        """Return those that may be used."""
        return [skill for skill in self.skills if skill.is_active]


def read_skill(
    file: Path,
    name: str,
    source: str,
    trust: SkillTrust = "own",
    *,
    is_command: bool = False,
    plugin: str = "",
) -> Skill:
    """Return the skill in a file; `name` is used where the file gives none. Raises OSError."""
    return parse_skill(
        file.read_bytes().decode("utf-8", "replace"),
        str(file),
        name,
        source,
        trust,
        is_command=is_command,
        plugin=plugin,
    )


def parse_skill(
    text: str,
    path: str,
    name: str,
    source: str,
    trust: SkillTrust = "own",
    *,
    is_command: bool = False,
    plugin: str = "",
) -> Skill:
    """Return the skill that a text is."""
    parsed = parse_front_matter(text)
    data = parsed.fields
    own_name = _read_text(data, "name")
    # for a command that describes itself nowhere else
    first = next((line for line in parsed.body.split("\n") if line.strip()), "")
    return Skill(
        name=own_name if own_name and not is_command and NAME.fullmatch(own_name) else name,
        description=_read_text(data, "description") or first.lstrip("# ").strip()[:200],
        path=path,
        source=source,
        body=parsed.body,
        metadata=data,
        trust=trust,
        is_command=is_command,
        plugin=plugin,
        warning=parsed.warning,
        aliases=tuple(alias.lstrip("/") for alias in _read_list(data, "aliases")),
        arguments=_read_arguments(data.get("arguments")),
        argument_hint=_read_hint(data),
        when_to_use=_read_text(data, "when_to_use") or _read_text(data, "when-to-use"),
        allowed_tools=split_tools(data.get("allowed-tools")),
        disallowed_tools=split_tools(data.get("disallowed-tools")),
        model=_read_choice(data, "model"),
        effort=_read_choice(data, "effort"),
        forks=_read_text(data, "context") == "fork",
        agent=_read_text(data, "agent"),
        paths=tuple(_read_list(data, "paths")),
        for_model=not read_flag(data.get("disable-model-invocation")),
        for_user=read_flag(data.get("user-invocable")) is not False,
    )


NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
"""What the standard allows as a name; 64 characters at most."""


def split_tools(value: object) -> tuple[str, ...]:
    """Return the tools of a field, a list or one text: `Bash(git add:*) Read`, or with commas."""
    texts = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return tuple(tool for text in texts if isinstance(text, str) for tool in _TOOL.findall(text))


def _read_text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return "" if value is None or isinstance(value, dict | list) else str(value).strip()


def _read_hint(data: Mapping[str, Any]) -> str:
    """Return the argument hint; `[file] [--all]` without quotes is a list in YAML."""
    # skills with nothing but standard fields keep others in `metadata`
    extra, name = data.get("metadata"), "argument-hint"
    value = data.get(name) or (extra.get(name) if isinstance(extra, dict) else None)
    if isinstance(value, list):
        return " ".join(f"[{word}]" for word in value)
    return "" if value is None or isinstance(value, dict) else str(value).strip()


def _read_choice(data: Mapping[str, Any], key: str) -> str | None:
    value = _read_text(data, key)
    return None if value in {"", "inherit", "default"} else value


def _read_list(data: Mapping[str, Any], key: str) -> list[str]:
    """Return the texts of a field: a list, or one text with commas."""
    value = data.get(key)
    if isinstance(value, str):
        value = value.split(",")
    return [str(item).strip() for item in value if item] if isinstance(value, list) else []


def _read_arguments(value: object) -> tuple[SkillArgument, ...]:
    """Return named arguments: tables, or names alone in a list or a text."""
    rows = value.split() if isinstance(value, str) else value if isinstance(value, list) else []
    arguments = []
    for row in rows:
        if isinstance(row, dict) and isinstance(row.get("name"), str):
            arguments.append(
                SkillArgument(
                    row["name"],
                    str(row.get("type") or "string"),
                    bool(read_flag(row.get("required"))),
                    str(row.get("description") or ""),
                )
            )
        elif isinstance(row, str):
            arguments.append(SkillArgument(row))
    return tuple(arguments)
