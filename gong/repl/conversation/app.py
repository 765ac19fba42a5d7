"""`gong chat` in a terminal: input goes to the session, its events come back as lines.

This module decides what keys mean, `screen` how things look, and `terminal` draws them. What
happens to input depends on the run (/commands are answered at once or refused):

    run                     Enter              Alt+Enter           Esc       Ctrl+C
    ----------------------  -----------------  ------------------  --------  ------------------
    none                    a new prompt       a new prompt        –         clears the line
    works                   steers it          queues a follow-up  stops it  stops it
    asks a question         answers it         queues a follow-up  stops it  stops it
    ends, stops, compacts   is held: it is     is held             stops it  stops it
    (`is_closing`)          the next prompt

A stop returns what waits to the prompt; after a run that failed it is sent before the next prompt.

A second Ctrl+C within two seconds quits. The status line shows permission mode · model:effort ·
context usage · cost · queue · tasks · branch · activity; usage is read after each answer, never
while keys are typed. Shift+Tab changes to the next permission mode:

    default ─▶ accept_edits ─▶ plan ─▶ default      (bypass after plan, if the session began in it;
    any other ─▶ default                             after bypass, default)
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from prompt_toolkit.document import Document
from prompt_toolkit.patch_stdout import patch_stdout

from tape.errors import TapeError
from tape.text import clean_words, shorten_to_width

from ... import signals
from ...agent.events import (
    ApprovalRequested,
    PlanProposed,
    QuestionAsked,
    RunEnd,
    SessionNamed,
    SubagentEnd,
    TodosChanged,
    Warn,
)
from ...context.remote_state import RemoteWatch
from ...env.wrappers import find_place_name, is_place
from ...errors import GongError
from ..commands import mcp, skill
from ..commands.command import CommandReply, format_model_name
from ..commands.table import COMMANDS, answer_command, is_command
from ..draw.agent_cards import AgentCards, describe_end
from ..draw.lines import StyledLine, render_remark
from ..draw.panels import render_queue, render_todos
from ..draw.past_turns import describe_changed_files
from ..draw.picker import choose_command
from ..draw.screen import Screen
from ..draw.side_pane import render_side_pane
from ..draw.status_line import (
    StatusFacts,
    choose_next_mode,
    render_activity,
    render_status_line,
)
from ..draw.terminal import Terminal
from ..typing.prompt_input import PromptInput
from .current_run import CurrentRun
from .first_prompt import TypedAhead
from .greeting import format_model, render_continuation, render_goodbye, render_greeting
from .keys import RepeatedKeys, bind_keys
from .model_question import OpenModelQuestion
from .open_question import OpenQuestion
from .session_meter import SessionMeter
from .waiting_input import WaitingInput

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from prompt_toolkit.key_binding import KeyBindings

    from ...agent.events import Event
    from ...agent.recorder import Recorder
    from ...assembly.open_session import OpenSession
    from ..commands.command import SessionChoice
    from ..draw.picker import Picker


_LEAVING_WORDS = frozenset({"exit", "quit"})
_LONG_SECONDS = 10.0
"""The user is told that a run is over if it took longer."""
_EXPECTED_ERRORS = (GongError, TapeError, OSError)
"""Errors that are shown as a line and do not end the session."""


def _describe_error(error: BaseException) -> str:
    """Return an error in one line; one that nobody expected says its kind."""
    if isinstance(error, _EXPECTED_ERRORS):
        return str(error)
    return f"internal error, the session continues: {type(error).__name__}: {error}"


class ConversationEnd(NamedTuple):
    """How a conversation ended."""

    exit_code: int = 0
    opens: SessionChoice | None = None
    """The session that the user chose instead; None to quit."""


async def run_conversation(
    host: OpenSession,
    typed: TypedAhead | None = None,
    *,
    shown_turns: int = 3,
    full_screen: bool = False,
    clock: Callable[[], float] = monotonic,
) -> ConversationEnd:
    """Run the terminal session until the user quits, or chooses another session.

    Of a session that is continued the last `shown_turns` are shown. It is inline, or takes the
    full screen.

    Standard input must be a terminal. The host is not closed. `typed` is the input from before.
    """
    with patch_stdout():  # output of other code is printed above the prompt
        conversation = _Conversation(host, clock, shown_turns, full_screen=full_screen)
        return await conversation.serve_terminal(typed or TypedAhead())


class _Conversation:
    """One conversation: its keys, its commands, and the current run."""

    def __init__(
        self,
        host: OpenSession,
        clock: Callable[[], float],
        shown_turns: int,
        *,
        full_screen: bool = False,
    ) -> None:
        self.host, self.session = host, host.session
        self.shown_turns, self.is_full_screen = shown_turns, full_screen
        self.agents = AgentCards(clock)
        self.screen = Screen(
            is_kept=host.is_kept,
            folder=host.session.setup.env.working_directory,
            count_rows=lambda: self.terminal.rows,
        )
        self.typing = PromptInput(
            host,
            {name: (command.argument, command.about) for name, command in COMMANDS.items()},
            lambda: self.terminal,
            lambda text: self.terminal.print(self.screen.reply(text, failed=False)),
        )
        self.question = OpenQuestion(self.session, lambda: self.terminal, self.screen, clock)
        self.model_question = OpenModelQuestion(
            self.session, lambda: self.terminal.draft, lambda: self.question.is_open, clock
        )
        self.run = CurrentRun(self.session.abort, clock)
        self.waiting = WaitingInput(self.session)
        self.presses = RepeatedKeys(clock)
        self.terminal = self._build_terminal(full_screen=full_screen)
        self.terminal.is_asking = lambda: self.question.is_open or self.model_question.is_open
        self.terminal.theme = host.models.settings.terminal.theme
        self.tasks = asyncio.TaskGroup()
        self.terminal.run_before_keys(self._note_key)
        self.meter = SessionMeter(self.session, host.library.store.open, self.terminal.refresh)
        self.remote = RemoteWatch(host.library.store)
        self.todos = self.session.todos
        self.reported: set[str] = set()
        """The errors of keys and tasks that were said."""
        self.spoken = False
        self.exit_code = 0
        self.picks: Picker | None = None
        """The list that takes the place of the prompt."""
        self.early_lines: list[str] = []
        """What was entered before that list was shown: it is searched for there."""
        self.opens: SessionChoice | None = None
        """The session that was chosen instead of this one."""

    def _build_terminal(self, *, full_screen: bool) -> Terminal:
        typing = self.typing
        parts = (
            *(self._list_live_lines, self._render_status, self._take_input, self._build_keys()),
            *(self._is_timed, typing.history, typing.completer, typing.expand_text),
        )
        if not full_screen:
            return Terminal(*parts, menu=typing.menu.render)
        from ..draw.full_screen import FullScreenTerminal  # only with --tui

        return FullScreenTerminal(*parts, menu=typing.menu.render, panes=self._list_pane_lines)

    def _list_pane_lines(self, columns: int) -> list[StyledLine]:
        return render_side_pane(self.session, self.meter.list_texts(), self.todos, columns)

    async def serve_terminal(self, typed: TypedAhead) -> ConversationEnd:
        """Serve the terminal until the user quits, or chooses another session."""
        self._print_greeting()
        self.terminal.flush()
        self.meter.measure_usage()
        loop = asyncio.get_running_loop()
        handle_error = loop.get_exception_handler()
        loop.set_exception_handler(lambda _, context: self._report_error(context))
        unsubscribe = self.session.subscribe(self._note_event)
        forget_agents = self.session.subscribe(self.agents.take_event, agents=True)
        try:
            async with self.tasks:
                drawing = self.tasks.create_task(self.terminal.draw())
                if (recorder := self.session.recorder) is not None:
                    self.tasks.create_task(self._report_changed_files(recorder))
                    self.meter.read_cost(self.tasks)
                try:
                    with (
                        signals.handle_signals(signals.HANG_UPS, self._handle_hang_up),
                        suppress(EOFError),
                    ):
                        await self._read_terminal(typed)
                finally:
                    drawing.cancel()
                    self.meter.stop_reading()
                    unsent = self.waiting.list_texts()
                    self.waiting.take_held()
                    self.run.stop()
        finally:
            loop.set_exception_handler(handle_error)
            unsubscribe()
            forget_agents()
        await self.typing.end_commands()
        self.terminal.close()
        self.terminal.print([render_remark(f"not sent: {text}") for text in unsent])
        self._print_goodbye()
        self.terminal.flush()
        return ConversationEnd(self.exit_code, self.opens)

    def _report_error(self, context: dict[str, Any]) -> None:
        """Say once what went wrong in a key, a command or a task that nobody waits for."""
        error = context.get("exception")
        text = context["message"] if error is None else _describe_error(error)
        if text not in self.reported:  # one while drawing would come with each frame
            self.reported.add(text)
            self.terminal.print(self.screen.remark(text, "error"))

    async def _report_changed_files(self, recorder: Recorder) -> None:
        """Say which files somebody changed since the session that is continued."""
        if is_place(self.session.setup.env):
            return  # the disk of this machine tells nothing of files there
        folder = self.session.setup.env.working_directory
        if remark := await asyncio.to_thread(describe_changed_files, recorder, folder):
            self.terminal.print(self.screen.remark(remark))

    async def _read_terminal(self, typed: TypedAhead) -> None:
        """Read until the user leaves; a list that is asked for takes the place of the prompt.

        Lines that were typed before what they are for was shown go to what is shown now.
        """
        lines, draft, at_start = typed.lines, typed.draft, True
        while True:
            await self.terminal.read(draft, on_start=partial(self._take_lines, lines, at_start))
            if self.picks is None:
                return
            draft, picks, self.picks = self.terminal.draft.text, self.picks, None
            words, self.early_lines = " ".join(self.early_lines), []
            self.terminal.flush()
            chosen = await choose_command(
                picks, self.terminal.style, words=words, full_screen=self.is_full_screen
            )
            self.terminal.print([line for text in chosen.done for line in self.screen.remark(text)])
            lines, at_start = [chosen.command] if chosen.command else [], False

    def _build_keys(self) -> KeyBindings:
        keys = bind_keys(
            self.typing,
            self.question,
            lambda: self.terminal.draft,
            lambda: self.run.is_active,
            self._may_take_back,
            {
                "interrupt_program": self._handle_interrupt,
                "escape": self._handle_escape,
                "stop": self._stop_run,
                "take_back": self._take_back,
                "follow_up": lambda: self._send_draft(self.session.follow_up),
                "interrupt": lambda: self._send_draft(self._stop_tools),
                "mode": self._change_mode,
                "expand": self._show_result,
                "thinking": self._switch_thinking,
            },
        )
        self.model_question.add_keys(keys)
        return keys

    def _may_take_back(self) -> bool:
        """Whether Up takes queued words back: with words in the prompt it moves in them."""
        return not self.terminal.draft.text and bool(self.waiting.list_texts())

    def _take_back(self) -> None:
        """Move the newest queued message back into the prompt, before what is typed there."""
        queued = self.session.list_queued()
        if (text := self.waiting.take_newest()) is None:
            return
        if (left := self.session.list_queued()) != queued:
            self.typing.attach_again(left)
        self._put_before_draft(text)

    def _put_before_draft(self, text: str) -> None:
        draft = self.terminal.draft
        draft.set_document(Document(f"{text}\n{draft.text}" if draft.text else text, len(text)))

    def _stop_run(self) -> None:
        """Stop the run; what waits for it returns to the prompt, before what is typed there.

        What is entered while it stops is meant for afterwards.
        """
        if not self.run.is_stopping and (texts := self._take_waiting()):
            self._put_before_draft("\n".join(texts))
        self.run.stop()

    def _take_waiting(self) -> list[str]:
        """Return all words that wait, in their order; none waits any longer."""
        texts = self.waiting.take_all()
        if texts:
            self.typing.attach_again(())
        return texts

    def _handle_escape(self) -> None:
        """Go back to an earlier prompt if Esc is pressed twice."""
        if self.presses.note_escape():
            self._run_command("/rewind")

    def _change_mode(self) -> None:
        """Change to the next permission mode; a session without modes says so."""
        session = self.session
        try:
            session.use_permission(choose_next_mode(session.permission, session.first_mode))
        except GongError as error:
            self.terminal.print([render_remark(str(error))])

    def _show_result(self) -> None:
        """Print the newest result of a tool in full."""
        event = self.screen.last_result
        try:
            text = self.session.read_output(event) if event else ""
        except _EXPECTED_ERRORS as error:
            self.terminal.print([render_remark(str(error), "error")])
            return
        self.terminal.print(self.screen.expand_result(text))

    def _switch_thinking(self) -> None:
        """Show thinking in full, or in one line; the last one is printed."""
        self.terminal.print(self.screen.switch_thinking(self.terminal.columns))

    def _note_key(self) -> None:
        """Note a key before its own action runs."""
        self.presses.note_key()
        self.question.note_key()
        self.model_question.note_key()

    def _is_timed(self) -> bool:
        """Whether the status line changes with time alone, or did a moment ago."""
        return self.run.is_active or self.presses.may_have_quit or not self.agents.is_empty

    def _take_input(self, text: str) -> None:
        """Handle input: a command, steering while the agent works, or a prompt.

        Bytes that are not UTF-8 stay in what may name a file: commands, and files after `@`.
        """
        if self.question.take_text(text):
            return
        if not text.strip():
            return
        if is_command(text):
            is_prompt = skill.is_skill(text, self.host, COMMANDS)
            is_prompt = is_prompt or mcp.is_server_prompt(text, self.host)
            (self._run_skill if is_prompt else self._run_command)(text)
        elif text.startswith("!") and text.strip("! \n"):
            self.terminal.print(self.screen.prompt(text))
            self.typing.run_shell(text)
            self.spoken = True
        elif not self.model_question.is_open and text.strip() in _LEAVING_WORDS:
            self.terminal.leave()
        elif self.model_question.takes_lines:
            self.model_question.take_line(clean_words(text))
        elif self.run.is_active:
            self._send_words(text, self.session.steer)
            self.model_question.end_draft()
        else:
            self._begin_prompt(text)

    def _take_lines(self, lines: Sequence[str], at_start: bool) -> None:
        """Take lines in turn, until one of them leaves this prompt; `at_start` the draft, too."""
        for place, text in enumerate(lines):
            self._take_input(text)
            if self.terminal.has_left:
                rest = [*lines[place + 1 :]]
                if at_start and (draft := self.terminal.draft).text:
                    rest.append(draft.text)
                    draft.reset()
                self._keep_early_lines(rest)
                return

    def _keep_early_lines(self, lines: Sequence[str]) -> None:
        """Keep lines for the list that is shown next, or for the prompt of the next session."""
        if self.opens is not None:
            draft = "\n".join(filter(None, (self.opens.draft, *lines)))
            self.opens = self.opens._replace(draft=draft)
        else:
            self.early_lines = [*lines]

    def _stop_tools(self, text: str) -> None:
        """Stop the tools that run, and steer the agent."""
        self.session.steer(text, interrupt=True)

    def _send_draft(self, say: Callable[[str], object]) -> None:
        """Queue the draft in this way; while the agent is idle it is a prompt."""
        draft = self.terminal.draft
        if not self.run.is_active or is_command(draft.text):
            draft.validate_and_handle()
        elif draft.text.strip():
            self._send_words(self.terminal.expand_draft(), say)
            draft.reset(append_to_history=True)

    def _send_words(self, text: str, say: Callable[[str], object]) -> None:
        """Queue words for the current run, or hold them for the next if it takes no input."""
        if self.run.is_closing:
            self.waiting.hold(text)
        else:
            self.typing.attach_documents(text)
            say(clean_words(text))

    def _note_event(self, event: Event) -> None:
        """Note the state of a run as soon as its event is sent, before the event is shown."""
        self.meter.take_event(event)
        self._notify_user(event)
        self.run.take_event(event)
        self.waiting.take_event(event)
        self.model_question.take_event(event)
        match event:
            case ApprovalRequested():
                self.question.open(event)
                self._print_agent_question(event)
            case SubagentEnd(in_background=True):
                self.terminal.print([describe_end(event)])
            case TodosChanged(todos=todos):
                self.todos = todos
            case RunEnd():
                self.question.forget()
            case SessionNamed():
                self.terminal.refresh()  # it has a cost
            case _:
                pass

    def _print_agent_question(self, event: ApprovalRequested) -> None:
        """Show what a sub-agent asks: it may do so while no run shows its events."""
        if event.agent:
            self.terminal.print(self.screen.show(event, self.terminal.columns))

    def _notify_user(self, event: Event) -> None:
        """Let the terminal tell its user that an answer is awaited, or that a long run is over."""
        match event:
            case ApprovalRequested() | QuestionAsked(waits=True) | PlanProposed(waits=True):
                message = "gong waits for your answer"
            case RunEnd() if self.run.seconds > _LONG_SECONDS:
                message = "gong has finished"
            case _:
                return
        self.terminal.notify(message, self.host.models.settings.terminal.notify)

    def _handle_interrupt(self) -> None:
        """Stop the run, or clear the line; the second time within two seconds, quit."""
        if self.presses.note_interrupt():
            self.terminal.leave()
        elif self.run.is_active:
            self._stop_run()
        elif self.typing.is_running:
            self.typing.stop_commands()
        else:
            self.terminal.draft.reset()

    def _handle_hang_up(self) -> None:
        """Quit because of a signal."""
        self.exit_code = signals.INTERRUPTED_EXIT
        self.terminal.leave()

    def _run_skill(self, text: str) -> None:
        """Send a line that names a skill, which the session takes apart."""
        if not self.run.is_active:
            self._begin_prompt(text)
            return
        reply = f"{text.split(maxsplit=1)[0]} has to wait for the agent: stop it with Esc first"
        self.terminal.print(self.screen.prompt(text))
        self.terminal.print(self.screen.reply(reply, failed=True))

    def _run_command(self, text: str) -> None:
        who = self.run.work_name or "the agent"
        reply = answer_command(text, self.host, busy=self.run.is_active, who=who)
        if reply.leaves:
            self.terminal.leave()
            return
        self.terminal.print(self.screen.prompt(text))
        if reply.picks is not None:
            if reply.text:
                self.terminal.print(self.screen.reply(reply.text, failed=False))
            self.picks = reply.picks
            self.terminal.leave()
            return
        if reply.types is not None:
            asyncio.get_running_loop().call_soon(reply.types, self.typing)
            return
        if reply.later is not None:
            self.tasks.create_task(self._print_later(reply.later))
            return
        if reply.opens is not None:
            self.opens = reply.opens
            self.terminal.leave()
            return
        if reply.work is not None:
            self.run.begin(reply.work_name)
            self.tasks.create_task(self._show_run(reply.work, reply.after))
            return
        self._print_reply(reply)

    def _print_reply(self, reply: CommandReply) -> None:
        """Print what a command says that has ended, and show what it has changed."""
        columns = self.terminal.columns
        self.terminal.print(self.screen.reply(reply.text, columns, failed=reply.failed))
        if reply.draft and not self.terminal.draft.text:
            self.terminal.draft.insert_text(reply.draft)
        if not self.run.is_active:
            self.meter.measure_usage()
            self.todos = self.session.todos
            self.meter.read_cost_again(self.tasks)

    async def _print_later(self, later: Awaitable[CommandReply]) -> None:
        """Print what a command says once it has ended."""
        try:
            reply = await later
        except Exception as error:  # noqa: BLE001 (a fault of one command ends no session)
            reply = CommandReply(_describe_error(error), failed=True)
        self.terminal.print(self.screen.reply(reply.text, failed=reply.failed))

    def _begin_prompt(self, text: str) -> None:
        """Begin a run with a prompt; what still waits after a failed run is sent before it."""
        if not is_command(text):
            text = "\n".join([*self._take_waiting(), text])
        self.run.begin()
        self.spoken = True
        self.terminal.print(self.screen.prompt(self.typing.fold_text(text)))
        self.typing.attach_documents(text)
        work = self.session.submit(clean_words(text))
        if self.typing.is_elsewhere:
            work = self._read_then(text, work)
        self.tasks.create_task(self._show_run(work))

    async def _read_then(
        self, text: str, work: AsyncGenerator[Event, None]
    ) -> AsyncGenerator[Event, None]:
        """Fetch the files that words name from another place before their run."""
        async with aclosing(work):
            await self.typing.attach_from_place(text)
            async for event in work:
                yield event

    async def _show_run(
        self, work: AsyncGenerator[Event, None], after: Callable[[], str] = lambda: ""
    ) -> None:
        """Run work to its end, show what `after` returns, and become ready again.

        Input that was held starts the next run. A compaction that is stopped before it set its
        anchor records nothing.
        """
        try:
            async with aclosing(work) as stream:
                async for event in stream:
                    # A sub-agent's question was printed at once; a retry is a row that changes.
                    is_live = isinstance(event, Warn) and event.retry is not None
                    if not is_live and not (isinstance(event, ApprovalRequested) and event.agent):
                        self.terminal.print(self.screen.show(event, self.terminal.columns))
            if self.run.was_stopped_in_compaction:
                self.terminal.print(self.screen.remark("stopped"))
            elif reply := after():
                self.terminal.print(self.screen.reply(reply, failed=False))
        except Exception as error:  # noqa: BLE001 (a fault of one run ends no session)
            self.terminal.print(self.screen.remark(_describe_error(error), "error"))
        self.run.end()
        self.screen.clear_run()
        self.meter.measure_usage()
        if not self.terminal.has_left and (held := self.waiting.take_held()):
            self._begin_prompt(held)

    def _print_greeting(self) -> None:
        columns = self.terminal.columns
        self.screen.note_columns(columns)
        self.terminal.print(render_greeting(self.session, self.host.model_name, columns))
        if (recorder := self.session.recorder) is not None:
            past = render_continuation(recorder, self.shown_turns, self.screen, columns)
            self.terminal.print(past)

    def _print_goodbye(self) -> None:
        recorder = self.session.recorder
        if self.spoken and recorder is not None and self.host.is_kept:
            self.terminal.print(render_goodbye(recorder, self.opens))

    def _list_live_lines(self) -> list[StyledLine]:
        columns = self.terminal.columns
        question = self.question.render(columns) or self.model_question.render(columns)
        todos = [] if question else render_todos(self.todos, columns)
        live, queue = self.screen.live(columns), render_queue(self.waiting.list_lines(), columns)
        shell = self.typing.render_output(columns)
        if retry := self.run.describe_retry():
            live.append(StyledLine(shorten_to_width(retry, columns), "error"))
        return [*live, *shell, *self.agents.render(columns), *todos, *question, *queue]

    def _render_status(self) -> StyledLine:
        recorder, state = self.session.recorder, []
        if self.presses.may_quit:
            state.append("Ctrl+C again quits")
        if awaited := self.question.describe_state():
            state.append(awaited)
        elif self.model_question.is_open:
            state.append("waits for your answer")
        elif self.run.is_active:
            state += render_activity(self.run.seconds, self.screen.doing, self.screen.turn)
        elif not state:
            state.append("ready")
        state += filter(None, [self.remote.describe()])
        facts = StatusFacts(
            self.session.permission,
            format_model(self.session, format_model_name(self.host), ":"),
            recorder.branch if recorder else "new session",
            self.meter.usage,
            self.meter.format_cost(),
            len(self.waiting.list_texts()),
            len(self.session.run_state.background.running),
            tuple(state),
            find_place_name(self.session.setup.env) if self.typing.is_elsewhere else "",
        )
        line = render_status_line(facts, self.terminal.columns)
        return StyledLine(line, "error" if self.screen.has_failed else "")
