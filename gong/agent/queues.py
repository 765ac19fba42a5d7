"""What waits between a session and its front ends: the user's input, and events out.

============  ===================================  =========================================
queue         put in by                            taken out by the loop
============  ===================================  =========================================
`steering`    `Session.steer`                      all at once, before the next model call
`follow_ups`  `Session.follow_up`                  one by one, when nothing else is left
events        `emit`, from everything in a run     at once by every watcher, in order
============  ===================================  =========================================

Input that waits is on the tape, so that a crash loses none: each line is a `custom` entry.

================  ==========================  =====================================
kind              data                        when
================  ==========================  =====================================
`gong.queued`     id, text, origin            it is queued; durable on return
`gong.delivered`  id, entry (of the context)  it was added to the conversation
`gong.withdrawn`  id                          it was withdrawn
================  ==========================  =====================================

A session that is opened on the branch finds what was queued and neither delivered nor withdrawn.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Raw, Struct

from tape.clock import format_timestamp, read_clock
from tape.model.entries import Custom
from tape.text import clean_words

from ..errors import ConfigurationError
from ..policy.decision import format_error_line, format_trace
from . import events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tape.model.line import Entry

    from .recorder import Recorder

    Watcher = Callable[[events.Event], None]

QUEUED, DELIVERED, WITHDRAWN = "gong.queued", "gong.delivered", "gong.withdrawn"

_FOLLOWING = (events.MessageQueued, events.MessageWithdrawn, events.ModelSelect)
"""What a person may do before the first prompt: it is told after the start of the session."""

Origin = Literal["steering", "follow_up"]


class QueuedMessage(Struct, frozen=True):
    """Input that waits."""

    id: str
    text: str
    origin: Origin


class _QueueMark(Struct, frozen=True):
    id: str
    entry: str | None = None


def find_queued(path: Sequence[Entry]) -> list[QueuedMessage]:
    """Return the input on a path that still waits, oldest first."""
    waiting: dict[str, QueuedMessage] = {}
    for entry in path:
        if entry.type != Custom.entry_type or not isinstance(entry.data, Custom):
            continue
        with suppress(msgspec.MsgspecError):  # another program's entry under our name
            if entry.data.kind == QUEUED:
                message = msgspec.json.decode(entry.data.data, type=QueuedMessage)
                waiting[message.id] = message
            elif entry.data.kind in {DELIVERED, WITHDRAWN}:
                waiting.pop(msgspec.json.decode(entry.data.data, type=_QueueMark).id, None)
    return [*waiting.values()]


def check_words(words: object, what: str) -> str:
    """Return words of a person as they are sent and kept; `what` names them.

    Raises ConfigurationError for anything but a text, and for one without a word.
    """
    if not isinstance(words, str):
        raise ConfigurationError(f"{what} is a text, not {words!r}")
    if not words.strip():
        raise ConfigurationError(f"{what} is empty: say what to do")
    return clean_words(words)


class SessionQueues:
    """The queues of one session."""

    def __init__(self) -> None:
        self.steering: deque[QueuedMessage] = deque()
        self.follow_ups: deque[QueuedMessage] = deque()
        self._tools: asyncio.Task[object] | None = None
        """The task of the tools that run now, which steering may interrupt."""
        self._interrupts = 0
        self._recorder: Recorder | None = None
        self._watchers: list[Watcher] = []
        self._failed: list[Watcher] = []
        """Watchers whose failure has been reported."""
        self._emitted = 0
        self._held: list[events.Event] | None = []
        """Events that wait for that of the session's start; None after it."""
        self.agent = ""
        """The id of the sub-agent whose session this is; empty for any other."""
        self._agent_watchers: set[Watcher] = set()
        """Those that are called with the events of sub-agents, too."""

    def attach(self, recorder: Recorder) -> None:
        """Record on this branch from now on, and take up the input that waits there."""
        if self._recorder is recorder:
            return
        # Input may have come before there was a branch, and some may wait on the tape from earlier.
        here = {message.id for message in self.list_waiting()}
        on_tape = find_queued((*recorder.kept, *recorder.path))
        self._recorder = recorder
        for message in self.list_waiting():
            if message.id not in {message.id for message in on_tape}:
                self._record(QUEUED, message)
        for message in on_tape:
            if message.id not in here:
                self._get_queue(message.origin).append(message)

    def put(self, text: str, origin: Origin) -> QueuedMessage:
        """Add input at the end of its queue; durable on return, where a branch is open."""
        message = QueuedMessage(f"q_{secrets.token_hex(4)}", text, origin)
        self._get_queue(origin).append(message)
        if self._recorder is not None:
            self._record(QUEUED, message)
            self._recorder.barrier()
        return message

    def withdraw(self, message_id: str) -> QueuedMessage | None:
        """Remove input and return it; None if it does not wait any more."""
        for queue in (self.steering, self.follow_ups):
            for message in queue:
                if message.id == message_id:
                    queue.remove(message)
                    self._record(WITHDRAWN, _QueueMark(message.id))
                    return message
        return None

    def record_delivery(self, message: QueuedMessage, entry: str) -> None:
        """Record that a message that was taken is in the conversation now, as this entry."""
        self._record(DELIVERED, _QueueMark(message.id, entry))

    def record_waiting(self) -> None:
        """Record again what waits: a new phase begins, and readers look no further back."""
        for message in self.list_waiting():
            self._record(QUEUED, message)

    def list_waiting(self) -> tuple[QueuedMessage, ...]:
        """Return the input that waits: steering, then follow-ups."""
        return (*self.steering, *self.follow_ups)

    def take_steering(self) -> tuple[QueuedMessage, ...]:
        """Return all steering and empty its queue."""
        taken = tuple(self.steering)
        self.steering.clear()
        return taken

    @contextmanager
    def allow_interrupt(self) -> Iterator[None]:
        """Let `interrupt` stop what runs inside, and nothing else of the task."""
        task = self._tools = asyncio.current_task()
        self._interrupts = 0
        assert task is not None, "tools run in the task of a run"
        try:
            yield
        except asyncio.CancelledError:
            # One cancellation is our own, by `interrupt`; any more are a stop of the whole run.
            if self._interrupts == 0 or task.uncancel() > 0:
                raise
        finally:
            self._tools = None

    def interrupt(self) -> None:
        """Stop the tools that run now; the run continues. Does nothing while none runs."""
        if self._tools is not None and not self._interrupts:
            self._interrupts = 1
            self._tools.cancel()

    def add_watcher(self, watcher: Watcher, *, agents: bool = False) -> Callable[[], None]:
        """Call `watcher` with every event from now on, until the returned function is called.

        With `agents` also with those of sub-agents.
        """
        self._watchers.append(watcher)
        if agents:
            self._agent_watchers.add(watcher)

        def leave() -> None:
            with suppress(ValueError):
                self._watchers.remove(watcher)
                self._agent_watchers.discard(watcher)
                self._failed.remove(watcher)

        return leave

    def emit(self, event: events.Event) -> None:
        """Call every watcher; one that raises is reported once to all, and the run continues.

        The start of the session comes before what a person did until then.
        """
        if self._held is not None and isinstance(event, _FOLLOWING):
            self._held.append(event)
            return
        held: list[events.Event] = []
        if isinstance(event, events.SessionStart):
            held, self._held = self._held or [], None
        self._emitted += 1
        recorder = self._recorder
        session, branch = (recorder.tape.id, recorder.branch) if recorder else ("", "")
        event.seal(format_timestamp(read_clock()), session, branch, self._emitted, self.agent)
        self._tell(event, tuple(self._watchers))
        for held_event in held:
            self.emit(held_event)

    def forward(self, event: events.Event) -> None:
        """Call those who watch sub-agents with an event of one."""
        self._tell(
            event, [watcher for watcher in self._watchers if watcher in self._agent_watchers]
        )

    def _tell(self, event: events.Event, watchers: Sequence[Watcher]) -> None:
        for watcher in watchers:
            try:
                watcher(event)
            except Exception as error:  # noqa: BLE001 - a front end's bug must not stop the run
                if watcher not in self._failed:
                    self._failed.append(watcher)
                    line = format_error_line(error)
                    text = f"a watcher of events failed: {line}; this is reported once"
                    self.emit(events.Warn(text, format_trace(error)))

    def _get_queue(self, origin: Origin) -> deque[QueuedMessage]:
        return self.steering if origin == "steering" else self.follow_ups

    def _record(self, kind: str, data: QueuedMessage | _QueueMark) -> None:
        if self._recorder is not None:
            self._recorder.append(Custom(kind, Raw(msgspec.json.encode(data))))
