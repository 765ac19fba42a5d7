"""The built-in tools of every session, and the tool variants that can be chosen.

A variant has the name and arguments that a model family is used to; it is thin: the tool of the
default profile does the work.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import ConfigurationError
from ..tool_settings import DEFAULT_SETTINGS, ToolSettings
from . import apply_patch, edit, session_tools
from . import edit as write
from .agents import AGENT_TOOLS, build_agent_tools
from .ask import ASK_TOOLS
from .background import BACKGROUND_TOOLS
from .bash import MAX_BASH_BYTES, MAX_SHELL_CHARS, build_bash_tool, build_shell_tool
from .families.file_tools import build_changing_tools, build_reading_tools
from .families.search_tools import build_searching_tools
from .find import build_find_tool, build_ls_tool
from .grep import build_grep_tool
from .limits import FAMILY_LIMIT_NAMES, FAMILY_LIMITS, choose_family_limits
from .notebook_edit import build_notebook_edit_tool
from .read import build_read_tool
from .registry import ToolRegistry, TruncationMiddleware
from .skill import SKILL_TOOL
from .todo import TODO_TOOL
from .truncation_service import TruncationService
from .web_fetch import build_web_fetch_tool
from .web_search import SEARCH_TOOLS, build_web_search_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .tool import AgentTool


def build_family_tools(tuning: ToolSettings = DEFAULT_SETTINGS) -> tuple[AgentTool, ...]:
    """Return all tool variants with their settings, by name."""
    return (
        *build_reading_tools(tuning),
        *build_changing_tools(tuning),
        *build_searching_tools(tuning),
        build_shell_tool(limits=choose_family_limits("shell", tuning), tuning=tuning),
    )


FAMILY_TOOLS = build_family_tools()
"""All tool variants with default settings."""


_OF_SESSIONS = (
    *session_tools.RECALL_TOOLS,
    session_tools.COMPACT_TOOL,
    *BACKGROUND_TOOLS,
    TODO_TOOL,
    *ASK_TOOLS,
)
SESSION_TOOLS = tuple(tool.name for tool in _OF_SESSIONS)
"""The tools that need a session: its tape, its commands in the background, its person."""
OFFERED_TOOLS = ("notebook_edit", "web_fetch", "web_search")
"""The tools that are offered beside those of each profile, if the settings do not forbid it."""
_SELF_CUTTING_TOOLS = frozenset({"read", "bash", "grep", "find", "ls", "web_fetch"})
"""Tools that cut their own text, where it is set to be cut."""
_MAX_SHOWN = {"bash": MAX_BASH_BYTES, "shell": MAX_SHELL_CHARS}
"""What is kept in memory of a command's output bounds what can be shown of it."""


def build_registry(
    tuning: ToolSettings = DEFAULT_SETTINGS, environ: Mapping[str, str] | None = None
) -> ToolRegistry:
    """Return a registry of the tools that come with the agent; those of profiles wait unchosen.

    `environ` is for the service that searches the web.
    Raises ConfigurationError for a limit that no tool can keep.
    """
    _check_limits(tuning)
    tools = (
        build_read_tool(tuning),
        write.WRITE_TOOL,
        edit.EDIT_TOOL,
        build_bash_tool(tuning),
        build_grep_tool(tuning),
        build_find_tool(tuning),
        build_ls_tool(tuning),
    )
    patch = replace(
        apply_patch.APPLY_PATCH_TOOL, limits=choose_family_limits("apply_patch", tuning)
    )
    registry = ToolRegistry(
        (
            *tools,
            patch,
            *build_family_tools(tuning),
            *_OF_SESSIONS,
            *build_agent_tools(tuning=tuning),
            SKILL_TOOL,
            *map(build_notebook_edit_tool, ("notebook_edit", "NotebookEdit")),
            *_build_web_tools(tuning),
            *build_web_search_tools(tuning.web.search, environ or {}),
        )
    )
    registry.truncation = TruncationMiddleware(TruncationService(tuning.truncation))
    registry.set_active(tool.name for tool in tools)
    registry.profile = "default"
    return registry


def _build_web_tools(tuning: ToolSettings) -> tuple[AgentTool, ...]:
    """Return the tools that reach the web, as far as the settings allow them."""
    if not tuning.web.fetch:
        return ()
    return (build_web_fetch_tool(tuning), build_web_fetch_tool(tuning, "WebFetch"))


def change_tools(tools: ToolRegistry, tuning: ToolSettings) -> ToolRegistry:
    """Return a registry with the same tools, of which the built-in ones have these settings.

    The active tools stay active. Raises ConfigurationError as `build_registry` does.
    """
    fresh, retuned = build_registry(tuning), tools.copy()
    for name in fresh.names:
        tool, before = fresh.get(name), tools.get(name)
        if tool is not None and before is not None and name in AGENT_TOOLS:
            tool = replace(tool, description=before.description)  # names the types of this folder
        if tool is not None and name not in SEARCH_TOOLS:  # those know the environment
            retuned.replace_built_in(tool)
    retuned.profile, retuned.tolerated = tools.profile, tools.tolerated
    return retuned


def _check_limits(tuning: ToolSettings) -> None:
    known = {*FAMILY_LIMITS, *FAMILY_LIMIT_NAMES, *_SELF_CUTTING_TOOLS}
    for setting, limits in (
        ("tool_output_limits", tuning.output_limits),
        ("tool_line_limits", tuning.line_limits),
    ):
        for name in limits:
            if name not in known:
                there = ", ".join(sorted(known))
                raise ConfigurationError(
                    f"{setting}: {name} has no limit of its own. There are: {there}."
                    f" For any other tool set truncation.tools.{name}."
                )
    for name, limit in _MAX_SHOWN.items():
        if tuning.output_limits.get(name, 0) > limit:
            raise ConfigurationError(f"tool_output_limits: {name} shows {limit} at most.")
