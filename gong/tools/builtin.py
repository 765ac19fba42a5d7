"""The tools every session begins with."""

from __future__ import annotations

from . import apply_patch, bash, edit, ls, read, write
from .registry import Registry


def builtin() -> Registry:
    """Return a registry of the tools that come with the agent; those of profiles wait unchosen."""
    tools = (read.TOOL, write.TOOL, edit.TOOL, bash.TOOL, ls.TOOL)
    registry = Registry((*tools, apply_patch.TOOL))
    registry.set_active(tool.name for tool in tools)
    return registry
