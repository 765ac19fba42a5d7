"""The parts of a session that can be exchanged, and what others bring to it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tape.clock import read_clock

from ..config import CompactionSettings
from ..llm.retry import PATIENT_RETRY, RetryPolicy
from ..policy.decision import allow_all
from ..tool_settings import DEFAULT_SETTINGS
from .no_hooks import NO_HOOKS, NoHooks
from .session_config import SessionConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..checkpoints import CallRecorder
    from ..env.protocol import ExecutionEnvironment
    from ..policy.decision import Policy
    from ..skills.session_skills import SessionSkills
    from ..tool_settings import ToolSettings
    from ..tools.output_storage import OutputStorage
    from ..tools.registry import ToolRegistry
    from .hook_points import SessionHooks
    from .model import AgentModel
    from .recorder import Recorder


class EndedAgent(NamedTuple):
    """A sub-agent that has ended, in words for the model."""

    agent: str
    text: str


class SessionAgents(Protocol):
    """The sub-agents of a session, as it and its loop see them (`gong/subagents/`)."""

    @property
    def by_id(self) -> Mapping[str, object]:
        """All that were started here, oldest first."""
        ...

    def settle_lost(self) -> None:
        """Find the sub-agents whose program ended while they ran; the model is to be told."""
        ...

    def take_ended(self) -> Sequence[EndedAgent]:
        """Return those that have ended in the background and were not told of yet."""
        ...

    def record_open(self) -> None:
        """Record again which ones there are: a new phase begins, readers look no further back."""
        ...

    def cancel(self) -> None:
        """Stop all that run."""
        ...

    async def close(self) -> None:
        """Stop all that run, and let go of everything."""
        ...


class ToolSource(Protocol):
    """Whoever brings tools to a session that are not there from its start, as MCP servers do."""

    async def offer(self, tools: ToolRegistry, *, has_person: bool) -> Sequence[str]:
        """Bring the tools of a session up to date before a turn; return what to warn of.

        The first time it may wait, for less long where a person waits, too.
        """
        ...

    async def read_mentions(
        self, prompt: str
    ) -> tuple[Sequence[tuple[str, bytes, str]], Sequence[str]]:
        """Return what a prompt names of it, as texts, pictures and their types, and warnings."""
        ...

    async def close(self) -> None:
        """End what it has started; called once, with the session."""
        ...


@dataclass(frozen=True, slots=True)
class SessionSetup:
    """The parts of a session; the session's `use_…` methods change them at any time."""

    model: AgentModel
    tools: ToolRegistry
    env: ExecutionEnvironment
    open: Callable[[str], Recorder]
    """Opens the branch to write to; called once, with the first prompt."""
    policy: Policy = allow_all
    compaction: CompactionSettings = CompactionSettings(auto=False)
    """When and how older messages are compacted; by default never automatically."""
    summariser: AgentModel | None = None
    """The model that writes summaries; None is `model`."""
    choose_namer: Callable[[AgentModel, bool], AgentModel | None] = lambda *_: None
    """Given the session's model, and whether a person is there: the model that titles it; None uses
    the first words of the first prompt."""
    choose_page_reader: Callable[[AgentModel], AgentModel | None] = lambda _: None
    """Given the session's model: the small one that answers about pages of the web; None for none.
    """
    config: SessionConfig = SessionConfig()
    """Limits and timeouts."""
    tuning: ToolSettings = DEFAULT_SETTINGS
    """Settings of the built-in tools."""
    output_storage: OutputStorage | None = None
    """Where long output is kept; None is the session's tape."""
    find_model: Callable[[str], AgentModel] | None = None
    """Returns a model by its name, for `Session.use_model`."""
    closes_without_key: bool = False
    """Close the session when the provider refuses its key, instead of waiting for another."""
    hooks: SessionHooks | NoHooks = NO_HOOKS
    """The user's hooks."""
    load_skills: Callable[[], SessionSkills] | None = None
    """Returns the skills, always the same; None if there are none to use."""
    file_recorder: CallRecorder | None = None
    """Records what calls do to files; None records nothing of it."""
    open_agents: Callable[[Any], SessionAgents] | None = None
    """Given the session: what runs its sub-agents, an `AgentRunner` too; None for none at all."""
    agent: str = ""
    """The id of the sub-agent whose session it is; empty for any other."""
    sources: tuple[ToolSource, ...] = ()
    """Where further tools come from, in this order."""
    retry: RetryPolicy = RetryPolicy()
    patient_retry: RetryPolicy = PATIENT_RETRY
    """The same while a person is there."""
    clock: Callable[[], int] = read_clock
    """Returns microseconds since 1970."""
    token: Callable[[int], str] = secrets.token_hex
    """Returns random hex digits for a number of bytes."""
