"""Session events for front ends. Events are not stored; facts are entries (tape.md §3).

Each line of `--output-format stream-json` between the first and the last is one of these, with its
`type` first.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from tape.model.entries import NO_JSON, Content, Usage


class _SessionEvent(Struct, frozen=True, tag_field="type", omit_defaults=True):
    pass


class RunStart(_SessionEvent, frozen=True, tag="agent_start"):
    """A run begins; `entry` is the user entry's id."""

    session: str
    branch: str
    prompt: str
    entry: str


class TurnStart(_SessionEvent, frozen=True, tag="turn_start"):
    """A model call begins; `turn` counts from 1 within the run."""

    turn: int


class MessageStart(_SessionEvent, frozen=True, tag="message_start"):
    """The model started to answer."""

    model: str


class MessageUpdate(_SessionEvent, frozen=True, tag="message_update"):
    """More of the answer: `kind` is text, thinking or tool_call; `block` its content index."""

    kind: str
    block: int
    delta: str
    name: str | None = None


class MessageEnd(_SessionEvent, frozen=True, tag="message_end"):
    """The answer is complete and on the tape as `entry`."""

    entry: str
    content: Content
    stop_reason: str
    usage: Usage


class ToolExecutionStart(_SessionEvent, frozen=True, tag="tool_execution_start"):
    """A tool is about to run; `args` is its JSON object."""

    call_id: str
    name: str
    args: Raw = NO_JSON


class ToolExecutionUpdate(_SessionEvent, frozen=True, tag="tool_execution_update"):
    """Output of a running tool as it arrives."""

    call_id: str
    output: str


class ToolExecutionEnd(_SessionEvent, frozen=True, tag="tool_execution_end"):
    """A tool has a result; `content` is what the model sees, `full` the complete output."""

    call_id: str
    name: str
    content: Content
    is_error: bool
    duration_ms: int
    details: Raw = NO_JSON
    full: str | None = None


class TurnEnd(_SessionEvent, frozen=True, tag="turn_end"):
    """All tools of the turn have results."""

    turn: int
    tool_calls: int


class SteeringInjected(_SessionEvent, frozen=True, tag="steering_injected"):
    """Queued input was added to the conversation; `origin` is steering or follow_up."""

    text: str
    origin: str


class HistoryRepaired(_SessionEvent, frozen=True, tag="repaired"):
    """History was repaired before a call: placeholder results added, entries left out."""

    injected: int
    dropped: int
    why: str


class CompactionStart(_SessionEvent, frozen=True, tag="compaction_start"):
    """A summary is being made; `tokens` is the size of the next request without it."""

    kind: str
    reason: str
    tokens: int


class CompactionEnd(_SessionEvent, frozen=True, tag="compaction_end"):
    """An anchor was set as `entry`; `by` is provider/model, None if rules made the summary."""

    kind: str
    entry: str
    before: int
    after: int
    covered: int
    by: str | None = None


class ResultsElided(_SessionEvent, frozen=True, tag="results_put_aside"):
    """Older tool results are sent as placeholders from now on; the tape has their text."""

    tokens: int


class SessionNamed(_SessionEvent, frozen=True, tag="named"):
    """The session was given a title."""

    title: str


class CostLimit(_SessionEvent, frozen=True, tag="cost_limit"):
    """The run stopped at the session's max cost; `spent` and `limit` are in USD."""

    spent: float
    limit: float


class TurnLimit(_SessionEvent, frozen=True, tag="turn_limit"):
    """The run stopped at its limit of `turns` model calls."""

    turns: int


class Warn(_SessionEvent, frozen=True, tag="warning"):
    """A warning that does not stop the run."""

    message: str
    trace: str = ""
    """Python's traceback of a failure in plugged-in code; screens leave it out."""


class RunFailure(_SessionEvent, frozen=True, tag="error"):
    """The run failed."""

    error_class: str
    message: str
    retryable: bool
    exit_code: int


class RunEnd(_SessionEvent, frozen=True, tag="agent_end"):
    """The run is over; `stop_reason` is as in tape.md §3, `turns` counts model calls."""

    stop_reason: str
    turns: int
    usage: Usage


Event = (
    RunStart
    | TurnStart
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | TurnEnd
    | SteeringInjected
    | HistoryRepaired
    | CompactionStart
    | CompactionEnd
    | ResultsElided
    | SessionNamed
    | CostLimit
    | TurnLimit
    | Warn
    | RunFailure
    | RunEnd
)
