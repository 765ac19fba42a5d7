"""What a run works with: setup, branch, queues and memory; and the requests it sends to models.

A run starts nothing by itself: the session owns all of this and passes it to the loop as one
`RunContext`.

The request of the next call is computed from the entries on the path and nothing else, so the loop
sends exactly what `gong context` shows:

    entries ──view──▶ View ──repair──▶ messages ──elide_results──▶ Request

`view` drops what an anchor replaced by its summary, `repair` makes the messages valid for the
target, and `elide_results` puts placeholders for results that a decision on the path elided. What
was folded so is kept between calls (`context/sent_history.py`).
"""

from __future__ import annotations

import asyncio
import random
import secrets
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec.structs import replace

from tape.clock import read_clock
from tape.context.repair import ABORTED
from tape.context.view import Target
from tape.model.entries import NO_JSON, Error, SideUsage

from ..config import CompactionSettings
from ..context.costs import Spend, compute_spend
from ..context.instructions import Instructions
from ..context.sent_history import HistoryFold
from ..context.trim import elide_results
from ..llm.accumulate import StreamAccumulator
from ..llm.guard import check_stream
from ..llm.models import fit_effort
from ..llm.retry import RetryPolicy, stream_with_retries
from ..llm.types import Request
from ..policy.decision import allow_all
from ..tools.background import BackgroundCommands
from ..tools.known_files import READING_TOOLS, KnownFiles, collect_shown_files
from ..tools.limits import DEFAULT_SETTINGS
from . import events
from .documents import record_waiting_outputs
from .repetition import RepetitionGuard
from .session_config import SessionConfig

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from msgspec import Raw

    from tape.context.view import ForeignThinking, Message, View
    from tape.model.entries import Anchor, BlobRef, Cost, Repair, Usage
    from tape.model.line import Entry

    from ..checkpoints import CallRecorder
    from ..context.sent_history import SentHistory
    from ..context.tokens import ContextSize
    from ..env.protocol import ExecutionEnvironment
    from ..errors import ModelError
    from ..llm.models import Effort, EffortChoice, ProfileName
    from ..llm.types import StreamEvent, ToolSpec
    from ..policy.decision import Policy
    from ..skills.session_skills import SessionSkills
    from ..tools.agent_runs import AgentRunner
    from ..tools.dialogue import Dialogue
    from ..tools.limits import ToolSettings
    from ..tools.registry import ToolRegistry
    from .answer_form import AnswerForm
    from .documents import AttachedDocument
    from .hook_points import SessionHooks
    from .queues import SessionQueues
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


@dataclass(frozen=True, slots=True)
class AgentModel:
    """A model: how to call it, and the names under which its answers are recorded."""

    provider: str
    id: str
    api: str
    endpoint: str
    stream: Callable[[Request], AsyncGenerator[StreamEvent, None]]
    system: str | Callable[[Sequence[ToolSpec]], str]
    """The system prompt, or a function from tools to it; the same in every turn."""
    cost: Callable[[Usage], Cost | None] = lambda _: None
    """Returns the cost of a call; None if unknown."""
    window: int | None = None
    """Size of the context window in tokens, None if unknown."""
    options: Raw = field(default_factory=lambda: NO_JSON)
    """A JSON object of the provider's own, for the body of each request."""
    sees_images: bool = True
    blocks_images: bool = False
    """Whether the user wants no pictures to be sent."""
    foreign_thinking: ForeignThinking = "text"
    """What becomes of the readable thinking of other models."""
    max_output: int | None = None
    """Maximum tokens of one answer, None if unknown."""
    reasons: bool | None = None
    """Whether it can be told how hard to think, None if unknown."""
    efforts: tuple[Effort, ...] = ()
    """The efforts that it accepts; empty if unknown."""
    effort: EffortChoice | None = None
    """How hard it thinks unless the session says otherwise."""
    profile: ProfileName = "default"
    """The family whose tools and instructions it gets."""
    instructions: Instructions = Instructions()  # noqa: RUF009 (a tuple)
    """What the system prompt has from AGENTS.md and its relatives."""
    equip: Callable[[ToolRegistry, ToolSettings], ToolRegistry] = lambda tools, _: tools
    """Returns a registry with the tools that this model is offered, in these settings."""
    native_objects: bool = False
    """Whether its provider takes a `response_format`."""
    forces_calls: bool = True
    """Whether its provider can be told which tool to call."""

    @property
    def name(self) -> str:
        """provider/model."""
        return f"{self.provider}/{self.id}"

    def build_system(self, tools: Sequence[ToolSpec]) -> str:
        """Return the system prompt of a call with these tools."""
        return self.system if isinstance(self.system, str) else self.system(tools)

    def can_hold_objects(self, *, has_tools: bool) -> bool:
        """Return whether its provider itself holds an answer to a schema, beside tools or not."""
        return self.native_objects and (not has_tools or self.api == "openai-responses")

    @property
    def target(self) -> Target:
        """The model that messages are repaired for."""
        return Target(
            self.endpoint,
            self.api,
            self.id,
            self.sees_images,
            self.blocks_images,
            self.foreign_thinking,
        )


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
    compaction: CompactionSettings = CompactionSettings(auto=False)  # noqa: RUF009 (frozen)
    """When and how older messages are compacted; by default never automatically."""
    summariser: AgentModel | None = None
    """The model that writes summaries; None is `model`."""
    namer: AgentModel | None = None
    """The model that titles new sessions; None uses the first words of the first prompt."""
    config: SessionConfig = SessionConfig()  # noqa: RUF009 (frozen)
    """Limits and timeouts."""
    tuning: ToolSettings = DEFAULT_SETTINGS
    """Settings of the built-in tools."""
    find_model: Callable[[str], AgentModel] | None = None
    """Returns a model by its name, for `Session.use_model`."""
    closes_without_key: bool = False
    """Close the session when the provider refuses its key, instead of waiting for another."""
    hooks: SessionHooks | None = None
    """The user's hooks; None if there are none, and then nothing of them is loaded."""
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
    retry: RetryPolicy = RetryPolicy()  # noqa: RUF009 (frozen)
    clock: Callable[[], int] = read_clock
    """Returns microseconds since 1970."""
    token: Callable[[int], str] = secrets.token_hex
    """Returns random hex digits for a number of bytes."""


STOPPED_BY_USER = "stopped by the user"


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
    fold: HistoryFold = field(default_factory=HistoryFold)
    """The history of the newest request."""
    spend: Spend = Spend()  # noqa: RUF009 (frozen)
    """Usage and cost of all calls of this session and its sub-agents."""
    parent: RunState | None = None
    """That of the session whose sub-agent this is: it counts the calls, too."""
    remarks: set[str] = field(default_factory=set)
    """Providers' remarks on requests that were already shown."""
    turns: int = 0
    """Model calls of this session."""
    windows: dict[str, int] = field(default_factory=dict)
    """Context windows that overflows have shown, by the model's name."""
    repetition: RepetitionGuard = field(default_factory=RepetitionGuard)
    """The calls since the newest input of a person."""
    background: BackgroundCommands = field(default_factory=BackgroundCommands)
    """Commands that run in the background."""
    files: KnownFiles = field(default_factory=KnownFiles)
    """The files that were read or written."""
    documents: list[AttachedDocument] = field(default_factory=list)
    """What the model gets with the next words of a person."""
    agents: SessionAgents | None = None
    """The sub-agents; None before the first one."""
    answer: StreamAccumulator | None = None
    """The answer that is coming from the model; None while none is."""
    form: AnswerForm | None = None
    """The form of the answer that a run has to end with; None for any."""
    abort_reason: str = STOPPED_BY_USER
    """Why the run is being stopped, as its error entry says."""

    def begin_run(self, window: int) -> None:
        """Forget the calls and the answer of the run before; `window` is that of the guard."""
        self.repetition = RepetitionGuard(window)
        if self.form is not None:
            self.form.begin_run()

    @property
    def is_settled(self) -> bool:
        """Whether this turn has ended the run, with the object of the form or without one."""
        return self.form is not None and self.form.is_settled

    def request_compaction(self, focus: str) -> None:
        """Request a compaction before the next model call."""
        self.focus = focus

    def find_window(self, model: AgentModel) -> int | None:
        """Return a model's context window in tokens, as known or learned; None if unknown."""
        return min(filter(None, (model.window, self.windows.get(model.name))), default=None)

    def count_usage(self, usage: Usage, cost: Cost | None) -> None:
        """Add the usage and cost of a call."""
        spend, state = compute_spend(usage, cost, answered=True), self
        state.spend += spend
        while state.parent is not None:
            state = state.parent
            state.spend += spend

    @property
    def shared_spend(self) -> Spend:
        """What a limit of the cost holds for: everything of the session at the top."""
        return self.spend if self.parent is None else self.parent.shared_spend


@dataclass(slots=True)
class RunContext:
    """Everything that a run reads, writes to and emits through."""

    setup: SessionSetup
    """The session's parts; a change holds from the next model call."""
    recorder: Recorder
    """The open branch."""
    queues: SessionQueues
    state: RunState
    dialogue: Dialogue | None = None
    """What tools ask the person at the session with; None where there is no session."""
    record_mode: Callable[[], None] = lambda: None
    """Records the permission mode of the next call where the tape shows another."""
    find_agents: Callable[[], AgentRunner | None] | None = None
    """Returns the session's sub-agents, made at the first use."""

    def emit(self, event: events.Event) -> None:
        """Pass an event to the front ends."""
        self.queues.emit(event)

    def set_anchor(self, anchor: Anchor) -> Entry:
        """Start a phase with this anchor; take the input that waits along to it."""
        entry = self.recorder.anchor(anchor)
        self.queues.record_waiting()
        record_waiting_outputs(self.recorder, self.state.documents)
        if self.state.agents is not None:
            self.state.agents.record_open()
        return entry

    def warn_once(self, text: str) -> None:
        """Pass a warning to the front ends, unless this session has given it before."""
        if text not in self.state.remarks:
            self.state.remarks.add(text)
            self.emit(events.Warn(text))

    @property
    def window(self) -> int | None:
        """The context window of the current model, as known or learned; None if unknown."""
        return self.state.find_window(self.setup.model)

    @property
    def guarded_files(self) -> KnownFiles | None:
        """The files that tools may change; None if they need not be read before, or cannot be."""
        files = self.state.files
        if files.find_shown is None:
            entries, resolve = tuple(self.recorder.path), self.setup.env.resolve
            files.find_shown = partial(collect_shown_files, entries, resolve)
        can_read = not READING_TOOLS.isdisjoint(self.setup.tools.active)
        return files if self.setup.config.read_before_write and can_read else None

    def start_answer(self) -> StreamAccumulator:
        """Return an empty answer, whose calls get ids with a new prefix: c_ and 8 hex digits."""
        return StreamAccumulator(f"c_{self.setup.token(4)}")

    def measure_elapsed_ms(self, begun: int) -> int:
        """Return the milliseconds since `begun` of the setup's clock, at least 0."""
        return max(self.setup.clock() - begun, 0) // 1000

    def record_abort(self) -> None:
        """Record that the turn was stopped, and why; repair reads it (tape.md §6)."""
        self.recorder.append(Error(ABORTED, self.state.abort_reason))
        self.recorder.barrier()

    def stream_with_retries(
        self, model: AgentModel, request: Request
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of an answer; record and report each failure that is retried."""

        def on_retry(error: ModelError, attempt: int, delay: float) -> None:
            kind = type(error).__name__
            self.recorder.append(Error(kind, str(error), error.retryable, error.status))
            self.emit(events.Warn(f"{error} · try {attempt + 1} in {delay:.1f} s"))

        return stream_with_retries(
            partial(check_stream, model.name, model.stream),
            request,
            self.setup.retry,
            sleep=asyncio.sleep,
            random=random.random,
            on_retry=on_retry,
        )


class PreparedRequest(NamedTuple):
    """A request, the model it is for, and what the history in it is made of."""

    model: AgentModel
    request: Request
    history: SentHistory
    remark: str | None = None
    """Why it is not what was asked for."""

    @property
    def repair(self) -> Repair | None:
        """What was repaired; None if nothing was."""
        return self.history.repair

    def mark_repair_recorded(self) -> PreparedRequest:
        """Return the same request for another call, which need not record the repair again."""
        return self._replace(history=self.history._replace(unrecorded=None))

    def measure(self) -> ContextSize:
        """Return the size of the call."""
        return self.history.size.measure(self.request)


def prepare_request(
    model: AgentModel,
    tools: Sequence[ToolSpec],
    path: Sequence[Entry],
    kept: Sequence[Entry],
    *,
    session: str,
    load: Callable[[BlobRef], bytes],
    plain: bool = False,
    fold: HistoryFold | None = None,
    effort: EffortChoice | None = None,
    max_output: int = 0,
) -> PreparedRequest:
    """Return the next call's request; `plain` leaves out provider-specific blocks.

    `fold` is what an earlier call was given: then only new entries are read. `effort` is that of
    the session, None for the model's own, and `max_output` its limit of an answer in tokens, 0 for
    the model's own.
    """
    target = replace(model.target, endpoint="", api="", model="") if plain else model.target
    history = (fold or HistoryFold()).follow(model.id, target, path, kept)
    fitted = fit_effort(
        effort or model.effort, model.name, efforts=model.efforts, reasons=model.reasons
    )
    request = Request(
        model=model.id,
        messages=history.messages,
        system=model.build_system(tools),
        tools=tuple(tools),
        reasoning_effort=fitted.effort,
        session=session,
        options=model.options,
        load=load,
    )
    prepared = PreparedRequest(model, request, history, fitted.remark)
    if model.api == _NAMES_LIMIT or max_output:
        most = min(filter(None, (max_output, model.max_output)), default=None)
        request = replace(request, max_tokens=_limit_answer(prepared, most))
    return prepared._replace(request=request)


_NAMES_LIMIT = "anthropic-messages"
"""The wire API that must be told how long an answer may be; with others it is the model's limit."""
_ESTIMATE_SHARE = 1.05
_SHORTEST_ANSWER = 4_096


def _limit_answer(prepared: PreparedRequest, most: int | None) -> int | None:
    """Return how long an answer may be, in tokens: `most`, or less near a full window.

    None if the limit is unknown.
    """
    window = prepared.model.window
    if most is None or window is None:
        return most
    size, room = prepared.history.size, (window - most) / _ESTIMATE_SHARE
    tokens = size.compute_bound(prepared.request)
    if tokens > room:  # else the model's limit holds, however many they are
        tokens = size.measure_near(prepared.request, room)
    left = window - int(tokens * _ESTIMATE_SHARE)
    return max(min(most, left), min(_SHORTEST_ANSWER, most))


def apply_elisions(messages: Sequence[Message], seen: View) -> Sequence[Message]:
    """Return repaired messages to send, with placeholders for elided results."""
    return elide_results(messages, (*seen.kept, *seen.entries))


class SideAnswer(NamedTuple):
    """The text of a call beside the conversation, and its usage, which the caller records."""

    text: str
    usage: SideUsage


async def request_text(
    context: RunContext, model: AgentModel, purpose: str, request: Request, *, retries: bool
) -> SideAnswer:
    """Make a model call beside the conversation and count its usage under `purpose`.

    Raises ModelError if the call fails; with `retries` after the retries of the setup.
    """
    answer = context.start_answer()
    request = replace(request, options=model.options)
    source = (
        context.stream_with_retries(model, request)
        if retries
        else check_stream(model.name, model.stream, request)
    )
    async with aclosing(source) as stream:
        async for event in stream:
            answer.process(event)
    response = answer.response()
    cost = model.cost(response.usage)
    context.state.count_usage(response.usage, cost)
    side = SideUsage(purpose, model.provider, model.id, response.usage, cost=cost)
    return SideAnswer(response.text, side)
