"""Session events: what a front end watches. Nothing here is stored; facts are entries (tape.md §3).

Each line of `--output-format stream-json` between the first and the last is one of these, with its
`type` first.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from tape.blocks import NO_JSON, Content
from tape.entries import Usage


class _Event(Struct, frozen=True, tag_field="type", omit_defaults=True):
    pass


class AgentStart(_Event, frozen=True, tag="agent_start"):
    """A run begins; `entry` is the user entry's id."""

    session: str
    branch: str
    prompt: str
    entry: str


class TurnStart(_Event, frozen=True, tag="turn_start"):
    """A model call begins; `turn` counts from 1 within the run."""

    turn: int


class MessageStart(_Event, frozen=True, tag="message_start"):
    """The model began to answer."""

    model: str


class MessageUpdate(_Event, frozen=True, tag="message_update"):
    """More of the answer: `kind` text, thinking or tool_call; `block` its place in the content."""

    kind: str
    block: int
    delta: str
    name: str | None = None


class MessageEnd(_Event, frozen=True, tag="message_end"):
    """The answer is whole and on the tape as `entry`."""

    entry: str
    content: Content
    stop_reason: str
    usage: Usage


class ToolExecutionStart(_Event, frozen=True, tag="tool_execution_start"):
    """A tool is about to run; `args` is its JSON object."""

    call_id: str
    name: str
    args: Raw = NO_JSON


class ToolExecutionUpdate(_Event, frozen=True, tag="tool_execution_update"):
    """Output of a running tool as it comes."""

    call_id: str
    output: str


class ToolExecutionEnd(_Event, frozen=True, tag="tool_execution_end"):
    """A tool answered; `content` is what the model sees, `full` what it does not."""

    call_id: str
    name: str
    content: Content
    is_error: bool
    duration_ms: int
    details: Raw = NO_JSON
    full: str | None = None


class TurnEnd(_Event, frozen=True, tag="turn_end"):
    """The turn's tools have answered."""

    turn: int
    tool_calls: int


class SteeringInjected(_Event, frozen=True, tag="steering_injected"):
    """Queued words were put before the model; `origin` is steering or follow_up."""

    text: str
    origin: str


class Repaired(_Event, frozen=True, tag="repaired"):
    """History was mended before a call: results made up, entries left out."""

    injected: int
    dropped: int
    why: str


class CompactionStart(_Event, frozen=True, tag="compaction_start"):
    """A summary is being made; `tokens` is what the next request would have without it."""

    kind: str
    reason: str
    tokens: int


class CompactionEnd(_Event, frozen=True, tag="compaction_end"):
    """An anchor was set as `entry`; `by` is provider/model, None where rules made the summary."""

    kind: str
    entry: str
    before: int
    after: int
    covered: int
    by: str | None = None


class ResultsPutAside(_Event, frozen=True, tag="results_put_aside"):
    """Older tool results are told of only from now on; their text stays on the tape."""

    tokens: int


class Named(_Event, frozen=True, tag="named"):
    """The session got a title."""

    title: str


class CostLimit(_Event, frozen=True, tag="cost_limit"):
    """The run stopped softly at its limit of money; `spent` and `limit` in USD."""

    spent: float
    limit: float


class TurnLimit(_Event, frozen=True, tag="turn_limit"):
    """The run stopped softly at its limit of `turns` model calls."""

    turns: int


class Warn(_Event, frozen=True, tag="warning"):
    """Something people should know that stops nothing."""

    message: str
    trace: str = ""
    """Python's account of what failed in code that was plugged in; screens leave it out."""


class Failure(_Event, frozen=True, tag="error"):
    """The run failed."""

    error_class: str
    message: str
    retryable: bool
    exit_code: int


class AgentEnd(_Event, frozen=True, tag="agent_end"):
    """The run is over; `stop_reason` as in tape.md §3, `turns` is model calls made."""

    stop_reason: str
    turns: int
    usage: Usage


Event = (
    AgentStart
    | TurnStart
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | TurnEnd
    | SteeringInjected
    | Repaired
    | CompactionStart
    | CompactionEnd
    | ResultsPutAside
    | Named
    | CostLimit
    | TurnLimit
    | Warn
    | Failure
    | AgentEnd
)
