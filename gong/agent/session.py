"""The session: one conversation on one branch; its queues, its state, one run at a time.

A front end submits prompts and reads events. The facts of a session are on the tape: close it at
any time, and another session can continue.

    state           submit, compact, merge   a question   its answer    end, abort   close
    --------------  ----------------------   ----------   -----------   ----------   ---------------
    idle            processing               –            –             –            closed
    processing      raises SessionBusy       awaiting     –             idle         closed, after
    awaiting_input  raises SessionBusy       –            processing    idle         closed, after
    closed          raises SessionClosed     –            –             –            closed

Input during a run goes to its queues (`steer`, `follow_up`); input while idle waits there for the
next run.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from tape.context.view import Message
from tape.model.entries import Context, Text, Usage, User, join_texts
from tape.text import clean_words

from ..context.sent_history import HistoryFold
from ..env.wrappers import find_place_name
from ..errors import (
    AuthenticationError,
    ConfigurationError,
    ModelError,
    NothingToCompact,
    NothingToRetry,
    NothingToUndo,
    OperationCancelled,
    SessionBusy,
    SessionClosed,
)
from ..policy.approval import ModalPolicy, find_mode
from ..setting_values import Amount, check_value
from . import events
from .approvals import Approvals
from .compaction import compact_branch
from .dialogue import SessionDialogue, ends_with_question, find_todos
from .documents import find_waiting_outputs, record_documents, record_output
from .loop import record_model, run_loop
from .model_call import is_first_prompt, name_session
from .queues import check_words
from .recorder import Recorder, describe_stop, find_open_prompt, has_agents
from .run_context import STOPPED_BY_USER, RunContext, RunState
from .session_controls import SessionControls
from .skill_use import begin_skill, end_skills, find_prompt_skill, record_prompt_skill
from .tool_sources import attach_mentions, close_sources

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Callable,
        Coroutine,
        Mapping,
    )

    from tape.model.entries import Anchor
    from tape.model.line import Entry

    from ..checkpoints.rewind import RewindPlan, RewindReport
    from ..errors import NoObject
    from ..policy.approval import Answer
    from ..skills.session_skills import SkillUse
    from ..tools.dialogue import Todo
    from .compaction import CompactionRequest
    from .dialogue import Answers
    from .documents import AttachedDocument
    from .loop import RunOutcome
    from .queues import Origin, QueuedMessage
    from .setup import SessionSetup


_OWN_SESSION: ContextVar[Session | None] = ContextVar("gong_own_session", default=None)
"""The session that the current code is a part of a run of: a hook, a tool, or a thread of it."""


class SessionState(StrEnum):
    """The state of a session."""

    IDLE = "idle"
    PROCESSING = "processing"
    AWAITING_INPUT = "awaiting_input"
    """A question is open: during a run, or as the end of the newest answer."""
    CLOSED = "closed"


class Session(SessionControls):
    """One conversation. Use it from one event loop, and close it."""

    def __init__(self, setup: SessionSetup, recorder: Recorder | None = None) -> None:
        super().__init__(setup, recorder)
        self.state = SessionState.IDLE
        if recorder is not None:
            self._queues.attach(recorder)
        setup.hooks.begin(self._queues.emit, lambda: find_mode(self.setup.policy))
        if setup.hooks.has_watchers:
            self.subscribe(setup.hooks.watch_event)
        self._attach_hooks(setup.policy)
        self._run: asyncio.Task[object] | None = None
        self._compacting = False
        self._is_asking = False
        """Whether the newest answer ends with a question."""
        self._has_no_key = False
        """Whether the provider refused the key of a session that closes then."""
        self._is_announced = False
        """Whether the start of the session was emitted."""
        self._naming: asyncio.Task[None] | None = None
        """Asks a model for the title; nothing waits for it."""
        self._approvals = Approvals(self._queues.emit, self._note_question)
        self._dialogue = SessionDialogue(
            self._queues.emit,
            self._note_question,
            self._record,
            lambda: self.setup.policy,
            lambda: self.setup.tools.active,
        )
        self.first_mode = find_mode(setup.policy)
        """The permission mode that the settings and flags named."""
        if recorder is not None:
            self._dialogue.follow_path((*recorder.kept, *recorder.path))
            self.run_state.documents += find_waiting_outputs((*recorder.kept, *recorder.path))

    def subscribe(
        self, watcher: Callable[[events.Event], None], *, agents: bool = False
    ) -> Callable[[], None]:
        """Call `watcher` with every event from now on; call the returned function to stop.

        With `agents` also with the events of sub-agents, whose `agent` is its id.
        An exception in it does not stop the run: the first one is reported as a `Warn` event.
        """
        return self._queues.add_watcher(watcher, agents=agents)

    def submit(self, prompt: str, *, agents: bool = False) -> AsyncGenerator[events.Event, None]:
        """Answer a prompt; yield the events of the run, `AgentEnd` last.

        With `agents` also those of sub-agents, whose `agent` is its id.
        Raises SessionBusy during another run, SessionClosed after `close`, ConfigurationError for
        an empty prompt. Leaving the generator before its end stops the run.
        """
        return self.stream_work(partial(self._answer_prompt, prompt), agents=agents)

    def retry(self) -> AsyncGenerator[events.Event, None]:
        """Ask the model again where the branch ends, as after a failure; yield the events.

        Raises NothingToRetry where its last answer is complete, and what `submit` raises.
        """
        return self.stream_work(self._answer_again)

    def compact(self, request: CompactionRequest) -> AsyncGenerator[events.Event, None]:
        """Replace older messages by a summary; yield the events.

        Input that arrives meanwhile is queued. Raises NothingToCompact, and what `submit` raises.
        """

        async def run_compaction() -> None:
            if self.recorder is None:
                raise NothingToCompact("the session is empty: there is nothing to compact")
            await compact_branch(self.build_run_context(), request)

        return self.stream_work(run_compaction, compacting=True)

    async def stream_work(
        self,
        work: Callable[[], Coroutine[None, None, object]],
        *,
        compacting: bool = False,
        agents: bool = False,
    ) -> AsyncGenerator[events.Event, None]:
        """Run work in its own task and yield its events; closing the generator stops the work."""
        if self.state is SessionState.CLOSED:
            raise SessionClosed("this session is closed")
        if self._compacting:
            raise SessionBusy("compaction_in_progress: wait for its end, or stop it")
        if self._is_busy:
            raise SessionBusy("a prompt is being answered: steer it, or wait")
        if self.recorder is not None:
            self.recorder.record_folder()
        self.state, self._compacting = SessionState.PROCESSING, compacting
        queue: asyncio.Queue[events.Event | None] = asyncio.Queue()
        leave = self.subscribe(queue.put_nowait, agents=agents)
        token = _OWN_SESSION.set(self)
        self._run = task = asyncio.create_task(work())
        _OWN_SESSION.reset(token)
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            leave()
            # Also where the front end leaves the loop early: no run outlives its generator.
            await self._settle_task(task)
            self._compacting = False
            if self._has_no_key:
                await self.close()
        if not task.cancelled():
            task.result()  # an error of gong is raised here, not sent as an event

    async def _settle_task(self, task: asyncio.Task[object]) -> None:
        """Stop the run if it has not ended, and wait for its end."""
        if not task.done():
            self._stop_agents()
            task.cancel()
            await asyncio.wait({task})
        self._run = None
        self._settle_state()

    def _settle_state(self) -> None:
        """Wait for the next prompt: as an answer, if the model ended with a question."""
        if self.state is not SessionState.CLOSED:
            asks = self._is_asking
            self.state = SessionState.AWAITING_INPUT if asks else SessionState.IDLE

    @property
    def _is_busy(self) -> bool:
        return self.state is SessionState.PROCESSING or self._run is not None

    async def _answer_prompt(self, prompt: str) -> None:
        """One run: record the prompt as an entry, and run the loop to its end."""
        prompt = check_words(prompt, "the prompt")
        self._is_asking = False
        hooks = self.setup.hooks
        taken = await hooks.take_input(prompt, self._open_for_hooks())
        if taken is None:
            return
        prompt = clean_words(taken)
        skill = find_prompt_skill(self, prompt)
        recorder = self.open_recorder(prompt)
        context = self.build_run_context()
        prompt = clean_words(await hooks.begin_run(recorder, prompt, self._build_system))
        before = begin_skill(self, skill)
        record_model(context)
        if (note := describe_stop(recorder.path)) is not None:
            recorder.append(Context("user", "note", (Text(note),)))
        entry = recorder.append(User((Text(prompt),)))
        hooks.record_contexts(recorder)
        record_documents(recorder, self.run_state.documents)
        self._settle_lost_agents(recorder)
        context.emit(events.UserInput(prompt, entry.id))
        try:
            await self._run_to_end(context, prompt, entry, skill)
        finally:
            end_skills(self, before)

    async def _answer_again(self) -> None:
        """One run: of the prompt that the path ends with, as it is."""
        recorder = self.recorder
        entry = find_open_prompt((*recorder.kept, *recorder.path)) if recorder else None
        if entry is None:
            raise NothingToRetry("the last answer is complete: there is nothing to retry")
        self._is_asking = False
        context = self.build_run_context()
        record_model(context)
        prompt = join_texts(entry.data.content) if isinstance(entry.data, User | Context) else ""
        await self._run_to_end(context, prompt, entry, None)

    async def _run_to_end(
        self, context: RunContext, prompt: str, entry: Entry, skill: SkillUse | None
    ) -> None:
        """Run the loop, and report how it ended; `entry` is that of the prompt."""
        recorder = context.recorder
        context.emit(events.RunStart(prompt, entry.id))
        for remark in recorder.skipped:
            context.emit(events.Warn(remark))
        recorder.skipped.clear()
        tally, stop = _RunTally(self.setup.agent), "aborted"
        started_at = self.setup.clock()
        leave = self.subscribe(tally.count_event, agents=True)
        if not self._dialogue.has_person:
            self._begin_naming(context, prompt, entry)  # such a session often ends with its answer
        seconds = self.setup.config.max_seconds
        try:
            async with _stop_after(self.run_state, seconds) as is_over:
                stop, error = await self._run_recorded(context, prompt, skill)
                if error is not None:
                    self._report_failure(error, tally.turns)
            if is_over():
                context.emit(events.TurnLimit("time", seconds, tally.turns))
                detail = f"the limit of {seconds:g} seconds is reached"
                context.emit(events.AgentState("error", detail, tally.turns))
            self._is_asking = stop == "stop" and ends_with_question(recorder.path, entry)
        finally:
            leave()
            self._record_outputs(recorder)
            if stop not in {"error", "aborted"} and not tally.has_failed:
                context.emit(events.AgentState("finished", "", tally.turns))
            elapsed_ms = context.measure_elapsed_ms(started_at)
            context.emit(events.RunEnd(stop, tally.turns, tally.usage, elapsed_ms))
        if stop == "stop" and self._dialogue.has_person:
            self._begin_naming(context, prompt, entry)

    def _begin_naming(self, context: RunContext, prompt: str, entry: Entry) -> None:
        """Let a model title a new session without a title, once; `entry` is that of the prompt."""
        recorder = context.recorder
        if self._naming is not None or not is_first_prompt(recorder.path, entry):
            return
        model = self.setup.choose_namer(self.setup.model, self._dialogue.has_person)
        if model is not None and recorder.tape.refs().title is None:
            naming = name_session(recorder, model, context.request_text, prompt, context.emit)
            self._naming = asyncio.create_task(naming)

    async def _stop_naming(self) -> None:
        if self._naming is not None and not self._naming.done():
            self._naming.cancel()
            await asyncio.wait({self._naming})

    async def _run_recorded(
        self, context: RunContext, prompt: str, skill: SkillUse | None
    ) -> RunOutcome:
        """Run the loop on a recorded prompt; a stop is recorded, whatever was being done."""
        try:
            await attach_mentions(self.setup.sources, context.recorder, prompt, context.emit)
            await record_prompt_skill(self.setup, context.recorder, skill, context.emit)
            return await run_loop(context)
        except asyncio.CancelledError:
            context.record_abort()
            raise

    def _build_system(self) -> str:
        return self.setup.model.build_system(self.setup.tools.specs())

    def _record_outputs(self, recorder: Recorder) -> None:
        """Record the outputs of the person's commands that waited for words that never came."""
        documents = self.run_state.documents
        record_documents(recorder, [document for document in documents if document.id])
        documents[:] = [document for document in documents if not document.id]

    def _settle_lost_agents(self, recorder: Recorder) -> None:
        """Let the model be told of sub-agents that ran when an earlier program ended."""
        if self.run_state.agents is None and has_agents(recorder.path):
            agents = self.find_agents()
            if agents is not None:
                agents.settle_lost()

    def _report_failure(self, error: ModelError | NoObject, turns: int) -> None:
        kind = type(error).__name__
        if isinstance(error, AuthenticationError):
            self._has_no_key = self.setup.closes_without_key
        retryable = isinstance(error, ModelError) and error.retryable
        self._queues.emit(events.RunFailure(kind, str(error), retryable, error.exit_code))
        self._queues.emit(events.AgentState("error", str(error), turns))

    def open_recorder(self, prompt: str) -> Recorder:
        """Return the open branch, opening it for the first prompt."""
        if self.recorder is None:
            self.recorder = self.setup.open(prompt)
        self._queues.attach(self.recorder)
        return self.recorder

    def _open_for_hooks(self) -> Recorder | None:
        """Return the open branch; open one where hooks want its id before the first prompt."""
        if self.setup.hooks.starts_session:
            self.open_recorder("")  # not named after a prompt that a hook may refuse
            self.build_run_context()
        return self.recorder

    def build_run_context(self) -> RunContext:
        """Return the loop's current inputs, always the same ones of a branch, which must be open.

        So a change reaches a run, whoever else has looked at its inputs meanwhile.
        """
        assert self.recorder is not None, "the first prompt opens a branch"
        self._queues.attach(self.recorder)
        # A fork opens another branch; what was kept of the old one is dropped with it.
        context = self._context
        if context is None or context.recorder is not self.recorder:
            context = self._context = RunContext(
                self.setup,
                self.recorder,
                self._queues,
                self.run_state,
                self._dialogue,
                self._dialogue.record_mode,
                self.find_agents,
            )
        context.setup = self.setup
        self.announce()
        return context

    def announce(self) -> None:
        """Emit the start of the session, once; its branch is open."""
        if not self._is_announced and self.recorder is not None:
            self._is_announced = True
            self._queues.attach(self.recorder)
            cwd = self.setup.env.working_directory
            place = find_place_name(self.setup.env)
            self._queues.emit(events.SessionStart(self.setup.model.name, cwd, place))

    def steer(self, text: str, *, interrupt: bool = False) -> QueuedMessage:
        """Queue words for the model after the current step; if idle, for the next prompt.

        With `interrupt` the tools that run now are stopped, and the model continues with these
        words. On the tape they wait from now on: another session on the branch takes them up.
        Raises ConfigurationError for words that are none.
        """
        message = self._queue_message(text, "steering")
        if interrupt:
            self._queues.interrupt()
        return message

    def follow_up(self, text: str) -> QueuedMessage:
        """Queue words for when the current run has nothing left to do.

        Raises ConfigurationError for words that are none.
        """
        return self._queue_message(text, "follow_up")

    def attach(self, document: AttachedDocument) -> None:
        """Give the model a file or picture with the next words: a prompt, or queued ones."""
        document = document._replace(text=clean_words(document.text))
        self.run_state.documents.append(document)

    def record_command(self, command: str, output: str, end: str, *, shared: bool) -> None:
        """Record a command that the person ran, now that it has ended; durable on return.

        `end` says how, such as "exit code 0". With `shared` the model gets it with the next words.
        """
        if self.state is SessionState.CLOSED:
            raise SessionClosed("this session is closed")
        recorder, idle = self.open_recorder(command), not self._is_busy
        document = record_output(recorder, command, output, end, shared=shared, now=idle)
        if document is not None:
            self.run_state.documents.append(document)

    def withdraw(self, message_id: str) -> str | None:
        """Remove queued words and return them; None if they were delivered already."""
        message = self._queues.withdraw(message_id)
        if message is None:
            return None
        self._queues.emit(events.MessageWithdrawn(message.id))
        return message.text

    def list_messages(self) -> tuple[Message, ...]:
        """Return the conversation as the model sees it; an answer that is coming is the last.

        Such an answer grows with each `message_update`; from `message_end` on it is the one on the
        tape. Each call reads the whole path.
        """
        recorder, model = self.recorder, self.setup.model
        if recorder is None:
            return ()
        history = HistoryFold().follow(model.id, model.target, recorder.path, recorder.kept)
        coming = self.run_state.answer
        partial = () if coming is None else (Message("assistant", coming.partial()),)
        return (*history.messages, *partial)

    def list_queued(self) -> tuple[str, ...]:
        """Return the queued input: steering, then follow-ups."""
        return tuple(message.text for message in self._queues.list_waiting())

    def read_output(self, event: events.ToolExecutionEnd) -> str:
        """Return the whole output of a tool, whatever its size and whatever cut it.

        Raises NotFound (of the store) if it was redacted since.
        """
        if event.full is not None:
            return event.full
        if event.kept is not None and self.recorder is not None:
            return self.recorder.tape.load(event.kept).decode("utf-8", "replace")
        return join_texts(event.content)

    def list_waiting(self) -> tuple[QueuedMessage, ...]:
        """Return the queued input with its ids: steering, then follow-ups."""
        return self._queues.list_waiting()

    def _queue_message(self, text: str, origin: Origin) -> QueuedMessage:
        message = self._queues.put(check_words(text, "the message"), origin)
        self._queues.emit(events.MessageQueued(message.id, message.text, origin))
        return message

    def abort(self) -> None:
        """Stop the current run and record the interruption; does nothing when idle."""
        if self._run is not None:
            self._stop_agents()
            self._run.cancel()

    def _stop_agents(self) -> None:
        if self.run_state.agents is not None:
            self.run_state.agents.cancel()

    def find_agents(self) -> Any:
        """Return the sub-agents of the session, which are made now; None where there can be none.

        It is a `gong.subagents.SubagentManager`.
        """
        state, open_agents = self.run_state, self.setup.open_agents
        if state.agents is None and open_agents is not None:
            state.agents = open_agents(self)
        return state.agents

    @property
    def subagents(self) -> Any:
        """The sub-agents of the session by id; empty before the first one."""
        agents = self.run_state.agents
        return {} if agents is None else agents.by_id

    def tell(self, event: events.Event) -> None:
        """Emit an event of the session that comes from a part of it outside of this module."""
        self._queues.emit(event)

    def emit_agent_event(self, event: events.Event) -> None:
        """Pass on the event of a sub-agent to those who watch them."""
        self._queues.forward(event)

    @property
    def todos(self) -> tuple[Todo, ...]:
        """The model's todo list, as it is on the tape; read from the path at each use."""
        recorder = self.recorder
        return () if recorder is None else find_todos((*recorder.kept, *recorder.path))

    def ask_person(self, timeout: float | None = None) -> None:
        """Wait for answers of a person: to questions of the model, and about calls.

        Whoever watches the session answers `question` and `plan_proposed` events with `answer`, and
        `approval_request` events with `answer_approval`. After `timeout` seconds without an answer
        the model decides itself, and a call is denied. Calls are asked about by the policy of now,
        where it has modes.
        """
        timeout = check_value("timeout", timeout, Amount | None)
        self._dialogue.has_person, self._dialogue.timeout = True, timeout
        self._approvals.has_person = True
        policy = self.setup.policy
        if isinstance(policy, ModalPolicy):
            policy.ask, policy.timeout = self._approvals.ask, timeout

    def ask_nobody(self, *, approve_plans: bool = True) -> None:
        """Ask nobody: the model decides questions itself, its plans are approved, calls denied.

        What is open is closed at once: calls and plans that were asked about are refused. Without
        `approve_plans` later plans are refused, too, other than in a session that runs everything.
        """
        self._dialogue.approves_plans = approve_plans
        self._dialogue.close_questions()
        self._approvals.close_questions()
        if isinstance(self.setup.policy, ModalPolicy):
            self.setup.policy.ask = None

    def answer(
        self,
        question_id: str,
        answers: Answers = (),
        *,
        approve: bool | None = None,
        reason: str = "",
    ) -> None:
        """Answer a `question` with `answers`, a `plan_proposed` with `approve` and a reason.

        `answers` are by the question's text, or in the order of the questions, or one text; each is
        a text, or several where several may be chosen, of the options or in other words.
        Raises ConfigurationError where no such question is open, or the answers do not fit it.
        """
        self._dialogue.answer(question_id, answers, approve=approve, reason=reason)

    def answer_approval(
        self,
        call_id: str,
        decision: Answer,
        reason: str = "",
        *,
        arguments: Mapping[str, Any] | None = None,
        rule: str | None = None,
    ) -> None:
        """Answer an `approval_request`: once, session, always, everywhere, no, or edit.

        `always` saves a rule for this project. An edit has other `arguments`: the policy decides
        about the new call, and may ask again. `rule` may repeat what was `offered`, with ", "
        between several. Raises ConfigurationError where no question is open about the call, and
        for another rule than the offered one.
        """
        self._approvals.answer(call_id, decision, reason, arguments, rule)

    def _note_question(self) -> None:
        if self.state in {SessionState.PROCESSING, SessionState.AWAITING_INPUT}:
            is_waiting = self._approvals.is_waiting or self._dialogue.is_waiting
            waits, runs = SessionState.AWAITING_INPUT, SessionState.PROCESSING
            self.state = waits if is_waiting else runs

    def undo(self, *, leave: bool = False) -> Anchor:
        """Undo the newest compaction or handoff; return its anchor, which stays on the tape.

        Raises SessionBusy during a run, and NothingToUndo; see Recorder.undo_anchor.
        """
        self._require_idle()
        if self.recorder is None:
            raise NothingToUndo("the session is empty: there is nothing to undo")
        anchor = self.recorder.undo_anchor(leave=leave)
        self._dialogue.follow_path((*self.recorder.kept, *self.recorder.path))
        return anchor

    def apply_rewind(self, plan: RewindPlan) -> RewindReport:
        """Let talk and files go back, or forward again, as `plan_undo` and the like planned it.

        What was not restored is in the report. Raises SessionBusy during a run, UsageError if
        entries were added since the plan was made, and WriteFailed before any file has changed.
        """
        self._require_idle()
        if self.recorder is None:
            raise NothingToUndo(f"the session is empty: there is nothing to {plan.reason}")
        meta = {"branch": self.recorder.branch, "tape": self.recorder.tape.id, "scope": plan.scope}
        self._require_operation(plan.reason, meta)
        from ..checkpoints.rewind import apply_plan  # few sessions go back

        try:
            return apply_plan(self.recorder.tape, self.recorder.writer, plan)
        finally:
            self._is_asking = False
            self._settle_state()
            self.recorder.read_path()
            self._dialogue.follow_path((*self.recorder.kept, *self.recorder.path))

    def fork(self, name: str | None = None) -> str:
        """Switch to a new branch that starts at the newest entry, and return its name.

        It becomes the tape's current branch, which `gong chat -c` continues. Raises SessionBusy
        during a run, and ConfigurationError if the session is empty.
        """
        self._require_idle()
        if self.recorder is None:
            raise ConfigurationError("the session is empty: there is nothing to fork")
        old = self.recorder
        self._require_operation("fork", {"name": name, "branch": old.branch, "tape": old.tape.id})
        old.barrier()
        branch = old.tape.fork(old.head(), name, switch=True)
        self.recorder = Recorder.open(old.tape, branch, durability=old.writer.durability)
        self.recorder.place = old.place
        self._queues.attach(self.recorder)
        old.writer.close()
        return branch

    def _require_idle(self) -> None:
        if self._is_busy or self.state is SessionState.CLOSED:
            raise SessionBusy("a prompt is being answered: stop it first, or wait")

    def _require_operation(self, operation: str, meta: Mapping[str, object]) -> None:
        if (why := self.setup.hooks.check_operation_now(operation, {**meta})) is not None:
            raise OperationCancelled(f"a hook cancelled the {operation}: {why}")

    async def wait_until_idle(self) -> None:
        """Return when no run is left; raises SessionBusy inside the run, which would never end."""
        if _OWN_SESSION.get() is self:
            raise SessionBusy("this code is part of the run, so it cannot wait for its end")
        while self._run is not None:
            await asyncio.wait({self._run})
            await asyncio.sleep(0)  # whoever reads the events ends the run

    async def close(self) -> None:
        """Stop the run, and close branch and environment; safe to call twice."""
        if self._run is not None:
            await self._settle_task(self._run)
        if self.state is SessionState.CLOSED:
            return
        self.state = SessionState.CLOSED
        await self._stop_naming()
        # From the last to the first, each also after another failed. Children first: their ends
        # are entries, which need the branch that is closed after them.
        async with AsyncExitStack() as steps:
            if (sandbox := getattr(self.setup.env, "sandbox", None)) is not None:
                sandbox.hold()  # the last hooks run inside, after the environment was closed
                steps.callback(sandbox.release)
            steps.push_async_callback(self.setup.hooks.end_session, "other")
            if self._is_announced:
                steps.callback(self._queues.emit, events.SessionEnd(self.state))
            if self.setup.file_recorder is not None:
                steps.callback(self.setup.file_recorder.close)
            steps.push_async_callback(self.setup.env.cleanup)
            if self.recorder is not None:
                steps.callback(self.recorder.close)
            steps.push_async_callback(close_sources, self.setup.sources, self._queues.emit)
            steps.push_async_callback(self.run_state.background.close)
            if self.run_state.agents is not None:
                steps.push_async_callback(self.run_state.agents.close)


@asynccontextmanager
async def _stop_after(state: RunState, seconds: float) -> AsyncIterator[Callable[[], bool]]:
    """Stop what runs inside after `seconds`, 0 for never; yield what says whether it did.

    The stop is like one by the user: what runs is recorded as stopped, only the reason differs.
    """
    is_over = False

    def stop(task: asyncio.Task[object]) -> None:
        nonlocal is_over
        is_over = True
        state.abort_reason = f"stopped at the time limit of {seconds:g} s"
        task.cancel()

    task = asyncio.current_task()
    assert task is not None, "a run is a task"
    timer = asyncio.get_running_loop().call_later(seconds, stop, task) if seconds else None
    try:
        yield lambda: is_over
    except asyncio.CancelledError:
        if not is_over or task.uncancel() > 0:  # the user stopped it as well
            raise
    finally:
        state.abort_reason = STOPPED_BY_USER
        if timer is not None:
            timer.cancel()


class _RunTally:
    """The totals of a run, also of a stopped one: model calls, and tokens with sub-agents'."""

    def __init__(self, agent: str) -> None:
        self.turns, self.usage = 0, Usage()
        self.agent = agent
        self.has_failed = False
        """Whether the newest state is "error": a limit, or a failure."""

    def count_event(self, event: events.Event) -> None:
        if isinstance(event, events.TurnStart) and event.agent == self.agent:
            self.turns = event.turn
        elif isinstance(event, events.AgentState) and event.agent == self.agent:
            self.has_failed = event.state == "error"
        elif isinstance(event, events.MessageEnd):
            self.usage += event.usage
