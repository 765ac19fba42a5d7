"""Tools of other Python packages, which the setting `python_tools` names.

Each is an `AgentTool`, several of them, or a function without arguments that returns such: as
`module:object`, or as an entry point of the group `gong.tools`. Nothing is imported that the user
has not named.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..errors import ConfigurationError
from ..python_objects import load_object
from .tool import AgentTool

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUP = "gong.tools"
"""The group of entry points."""


def load_python_tools(names: Sequence[str]) -> list[AgentTool]:
    """Return the tools that these names refer to, in their order; raises ConfigurationError."""
    loaded: list[AgentTool] = []
    for name in names:
        try:
            value = load_object(name, GROUP)
            if callable(value) and not isinstance(value, AgentTool):
                value = value()
        except Exception as error:
            kind = type(error).__name__
            raise ConfigurationError(f"python_tools: {name}: {kind}: {error}") from error
        tools = [value] if isinstance(value, AgentTool) else value
        if not isinstance(tools, Iterable) or isinstance(tools, str):
            raise ConfigurationError(f"python_tools: {name} is no AgentTool, and not several")
        listed = [*tools]
        wrong = next((tool for tool in listed if not isinstance(tool, AgentTool)), None)
        if wrong is not None:
            raise ConfigurationError(f"python_tools: {name}: {wrong!r} is no AgentTool")
        loaded += listed
    return loaded
