"""The inputs of the loop: model, tools, recorder, queues; the session owns them.

The request of the next model call: view, repair, placeholders, request; pure.

The same path always gives the same request; the loop sends it, `gong context` shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tape.context.repair import ABORTED, repair
from tape.context.view import Target, View, view
from tape.model.entries import Error, Payload

from ..context.costs import Spend, compute_spend
from ..context.trim import elide_results
from ..llm.types import Request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Sequence

    from tape.context.view import Message
    from tape.model.entries import Anchor, BlobRef, Cost, Repair, Usage
    from tape.model.line import Entry
    from tape.store.refs import Head
    from tape.store.tape import Tape

    from ..config import CompactionSettings
    from ..env.protocol import ExecutionEnvironment
    from ..llm.types import StreamEvent, ToolSpec
    from ..policy.decision import Policy
    from ..tools.registry import ToolRegistry
    from . import events


class BranchRecord(Protocol):
    """The open branch, to which entries are written."""

    tape: Tape
    path: list[Entry]
    kept: tuple[Entry, ...]

    def head(self) -> Head:
        """Return the branch's current head."""
        ...

    def anchor(self, anchor: Anchor) -> Entry:
        """Start a phase with this anchor; the path becomes what the anchor keeps."""
        ...

    def append(self, payload: Payload) -> Entry:
        """Write one entry."""
        ...

    def barrier(self) -> None:
        """Return when everything appended is on disk."""
        ...

    def load(self, blob: BlobRef) -> bytes:
        """Return the bytes of a picture or file on the path; raises NotFound."""
        ...


class QueuedMessage(NamedTuple):
    """Queued input: `origin` is steering or follow_up."""

    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class AgentModel:
    """A model: how to call it, and the names under which its answers are recorded."""

    provider: str
    id: str
    api: str
    endpoint: str
    stream: Callable[[Request], AsyncGenerator[StreamEvent, None]]
    system: str | Callable[[Collection[str]], str]
    """The system prompt, or a function from tool names to it; the same in every turn."""
    max_turns: int = 0
    """Maximum model calls in one run; 0 is no limit."""
    cost: Callable[[Usage], Cost | None] = lambda _: None
    """Returns the cost of a call; None if unknown."""
    window: int | None = None
    """Size of the context window in tokens, None if unknown."""
    sees_images: bool = True

    def build_system(self, tools: Iterable[ToolSpec]) -> str:
        """Return the system prompt of a call with these tools."""
        if isinstance(self.system, str):
            return self.system
        return self.system([tool.name for tool in tools])

    @property
    def target(self) -> Target:
        """The model that messages are repaired for."""
        return Target(self.endpoint, self.api, self.id, self.sees_images)


@dataclass(slots=True)
class RunState:
    """What a session remembers about context usage and cost between calls."""

    in_row: int = 0
    """Compactions since the last answer."""
    warned: bool = False
    """Whether the context window is nearly full and a warning was given."""
    price_warned: bool = False
    """Whether a warning of unknown prices was given."""
    refused: bool = False
    """Whether the provider refused the history: provider-specific blocks are left out."""
    focus: str | None = None
    """The model asked for a compaction with this focus; None if it did not."""
    spend: Spend = Spend()  # noqa: RUF009 (frozen)
    """Usage and cost of all calls of this session."""

    remarks: set[str] = field(default_factory=set)
    """Providers' remarks on requests that were already shown."""

    def take_new_remarks(self, remarks: Sequence[str]) -> list[str]:
        """Return the remarks not yet shown in this session, and mark them as shown."""
        new = [one for one in dict.fromkeys(remarks) if one not in self.remarks]
        self.remarks.update(new)
        return new

    def request_compaction(self, focus: str) -> None:
        """Request a compaction before the next model call."""
        self.focus = focus

    def count_usage(self, usage: Usage, cost: Cost | None) -> None:
        """Add the usage and cost of a call."""
        self.spend += compute_spend(usage, cost, answered=True)


@dataclass(frozen=True, slots=True)
class RunContext:
    """The inputs of the loop."""

    model: AgentModel
    tools: ToolRegistry
    env: ExecutionEnvironment
    policy: Policy
    record: BranchRecord
    emit: Callable[[events.Event], None]
    take_steering: Callable[[], Sequence[QueuedMessage]]
    """Takes all input that the user queued while the agent worked."""
    steering_waits: Callable[[], bool]
    take_follow_up: Callable[[], QueuedMessage | None]
    clock: Callable[[], int]
    """Microseconds since 1970."""
    call_prefix: Callable[[], str]
    """A new prefix for the ids of one answer's calls: c_ and 8 hex digits."""
    session: str
    """Tape id."""
    room: CompactionSettings
    """When and how older messages are compacted."""
    pressure: RunState
    summariser: AgentModel | None = None
    """The model that writes summaries; None is `model`."""
    max_cost: float = 0.0
    """Maximum cost of a session in USD; 0 is no limit."""


def measure_elapsed_ms(parts: RunContext, begun: int) -> int:
    """Return the milliseconds since `begun`, at least 0."""
    return max(parts.clock() - begun, 0) // 1000


def record_abort(parts: RunContext) -> None:
    """Record that the user stopped the turn; repair reads it (tape.md §6)."""
    parts.record.append(Error(ABORTED, "stopped by the user"))
    parts.record.barrier()


class PreparedRequest(NamedTuple):
    """A request, the view it was made from, and the repairs it needed."""

    request: Request
    view: View
    repair: Repair | None


def prepare_request(
    model: AgentModel,
    tools: Sequence[ToolSpec],
    path: Sequence[Entry],
    kept: Sequence[Entry],
    *,
    session: str,
    load: Callable[[BlobRef], bytes],
    plain: bool = False,
) -> PreparedRequest:
    """Return the next call's request; `plain` leaves out provider-specific blocks."""
    target = Target("", "", "", model.target.sees_images) if plain else model.target
    seen = view(path, kept)
    repaired = repair(seen, target)
    request = Request(
        model=model.id,
        messages=tuple(apply_elisions(repaired.messages, seen)),
        system=model.build_system(tools),
        tools=tuple(tools),
        session=session,
        load=load,
    )
    return PreparedRequest(request, seen, repaired.repair)


def apply_elisions(messages: Sequence[Message], seen: View) -> Sequence[Message]:
    """Return repaired messages to send, with placeholders for elided results."""
    return elide_results(messages, (*seen.kept, *seen.entries))
