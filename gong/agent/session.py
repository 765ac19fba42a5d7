"""The session: one conversation on one branch; its queues, its state, one run at a time.

A front end submits prompts and reads events; it holds no logic of the agent. What a session knows
stands on the tape: close it anywhere and another can go on.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from tape.blocks import Text
from tape.clock import now
from tape.entries import Assistant, Error, Usage, User
from tape.entries import Model as ModelEntry

from ..errors import ConfigurationError, ModelError, SessionBusy, SessionClosed
from ..llm.retry import RetryPolicy, persistent
from ..policy import allow_all
from . import events, loop
from .parts import Model, Parts, Queued
from .record import Recorder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

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
        self._run: asyncio.Task[None] | None = None

    def subscribe(self, watcher: Callable[[events.Event], None]) -> Callable[[], None]:
        """Tell `watcher` every event from now on; the returned function ends that."""
        self._watchers.append(watcher)

        def leave() -> None:
            with suppress(ValueError):
                self._watchers.remove(watcher)

        return leave

    async def submit(self, prompt: str) -> AsyncGenerator[events.Event, None]:
        """Answer a prompt; yield the events of the run, `AgentEnd` last.

        Raises SessionBusy while another run is on, SessionClosed after `close`. Leaving the
        generator before its end stops the run.
        """
        self._begin(prompt)
        queue: asyncio.Queue[events.Event | None] = asyncio.Queue()
        leave = self.subscribe(queue.put_nowait)
        self._run = task = asyncio.create_task(self._answer(prompt))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            leave()
            await self._settle(task)
        if not task.cancelled():
            task.result()  # an error of ours is not an event: it is raised here

    def _begin(self, prompt: str) -> None:
        if self.state is SessionState.CLOSED:
            raise SessionClosed("this session is closed")
        if self.state is SessionState.PROCESSING:
            raise SessionBusy("a prompt is being answered: steer it, or wait")
        if not prompt.strip():
            raise ConfigurationError("the prompt is empty: say what to do")
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
        stop = "aborted"
        try:
            outcome = await loop.run(self._parts(recorder, model))
            stop = outcome.stop_reason
            self._tell(outcome.error)
        finally:
            leave()
            self._emit(events.AgentEnd(stop, tally.turns, tally.usage))

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
        )

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
        for watcher in tuple(self._watchers):
            watcher(event)

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
    last = _last_model(recorder.path)
    if last is not None and last != (model.provider, model.id):
        recorder.append(ModelEntry(model.provider, model.id))


def _last_model(path: Iterable[Entry]) -> tuple[str, str] | None:
    last = None
    for entry in path:
        if isinstance(entry.data, Assistant | ModelEntry):
            last = (entry.data.provider, entry.data.model)
    return last
