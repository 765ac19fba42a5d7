"""`gong chat` in a terminal: input goes to the session, its events come back as lines.

This module decides what keys mean, `screen` how things look, and `terminal` draws them.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from time import monotonic
from typing import TYPE_CHECKING

from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.patch_stdout import patch_stdout

from tape.errors import TapeError

from .. import signals
from ..agent.events import AgentEnd, AgentStart, CompactionEnd, CompactionStart
from ..errors import GongError
from . import commands
from .lines import counted, queued_lines, remark, seconds
from .screen import Screen
from .status import Use, bottom, use, use_after
from .terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from ..agent.events import Event
    from ..agent.opening import Host
    from .lines import Line

TWICE_SECONDS = 2.0
"""A second Ctrl+C within this time quits."""
INTERRUPTED = 130
_ERRORS = (GongError, TapeError, OSError)
"""Errors that are shown as a line and do not end the session."""


async def chat(host: Host, *, clock: Callable[[], float] = monotonic) -> int:
    """Run the terminal session until the user quits; return the exit code.

    Standard input must be a terminal. The host is not closed.
    """
    with patch_stdout():  # output of other code is printed above the prompt
        return await _Conversation(host, clock).hold()


class _Conversation:
    """One conversation: its keys, its commands, and the current run."""

    def __init__(self, host: Host, clock: Callable[[], float]) -> None:
        self.host, self.session, self.clock = host, host.session, clock
        self.screen = Screen()
        self.terminal = Terminal(self._live, self._status, self._enter, self._keys())
        self.tasks = asyncio.TaskGroup()
        self.begun: float | None = None
        """When the current run began; None while nothing runs."""
        self.over = False
        """Whether the current run takes no more input, because it ends or is being stopped."""
        self.stopping = False
        """Whether a stop of the current run was requested, even before it started."""
        self.compacting = False
        """Whether the current run is a compaction or a handoff."""
        self.compacted = False
        """Whether that compaction or handoff has set its anchor."""
        self.held: list[str] = []
        """Input entered while `over`; it becomes the next prompt."""
        self.used = Use()
        self.interrupted = self.armed = -TWICE_SECONDS
        """When Ctrl+C was the last key; and its value before the current key."""
        self.terminal.before_each_key(self._disarm)
        self.spoken = False
        self.exit_code = 0

    async def hold(self) -> int:
        """Serve the terminal until the user quits; return the exit code."""
        self._greet()
        self.terminal.flush()
        self.used = use(self.session)
        unsubscribe = self.session.subscribe(self._watch)
        try:
            async with self.tasks:
                drawing = self.tasks.create_task(self.terminal.draw())
                try:
                    with signals.handled(signals.HANG_UPS, self._end), suppress(EOFError):
                        await self.terminal.read()
                finally:
                    drawing.cancel()
                    unsent = self._waiting()
                    self.held.clear()
                    self._stop()
        finally:
            unsubscribe()
        self.terminal.print([remark(f"not sent: {text}") for text in unsent])
        self._say_goodbye()
        self.terminal.flush()
        return self.exit_code

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        keys.add("c-c")(lambda _: self._interrupt())
        keys.add("<sigint>")(lambda _: self._interrupt())
        keys.add("escape", filter=Condition(self._busy))(lambda _: self._stop())
        keys.add("escape", "enter")(lambda _: self._follow_up())
        keys.add("c-j")(lambda _: self.terminal.draft.insert_text("\n"))
        escaped = Condition(self._is_enter_escaped) & has_focus(DEFAULT_BUFFER)
        keys.add("enter", filter=escaped)(lambda _: self._break_line())
        return keys

    def _is_enter_escaped(self) -> bool:
        return self.terminal.draft.document.text_before_cursor.endswith("\\")

    def _break_line(self) -> None:
        """Replace the backslash before Enter by a new line."""
        draft = self.terminal.draft
        draft.delete_before_cursor()
        draft.insert_text("\n")

    def _disarm(self) -> None:
        """Clear the Ctrl+C state at each key; the key's own action runs afterwards."""
        self.armed, self.interrupted = self.interrupted, -TWICE_SECONDS

    def _busy(self) -> bool:
        return self.begun is not None

    def _enter(self, text: str) -> None:
        """Handle input: a command, steering while the agent works, or a prompt."""
        if not text.strip():
            return
        if commands.is_command(text):
            self._command(text)
        elif self._busy():
            self._say(text, self.session.steer)
        else:
            self._begin(text)

    def _follow_up(self) -> None:
        """Queue the draft as a follow-up for when the agent is done."""
        draft = self.terminal.draft
        if not self._busy() or commands.is_command(draft.text):
            draft.validate_and_handle()
        elif draft.text.strip():
            self._say(draft.text, self.session.follow_up)
            draft.reset(append_to_history=True)

    def _say(self, text: str, say: Callable[[str], None]) -> None:
        """Queue words for the current run, or hold them for the next if it takes no input."""
        if self.over:
            self.held.append(text)
        else:
            say(text)

    def _watch(self, event: Event) -> None:
        """Note the state of a run as soon as its event is sent, before the event is shown."""
        self.used = use_after(self.used, self.session, event)
        match event:
            case AgentStart() | CompactionStart() if self.stopping:
                self.session.abort()
            case AgentEnd():
                self.over = True
            case CompactionEnd():
                self.compacted = True
            case _:
                pass

    def _stop(self) -> None:
        self.over = self.stopping = True
        self.session.abort()

    def _interrupt(self) -> None:
        """Stop the run, or clear the line; the second time within two seconds, quit."""
        now, before = self.clock(), max(self.armed, self.interrupted)
        self.interrupted = now
        if now - before < TWICE_SECONDS:
            self.terminal.leave()
        elif self._busy():
            self._stop()
        else:
            self.terminal.draft.reset()

    def _end(self) -> None:
        """Quit because of a signal."""
        self.exit_code = INTERRUPTED
        self.terminal.leave()

    def _command(self, text: str) -> None:
        who = "the compaction" if self.compacting else "the agent"
        reply = commands.answer(text, self.host, busy=self._busy(), who=who)
        if reply.leaves:
            self.terminal.leave()
            return
        self.terminal.print(self.screen.prompt(text))
        if reply.work is not None:
            self._note_begin(compacting=True)
            self.tasks.create_task(self._compact(reply.work, reply.after))
            return
        self.terminal.print(self.screen.reply(reply.text, failed=reply.failed))
        if not self._busy():
            self.used = use(self.session)

    def _begin(self, text: str) -> None:
        self._note_begin()
        self.spoken = True
        self.terminal.print(self.screen.prompt(text))
        self.tasks.create_task(self._serve(self.session.submit(text)))

    def _note_begin(self, *, compacting: bool = False) -> None:
        self.begun, self.stopping = self.clock(), False
        self.over = self.compacting = compacting
        self.compacted = False

    async def _compact(self, work: AsyncGenerator[Event, None], after: Callable[[], str]) -> None:
        """Run a compaction to its end and show the result; a stopped one records nothing."""
        if await self._shown(work):
            if self.stopping and not self.compacted:
                self.terminal.print(self.screen.remark("stopped"))
            elif said := self._said(after):
                self.terminal.print(said)
        self._go_on()

    def _said(self, after: Callable[[], str]) -> list[Line]:
        try:
            said = after()
        except _ERRORS as error:
            return self.screen.remark(str(error), "error")
        return self.screen.reply(said, failed=False) if said else []

    async def _serve(self, work: AsyncGenerator[Event, None]) -> None:
        await self._shown(work)
        self._go_on()

    def _go_on(self) -> None:
        """Become ready again, and start a run with the input that was held."""
        self.begun, self.compacting = None, False
        self.screen.rest()
        self.used = use(self.session)
        if self.held:
            held, self.held = "\n".join(self.held), []
            self._begin(held)

    async def _shown(self, work: AsyncGenerator[Event, None]) -> bool:
        """Show events; return False after an error, which is shown as a line."""
        try:
            async with aclosing(work) as stream:
                async for event in stream:
                    self.terminal.print(self.screen.show(event, self.terminal.columns))
        except _ERRORS as error:
            self.terminal.print(self.screen.remark(str(error), "error"))
            return False
        return True

    def _greet(self) -> None:
        folder = self.session.setup.env.working_directory
        self.terminal.print([remark(f"gong · {self.host.model_name} · {folder} · /help")])
        if (recorder := self.session.recorder) is not None:
            entries = recorder.path[-1].n + 1
            where = f"{recorder.tape.id[:8]}:{recorder.branch}"
            held = counted(entries, "entry", "entries")
            self.terminal.print([remark(f"continuing {where}, {held}")])

    def _say_goodbye(self) -> None:
        recorder = self.session.recorder
        if self.spoken and recorder is not None:
            where = f"{recorder.tape.id[:8]}:{recorder.branch}"
            current = recorder.tape.refs().current == recorder.branch
            how = "-c" if current else f"--session {where}"
            self.terminal.print([remark(f"session {where} · continue with: gong chat {how}")])

    def _live(self) -> list[Line]:
        columns = self.terminal.columns
        return [*self.screen.live(columns), *queued_lines(self._waiting(), columns)]

    def _waiting(self) -> tuple[str, ...]:
        return (*self.session.queued(), *self.held)

    def _status(self) -> str:
        recorder = self.session.recorder
        return bottom(
            commands.model_name(self.host),
            recorder.branch if recorder else "new session",
            self.used,
            [*self._state()],
            len(self._waiting()),
            self.terminal.columns,
        )

    def _state(self) -> Iterator[str]:
        again = self.clock() - self.interrupted < TWICE_SECONDS
        if again:
            yield "Ctrl+C again quits"
        if self.begun is not None:
            yield f"working {seconds(self.clock() - self.begun)}"
            if self.screen.doing:
                yield self.screen.doing
        elif not again:
            yield "ready"
