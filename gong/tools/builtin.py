"""The built-in tools of every session, and the tool variants that can be chosen."""

from __future__ import annotations

from dataclasses import replace

from ..errors import ConfigurationError
from . import apply_patch, compacting, edit, recall, write
from .bash import MOST_BASH_BYTES, build_bash_tool
from .faces import build_family_tools
from .faces.limits import FAMILY_LIMIT_NAMES, choose_family_limits
from .find import build_find_tool
from .grep import build_grep_tool
from .ls import build_ls_tool
from .read import build_read_tool
from .registry import ToolRegistry
from .settings import ToolSettings
from .shell import MOST_SHELL_CHARS
from .truncation.middleware import TruncationMiddleware
from .truncation.pipeline import FAMILY_LIMITS
from .truncation.service import TruncationService

PAST_TOOLS = tuple(tool.name for tool in (*recall.RECALL_TOOLS, compacting.COMPACT_TOOL))
"""The tools that search the session's tape; only with a tape."""
_SELF_CUTTING_TOOLS = frozenset({"read", "bash", "grep", "find", "ls"})
"""Tools that cut their own text, where it is set to be cut."""
_MOST_SHOWN = {"bash": MOST_BASH_BYTES, "shell": MOST_SHELL_CHARS}
"""What is kept in memory of a command's output bounds what can be shown of it."""


def build_registry(tuning: ToolSettings = ToolSettings()) -> ToolRegistry:  # noqa: B008 (a frozen value)
    """Return a registry of the tools that come with the agent; those of profiles wait unchosen.

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
        (*tools, patch, *build_family_tools(tuning), *recall.RECALL_TOOLS, compacting.COMPACT_TOOL)
    )
    registry.truncation = TruncationMiddleware(TruncationService(tuning.truncation))
    registry.set_active(tool.name for tool in tools)
    return registry


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
    for name, most in _MOST_SHOWN.items():
        if tuning.output_limits.get(name, 0) > most:
            raise ConfigurationError(f"tool_output_limits: {name} shows {most} at most.")
