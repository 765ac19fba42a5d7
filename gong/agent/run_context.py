"""What a run works with, and what it remembers between its calls.

A run starts nothing by itself: the session owns all of this and passes it to the loop.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from tape.context.repair import ABORTED
from tape.model.entries import Error, SideUsage

from ..context.costs import Spend, compute_spend
from ..context.sent_history import HistoryFold
from ..env.wrappers import is_place
from ..llm.accumulate import StreamAccumulator
from ..llm.guard import check_stream
from ..llm.retry import stream_with_retries
from ..tools.background import BackgroundCommands
from ..tools.known_files import READING_TOOLS, KnownFiles, collect_shown_files
from ..web.page_cache import PageCache
from . import events
from .documents import record_waiting_outputs
from .repetition import RepetitionGuard
from .request import prepare_request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tape.model.entries import Anchor, Cost, Usage
    from tape.model.line import Entry

    from ..errors import ModelError
    from ..llm.types import Request, StreamEvent
    from ..tools.agent_runs import AgentRunner
    from ..tools.dialogue import Dialogue
    from .answer_form import AnswerForm
    from .documents import AttachedDocument
    from .model import AgentModel
    from .queues import SessionQueues
    from .recorder import Recorder
    from .request import PreparedRequest
    from .setup import SessionAgents, SessionSetup

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
    spend: Spend = Spend()
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
    pages: PageCache = field(default_factory=PageCache)
    """The pages of the web that were fetched in the last minutes."""
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


class SideAnswer(NamedTuple):
    """The text of a call beside the conversation, and its usage, which the caller records."""

    text: str
    usage: SideUsage


AskModel = Callable[["AgentModel", str, "Request"], Awaitable[SideAnswer]]
"""`RunContext.request_text`: model, purpose and request → the answer; raises ModelError."""


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

    def prepare_next_call(self) -> PreparedRequest:
        """Return the request of the next call."""
        setup, recorder = self.setup, self.recorder
        return prepare_request(
            setup.model,
            setup.tools.specs(),
            recorder.path,
            recorder.kept,
            session=recorder.tape.id,
            load=recorder.tape.load,
            plain=self.state.refused,
            fold=self.state.fold,
            effort=setup.config.effort,
            max_output=setup.config.max_output_tokens,
        )

    def warn_once(self, *texts: str) -> None:
        """Pass warnings to the front ends, but those that this session has given before."""
        for text in texts:
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
            if is_place(self.setup.env):
                files.find_shown = dict  # times of this machine say nothing there
        can_read = not READING_TOOLS.isdisjoint(self.setup.tools.active)
        return files if self.setup.config.read_before_write and can_read else None

    def start_answer(self) -> StreamAccumulator:
        """Return an empty answer, whose calls get ids with a new prefix: c_ and 8 hex digits."""
        return StreamAccumulator(f"c_{self.setup.token(4)}")

    def measure_elapsed_ms(self, started_at: int) -> int:
        """Return the milliseconds since `started_at` of the setup's clock, at least 0."""
        return max(self.setup.clock() - started_at, 0) // 1000

    def record_abort(self) -> None:
        """Record that the turn was stopped, and why; repair reads it (tape.md §6)."""
        self.recorder.append(Error(ABORTED, self.state.abort_reason))
        self.recorder.barrier()

    def stream_with_retries(
        self, model: AgentModel, request: Request
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of an answer; record and report each failure that is retried."""
        has_person = self.dialogue is not None and self.dialogue.has_person
        retry = self.setup.patient_retry if has_person else self.setup.retry

        def on_retry(error: ModelError, attempt: int, delay: float) -> None:
            kind = type(error).__name__
            self.recorder.append(Error(kind, str(error), error.retryable, error.status))
            plan = events.RetryPlan(attempt, retry.max_retries, delay)
            reason = str(error).removesuffix(error.advice)  # gong itself tries again
            self.emit(events.Warn(f"{reason} · try {attempt + 1} in {delay:.1f} s", retry=plan))

        return stream_with_retries(
            partial(check_stream, model.name, model.stream),
            request,
            retry,
            sleep=asyncio.sleep,
            random=random.random,
            on_retry=on_retry,
        )

    async def request_text(
        self, model: AgentModel, purpose: str, request: Request, *, retries: bool = False
    ) -> SideAnswer:
        """Make a model call beside the conversation and count its usage under `purpose`.

        Raises ModelError if the call fails; with `retries` after the retries of the setup.
        """
        answer = self.start_answer()
        request = replace(request, options=model.choose_options(has_tools=bool(request.tools)))
        source = (
            self.stream_with_retries(model, request)
            if retries
            else check_stream(model.name, model.stream, request)
        )
        async with aclosing(source) as stream:
            async for event in stream:
                answer.process(event)
        response = answer.response()
        cost = model.cost(response.usage)
        self.state.count_usage(response.usage, cost)
        side = SideUsage(purpose, model.provider, model.id, response.usage, cost=cost)
        return SideAnswer(response.text, side)
