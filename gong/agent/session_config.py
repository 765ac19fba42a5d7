"""The limits and timeouts of a session, which a host can change at any time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

from ..errors import ConfigurationError
from ..llm.models import EffortChoice
from .repetition import WINDOW


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """Limits of a session; 0 is no limit. A change holds from the next model call.

    Raises ConfigurationError for a negative number, and an effort that is none.
    """

    max_turns: int = 0
    """Maximum model calls of the session."""
    max_tool_rounds_per_input: int = 200
    """Maximum rounds of tool calls for one prompt or follow-up."""
    max_cost: float = 0.0
    """Maximum cost of the session in USD."""
    max_seconds: float = 0.0
    """Maximum time for one prompt; what runs then is stopped."""
    max_output_tokens: int = 0
    """Maximum tokens of one answer; without it, or above it, the model's own limit holds."""
    effort: EffortChoice | None = None
    """How hard models think; None is as each model's settings say."""
    default_command_timeout_ms: int | None = None
    """Timeout of a command whose call sets none; None is the tool's own (mission.md C1)."""
    max_command_timeout_ms: int = 600_000
    """Maximum timeout of a command, whatever its call asks for."""
    tool_output_limits: dict[str, int] = field(default_factory=dict)
    """Maximum characters of a result, by tool; bytes for read, bash, grep, find and ls."""
    tool_line_limits: dict[str, int] = field(default_factory=dict)
    """Maximum lines of a result, by tool."""
    read_before_write: bool = False
    """Whether a file has to be read, and again after it changed, before tools change it."""
    max_subagent_depth: int = 1
    """How deep sub-agents may start others; 0 lets nobody start one."""
    max_subagent_turns: int = 50
    """Maximum model calls of a sub-agent whose order and type set none."""
    max_subagents: int = 4
    """Maximum sub-agents that run at once."""
    enable_loop_detection: bool = True
    """Whether a model that repeats its calls is told so, and then stopped."""
    loop_detection_window: int = WINDOW
    """Calls that a repeating pattern is looked for in."""

    def __post_init__(self) -> None:
        """Check the values."""
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, int | float) and value < 0:
                raise ConfigurationError(f"{name} is {value}: give 0 for no limit, or more")
        for name in ("tool_output_limits", "tool_line_limits"):
            for tool, limit in getattr(self, name).items():
                if limit < 1:
                    raise ConfigurationError(f"{name}: {tool} is {limit}: give 1 or more")
        if self.effort not in {None, *(efforts := get_args(EffortChoice))}:
            raise ConfigurationError(f"effort is {self.effort}: give one of {', '.join(efforts)}")
