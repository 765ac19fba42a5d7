"""Tool variants: the tools with the names and arguments that model families are used to.

Each variant is thin: the tool of the default profile does the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..settings import ToolSettings
from ..shell import build_shell_tool
from .changing import build_changing_tools
from .limits import choose_family_limits
from .listing import build_listing_tools
from .reading import build_reading_tools
from .searching import build_searching_tools

if TYPE_CHECKING:
    from ..tool import AgentTool


def build_family_tools(tuning: ToolSettings = ToolSettings()) -> tuple[AgentTool, ...]:  # noqa: B008 (a frozen value)
    """Return all tool variants with their settings, by name."""
    return (
        *build_reading_tools(tuning),
        *build_changing_tools(tuning),
        *build_searching_tools(tuning),
        *build_listing_tools(tuning),
        build_shell_tool(limits=choose_family_limits("shell", tuning), tuning=tuning),
    )


FAMILY_TOOLS = build_family_tools()
"""All tool variants with default settings."""
