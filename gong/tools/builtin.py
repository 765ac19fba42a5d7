"""The tools every session begins with, and those of model families that wait to be chosen."""

from __future__ import annotations

from . import apply_patch, bash, edit, find, grep, ls, read, write
from .faces import FACES
from .registry import Registry


def builtin() -> Registry:
    """Return a registry of the tools that come with the agent; those of profiles wait unchosen."""
    tools = (read.TOOL, write.TOOL, edit.TOOL, bash.TOOL, grep.TOOL, find.TOOL, ls.TOOL)
    registry = Registry((*tools, apply_patch.TOOL, *FACES))
    registry.set_active(tool.name for tool in tools)
    return registry
