"""Profiles: which tools a model family is offered, under the names and arguments that it knows.

    | profile   | tools                                               | shell | reads too |
    | --------- | --------------------------------------------------- | ----- | --------- |
    | default   | read write edit bash grep find ls                   | –     | –         |
    | anthropic | read_file write_file edit_file shell grep glob      | 120 s | CLAUDE.md |
    | openai    | read_file apply_patch write_file shell grep glob    | 10 s  | .codex/…  |
    | gemini    | as anthropic, and read_many_files, list_dir         | 10 s  | GEMINI.md |

All are offered `notebook_edit`, `web_fetch` and, where something is set that searches, `web_search`
beside these, which anthropic knows as NotebookEdit, WebFetch and WebSearch.

Families are also offered the tools that start sub-agents: openai spawn_agent, send_input, wait and
close_agent, the others Task and TaskOutput; default none, for small models pay for each tool.

`grep` is one name for two tools: the default one, and `grep_search` as model families know it. So a
profile is not only a choice among names: `apply_profile` returns a registry of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..tool_settings import DEFAULT_SETTINGS, ToolSettings
from .agents import AGENT_TOOLS, SPAWNING_TOOLS, TASK_TOOLS
from .bash import build_shell_tool
from .families.search_tools import build_searching_tools
from .grep import build_grep_tool
from .limits import choose_family_limits
from .web_search import SEARCH_TOOLS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..llm.models import ProfileName
    from .registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class ProviderProfile:
    """What models of one family are used to."""

    id: ProfileName
    tools: tuple[str, ...]
    """The tools that they are offered, in this order."""
    agent_tools: tuple[str, ...] = TASK_TOOLS
    """The tools that start sub-agents, after the others."""
    instruction_file: str | None = None
    """A file of instructions that this family reads beside AGENTS.md."""
    shell_timeout_ms: int = 10_000
    """Timeout of a command of `shell` that sets none."""
    supports_parallel_tool_calls: bool = True
    supports_streaming: bool = True


PROFILES: Mapping[ProfileName, ProviderProfile] = {
    profile.id: profile
    for profile in (
        ProviderProfile("default", ("read", "write", "edit", "bash", "grep", "find", "ls"), ()),
        ProviderProfile(
            "anthropic",
            ("read_file", "write_file", "edit_file", "shell", "grep", "glob"),
            instruction_file="CLAUDE.md",
            shell_timeout_ms=120_000,
        ),
        ProviderProfile(
            "openai",
            ("read_file", "apply_patch", "write_file", "shell", "grep", "glob"),
            SPAWNING_TOOLS,
            ".codex/instructions.md",
        ),
        ProviderProfile(
            "gemini",
            (
                "read_file", "read_many_files", "write_file", "edit_file",
                "shell", "grep", "glob", "list_dir",
            ),
            instruction_file="GEMINI.md",
        ),
    )
}  # fmt: skip
"""Every profile by its name."""
FAMILY_NAMES: Mapping[ProfileName, Mapping[str, str]] = {
    "anthropic": {
        "notebook_edit": "NotebookEdit",
        "web_fetch": "WebFetch",
        "web_search": "WebSearch",
    }
}
"""What a family calls a tool that all are offered, where that is another name."""
_PLAIN_NAMES = {name: plain for names in FAMILY_NAMES.values() for plain, name in names.items()}
_ONLY_OFFERED = frozenset({"apply_patch"})
_PROFILE_TOOLS = AGENT_TOOLS.union(*(profile.tools for profile in PROFILES.values()))
_NEVER_MISSING = frozenset({"Skill"})
"""Runs where it is not offered: a user names a skill, and the model knows how to load one."""


def apply_profile(
    tools: ToolRegistry,
    profile: ProfileName,
    tuning: ToolSettings = DEFAULT_SETTINGS,
    *,
    searches_itself: bool = False,
) -> ToolRegistry:
    """Return a registry with the same tools, of which those of a profile are active.

    A model that `searches_itself` is offered no tool of ours for that.
    It is the same registry if somebody has chosen its active tools.
    Other active tools stay active, and so do those that a host has registered; one of these keeps
    its name against a built-in tool. The tools of other profiles do the same work, so a call of one
    runs: a model finds their names in what another model did earlier.
    """
    if tools.profile is None:
        return tools
    chosen = PROFILES[profile]
    equipped = tools.copy()
    # the tools that are not the same in every profile
    limits = choose_family_limits("shell", tuning)
    equipped.replace_built_in(build_shell_tool(chosen.shell_timeout_ms, limits, tuning))
    if chosen.id == "default":
        equipped.replace_built_in(build_grep_tool(tuning))
    else:
        search_tool = next(
            tool for tool in build_searching_tools(tuning) if tool.name == "grep_search"
        )
        equipped.replace_built_in(replace(search_tool, name="grep"))
    others = [
        _name_for_family(name, equipped, profile)
        for name in tools.active
        if name not in _PROFILE_TOOLS or name in tools.registered
    ]
    if not tools.registered.intersection(SEARCH_TOOLS):
        others = [name for name in others if name not in SEARCH_TOOLS]
        if not searches_itself and "web_search" in tools.names:
            others.append(_name_for_family("web_search", equipped, profile))
    offered = [name for name in (*chosen.tools, *chosen.agent_tools) if name in equipped.names]
    equipped.set_active((*offered, *others))
    equipped.profile = profile
    equipped.tolerated = (_PROFILE_TOOLS - _ONLY_OFFERED) | _NEVER_MISSING | {*tools.active}
    return equipped


def _name_for_family(name: str, tools: ToolRegistry, profile: ProfileName) -> str:
    """Return the name that a family knows an offered tool by; a host's own tool keeps its name."""
    plain = _PLAIN_NAMES.get(name, name)
    own = FAMILY_NAMES.get(profile, {}).get(plain, plain)
    is_ours = {name, own}.isdisjoint(tools.registered) and own in tools.names
    return own if is_ours else name
