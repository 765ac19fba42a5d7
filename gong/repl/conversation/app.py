"""`gong chat` in a terminal: input goes to the session, its events come back as lines.

This module decides what keys mean, `screen` how things look, and `terminal` draws them. What
happens to input depends on the run (/commands are answered at once or refused):

    run                     Enter              Alt+Enter           Esc       Ctrl+C
    ----------------------  -----------------  ------------------  --------  ------------------
    none                    a new prompt       a new prompt        –         clears the line
    works                   steers it          queues a follow-up  stops it  stops it
    asks a question         answers it         queues a follow-up  stops it  stops it
    ends, stops, compacts   is held: it is     is held             stops it  stops it
    (`over`)                the next prompt

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
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_completions, has_focus, is_searching
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.patch_stdout import patch_stdout

from tape.errors import TapeError
from tape.text import clean_words, format_count

from ... import signals
from ...agent.events import (
    ApprovalRequested,
    CompactionEnd,
    CompactionStart,
    MessageQueued,
    PlanProposed,
    QuestionAsked,
    RunEnd,
    RunStart,
    SubagentEnd,
    TodosChanged,
    ToolExecutionEnd,
)
from ...errors import GongError
from ...policy.approval import ModalPolicy
from ...policy.modes import PermissionMode
from ..commands import mcp, skill
from ..commands.command import CommandReply, format_model_name
from ..commands.table import COMMANDS, answer_command, is_command
from ..draw.agent_cards import AgentCards, describe_end
from ..draw.lines import StyledLine, render_remark
from ..draw.panels import PLAN_CHOICES, OpenChoice, render_choices, render_queue, render_todos
from ..draw.past_turns import describe_changed_files, read_last_turns, render_last_turns
from ..draw.picker import choose_command
from ..draw.screen import Screen
from ..draw.side_pane import render_side_pane
from ..draw.status_line import (
    SessionUsage,
    StatusFacts,
    choose_next_mode,
    measure_usage,
    render_activity,
    render_status_line,
    update_usage,
)
from ..draw.terminal import Terminal
from ..typing.prompt_input import PromptInput
from .first_prompt import TWICE_SECONDS, TypedAhead
from .open_question import OpenQuestion

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from ...agent.events import Event
    from ...agent.recorder import Recorder
    from ...agent.session import Session
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


class _Dialogue:
    """Questions of one call, answered by one line each."""

    def __init__(self, event: QuestionAsked | PlanProposed) -> None:
        self.question_id = event.question_id
        self.is_plan = isinstance(event, PlanProposed)
        self.answers: list[tuple[str, ...]] = []
        self.has_draft = False
        """Whether the person was typing something else when the question came."""
        if isinstance(event, PlanProposed):
            approval = f"the mode is {event.mode} then"
            options = tuple(zip(PLAN_CHOICES, (approval, "say what is missing"), strict=True))
            self.choices = [OpenChoice("Continue with this plan?", options)]
        else:
            self.choices = [
                OpenChoice(
                    f"{one.header}: {one.question}" if one.header else one.question,
                    tuple((option.label, option.description) for option in one.options),
                    one.multi_select,
                )
                for one in event.questions
            ]

    @property
    def current(self) -> OpenChoice:
        """The question that the next line answers."""
        return self.choices[len(self.answers)]

    def take_line(self, line: str) -> bool:
        """Take a line as the answer to the current question; return whether it was the last."""
        self.answers.append(self.current.read_answer(line))
        return len(self.answers) == len(self.choices)

    def answer(self, session: Session) -> None:
        """Pass the answers on to the session."""
        if not self.is_plan:
            session.answer(self.question_id, self.answers)
            return
        said, (_, planning) = self.answers[0][0], PLAN_CHOICES
        is_approved = said.lower() in {"approve", "yes", "y", "ok"}
        reason = "" if is_approved or said == planning else said
        session.answer(self.question_id, approve=is_approved, reason=reason)


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
        self.host, self.session, self.clock = host, host.session, clock
        self.shown_turns, self.is_full_screen = shown_turns, full_screen
        self.agents = AgentCards(clock)
        self.screen = Screen(is_kept=host.is_kept)
        self.typing = PromptInput(
            host,
            {name: (one.argument, one.about) for name, one in COMMANDS.items()},
            lambda: self.terminal,
            lambda said: self.terminal.print(self.screen.reply(said, failed=False)),
        )
        self.question = OpenQuestion(self.session, lambda: self.terminal, clock)
        self.terminal = self._build_terminal(full_screen=full_screen)
        self.terminal.theme = host.models.settings.terminal.theme
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
        self.queued: list[str] = []
        """Ids of queued messages, oldest first, delivered ones too."""
        self.used = SessionUsage()
        self.interrupted = self.armed = -TWICE_SECONDS
        """When Ctrl+C was the last key; and its value before the current key."""
        self.escaped = -TWICE_SECONDS
        """When Esc was pressed while nothing ran."""
        self.terminal.run_before_keys(self._disarm_interrupt)
        self.asked: _Dialogue | None = None
        """The question of the model that the next lines answer."""
        self.todos = self.session.todos
        self.reported: set[str] = set()
        """The errors of keys and tasks that were said."""
        self.spoken = False
        self.exit_code = 0
        self.picks: Picker | None = None
        """The list that takes the place of the prompt."""
        self.opens: SessionChoice | None = None
        """The session that was chosen instead of this one."""

    def _build_terminal(self, *, full_screen: bool) -> Terminal:
        typing = self.typing
        parts = (
            *(self._list_live_lines, self._render_status, self._take_input, self._build_keys()),
            *(self._is_timed, typing.history, typing.completer, typing.expand_text),
        )
        if not full_screen:
            return Terminal(*parts)
        from ..draw.full_screen import FullScreenTerminal  # noqa: PLC0415 (only with --tui)

        return FullScreenTerminal(*parts, panes=self._list_pane_lines)

    def _list_pane_lines(self, columns: int) -> list[StyledLine]:
        return render_side_pane(self.session, self.used, self.todos, columns)

    async def serve_terminal(self, typed: TypedAhead) -> ConversationEnd:
        """Serve the terminal until the user quits, or chooses another session."""
        self._print_greeting()
        self.terminal.flush()
        self.used = measure_usage(self.session)
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
                try:
                    with (
                        signals.handle_signals(signals.HANG_UPS, self._handle_hang_up),
                        suppress(EOFError),
                    ):
                        await self._read_terminal(typed)
                finally:
                    drawing.cancel()
                    unsent = self._list_waiting()
                    self.held.clear()
                    self._stop_run()
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
        said = context["message"] if error is None else _describe_error(error)
        if said not in self.reported:  # one while drawing would come with each frame
            self.reported.add(said)
            self.terminal.print(self.screen.remark(said, "error"))

    async def _report_changed_files(self, recorder: Recorder) -> None:
        """Say which files somebody changed since the session that is continued."""
        folder = self.session.setup.env.working_directory
        if said := await asyncio.to_thread(describe_changed_files, recorder, folder):
            self.terminal.print(self.screen.remark(said))

    async def _read_terminal(self, typed: TypedAhead) -> None:
        """Read until the user leaves; a list that is asked for takes the place of the prompt."""
        lines, draft = typed.lines, typed.draft
        while True:
            await self.terminal.read(draft, on_start=partial(self._take_lines, lines))
            if self.picks is None:
                return
            draft, picks, self.picks = self.terminal.draft.text, self.picks, None
            self.terminal.flush()
            chosen = await choose_command(
                picks, self.terminal.style, full_screen=self.is_full_screen
            )
            lines = [chosen] if chosen else []

    def _build_keys(self) -> KeyBindings:
        keys = KeyBindings()
        busy, typing = Condition(self._is_busy), ~is_searching
        keys.add("c-c", filter=typing)(lambda _: self._handle_interrupt())
        keys.add("<sigint>")(lambda _: self._handle_interrupt())
        keys.add("escape", filter=~busy & typing)(lambda _: self._note_escape())
        bind = partial(self.typing.bind_action, keys)
        bind("stop", self._stop_run, busy & typing)
        bind("take_back", self._recall_queued)
        keys.add("up", filter=Condition(self._may_withdraw) & typing)(
            lambda _: self._recall_queued()
        )
        bind("follow_up", lambda: self._send_draft(self.session.follow_up))
        bind("interrupt", lambda: self._send_draft(self._stop_tools), typing)
        bind("mode", self._change_mode, ~has_completions)
        bind("expand", self._show_result, typing)
        bind("thinking", self._switch_thinking, typing)
        bind("newline", lambda: self.terminal.draft.insert_text("\n"), typing)
        self.typing.add_keys(keys)
        self.question.add_keys(keys)

        def is_escaped() -> bool:
            return self.terminal.draft.document.text_before_cursor.endswith("\\")

        @keys.add("enter", filter=Condition(is_escaped) & has_focus(DEFAULT_BUFFER))
        def break_line(_: object) -> None:
            """Replace the backslash before Enter by a new line."""
            self.terminal.draft.delete_before_cursor()
            self.terminal.draft.insert_text("\n")

        return keys

    def _may_withdraw(self) -> bool:
        """Whether Up withdraws a queued message: with words in the prompt it moves in them."""
        return not self.terminal.draft.text and bool(self._list_waiting())

    def _recall_queued(self) -> None:
        """Move the newest queued message back into the prompt, before what is typed there."""
        taken: str | None = self.held.pop() if self.held else None
        waiting = {message.id for message in self.session.list_waiting()}
        while taken is None and waiting:
            newest = next((one for one in reversed(self.queued) if one in waiting), max(waiting))
            waiting.discard(newest)
            taken = self.session.withdraw(newest)
            self.typing.attach_again(self.session.list_queued())
        if taken is not None:
            draft = self.terminal.draft
            text = f"{taken}\n{draft.text}" if draft.text else taken
            draft.set_document(Document(text, len(taken)))

    def _note_escape(self) -> None:
        """Offer to go back to an earlier prompt when Esc is pressed twice.

        A binding of two keys would not do: a lone Esc is only known as one after a while, and the
        first of two is handled by itself by then.
        """
        now, before = self.clock(), self.escaped
        self.escaped = now
        if now - before < TWICE_SECONDS / 2:
            self.escaped = -TWICE_SECONDS
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

    def _disarm_interrupt(self) -> None:
        """Clear the Ctrl+C state at each key; the key's own action runs afterwards."""
        self.armed, self.interrupted = self.interrupted, -TWICE_SECONDS
        self.question.note_early_words()

    def _is_timed(self) -> bool:
        """Whether the status line changes with time alone, or did a moment ago."""
        is_fresh = self.clock() - self.interrupted < TWICE_SECONDS + 1
        return self._is_busy() or is_fresh or not self.agents.is_empty

    def _is_busy(self) -> bool:
        return self.begun is not None

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
        elif self.asked is None and text.strip() in _LEAVING_WORDS:
            self.terminal.leave()
        elif self.asked is not None and not self.asked.has_draft:
            self._answer_choice(self.asked, clean_words(text))
        elif self._is_busy():
            self._send_words(text, self.session.steer)
            if self.asked is not None:
                self.asked.has_draft = False
        else:
            self._begin_prompt(text)

    def _answer_choice(self, asked: _Dialogue, line: str) -> None:
        """Take a line as the answer to the model's question; the last one goes to the session."""
        choice = asked.current
        is_last = asked.take_line(line)
        said = ", ".join(asked.answers[-1])
        self.terminal.print([*render_choices(choice), render_remark(f"answered {said}")])
        if is_last:
            self.asked = None
            asked.answer(self.session)

    def _take_lines(self, lines: Sequence[str]) -> None:
        for text in lines:
            self._take_input(text)

    def _stop_tools(self, text: str) -> None:
        """Stop the tools that run, and steer the agent."""
        self.session.steer(text, interrupt=True)

    def _send_draft(self, say: Callable[[str], object]) -> None:
        """Queue the draft in this way; while the agent is idle it is a prompt."""
        draft = self.terminal.draft
        if not self._is_busy() or is_command(draft.text):
            draft.validate_and_handle()
        elif draft.text.strip():
            self._send_words(self.terminal.expand_draft(), say)
            draft.reset(append_to_history=True)

    def _send_words(self, text: str, say: Callable[[str], object]) -> None:
        """Queue words for the current run, or hold them for the next if it takes no input."""
        if self.over:
            self.held.append(text)
        else:
            self.typing.attach_documents(text)
            say(clean_words(text))

    def _note_event(self, event: Event) -> None:
        """Note the state of a run as soon as its event is sent, before the event is shown."""
        self.used = update_usage(self.used, self.session, event)
        self._notify_user(event)
        match event:
            case RunStart() | CompactionStart() if self.stopping:
                self.session.abort()
            case MessageQueued(queued=queued):
                self.queued.append(queued)
            case ApprovalRequested():
                self.question.open(event)
                self._print_agent_question(event)
            case SubagentEnd(in_background=True):
                self.terminal.print([describe_end(event)])
            case QuestionAsked(waits=True) | PlanProposed(waits=True):
                self.asked = _Dialogue(event)
                self.asked.has_draft = bool(self.terminal.draft.text.strip())
            case TodosChanged(todos=todos):
                self.todos = todos
            case ToolExecutionEnd() if self.asked and self.asked.question_id == event.call_id:
                self.asked = None
            case RunEnd():
                self.over, self.asked = True, None
                self.question.forget()
            case CompactionEnd():
                self.compacted = True
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
                said = "gong waits for your answer"
            case RunEnd() if self.begun is not None and self.clock() - self.begun > _LONG_SECONDS:
                said = "gong has finished"
            case _:
                return
        self.terminal.notify(said, self.host.models.settings.terminal.notify)

    def _stop_run(self) -> None:
        self.over = self.stopping = True
        self.session.abort()

    def _handle_interrupt(self) -> None:
        """Stop the run, or clear the line; the second time within two seconds, quit."""
        now, before = self.clock(), max(self.armed, self.interrupted)
        self.interrupted = now
        if now - before < TWICE_SECONDS:
            self.terminal.leave()
        elif self._is_busy():
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
        if not self._is_busy():
            self._begin_prompt(text)
            return
        said = f"{text.split(maxsplit=1)[0]} has to wait for the agent: stop it with Esc first"
        self.terminal.print(self.screen.prompt(text))
        self.terminal.print(self.screen.reply(said, failed=True))

    def _run_command(self, text: str) -> None:
        who = "the compaction" if self.compacting else "the agent"
        reply = answer_command(text, self.host, busy=self._is_busy(), who=who)
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
            self._mark_begin(compacting=True)
            self.tasks.create_task(self._run(reply.work, reply.after))
            return
        self.terminal.print(self.screen.reply(reply.text, failed=reply.failed))
        if reply.draft and not self.terminal.draft.text:
            self.terminal.draft.insert_text(reply.draft)
        if not self._is_busy():
            self.used, self.todos = measure_usage(self.session), self.session.todos

    async def _print_later(self, later: Awaitable[CommandReply]) -> None:
        """Print what a command says once it has ended."""
        try:
            reply = await later
        except Exception as error:  # noqa: BLE001 (a fault of one command ends no session)
            reply = CommandReply(_describe_error(error), failed=True)
        self.terminal.print(self.screen.reply(reply.text, failed=reply.failed))

    def _begin_prompt(self, text: str) -> None:
        self._mark_begin()
        self.spoken = True
        self.terminal.print(self.screen.prompt(self.typing.fold_text(text)))
        self.typing.attach_documents(text)
        self.tasks.create_task(self._run(self.session.submit(clean_words(text))))

    def _mark_begin(self, *, compacting: bool = False) -> None:
        self.begun, self.stopping = self.clock(), False
        self.over = self.compacting = compacting
        self.compacted = False

    async def _run(
        self, work: AsyncGenerator[Event, None], after: Callable[[], str] = lambda: ""
    ) -> None:
        """Run work to its end, show what `after` returns, and become ready again.

        Input that was held starts the next run. A compaction that is stopped before it set its
        anchor records nothing.
        """
        try:
            async with aclosing(work) as stream:
                async for event in stream:
                    if not (isinstance(event, ApprovalRequested) and event.agent):  # shown already
                        self.terminal.print(self.screen.show(event, self.terminal.columns))
            if self.compacting and self.stopping and not self.compacted:
                self.terminal.print(self.screen.remark("stopped"))
            elif said := after():
                self.terminal.print(self.screen.reply(said, failed=False))
        except Exception as error:  # noqa: BLE001 (a fault of one run ends no session)
            self.terminal.print(self.screen.remark(_describe_error(error), "error"))
        self.begun, self.compacting = None, False
        self.screen.clear_run()
        self.used = measure_usage(self.session)
        if self.held:
            held, self.held = "\n".join(self.held), []
            self._begin_prompt(held)

    def _print_greeting(self) -> None:
        folder = self.session.setup.env.working_directory
        model = self._format_model(self.host.model_name, " · effort ")
        self.terminal.print([render_remark(f"gong · {model} · {folder} · /help")])
        if names := self.session.setup.model.instructions.names:
            self.terminal.print([render_remark(f"instructions: {', '.join(names)}")])
        policy = self.session.setup.policy
        if isinstance(policy, ModalPolicy) and policy.mode is PermissionMode.PLAN:
            self.terminal.print([render_remark("plan mode is on; /plan off ends it")])
        if (recorder := self.session.recorder) is not None:
            entries = recorder.path[-1].n + 1
            where = f"{recorder.tape.id[:8]}:{recorder.branch}"
            held = format_count(entries, "entry", "entries")
            self.terminal.print([render_remark(f"continuing {where}, {held}")])
            turns = read_last_turns(recorder, self.shown_turns)
            self.terminal.print([*render_last_turns(self.screen, turns, self.terminal.columns)])

    def _format_model(self, name: str, gap: str) -> str:
        """Return the name of the model, and how hard it thinks where that is set."""
        effort = self.session.setup.config.effort or self.session.setup.model.effort
        return f"{name}{gap}{effort}" if effort else name

    def _print_goodbye(self) -> None:
        recorder = self.session.recorder
        if self.spoken and recorder is not None and self.host.is_kept:
            where = f"{recorder.tape.id[:8]}:{recorder.branch}"
            refs = recorder.tape.refs()
            if self.opens is not None:
                back = "" if where == self.opens.ref else f" · back with: /resume {where}"
                self.terminal.print([render_remark(f"left session {where}{back}")])
                return
            current = refs.current == recorder.branch
            how = "-c" if current else f"--session {where}"
            said = [f"session {where} · continue with: gong chat {how}"]
            first, _, number = recorder.branch.rpartition(".")
            if number.isdecimal() and first in refs.branches and not current:
                into = "" if refs.current == first else f" --into {first}"
                said.append(f"bring it into {first} with: tape merge {where}{into}")
            self.terminal.print([render_remark(one) for one in said])

    def _list_live_lines(self) -> list[StyledLine]:
        columns = self.terminal.columns
        asked = [] if self.asked is None else render_choices(self.asked.current)
        todos = [] if asked else render_todos(self.todos, columns)
        live, queue = self.screen.live(columns), render_queue(self._list_waiting(), columns)
        shell = self.typing.render_output(columns)
        return [*live, *shell, *self.agents.render(columns), *todos, *asked, *queue]

    def _list_waiting(self) -> tuple[str, ...]:
        return (*self.session.list_queued(), *self.held)

    def _render_status(self) -> StyledLine:
        recorder, state = self.session.recorder, []
        again = self.clock() - self.interrupted < TWICE_SECONDS
        if again:
            state.append("Ctrl+C again quits")
        if awaited := self.question.describe_state():
            state.append(awaited)
        if self.begun is not None:
            if self.asked is not None:
                state.append("waits for your answer")
            doing = "" if self.asked is not None else self.screen.doing
            state += render_activity(self.clock() - self.begun, doing, self.screen.turn)
        elif not state:
            state.append("ready")
        facts = StatusFacts(
            self.session.permission,
            self._format_model(format_model_name(self.host), ":"),
            recorder.branch if recorder else "new session",
            self.used,
            len(self._list_waiting()),
            len(self.session.run_state.background.running),
            tuple(state),
        )
        line = render_status_line(facts, self.terminal.columns)
        return StyledLine(line, "error" if self.screen.has_failed else "")
