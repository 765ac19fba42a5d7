"""The limits and timeouts of a session, which a host can change at any time."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_type_hints

from ..llm.models import EffortChoice  # noqa: TC001 (its values are checked)
from ..setting_values import MAX_TIMEOUT_MS, Amount, Count, PositiveCount, Timeout, check_value
from .repetition import WINDOW


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """Limits of a session; 0 is no limit. A change holds from the next model call.

    Raises ConfigurationError for a value of another type, or out of its range.
    """

    max_turns: Count = 0
    """Maximum model calls of the session."""
    max_tool_rounds_per_input: Count = 200
    """Maximum rounds of tool calls for one prompt or follow-up."""
    max_cost: Amount = 0.0
    """Maximum cost of the session in USD."""
    max_seconds: Amount = 0.0
    """Maximum time for one prompt; what runs then is stopped."""
    max_output_tokens: Count = 0
    """Maximum tokens of one answer; without it, or above it, the model's own limit holds."""
    effort: EffortChoice | None = None
    """How hard models think; None is as each model's settings say."""
    default_command_timeout_ms: Timeout | None = None
    """Timeout of a command whose call sets none; None is the tool's own (mission.md C1)."""
    max_command_timeout_ms: Timeout = MAX_TIMEOUT_MS
    """Maximum timeout of a command, whatever its call asks for."""
    tool_output_limits: dict[str, PositiveCount] = field(default_factory=dict)
    """Maximum characters of a result, by tool; bytes for read, bash, grep, find and ls."""
    tool_line_limits: dict[str, PositiveCount] = field(default_factory=dict)
    """Maximum lines of a result, by tool."""
    read_before_write: bool = False
    """Whether a file has to be read, and again after it changed, before tools change it."""
    max_subagent_depth: Count = 1
    """How deep sub-agents may start others; 0 lets nobody start one."""
    max_subagent_turns: Count = 50
    """Maximum model calls of a sub-agent whose order and type set none."""
    max_subagents: PositiveCount = 4
    """Maximum sub-agents that run at once."""
    enable_loop_detection: bool = True
    """Whether a model that repeats its calls is told so, and then stopped."""
    loop_detection_window: Count = WINDOW
    """Calls that a repeating pattern is looked for in."""

    def __post_init__(self) -> None:
        """Check the values."""
        for name, kind in _load_kinds().items():
            check_value(name, getattr(self, name), kind)


@cache
def _load_kinds() -> dict[str, Any]:
    return get_type_hints(SessionConfig, include_extras=True)
