"""The tools every session begins with."""

from __future__ import annotations

from . import bash, edit, ls, read, write
from .registry import Registry


def builtin() -> Registry:
    """Return a registry of the tools that come with the agent, all active."""
    return Registry((read.TOOL, write.TOOL, edit.TOOL, bash.TOOL, ls.TOOL))
