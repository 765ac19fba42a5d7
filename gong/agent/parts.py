"""What the loop is handed: the model, the tools, the record, the queues; it owns none of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tape.entries import Error, Payload
from tape.repair import ABORTED, Target

from ..context.costs import Spend, spend_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Sequence

    from tape.blocks import BlobRef
    from tape.branches import Head
    from tape.entries import Anchor, Cost, Usage
    from tape.line import Entry
    from tape.tape import Tape

    from ..config import Compaction
    from ..env.protocol import ExecutionEnvironment
    from ..llm.types import Request, StreamEvent, ToolSpec
    from ..policy import Policy
    from ..tools.registry import Registry
    from . import events


class Record(Protocol):
    """Where facts go: the open branch."""

    tape: Tape
    path: list[Entry]
    kept: tuple[Entry, ...]

    def head(self) -> Head:
        """Return where the branch stands now."""
        ...

    def anchor(self, anchor: Anchor) -> Entry:
        """Begin a phase with this anchor, and go on with what it keeps."""
        ...

    def append(self, payload: Payload) -> Entry:
        """Write one entry."""
        ...

    def barrier(self) -> None:
        """Return when everything appended is on the medium."""
        ...

    def load(self, blob: BlobRef) -> bytes:
        """Return the bytes of a picture or file on the path; raises NotFound."""
        ...


class Queued(NamedTuple):
    """Words that wait for a border: `origin` is steering or follow_up."""

    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class Model:
    """Who answers: how to ask it, and what its answers are recorded under."""

    provider: str
    id: str
    api: str
    endpoint: str
    stream: Callable[[Request], AsyncGenerator[StreamEvent, None]]
    system: str | Callable[[Collection[str]], str]
    """The system prompt, or what makes it of the names of the tools; the same in every turn."""
    max_turns: int = 0
    """Most model calls in one run; 0 is no limit."""
    cost: Callable[[Usage], Cost | None] = lambda _: None
    """What a call cost; None where that is not known."""
    window: int | None = None
    """Most tokens of one call, where that is known."""
    sees_images: bool = True

    def system_for(self, tools: Iterable[ToolSpec]) -> str:
        """Return the system prompt of a call with these tools."""
        if isinstance(self.system, str):
            return self.system
        return self.system([tool.name for tool in tools])

    @property
    def target(self) -> Target:
        """Whom messages are repaired for."""
        return Target(self.endpoint, self.api, self.id, self.sees_images)


@dataclass(slots=True)
class Pressure:
    """What a session remembers of its window and its money between calls."""

    in_row: int = 0
    """Compactions since the last answer."""
    warned: bool = False
    """That the window is nearly full was said, and it still is."""
    price_warned: bool = False
    """That some calls have no known price was said."""
    refused: bool = False
    """The provider refused the history as it stands: what only it understands is left out."""
    focus: str | None = None
    """The model asked for a compaction, to look at this most."""
    spend: Spend = Spend()  # noqa: RUF009 (frozen)
    """What all calls of this session took."""

    remarks: set[str] = field(default_factory=set)
    """What providers left out of requests or complained of, and was said."""

    def unsaid(self, remarks: Sequence[str]) -> list[str]:
        """Return those that were not said before in this session; they count as said now."""
        new = [one for one in dict.fromkeys(remarks) if one not in self.remarks]
        self.remarks.update(new)
        return new

    def request(self, focus: str) -> None:
        """Note that the model wants a compaction before its next call."""
        self.focus = focus

    def count(self, usage: Usage, cost: Cost | None) -> None:
        """Count what a call took."""
        self.spend += spend_of(usage, cost, answered=True)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the loop works with."""

    model: Model
    tools: Registry
    env: ExecutionEnvironment
    policy: Policy
    record: Record
    emit: Callable[[events.Event], None]
    take_steering: Callable[[], Sequence[Queued]]
    """Empties the queue of what a person said while the agent worked."""
    steering_waits: Callable[[], bool]
    take_follow_up: Callable[[], Queued | None]
    clock: Callable[[], int]
    """Microseconds since 1970."""
    call_prefix: Callable[[], str]
    """A new prefix for the ids of one answer's calls: c_ and 8 hex digits."""
    session: str
    """Tape id."""
    room: Compaction
    """When and how the window is made free."""
    pressure: Pressure
    summariser: Model | None = None
    """Who writes summaries; None is `model`."""
    max_cost: float = 0.0
    """Most USD of a session; 0 is no limit."""


def milliseconds(parts: Parts, begun: int) -> int:
    """Return how long ago `begun` was, in milliseconds; never less than 0."""
    return max(parts.clock() - begun, 0) // 1000


def record_abort(parts: Parts) -> None:
    """Record that the user stopped the turn; repair reads it (tape.md §6)."""
    parts.record.append(Error(ABORTED, "stopped by the user"))
    parts.record.barrier()
