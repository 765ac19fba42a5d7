"""The session: one conversation on one branch; its queues, its state, one run at a time.

A front end submits prompts and reads events. The state of a session is on the tape: close it at any
time, and another session can continue.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections import deque
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from tape.clock import read_clock
from tape.model.entries import Anchor, Error, Text, Usage, User
from tape.model.entries import Model as ModelEntry

from ..config import CompactionSettings
from ..errors import (
    ConfigurationError,
    ModelError,
    NothingToCompact,
    NothingToUndo,
    SessionBusy,
    SessionClosed,
)
from ..llm.retry import RetryPolicy, stream_with_retries
from ..policy.decision import allow_all, format_error_line, format_trace
from . import events, loop
from .compaction import CompactionRequest, compact_branch, merge_branch, repeat_handoff
from .model_call import name_session
from .recorder import Recorder, find_last_model
from .run_context import AgentModel, QueuedMessage, RunContext, RunState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine

    from tape.model.line import Entry
    from tape.store.refs import Head

    from ..env.protocol import ExecutionEnvironment
    from ..llm.types import Request, StreamEvent
    from ..policy.decision import Policy
    from ..tools.registry import ToolRegistry


class SessionState(StrEnum):
    """The state of a session."""

    IDLE = "idle"
    PROCESSING = "processing"
    AWAITING_INPUT = "awaiting_input"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class SessionSetup:
    """The parts of a session; change `model` between runs with `Session.use_model`."""

    model: AgentModel
    tools: ToolRegistry
    env: ExecutionEnvironment
    open: Callable[[str], Recorder]
    """Opens the branch to write to; called once, with the first prompt."""
    policy: Policy = allow_all
    room: CompactionSettings = CompactionSettings(auto=False)  # noqa: RUF009 (frozen)
    """When and how older messages are compacted; by default never automatically."""
    summariser: AgentModel | None = None
    """The model that writes summaries; None is `model`."""
    namer: AgentModel | None = None
    """The model that titles new sessions; None uses the first words of the first prompt."""
    max_cost: float = 0.0
    """Maximum cost of this session in USD; 0 is no limit."""
    retry: RetryPolicy = RetryPolicy()  # noqa: RUF009 (frozen)
    clock: Callable[[], int] = read_clock
    token: Callable[[int], str] = secrets.token_hex
    """Returns random hex digits for a number of bytes."""


class Session:
    """One conversation. Use it from one event loop, and close it."""

    def __init__(self, setup: SessionSetup, recorder: Recorder | None = None) -> None:
        self.setup = setup
        self.recorder = recorder
        """The open branch; None until the first prompt of a new session."""
        self.state = SessionState.IDLE
        self._steering: deque[QueuedMessage] = deque()
        self._follow_ups: deque[QueuedMessage] = deque()
        self._watchers: list[Callable[[events.Event], None]] = []
        self._failed: list[Callable[[events.Event], None]] = []
        """Watchers whose failure has been reported."""
        self._run: asyncio.Task[None] | None = None
        self._compacting = False
        self.pressure = RunState()

    def subscribe(self, watcher: Callable[[events.Event], None]) -> Callable[[], None]:
        """Call `watcher` with every event from now on; call the returned function to stop.

        An exception in it does not stop the run: the first one is reported as a `Warn` event.
        """
        self._watchers.append(watcher)

        def leave() -> None:
            with suppress(ValueError):
                self._watchers.remove(watcher)
                self._failed.remove(watcher)

        return leave

    async def submit(self, prompt: str) -> AsyncGenerator[events.Event, None]:
        """Answer a prompt; yield the events of the run, `AgentEnd` last.

        Raises SessionBusy during another run, SessionClosed after `close`. Leaving the
        generator before its end stops the run.
        """
        if not prompt.strip():
            raise ConfigurationError("the prompt is empty: say what to do")
        self._begin_run()
        async with aclosing(self._stream_events(self._answer_prompt(prompt))) as stream:
            async for event in stream:
                yield event

    async def compact(self, wish: CompactionRequest) -> AsyncGenerator[events.Event, None]:
        """Replace older messages by a summary; yield the events.

        Input that arrives meanwhile is queued. Raises NothingToCompact, and what `submit` raises.
        """
        if self.recorder is None:
            raise NothingToCompact("the session is empty: there is nothing to compact")
        self._begin_run()
        self._compacting = True
        try:
            async with aclosing(
                self._stream_events(self._run_compaction(self.recorder, wish))
            ) as stream:
                async for event in stream:
                    yield event
        finally:
            self._compacting = False

    async def merge_branch(self, left: Head) -> AsyncGenerator[events.Event, None]:
        """Set an anchor that summarises the branch that ends at `left`; yield the events.

        Raises NothingToCompact if it has no entries of its own, and what `submit` raises.
        """
        self._begin_run()
        self._compacting = True
        try:
            async with aclosing(self._stream_events(self._merge_branch(left))) as stream:
                async for event in stream:
                    yield event
        finally:
            self._compacting = False

    async def _merge_branch(self, left: Head) -> None:
        await merge_branch(self.build_run_context(), left)

    async def _run_compaction(self, recorder: Recorder, wish: CompactionRequest) -> None:
        await compact_branch(self._build_run_context(recorder, self.setup.model), wish)

    async def _stream_events(
        self, work: Coroutine[None, None, None]
    ) -> AsyncGenerator[events.Event, None]:
        """Run work in its own task and yield its events; closing the generator stops the work."""
        queue: asyncio.Queue[events.Event | None] = asyncio.Queue()
        leave = self.subscribe(queue.put_nowait)
        self._run = task = asyncio.create_task(work)
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            leave()
            await self._settle_task(task)
        if not task.cancelled():
            task.result()  # an error of gong is raised here, not sent as an event

    def _begin_run(self) -> None:
        if self.state is SessionState.CLOSED:
            raise SessionClosed("this session is closed")
        if self._compacting:
            raise SessionBusy("compaction_in_progress: wait for its end, or stop it")
        if self.state is SessionState.PROCESSING:
            raise SessionBusy("a prompt is being answered: steer it, or wait")
        self.state = SessionState.PROCESSING

    async def _settle_task(self, task: asyncio.Task[None]) -> None:
        """Stop the run if it has not ended, and wait for its end."""
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        self._run = None
        if self.state is SessionState.PROCESSING:
            self.state = SessionState.IDLE

    async def _answer_prompt(self, prompt: str) -> None:
        """One run: record the prompt as an entry, and run the loop to its end."""
        recorder = self.open_recorder(prompt)
        model = self.setup.model
        _record_model_change(recorder, model)
        entry = recorder.append(User((Text(prompt),)))
        self._emit_event(events.AgentStart(recorder.tape.id, recorder.branch, prompt, entry.id))
        for remark in recorder.skipped:
            self._emit_event(events.Warn(remark))
        recorder.skipped.clear()
        tally = _RunTally()
        leave = self.subscribe(tally.count_event)
        stop, parts = "aborted", self._build_run_context(recorder, model)
        naming = asyncio.create_task(self._name_session(parts, prompt, entry))
        try:
            outcome = await loop.run_loop(parts)
            stop = outcome.stop_reason
            self._emit_failure(outcome.error)
            await naming
        finally:
            naming.cancel()
            leave()
            self._emit_event(events.AgentEnd(stop, tally.turns, tally.usage))

    async def _name_session(self, parts: RunContext, prompt: str, entry: Entry) -> None:
        """Start giving a new session a title during its first run, if a title model is set."""
        namer = self.setup.namer
        if namer is not None and parts.record.path[0].n + 1 == entry.n:
            title = await name_session(parts, namer, prompt)
            if title is not None:
                self._emit_event(events.SessionNamed(title))

    def _emit_failure(self, error: ModelError | None) -> None:
        if error is not None:
            self._emit_event(
                events.RunFailure(
                    type(error).__name__, str(error), error.retryable, error.exit_code
                )
            )

    def open_recorder(self, prompt: str) -> Recorder:
        """Return the open branch, opening it for the first prompt."""
        if self.recorder is None:
            self.recorder = self.setup.open(prompt)
        return self.recorder

    def build_run_context(self) -> RunContext:
        """Return the loop's current inputs; the branch must be open."""
        assert self.recorder is not None, "the first prompt opens a branch"
        return self._build_run_context(self.recorder, self.setup.model)

    def _build_run_context(self, recorder: Recorder, model: AgentModel) -> RunContext:
        return RunContext(
            model=replace(model, stream=self._make_persistent(recorder, model)),
            tools=self.setup.tools,
            env=self.setup.env,
            policy=self.setup.policy,
            record=recorder,
            emit=self._emit_event,
            take_steering=lambda: _drain_queue(self._steering),
            steering_waits=lambda: bool(self._steering),
            take_follow_up=lambda: self._follow_ups.popleft() if self._follow_ups else None,
            clock=self.setup.clock,
            call_prefix=lambda: f"c_{self.setup.token(4)}",
            session=recorder.tape.id,
            room=self.setup.room,
            pressure=self.pressure,
            summariser=self._build_summariser(recorder),
            max_cost=self.setup.max_cost,
        )

    def _build_summariser(self, recorder: Recorder) -> AgentModel | None:
        model = self.setup.summariser
        return model and replace(model, stream=self._make_persistent(recorder, model))

    def _make_persistent(
        self, recorder: Recorder, model: AgentModel
    ) -> Callable[[Request], AsyncGenerator[StreamEvent, None]]:
        def on_retry(error: ModelError, attempt: int, delay: float) -> None:
            kind = type(error).__name__
            recorder.append(Error(kind, str(error), error.retryable, error.status))
            self._emit_event(events.Warn(f"{error} · try {attempt + 1} in {delay:.1f} s"))

        return lambda request: stream_with_retries(
            model.stream,
            request,
            self.setup.retry,
            sleep=asyncio.sleep,
            random=random.random,
            on_retry=on_retry,
        )

    def _emit_event(self, event: events.Event) -> None:
        """Call every watcher; one that raises is reported once to all, and the run continues."""
        for watcher in tuple(self._watchers):
            try:
                watcher(event)
            except Exception as error:  # noqa: BLE001 - a front end's bug must not stop the run
                self._report_watcher(watcher, error)

    def _report_watcher(self, watcher: Callable[[events.Event], None], error: Exception) -> None:
        if watcher not in self._failed:
            self._failed.append(watcher)
            said = f"a watcher of events failed: {format_error_line(error)}; this is reported once"
            self._emit_event(events.Warn(said, format_trace(error)))

    def steer(self, text: str) -> None:
        """Queue words for the model after the current step; if idle, for the next prompt."""
        self._steering.append(QueuedMessage(text, "steering"))

    def follow_up(self, text: str) -> None:
        """Queue words for when the current run has nothing left to do."""
        self._follow_ups.append(QueuedMessage(text, "follow_up"))

    def list_queued(self) -> tuple[str, ...]:
        """Return the queued input: steering, then follow-ups."""
        return tuple(one.text for one in (*self._steering, *self._follow_ups))

    def abort(self) -> None:
        """Stop the current run and record the interruption; does nothing when idle."""
        if self._run is not None:
            self._run.cancel()

    def use_model(self, model: AgentModel) -> None:
        """Use another model from the next run on."""
        self.setup = replace(self.setup, model=model)
        self.pressure.refused = self.pressure.warned = False

    def repeat_handoff(self, anchor: Anchor, to: str) -> None:
        """Set the newest anchor again for another model, if no message followed it."""
        repeat_handoff(self.build_run_context(), anchor, to)

    def undo(self, *, leave: bool = False) -> Anchor:
        """Undo the newest compaction or handoff; return its anchor, which stays on the tape.

        Raises NothingToUndo; see Recorder.undo_anchor.
        """
        if self.state is not SessionState.IDLE:
            raise SessionBusy("a prompt is being answered: stop it first, or wait")
        if self.recorder is None:
            raise NothingToUndo("the session is empty: there is nothing to undo")
        return self.recorder.undo_anchor(leave=leave)

    def fork(self, name: str | None = None) -> str:
        """Switch to a new branch that starts at the newest entry, and return its name.

        It becomes the tape's current branch, which `gong chat -c` continues.
        """
        if self.state is not SessionState.IDLE:
            raise SessionBusy("a prompt is being answered: stop it first, or wait")
        if self.recorder is None:
            raise ConfigurationError("the session is empty: there is nothing to fork")
        old = self.recorder
        old.barrier()
        branch = old.tape.fork(old.head(), name, switch=True)
        self.recorder = Recorder.open(old.tape, branch, durability=old.writer.durability)
        old.writer.close()
        return branch

    async def close(self) -> None:
        """Stop the run, and close branch and environment; safe to call twice."""
        if self._run is not None:
            await self._settle_task(self._run)
        if self.state is SessionState.CLOSED:
            return
        self.state = SessionState.CLOSED
        if self.recorder is not None:
            self.recorder.close()
        await self.setup.env.cleanup()


class _RunTally:
    """The totals of a run, also of a stopped one: model calls and tokens."""

    def __init__(self) -> None:
        self.turns, self.usage = 0, Usage()

    def count_event(self, event: events.Event) -> None:
        if isinstance(event, events.TurnStart):
            self.turns = event.turn
        elif isinstance(event, events.MessageEnd):
            self.usage += event.usage


def _drain_queue(queue: deque[QueuedMessage]) -> tuple[QueuedMessage, ...]:
    taken = tuple(queue)
    queue.clear()
    return taken


def _record_model_change(recorder: Recorder, model: AgentModel) -> None:
    """Record a change of model, so that the tape shows where it took effect."""
    last = find_last_model(recorder.path)
    if last is not None and last != f"{model.provider}/{model.id}":
        recorder.append(ModelEntry(model.provider, model.id))
