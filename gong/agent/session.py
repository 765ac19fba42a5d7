"""The session: one conversation on one branch; its queues, its state, one run at a time.

A front end submits prompts and reads events; it holds no logic of the agent. What a session knows
stands on the tape: close it anywhere and another can go on.
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

from tape.blocks import Text
from tape.clock import now
from tape.entries import Anchor, Error, Usage, User
from tape.entries import Model as ModelEntry

from ..config import Compaction
from ..errors import (
    ConfigurationError,
    ModelError,
    NothingToCompact,
    NothingToUndo,
    SessionBusy,
    SessionClosed,
)
from ..llm.retry import RetryPolicy, persistent
from ..policy import allow_all
from ..policy.decision import account, explain
from . import events, loop
from .carrying import carry
from .compaction import Wish, compact, hand_on
from .parts import Model, Parts, Pressure, Queued
from .record import Recorder, last_model
from .titles import name_session

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine

    from tape.branches import Head
    from tape.line import Entry

    from ..env.protocol import ExecutionEnvironment
    from ..llm.types import Request, StreamEvent
    from ..policy import Policy
    from ..tools.registry import Registry


class SessionState(StrEnum):
    """Where a session is."""

    IDLE = "idle"
    PROCESSING = "processing"
    AWAITING_INPUT = "awaiting_input"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Setup:
    """What a session works with; change `model` between runs through `Session.use_model`."""

    model: Model
    tools: Registry
    env: ExecutionEnvironment
    open: Callable[[str], Recorder]
    """Opens the branch to write, given the first prompt; called once, at the first prompt."""
    policy: Policy = allow_all
    room: Compaction = Compaction(auto=False)  # noqa: RUF009 (frozen)
    """When and how the window is made free; a library's session does nothing by itself."""
    summariser: Model | None = None
    """Who writes summaries; None is `model`."""
    namer: Model | None = None
    """Who gives new sessions a title; None leaves them the first words of their first prompt."""
    max_cost: float = 0.0
    """Most USD that this session may spend; 0 is no limit."""
    retry: RetryPolicy = RetryPolicy()  # noqa: RUF009 (frozen)
    clock: Callable[[], int] = now
    token: Callable[[int], str] = secrets.token_hex
    """Returns random hex digits for that many bytes."""


class Session:
    """One conversation. Use it from one event loop, and close it."""

    def __init__(self, setup: Setup, recorder: Recorder | None = None) -> None:
        self.setup = setup
        self.recorder = recorder
        """The open branch; None until the first prompt of a new session."""
        self.state = SessionState.IDLE
        self._steering: deque[Queued] = deque()
        self._follow_ups: deque[Queued] = deque()
        self._watchers: list[Callable[[events.Event], None]] = []
        self._failed: list[Callable[[events.Event], None]] = []
        """Watchers whose failure was reported."""
        self._run: asyncio.Task[None] | None = None
        self._compacting = False
        self.pressure = Pressure()

    def subscribe(self, watcher: Callable[[events.Event], None]) -> Callable[[], None]:
        """Tell `watcher` every event from now on; the returned function ends that.

        What it raises stops nothing: the first time, everybody is told of it by a `Warn`.
        """
        self._watchers.append(watcher)

        def leave() -> None:
            with suppress(ValueError):
                self._watchers.remove(watcher)
                self._failed.remove(watcher)

        return leave

    async def submit(self, prompt: str) -> AsyncGenerator[events.Event, None]:
        """Answer a prompt; yield the events of the run, `AgentEnd` last.

        Raises SessionBusy while another run is on, SessionClosed after `close`. Leaving the
        generator before its end stops the run.
        """
        if not prompt.strip():
            raise ConfigurationError("the prompt is empty: say what to do")
        self._begin()
        async with aclosing(self._told(self._answer(prompt))) as stream:
            async for event in stream:
                yield event

    async def compact(self, wish: Wish) -> AsyncGenerator[events.Event, None]:
        """Make a summary of older messages and go on from it; yield the events meanwhile.

        Words that come in meanwhile wait. Raises NothingToCompact, and what `submit` raises.
        """
        if self.recorder is None:
            raise NothingToCompact("nothing was said yet, so there is nothing to compact")
        self._begin()
        self._compacting = True
        try:
            async with aclosing(self._told(self._compact(self.recorder, wish))) as stream:
                async for event in stream:
                    yield event
        finally:
            self._compacting = False

    async def carry(self, left: Head) -> AsyncGenerator[events.Event, None]:
        """Set an anchor that tells what the branch that ends at `left` did; yield the events.

        Raises NothingToCompact where it did nothing of its own, and what `submit` raises.
        """
        self._begin()
        self._compacting = True
        try:
            async with aclosing(self._told(self._carry(left))) as stream:
                async for event in stream:
                    yield event
        finally:
            self._compacting = False

    async def _carry(self, left: Head) -> None:
        await carry(self.parts(), left)

    async def _compact(self, recorder: Recorder, wish: Wish) -> None:
        await compact(self._parts(recorder, self.setup.model), wish)

    async def _told(self, work: Coroutine[None, None, None]) -> AsyncGenerator[events.Event, None]:
        """Do work in a task of its own and yield what it tells; leaving early stops it."""
        queue: asyncio.Queue[events.Event | None] = asyncio.Queue()
        leave = self.subscribe(queue.put_nowait)
        self._run = task = asyncio.create_task(work)
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            leave()
            await self._settle(task)
        if not task.cancelled():
            task.result()  # an error of ours is not an event: it is raised here

    def _begin(self) -> None:
        if self.state is SessionState.CLOSED:
            raise SessionClosed("this session is closed")
        if self._compacting:
            raise SessionBusy("compaction_in_progress: wait for its end, or stop it")
        if self.state is SessionState.PROCESSING:
            raise SessionBusy("a prompt is being answered: steer it, or wait")
        self.state = SessionState.PROCESSING

    async def _settle(self, task: asyncio.Task[None]) -> None:
        """Wait for the run to end, stopping it when it has not."""
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        self._run = None
        if self.state is SessionState.PROCESSING:
            self.state = SessionState.IDLE

    async def _answer(self, prompt: str) -> None:
        """One run: the prompt becomes an entry, and the loop serves it to the end."""
        recorder = self.opened(prompt)
        model = self.setup.model
        _note_model(recorder, model)
        entry = recorder.append(User((Text(prompt),)))
        self._emit(events.AgentStart(recorder.tape.id, recorder.branch, prompt, entry.id))
        for remark in recorder.skipped:
            self._emit(events.Warn(remark))
        recorder.skipped.clear()
        tally = _Tally()
        leave = self.subscribe(tally.watch)
        stop, parts = "aborted", self._parts(recorder, model)
        naming = asyncio.create_task(self._name(parts, prompt, entry))
        try:
            outcome = await loop.run(parts)
            stop = outcome.stop_reason
            self._tell(outcome.error)
            await naming
        finally:
            naming.cancel()
            leave()
            self._emit(events.AgentEnd(stop, tally.turns, tally.usage))

    async def _name(self, parts: Parts, prompt: str, entry: Entry) -> None:
        """Have a new session named while it is answered, where a model for that is set."""
        namer = self.setup.namer
        if namer is not None and parts.record.path[0].n + 1 == entry.n:
            title = await name_session(parts, namer, prompt)
            if title is not None:
                self._emit(events.Named(title))

    def _tell(self, error: ModelError | None) -> None:
        if error is not None:
            self._emit(
                events.Failure(type(error).__name__, str(error), error.retryable, error.exit_code)
            )

    def opened(self, prompt: str) -> Recorder:
        """Return the open branch, opening it for the first prompt."""
        if self.recorder is None:
            self.recorder = self.setup.open(prompt)
        return self.recorder

    def parts(self) -> Parts:
        """Return what the loop would work with now; the branch must be open."""
        assert self.recorder is not None, "the first prompt opens a branch"
        return self._parts(self.recorder, self.setup.model)

    def _parts(self, recorder: Recorder, model: Model) -> Parts:
        return Parts(
            model=replace(model, stream=self._persistent(recorder, model)),
            tools=self.setup.tools,
            env=self.setup.env,
            policy=self.setup.policy,
            record=recorder,
            emit=self._emit,
            take_steering=lambda: _drained(self._steering),
            steering_waits=lambda: bool(self._steering),
            take_follow_up=lambda: self._follow_ups.popleft() if self._follow_ups else None,
            clock=self.setup.clock,
            call_prefix=lambda: f"c_{self.setup.token(4)}",
            session=recorder.tape.id,
            room=self.setup.room,
            pressure=self.pressure,
            summariser=self._summariser(recorder),
            max_cost=self.setup.max_cost,
        )

    def _summariser(self, recorder: Recorder) -> Model | None:
        model = self.setup.summariser
        return model and replace(model, stream=self._persistent(recorder, model))

    def _persistent(
        self, recorder: Recorder, model: Model
    ) -> Callable[[Request], AsyncGenerator[StreamEvent, None]]:
        def on_retry(error: ModelError, attempt: int, delay: float) -> None:
            kind = type(error).__name__
            recorder.append(Error(kind, str(error), error.retryable, error.status))
            self._emit(events.Warn(f"{error} · try {attempt + 1} in {delay:.1f} s"))

        return lambda request: persistent(
            model.stream,
            request,
            self.setup.retry,
            sleep=asyncio.sleep,
            random=random.random,
            on_retry=on_retry,
        )

    def _emit(self, event: events.Event) -> None:
        """Tell every watcher; one that raises is reported once, to all, and the run goes on."""
        for watcher in tuple(self._watchers):
            try:
                watcher(event)
            except Exception as error:  # noqa: BLE001 - a front end's fault, not the run's
                self._report(watcher, error)

    def _report(self, watcher: Callable[[events.Event], None], error: Exception) -> None:
        if watcher not in self._failed:
            self._failed.append(watcher)
            said = f"a watcher of events failed: {explain(error)}; it will not be said again"
            self._emit(events.Warn(said, account(error)))

    def steer(self, text: str) -> None:
        """Put words before the model at the next border; with the next prompt when idle."""
        self._steering.append(Queued(text, "steering"))

    def follow_up(self, text: str) -> None:
        """Answer these words when the present run has nothing left to do."""
        self._follow_ups.append(Queued(text, "follow_up"))

    def queued(self) -> tuple[str, ...]:
        """Return what waits: steering, then follow-ups."""
        return tuple(one.text for one in (*self._steering, *self._follow_ups))

    def abort(self) -> None:
        """Stop the present run; what was interrupted is recorded. Nothing happens when idle."""
        if self._run is not None:
            self._run.cancel()

    def use_model(self, model: Model) -> None:
        """Answer with another model from the next run on."""
        self.setup = replace(self.setup, model=model)
        self.pressure.refused = self.pressure.warned = False

    def hand_on(self, anchor: Anchor, to: str) -> None:
        """Set the newest anchor once more, for another model: nothing was said since."""
        hand_on(self.parts(), anchor, to)

    def undo(self, *, leave: bool = False) -> Anchor:
        """Take the newest compaction or handoff back; return its anchor, which stays on the tape.

        Raises NothingToUndo; see Recorder.undo_anchor.
        """
        if self.state is not SessionState.IDLE:
            raise SessionBusy("a prompt is being answered: stop it first, or wait")
        if self.recorder is None:
            raise NothingToUndo("nothing was said yet, so there is nothing to undo")
        return self.recorder.undo_anchor(leave=leave)

    def fork(self, name: str | None = None) -> str:
        """Go on in a new branch that begins at the newest entry, and return its name.

        It becomes the tape's current branch, so that whoever continues finds what was last said.
        """
        if self.state is not SessionState.IDLE:
            raise SessionBusy("a prompt is being answered: stop it first, or wait")
        if self.recorder is None:
            raise ConfigurationError("nothing was said yet, so there is nothing to fork")
        old = self.recorder
        old.barrier()
        branch = old.tape.fork(old.head(), name, switch=True)
        self.recorder = Recorder.open(old.tape, branch, durability=old.writer.durability)
        old.writer.close()
        return branch

    async def close(self) -> None:
        """Stop what runs and let go of branch and environment; doing so twice is fine."""
        if self._run is not None:
            await self._settle(self._run)
        if self.state is SessionState.CLOSED:
            return
        self.state = SessionState.CLOSED
        if self.recorder is not None:
            self.recorder.close()
        await self.setup.env.cleanup()


class _Tally:
    """What a run came to, also when it is stopped: model calls and tokens."""

    def __init__(self) -> None:
        self.turns, self.usage = 0, Usage()

    def watch(self, event: events.Event) -> None:
        if isinstance(event, events.TurnStart):
            self.turns = event.turn
        elif isinstance(event, events.MessageEnd):
            self.usage += event.usage


def _drained(queue: deque[Queued]) -> tuple[Queued, ...]:
    taken = tuple(queue)
    queue.clear()
    return taken


def _note_model(recorder: Recorder, model: Model) -> None:
    """Record a change of model, so that the tape says from where on it answered."""
    last = last_model(recorder.path)
    if last is not None and last != f"{model.provider}/{model.id}":
        recorder.append(ModelEntry(model.provider, model.id))
