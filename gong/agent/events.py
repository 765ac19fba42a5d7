"""Session events for front ends. Events are not stored; facts are entries (tape.md §3).

Each line of `--output-format stream-json` between the first and the last is one of these. Every
event has an envelope: `kind`, `time`, `session`, `branch` and `sequence`. The session fills it in
when it emits the event; before that it is empty. Those of a sub-agent carry its id as `agent`.

One prompt, answered with one tool call, gives these kinds (those in brackets come again and again):

    session_start                                     once for a session
      user_input, agent_start
        turn_start, agent_state thinking
          message_start [message_update] message_end
          agent_state tool_calling
          tool_start [tool_update] tool_end
        turn_end
        turn_start, agent_state thinking
          message_start [message_update] message_end
        turn_end
        agent_state finished
      agent_end
    session_end                                       once, when the session is closed
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw, Struct
from msgspec.structs import force_setattr

from tape.formats.wire import encode_json
from tape.model.entries import NO_JSON, BlobRef, Content, Usage
from tape.render.sources import CitedPage

from ..tools.dialogue import Question, Todo


class SessionEvent(Struct, frozen=True, tag_field="kind", omit_defaults=True, kw_only=True):
    """The envelope of all events."""

    time: str = ""
    """When it was emitted, as on a tape: UTC with microseconds."""
    session: str = ""
    """The tape's id; empty before the first prompt."""
    branch: str = ""
    sequence: int = 0
    """Counts the events of one session, or sub-agent, from 1."""
    agent: str = ""
    """The id of the sub-agent it is about; empty for the session itself."""

    @property
    def kind(self) -> str:
        """The name of this kind of event, as in JSON."""
        return str(self.__struct_config__.tag)

    def seal(self, time: str, session: str, branch: str, sequence: int, agent: str) -> None:
        """Fill in the envelope; an event is emitted once, and never changes afterwards."""
        force_setattr(self, "time", time)
        force_setattr(self, "session", session)
        force_setattr(self, "branch", branch)
        force_setattr(self, "sequence", sequence)
        if agent:
            force_setattr(self, "agent", agent)


class SessionStart(SessionEvent, frozen=True, tag="session_start"):
    """The session's branch is open; comes before everything else."""

    model: str
    cwd: str
    env: str = "local"
    """The place where tools act: this machine, or the name of another one."""


class SessionEnd(SessionEvent, frozen=True, tag="session_end"):
    """The session is closed; no event follows."""

    state: str


class UserInput(SessionEvent, frozen=True, tag="user_input"):
    """A prompt is on the tape as `entry`."""

    text: str
    entry: str


class RunStart(SessionEvent, frozen=True, tag="agent_start"):
    """A run begins; `entry` is the user entry's id."""

    prompt: str
    entry: str


class TurnStart(SessionEvent, frozen=True, tag="turn_start"):
    """A model call begins; `turn` counts from 1 within the run."""

    turn: int


class MessageStart(SessionEvent, frozen=True, tag="message_start"):
    """The model started to answer."""

    model: str


class MessageUpdate(SessionEvent, frozen=True, tag="message_update"):
    """More of the answer: `part` is text, thinking or tool_call; `block` its content index."""

    part: str
    block: int
    delta: str
    name: str | None = None
    arguments: Raw = NO_JSON
    """The arguments of a call so far, as a JSON object; not with every piece, as each is parsed."""


class MessageEnd(SessionEvent, frozen=True, tag="message_end"):
    """The answer is complete and on the tape as `entry`."""

    entry: str
    content: Content
    stop_reason: str
    usage: Usage
    sources: tuple[CitedPage, ...] = ()
    """The pages that it cites, each once."""


class ToolExecutionStart(SessionEvent, frozen=True, tag="tool_start"):
    """A tool is about to run; `args` is its JSON object."""

    call_id: str
    name: str
    status: str
    """running"""
    args: Raw = NO_JSON


class ApprovalRequested(SessionEvent, frozen=True, tag="approval_request"):
    """A call waits for a person: see `Session.answer_approval`; `args` is its JSON object."""

    call_id: str
    name: str
    why: str
    offered: tuple[str, ...] = ()
    """The rules that a lasting answer keeps; empty where only "once" and "no" are offered."""
    dangerous: bool = False
    args: Raw = NO_JSON
    reasons: tuple[str, ...] = ()
    """Why each part is asked about: the part as it stands in a command, a colon, what it does."""
    details: Raw = NO_JSON
    """What the call would change, as the details of its result: a `diff`, or `files` with one each.
    """


class QuestionAsked(SessionEvent, frozen=True, tag="question"):
    """The model asks the person at the session: see `Session.answer`."""

    question_id: str
    """The id of the call that asks."""
    questions: tuple[Question, ...]
    waits: bool
    """Whether an answer is awaited; else no user is present, and the model decides itself."""


class PlanProposed(SessionEvent, frozen=True, tag="plan_proposed"):
    """The model asks to approve a plan: see `Session.answer`."""

    question_id: str
    """The id of the call that asks."""
    plan: str
    mode: str
    """The permission mode that holds again once it is approved."""
    waits: bool
    """Whether an answer is awaited; else no user is present."""


class TodosChanged(SessionEvent, frozen=True, tag="todos"):
    """The model's todo list is another one, and on the tape."""

    todos: tuple[Todo, ...]


class ToolExecutionUpdate(SessionEvent, frozen=True, tag="tool_update"):
    """Output of a running tool as it arrives; `tail` is the end of all of it so far."""

    call_id: str
    output: str
    status: str
    """running"""
    tail: str


class ToolExecutionEnd(SessionEvent, frozen=True, tag="tool_end"):
    """A tool has a result; `content` is what the model sees, `full` the complete output.

    Output that is too long for an event is in the blob `kept` of the tape; `Session.read_output`
    returns it in both cases. `status` is completed or error.
    """

    call_id: str
    name: str
    content: Content
    is_error: bool
    duration_ms: int
    status: str
    details: Raw = NO_JSON
    full: str | None = None
    kept: BlobRef | None = None
    args: Raw = NO_JSON
    """The arguments that it ran with, where a person or a hook changed them."""


class TurnEnd(SessionEvent, frozen=True, tag="turn_end"):
    """All tools of the turn have results."""

    turn: int
    tool_calls: int
    duration_ms: int


class SteeringInjected(SessionEvent, frozen=True, tag="steering_injected"):
    """Queued input was added to the conversation; `origin` is steering or follow_up.

    Origins loop_detection, background, agent and answer_form are no input, but what the session
    tells the model.
    """

    text: str
    origin: str
    queued: str | None = None
    """The id it had in the queue."""


class MessageQueued(SessionEvent, frozen=True, tag="message_queued"):
    """Input waits, and is on the tape."""

    queued: str
    """Its id, which `steering_injected` and `message_withdrawn` repeat."""
    text: str
    origin: str


class MessageWithdrawn(SessionEvent, frozen=True, tag="message_withdrawn"):
    """Input that waited was withdrawn."""

    queued: str


class HistoryRepaired(SessionEvent, frozen=True, tag="repaired"):
    """History was repaired before a call: placeholder results added, entries left out."""

    injected: int
    dropped: int
    why: str


class CompactionStart(SessionEvent, frozen=True, tag="compaction_start"):
    """A summary is being made; `tokens` is the size of the next request without it."""

    anchor: str
    """compaction, handoff or merge."""
    reason: str
    tokens: int


class CompactionEnd(SessionEvent, frozen=True, tag="compaction_end"):
    """An anchor was set as `entry`; `by` is provider/model, None if rules made the summary."""

    anchor: str
    entry: str
    before: int
    after: int
    covered: int
    by: str | None = None


class ResultsElided(SessionEvent, frozen=True, tag="results_put_aside"):
    """Older tool results are sent as placeholders from now on; the tape has their text."""

    tokens: int


class SubagentStart(SessionEvent, frozen=True, tag="subagent_start"):
    """A run of the sub-agent `agent` begins."""

    type: str
    task: str
    """In a few words."""
    model: str


class SubagentEnd(SessionEvent, frozen=True, tag="subagent_end"):
    """A run of the sub-agent `agent` is over; `status` is as in its agent.end entry."""

    type: str
    status: str
    turns: int
    usage: Usage
    in_background: bool = False
    """Whether nobody waited for it."""


class SessionNamed(SessionEvent, frozen=True, tag="named"):
    """The session was given a title."""

    title: str


class CostLimit(SessionEvent, frozen=True, tag="cost_limit"):
    """The run stopped at the session's max cost; `spent` and `limit` are in USD."""

    spent: float
    limit: float


class TurnLimit(SessionEvent, frozen=True, tag="turn_limit"):
    """The run stopped at a limit.

    | limit | what was reached | unit of `value` |
    |---|---|---|
    | round | model calls for one prompt | calls |
    | total_turns | model calls of the session | calls |
    | time | time for one prompt | seconds |
    """

    limit: str
    value: float
    turns: int
    """Model calls of this run."""


class LoopDetection(SessionEvent, frozen=True, tag="loop_detection"):
    """The model repeats its calls; it is warned once, and at last the run ends.

    An answer that repeats its text is ended at once.
    """

    message: str
    stopped: bool = False
    what: str = "calls"
    """What it repeats: calls or text."""


class ModelSelect(SessionEvent, frozen=True, tag="model_select"):
    """The next call goes to another model; both are provider/model."""

    model: str
    previous: str


class ModeSelect(SessionEvent, frozen=True, tag="mode_select"):
    """Another permission mode holds from the next call on."""

    mode: str
    previous: str


class AgentState(SessionEvent, frozen=True, tag="agent_state"):
    """What the agent does, derived from the other events, for a status line.

    | state | from | `detail` |
    |---|---|---|
    | thinking | turn_start | empty |
    | tool_calling | the first tool_start of a turn | names of the tools, joined by ", " |
    | finished | agent_end, unless the last one is error | empty |
    | error | error, turn_limit, cost_limit | the error's text, or the limit |
    """

    state: str
    detail: str
    iteration: int
    """The turn of the run, from 1."""


class RetryPlan(Struct, frozen=True):
    """When a failed model call is made again."""

    number: int
    """The how manieth retry it is, from 1."""
    limit: int
    """How many there are at most."""
    seconds: float
    """How long until then."""


class ResultTruncated(SessionEvent, frozen=True, tag="truncation"):
    """The result of a call was cut, by its tool or behind it, or could not be; sizes in bytes."""

    call_id: str
    tool: str
    original_size: int
    truncated_size: int
    output_path: str | None = None
    """Where the whole is kept; None where the entry of the result has it."""
    error: str = ""
    """Why the result stays whole; empty where it was cut."""


class Warn(SessionEvent, frozen=True, tag="warning"):
    """A warning that does not stop the run."""

    message: str
    trace: str = ""
    """Python's traceback of a failure in plugged-in code; screens leave it out."""
    retry: RetryPlan | None = None
    """Set where a model call failed that will be made again."""


class HookError(SessionEvent, frozen=True, tag="hook_error"):
    """A hook failed, and the run continues; `point` is where it was asked."""

    hook: str
    point: str
    error: str
    """What went wrong, in one line."""
    trace: str = ""
    """Python's traceback; empty for a command."""


class RunFailure(SessionEvent, frozen=True, tag="error"):
    """The run failed."""

    error_class: str
    message: str
    retryable: bool
    exit_code: int


class RunEnd(SessionEvent, frozen=True, tag="agent_end"):
    """The run is over; `stop_reason` is as in tape.md §3, `turns` counts model calls."""

    stop_reason: str
    turns: int
    usage: Usage
    duration_ms: int


Event = (
    SessionStart
    | SessionEnd
    | UserInput
    | RunStart
    | TurnStart
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ApprovalRequested
    | QuestionAsked
    | PlanProposed
    | TodosChanged
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | TurnEnd
    | SteeringInjected
    | MessageQueued
    | MessageWithdrawn
    | HistoryRepaired
    | CompactionStart
    | CompactionEnd
    | ResultsElided
    | SubagentStart
    | SubagentEnd
    | SessionNamed
    | CostLimit
    | TurnLimit
    | LoopDetection
    | ModelSelect
    | ModeSelect
    | AgentState
    | ResultTruncated
    | Warn
    | HookError
    | RunFailure
    | RunEnd
)

Emit = Callable[[Event], None]
"""Passes an event to the front ends."""


def encode_event(event: Event, kind: str = "") -> bytes:
    """Return an event as JSON, its `type` first: `kind`, or its own; lone surrogates are U+FFFD."""
    return b'{"type":"%b",%b' % ((kind or event.kind).encode(), encode_json(event)[1:])
