"""Types of sub-agents: those built in, and Markdown files that describe more.

    place                                              source     takes effect
    -------------------------------------------------  ---------  --------------------
    data/ of this package                              built-in   always
    agents of installed plugins                        plugin     always
    ~/.claude/agents/**/*.md                           user       always
    ~/.config/gong/agents/*.md (beside config.toml)    user       always
    .claude/agents/**/*.md of the project              project    when it is trusted
    .gong/agents/*.md of the project                   project    when it is trusted

The later one of a name counts; one of a plugin is there as PLUGIN:NAME all the same. A field that
is unknown, or cannot be used, is left out with a warning; a file without a name or description is
left out, but in a plugin, where its file gives the name and its text the description.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from tape.text import to_single_line

from ..errors import ConfigurationError
from ..front_matter import parse_front_matter, read_flag, read_names
from ..llm.models import Effort
from ..policy.modes import PermissionMode, parse_mode
from ..private_files import locate_config_file
from ..trust import read_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Source = Literal["built-in", "plugin", "user", "project"]

_DATA = Path(__file__).parent / "data"
_MAX_BYTES = 1 << 20
_NOT_USED = frozenset({"mcpServers", "hooks", "memory", "autoCompactWindow", "observer"})
"""Fields of other programs that mean something, and nothing here."""


class AgentType(NamedTuple):
    """One type of sub-agent."""

    name: str
    description: str
    """When to use it, for the model that starts one."""
    prompt: str = ""
    """Its system prompt; empty is that of any session."""
    source: Source = "built-in"
    path: str = ""
    """Its file."""
    tools: tuple[str, ...] | None = None
    """Only these tools, by any name they have; None is all that its parent has."""
    disallowed: tuple[str, ...] = ()
    model: str = ""
    """A model's name or alias; empty is that of its parent."""
    mode: PermissionMode | None = None
    """A mode that allows less than that of its parent; None is that one."""
    max_turns: int | None = None
    """Maximum model calls; 0 is no limit, None that of the settings."""
    effort: Effort | None = None
    skills: tuple[str, ...] = ()
    """Skills whose text it is given at once."""
    background: bool = False
    """Whether it always runs in the background."""
    worktree: bool = False
    """Whether it works in a git worktree of its own."""
    initial_prompt: str = ""
    """What its first prompt begins with."""
    color: str = ""
    """Its colour on the screen."""
    reads_instructions: bool = True
    """Whether it is given AGENTS.md and its relatives."""
    plugin: str = ""
    """The name of its plugin."""

    @property
    def summary(self) -> str:
        """Its description on one line."""
        return to_single_line(self.description)


class AgentTypes(NamedTuple):
    """All types for one folder, and what is wrong with their files."""

    types: dict[str, AgentType]
    warnings: tuple[str, ...] = ()

    def find(self, name: str) -> AgentType:
        """Return the type of a name, whatever its case; raises ConfigurationError."""
        match = self.types.get(name)
        if match is None:
            lower = name.strip().lower()
            for own, kind in self.types.items():
                if lower in {own.lower(), f"{kind.plugin}:{own}".lower()}:
                    match = kind
        if match is None:
            there = ", ".join(self.types)
            raise ConfigurationError(f"there is no type of sub-agent {name!r}: there are {there}")
        return match

    def describe(self) -> str:
        """Return the names with their descriptions, for a model; those built in by name only."""
        own = [kind.name for kind in self.types.values() if kind.source == "built-in"]
        others = (kind for kind in self.types.values() if kind.source != "built-in")
        return ", ".join((*own, *(f"{kind.name} ({kind.summary})" for kind in others)))


@cache
def load_built_in_types() -> tuple[AgentType, ...]:
    """Return the types that come with the agent."""
    names = (
        "general-purpose", "explore", "plan", "code-review", "code-simplifier", "plugin-dev",
        "planner", "executor", "reviewer", "fixer", "evaluator", "test-writer",
    )  # fmt: skip
    kinds = []
    for name in names:
        path = _DATA / f"{name}.md"
        kind, _ = parse_agent_file(path.read_text("utf-8"), str(path), "built-in")
        assert kind is not None, path
        kinds.append(kind)
    return tuple(kinds)


def load_agent_types(folder: str, environ: Mapping[str, str]) -> AgentTypes:
    """Return the types of sub-agents for a folder."""
    types = {kind.name: kind for kind in load_built_in_types()}
    warnings: list[str] = []
    for source, plugin, file in _iter_agent_files(folder, environ):
        try:
            with file.open("rb") as opened:
                text = opened.read(_MAX_BYTES).decode("utf-8", "replace")
        except OSError as error:
            warnings.append(f"{file}: it cannot be read: {error.strerror or error}")
            continue
        kind, remarks = parse_agent_file(text, str(file), source, plugin)
        if not plugin:  # what is wrong with one of a plugin was told when it was installed
            warnings += [f"{file}: {remark}" for remark in remarks]
        if kind is not None:
            same = next((name for name in types if name.lower() == kind.name.lower()), kind.name)
            hidden = types.pop(same, None)
            if hidden is not None and hidden.plugin not in {"", kind.plugin}:
                name = f"{hidden.plugin}:{hidden.name}"
                types[name] = hidden._replace(name=name)
                if kind.plugin:
                    both = f"{kind.plugin}:{kind.name}, {name} is the other"
                    warnings.append(f"two plugins have an agent {kind.name}: it is {both}")
            types[kind.name] = kind
    return AgentTypes(types, tuple(warnings))


def _iter_agent_files(
    folder: str, environ: Mapping[str, str]
) -> Iterator[tuple[Source, str, Path]]:
    """Yield each file with its source and the name of its plugin."""
    places: list[tuple[Source, Path]] = []
    if locate_config_file(environ).with_name("plugins").is_dir():
        from ..plugins.installed import list_agent_files  # only with plugins

        for plugin, file in list_agent_files(environ):
            yield "plugin", plugin, file
    if home := environ.get("HOME"):
        places.append(("user", Path(home) / ".claude/agents"))
    places.append(("user", locate_config_file(environ).with_name("agents")))
    project = read_project(folder, environ)
    trusted = [part for part in project.parts if part.kind == "agents" and part.state == "trusted"]
    ranked = sorted(trusted, key=lambda part: part.path.startswith(".gong/"))
    places += [("project", project.root / part.path) for part in ranked]
    for source, place in places:
        for file in sorted(place.rglob("*.md")):
            if file.is_file():
                yield source, "", file


def parse_agent_file(
    text: str, path: str, source: Source, plugin: str = ""
) -> tuple[AgentType | None, tuple[str, ...]]:
    """Return the type that a file describes, and remarks on it; None if it describes none.

    `plugin` names the plugin of the file, which then may leave out name and description.
    """
    fields, body, warning = parse_front_matter(text)
    remarks = [] if warning is None else [warning]
    name, description = fields.pop("name", None), fields.pop("description", None)
    stem = Path(path).stem
    if plugin and body and stem.lower() != "readme":
        name = name or stem
        description = description or body.partition("\n")[0].lstrip("# ")
    if not isinstance(name, str) or not name.strip():
        return None, (*remarks, "it has no name, so it is not used")
    if not isinstance(description, str) or not description.strip():
        return None, (*remarks, "it has no description, so it is not used")
    kind = AgentType(name.strip(), description.strip(), body, source, path, plugin=plugin)
    for field, value in fields.items():
        try:
            read = _FIELDS.get(field)
            if read is not None:
                kind = kind._replace(**read(value))
            elif field in _NOT_USED:
                remarks.append(f"{field} has no effect here")
            else:
                remarks.append(f"unknown field {field}")
        except (ValueError, ConfigurationError) as error:
            remarks.append(f"{field} is left out: {error}")
    return kind, tuple(remarks)


def _read_names(value: object) -> tuple[str, ...]:
    names = read_names(value)
    if names is None:
        raise ValueError("give names, as a list or with commas")
    return names


def _read_tools(value: object) -> dict[str, Any]:
    names = _read_names(value)
    return {} if "*" in names else {"tools": names}


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("give a text")  # noqa: TRY004 (a wrong value of a field)
    return value.strip()


def _read_model(value: object) -> dict[str, Any]:
    name = _read_text(value)
    return {"model": "" if name == "inherit" else name}


def _read_mode(value: object) -> dict[str, Any]:
    """Return a mode that only reads; any other is that of the parent, which decides."""
    name = _read_text(value)
    if name in {"default", "auto"}:
        return {}
    mode = parse_mode(name)
    if mode not in {PermissionMode.PLAN, PermissionMode.LOCKED}:
        raise ValueError(f"{name} could allow more than the session does; its mode holds")
    return {"mode": mode}


def _read_turns(value: object) -> dict[str, Any]:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("give a number, 0 for no limit")
    return {"max_turns": value}


def _read_effort(value: object) -> dict[str, Any]:
    name = "xhigh" if value == "max" else value
    if name not in get_args(Effort):
        raise ValueError(f"give one of {', '.join(get_args(Effort))}")
    return {"effort": name}


def _read_bool(value: object) -> bool:
    if (flag := read_flag(value)) is None:
        raise ValueError("give true or false")
    return flag


def _read_isolation(value: object) -> dict[str, Any]:
    if value not in {"worktree", "none"}:
        raise ValueError("the only one is worktree")
    return {"worktree": value == "worktree"}


_FIELDS: Mapping[str, Callable[[object], dict[str, Any]]] = {
    "tools": _read_tools,
    "disallowedTools": lambda value: {"disallowed": _read_names(value)},
    "model": _read_model,
    "permissionMode": _read_mode,
    "maxTurns": _read_turns,
    "effort": _read_effort,
    "skills": lambda value: {"skills": _read_names(value)},
    "background": lambda value: {"background": _read_bool(value)},
    "isolation": _read_isolation,
    "initialPrompt": lambda value: {"initial_prompt": _read_text(value)},
    "color": lambda value: {"color": _read_text(value)},
    "omitClaudeMd": lambda value: {"reads_instructions": not _read_bool(value)},
}
"""Each field of a file → what it says."""
