"""gong: a coding agent that records its sessions on tapes.

The names of `__all__` are the public face for programs that hold sessions: docs/embedding.md. Each
is imported when it is used, because a start of `gong` needs few of them.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of --version
if TYPE_CHECKING:
    from typing import Any

    from .agent import events
    from .agent.model import AgentModel
    from .agent.rewind import build_file_patches, plan_redo, plan_rewind, plan_undo
    from .agent.session import Session, SessionState
    from .agent.session_config import SessionConfig
    from .agent.setup import SessionSetup
    from .checkpoints.rewind import RewindPlan, RewindReport
    from .config import Settings
    from .env.local import LocalEnvironment
    from .env.protocol import ExecutionEnvironment
    from .errors import GongError
    from .host import answer_prompt, open_session
    from .policy.decision import Verdict
    from .tools.tool import AgentTool, ToolContext, ToolOutcome

__version__ = "0.1.0"

_HOMES = {
    "AgentModel": "agent.model",
    "AgentTool": "tools.tool",
    "ExecutionEnvironment": "env.protocol",
    "GongError": "errors",
    "LocalEnvironment": "env.local",
    "RewindPlan": "checkpoints.rewind",
    "RewindReport": "checkpoints.rewind",
    "Session": "agent.session",
    "SessionConfig": "agent.session_config",
    "SessionSetup": "agent.setup",
    "SessionState": "agent.session",
    "Settings": "config",
    "ToolContext": "tools.tool",
    "ToolOutcome": "tools.tool",
    "Verdict": "policy.decision",
    "answer_prompt": "host",
    "build_file_patches": "agent.rewind",
    "events": "agent",
    "open_session": "host",
    "plan_redo": "agent.rewind",
    "plan_rewind": "agent.rewind",
    "plan_undo": "agent.rewind",
}
"""Each public name, and the module it is in."""

__all__ = [
    "AgentModel",
    "AgentTool",
    "ExecutionEnvironment",
    "GongError",
    "LocalEnvironment",
    "RewindPlan",
    "RewindReport",
    "Session",
    "SessionConfig",
    "SessionSetup",
    "SessionState",
    "Settings",
    "ToolContext",
    "ToolOutcome",
    "Verdict",
    "answer_prompt",
    "build_file_patches",
    "events",
    "open_session",
    "plan_redo",
    "plan_rewind",
    "plan_undo",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is used first."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # the command line needs no public name

    home = _HOMES[name]
    if name == "events":
        return import_module(".agent.events", __name__)
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value
