"""The built-in tools of every session, and the tool variants that can be chosen."""

from __future__ import annotations

from dataclasses import replace

from ..errors import ConfigurationError
from . import apply_patch, compacting, edit, recall, write
from .bash import MOST_BYTES, bash
from .faces import faces
from .faces.limits import IN_TABLE, limits_for
from .find import find
from .grep import grep
from .ls import ls
from .read import read
from .registry import Registry
from .settings import Tuning
from .shell import MOST_CHARS
from .truncation.middleware import TruncationMiddleware
from .truncation.pipeline import LIMITS
from .truncation.service import TruncationService

PAST = tuple(tool.name for tool in (*recall.TOOLS, compacting.TOOL))
"""The tools that search the session's tape; only with a tape."""
_BY_THEMSELVES = frozenset({"read", "bash", "grep", "find", "ls"})
"""Tools that cut their own text, where it is set to be cut."""
_MOST = {"bash": MOST_BYTES, "shell": MOST_CHARS}
"""What is kept in memory of a command's output bounds what can be shown of it."""


def builtin(tuning: Tuning = Tuning()) -> Registry:  # noqa: B008 (a frozen value)
    """Return a registry of the tools that come with the agent; those of profiles wait unchosen.

    Raises ConfigurationError for a limit that no tool can keep.
    """
    _check(tuning)
    tools = (
        read(tuning),
        write.TOOL,
        edit.TOOL,
        bash(tuning),
        grep(tuning),
        find(tuning),
        ls(tuning),
    )
    patch = replace(apply_patch.TOOL, limits=limits_for("apply_patch", tuning))
    registry = Registry((*tools, patch, *faces(tuning), *recall.TOOLS, compacting.TOOL))
    registry.truncation = TruncationMiddleware(TruncationService(tuning.truncation))
    registry.set_active(tool.name for tool in tools)
    return registry


def _check(tuning: Tuning) -> None:
    known = {*LIMITS, *IN_TABLE, *_BY_THEMSELVES}
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
    for name, most in _MOST.items():
        if tuning.output_limits.get(name, 0) > most:
            raise ConfigurationError(f"tool_output_limits: {name} shows {most} at most.")
