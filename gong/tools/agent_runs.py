"""What tools and sub-agents tell each other: an order, a report, and who carries orders out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from tape.model.entries import Usage

DEFAULT_TYPE = "general-purpose"

RunStatus = Literal["running", "completed", "failed", "cancelled", "interrupted"]
"""How a run stands; `interrupted` is one whose program ended."""


class AgentOrder(NamedTuple):
    """What a sub-agent is to do, and with what."""

    prompt: str
    type: str = DEFAULT_TYPE
    description: str = ""
    """The task in a few words, for people; empty is the beginning of the prompt."""
    model: str = ""
    """provider/model or an alias; empty is that of its type, else of its parent."""
    folder: str = ""
    """Where it works, relative to its parent's folder; empty is there."""
    max_turns: int | None = None
    """Maximum model calls; 0 is no limit, None that of its type, else of the settings."""
    tools: tuple[str, ...] | None = None
    """Only these of its tools; None is all."""
    worktree: bool | None = None
    """Whether it works in a git worktree of its own; None as its type says."""
    own_tape: bool = False
    """Whether its history is a tape of its own, and not a branch of its parent's."""
    tape: str = ""
    """The id of a tape whose history it continues; only programs name one."""
    place: str = ""
    """An absolute folder that it works in, also outside of its parent's; only programs name one."""


class AgentReport(NamedTuple):
    """How a sub-agent stands, or ended."""

    agent: str
    type: str
    status: RunStatus
    output: str
    """Its answer; of one that runs what it does, of one that failed why."""
    turns_used: int
    usage: Usage
    created_at: str = ""
    completed_at: str = ""
    cost: float | None = None
    """USD of its newest run and of those it started; None if unknown."""

    @property
    def success(self) -> bool:
        """Whether its newest run came to its end."""
        return self.status == "completed"


class AgentRunner(Protocol):
    """The sub-agents of a session. Each method raises ConfigurationError for what cannot be."""

    async def start(self, order: AgentOrder) -> str:
        """Start a sub-agent in the background, and return its id at once."""
        ...

    async def run(self, order: AgentOrder) -> AgentReport:
        """Start a sub-agent and return its result; a cancellation ends it."""
        ...

    async def send(self, agent: str, message: str) -> AgentReport:
        """Give a sub-agent more to do: one that runs is steered, one that ended continues."""
        ...

    async def wait(self, agent: str, seconds: float | None = None) -> AgentReport:
        """Return the result of a sub-agent when it has one, or how it stands after so long."""
        ...

    async def finish(self, agent: str) -> AgentReport:
        """End a sub-agent, whatever it does."""
        ...
