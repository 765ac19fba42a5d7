"""The tool step of a turn: every call of an answer gets its result, in call order.

Adjacent calls that read run in parallel, and so do adjacent ones that start sub-agents, or wait
for them; all others run one by one. Steering is checked between these groups. What a call leaves
on the tape, and what a stop (Ctrl+C) during its group leaves:

    ====================  ====================  ===========================================
    state of a call       without a stop        with a stop
    ====================  ====================  ===========================================
    refused, not found    result (error)        result (error)
    started               start, result         start, and a result with its output so far
                                                (also when steering interrupts it)
    ended                 start, result         start, result
    not reached           –                     nothing: repair adds that it never ran
    skipped by steering   result (error)        –
    ====================  ====================  ===========================================
"""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from msgspec import Raw
from msgspec.structs import replace

from tape.formats.wire import decode_json, encode_json
from tape.model.entries import NO_JSON, Text, ToolResult, ToolStart, join_texts

from ..checkpoints.file_recorder import describe_environment
from ..context.tape_search import TapeRecall
from ..env.wrappers import is_place
from ..errors import PlaceLost
from ..policy.approval import SandboxedPolicy
from ..policy.decision import decide_call
from ..tools import tool
from ..tools.output_storage import TapeStorage
from ..tools.tool import CommandTimeouts, ToolContext
from . import events
from .page_reader import ask_about_page
from .skill_use import load_called_skill

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tape.model.entries import ChangedFile, ToolCall

    from ..checkpoints import RecordedFiles
    from ..policy.decision import Verdict
    from ..tools.registry import ToolRegistry
    from ..tools.tool import PreparedCall
    from ..tools.truncation import TruncationEvent
    from .queues import SessionQueues
    from .recorder import Recorder
    from .run_context import RunContext

SKIPPED = "Skipped due to queued user message"
"""The result of a call that was skipped because of steering."""
_MAX_SHOWN_CHARS = 20_000  # maximum characters of output in the result of a stopped command
_MAX_AT_ONCE = 16
"""Calls of a group that run at the same moment; starting a program takes the loop's time."""
_MAX_TAIL_CHARS = 2_000  # maximum characters of output so far in each event


_CUT_CALL = (
    "The answer was cut at the limit of its length, so this call may be incomplete and was not run."
    " Make it again with less in it, for example a file in several parts."
)


async def run_tools(context: RunContext, calls: Sequence[ToolCall], *, is_cut: bool) -> None:
    """Give every call its result, in order; after steering the rest is skipped.

    Of an answer that `is_cut` at the limit of its length, invalid arguments are reported as its
    consequence.
    """
    for group in _group_calls(context.setup.tools, calls):
        running = [_RunningCall(context, call, is_cut=is_cut) for call in group]
        if not context.queues.steering:
            await _run_call_group(context.recorder, context.queues, running)
            continue
        for running_call in running:
            running_call.record_result(tool.ToolOutcome.error(SKIPPED))
    context.recorder.barrier()


def _group_calls(tools: ToolRegistry, calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
    """Yield groups of calls that may run in parallel: adjacent ones of one kind."""
    for kind, group in groupby(calls, tools.find_parallel_kind):
        together = [*group]
        yield from [[call] for call in together] if kind is None else [together]


async def _run_call_group(
    recorder: Recorder, queues: SessionQueues, running: Sequence[_RunningCall]
) -> None:
    """Run calls in parallel and record their results in call order, also when stopped."""
    try:
        allowed = []
        for call in running:
            if (prepared := await call.admit()) is not None:
                allowed.append((call, prepared))
            await asyncio.sleep(0)  # of thousands of calls each may be the last before Ctrl+C
        # After a power cut, a call with effects must not look as if it had never begun.
        if any(prepared.tool.replay == "unsafe" for _, prepared in allowed):
            recorder.barrier()
        with queues.allow_interrupt():
            slots = asyncio.Semaphore(_MAX_AT_ONCE)
            async with asyncio.TaskGroup() as group:
                for call, prepared in allowed:
                    group.create_task(call.run(prepared, slots))
        for call in running:
            await call.find_changes()
    except asyncio.CancelledError:
        # The stop waits for what the calls did to files: it is on the tape, or `undo` misses it.
        for call in running:
            while not call.is_settled:
                with suppress(asyncio.CancelledError):  # the person presses Ctrl+C again
                    await call.find_changes()
            call.record_stop()
        raise
    for call in running:
        call.record_stop()


def _edit_call(prepared: PreparedCall, edited: Mapping[str, Any]) -> ToolCall:
    """Return a call with edited arguments, without the defaults that the model left out."""
    call, before = prepared.call, prepared.values
    model_args = decode_json(bytes(call.args) or b"{}")
    new = {k: v for k, v in edited.items() if k in model_args or k not in before or before[k] != v}
    args = Raw(encode_json(new))
    return replace(call, name=prepared.tool.name, args=args, args_text=None)


def _explain_cut(refused: tool.ToolOutcome) -> tool.ToolOutcome:
    """Return why a call of a cut answer cannot run: where its arguments are invalid, the cut."""
    if refused.kind != "ValidationError":
        return refused
    text = f"{_CUT_CALL} {join_texts(refused.content)}"
    return tool.ToolOutcome.error(text, kind=refused.kind)


class _RunningCall:
    """One call on its way: admitted or refused, run, and its result recorded."""

    def __init__(self, context: RunContext, call: ToolCall, *, is_cut: bool) -> None:
        self.context, self.call = context, call
        self.is_cut = is_cut
        """Whether the answer that makes the call was cut at the limit of its length."""
        self.output = ""
        """The output so far."""
        self.started_at: int | None = None
        self.started = False
        self.stopped = ""
        """The result text of a call that is stopped while it runs."""
        self.args = NO_JSON
        """The arguments it runs with, where a person or a hook changed them."""
        self.is_edited = False
        """Whether the person changed its arguments."""
        self.result: tool.ToolOutcome | None = None
        self.recorded: RecordedFiles | None = None
        """The files that it may change, as they were before it."""
        self.finding: asyncio.Task[tuple[ChangedFile, ...]] | None = None
        self.files: tuple[ChangedFile, ...] | None = None
        """What it changed on disk; None where nobody looked."""

    async def admit(self) -> PreparedCall | None:
        """Look up, check and approve the call; record its start, or set its refusal as result."""
        context, call = self.context, self.call
        self.started_at = context.setup.clock()
        context.emit(events.ToolExecutionStart(call.id, call.name, "running", call.args))
        prepared = context.setup.tools.prepare(call)
        if self.is_cut and isinstance(prepared, tool.ToolOutcome):
            prepared = _explain_cut(prepared)
        if not isinstance(prepared, tool.ToolOutcome):
            prepare = context.setup.tools.prepare
            prepared = await context.setup.hooks.check_call(context.recorder, prepare, prepared)
        if isinstance(prepared, tool.ToolOutcome):
            self.result = prepared
            return None
        allowed = await self._approve(prepared)
        if allowed is None:
            return None
        try:
            await self._record_checkpoint(allowed)
        except tool.TargetsUnknown as error:
            self.result = error.outcome
            return None
        except (PlaceLost, OSError) as error:
            if not is_place(context.setup.env):
                raise
            self.result = tool.build_failure(call.name, error, "it was not run: ")
            return None
        where = describe_environment(context.setup.env)
        start = ToolStart(call.id, call.name, self.args, allowed.tool.replay, where)
        context.recorder.append(start)
        self.started, self.stopped = True, allowed.tool.stopped
        return allowed

    async def _approve(self, prepared: PreparedCall) -> PreparedCall | None:
        """Return the call that may run, maybe edited; else set its refusal as result."""
        context, call = self.context, self.call
        verdict = await self._decide(prepared)
        # What a person writes is judged like what a model writes: it may be asked about again.
        while verdict.arguments is not None:
            edited = context.setup.tools.prepare(_edit_call(prepared, verdict.arguments))
            if isinstance(edited, tool.ToolOutcome):
                self.result = edited
                return None
            prepared, self.is_edited = edited, True
            verdict = await self._decide(prepared)
        if prepared.call is not call:
            self.args = prepared.call.args
        if verdict.failure is not None:
            self.result = verdict.failure
            return None
        if verdict.approval is not None:
            context.recorder.append(verdict.approval)
            if verdict.approval.by == "failure":
                reason = verdict.approval.reason
                text = f"the policy failed, so {call.name} was not run: {reason}"
                context.emit(events.Warn(text, verdict.trace))
        if not verdict.allowed:
            self.result = tool.ToolOutcome.error(verdict.text, kind="PermissionDenied")
            return None
        return prepared

    async def _decide(self, prepared: PreparedCall) -> Verdict:
        """Ask the policy about the call; the time a person thinks is not the tool's."""
        setup = self.context.setup
        if prepared.tool.preview is not None:
            build_context = self._build_tool_context
            prepared.preview = partial(prepared.tool.preview, prepared.arguments, build_context())
        asked_at = setup.clock()
        verdict = await decide_call(setup.policy, prepared)
        if self.started_at is not None:
            self.started_at += setup.clock() - asked_at
        return verdict

    async def _record_checkpoint(self, prepared: PreparedCall) -> None:
        """Record the files that the call may change as they are now; synced with its start."""
        context, recorder = self.context, self.context.recorder
        if (files := context.setup.file_recorder) is None:
            return
        self.recorded = await files.begin_call(
            prepared, context.setup.env, recorder.tape.blobs, recorder.path
        )
        if self.recorded is not None and self.recorded.checkpoint is not None:
            recorder.append(self.recorded.checkpoint)

    @property
    def is_settled(self) -> bool:
        """Whether what the call changed is known."""
        return not self.started or self.recorded is None or self.files is not None

    async def find_changes(self) -> None:
        """Find what the call has changed on disk, if it was started.

        When it is cancelled the work continues, and the next use waits for it.
        """
        if not self.started or self.recorded is None:
            return
        if self.finding is None:
            self.finding = asyncio.create_task(self.recorded.find_changes())
        await asyncio.wait({self.finding})
        # A program that ends cancels all of its tasks, also this one: nobody looks then.
        self.files = () if self.finding.cancelled() else self.finding.result()

    async def run(self, prepared: PreparedCall, slots: asyncio.Semaphore) -> None:
        """Run the call in a free slot, and set its result."""
        async with slots:
            await self._run_prepared(prepared)

    async def _run_prepared(self, prepared: PreparedCall) -> None:
        """Run the call and set its result; its output goes to the front ends as it arrives."""
        context = self.context
        self.result = await context.setup.tools.run(prepared, self._build_tool_context())
        if self.result.refused:
            self.result = await self._run_outside(prepared, self.result)
        if self.is_edited:
            arguments = bytes(prepared.call.args).decode()
            note = Text(f"[The user changed the arguments of this call before it ran: {arguments}]")
            self.result = replace(self.result, content=(note, *self.result.content))
        duration_ms = context.measure_elapsed_ms(self.started_at or context.setup.clock())
        hooks = context.setup.hooks
        self.result = await hooks.change_result(prepared, self.result, duration_ms)

    async def _run_outside(
        self, prepared: PreparedCall, failed: tool.ToolOutcome
    ) -> tool.ToolOutcome:
        """Return the result of a command outside of the sandbox, if a person allows it now."""
        context, setup = self.context, self.context.setup
        outside = getattr(setup.env, "outside", None)
        if outside is None or not isinstance(setup.policy, SandboxedPolicy):
            return failed
        asked_at = setup.clock()
        approval = await setup.policy.ask_outside(prepared, failed.refused)
        if self.started_at is not None:
            self.started_at += setup.clock() - asked_at
        if approval is None:
            return failed
        context.recorder.append(approval)
        if approval.decision != "allow":
            note = Text(f"\n\n[Not run outside of the sandbox: {approval.reason}]")
            return replace(failed, content=(*failed.content, note))
        tool_context = dataclasses.replace(self._build_tool_context(), env=outside)
        result = await setup.tools.run(prepared, tool_context)
        refused = ", ".join(failed.refused)
        note = Text(f"[The sandbox refused {refused}; the user let it run again outside of it.]\n")
        return replace(result, content=(note, *result.content))

    def _build_tool_context(self) -> ToolContext:
        context, recorder = self.context, self.context.recorder
        config = context.setup.config

        def update(text: str) -> None:
            self.output = (self.output + text)[-_MAX_SHOWN_CHARS:]
            tail = self.output[-_MAX_TAIL_CHARS:]
            context.emit(events.ToolExecutionUpdate(self.call.id, text, "running", tail))

        return ToolContext(
            env=context.setup.env,
            call_id=self.call.id,
            update=update,
            storage=TapeStorage(recorder.tape.blobs),
            output_storage=context.setup.output_storage,
            on_truncation=self._report_truncation,
            session=recorder.tape.id,
            tape=TapeRecall(recorder.tape, recorder.head),
            request_compaction=context.state.request_compaction,
            background=context.state.background,
            timeouts=CommandTimeouts(
                config.default_command_timeout_ms, config.max_command_timeout_ms
            ),
            dialogue=context.dialogue,
            files=context.guarded_files,
            find_agents=context.find_agents,
            load_skill=partial(load_called_skill, context.setup, recorder.tape.id, context.emit),
            pages=context.state.pages,
            ask_about_page=partial(
                ask_about_page,
                partial(context.setup.choose_page_reader, context.setup.model),
                context.request_text,
                recorder,
            ),
            max_picture_bytes=context.setup.tuning.max_image_size,
        )

    def _report_truncation(self, event: TruncationEvent) -> None:
        """Tell the front ends of a result that was cut, or could not be."""
        if event.type != "skipped":
            cut = (event.tool_name, event.original_size, event.truncated_size, event.output_path)
            self.context.emit(events.ResultTruncated(self.call.id, *cut, event.error or ""))

    def record_stop(self) -> None:
        """Record the result; of a call that was stopped while it ran, what came so far."""
        if self.result is None and self.started:
            parts = (self.output.removesuffix("\n"), self.stopped)
            self.result = tool.ToolOutcome.error("\n\n".join(filter(None, parts)))
        if self.result is not None:
            self.record_result(self.result)

    def record_result(self, result: tool.ToolOutcome) -> None:
        """Record a result and tell the front ends."""
        call, details = self.call, tool.encode_details(result)
        duration_ms = (
            0 if self.started_at is None else self.context.measure_elapsed_ms(self.started_at)
        )
        self.context.recorder.append(
            ToolResult(
                call_id=call.id,
                name=call.name,
                content=result.content,
                is_error=result.is_error,
                details=details,
                duration_ms=duration_ms,
                full=result.kept or result.full,
                files=self.files or (),
            )
        )
        self.context.emit(
            events.ToolExecutionEnd(
                call_id=call.id,
                name=call.name,
                content=result.content,
                is_error=result.is_error,
                duration_ms=duration_ms,
                status="error" if result.is_error else "completed",
                details=details,
                full=result.full,
                kept=result.kept,
                args=self.args,
            )
        )
