"""The tool step of a turn: every call of an answer gets its result, in call order.

Read-only calls run in parallel, all others one by one; steering is checked between them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tape.model.entries import ToolResult, ToolStart

from ..context.tape_search import TapeRecall
from ..policy.decision import decide_call
from ..tools import tool
from ..tools.output_storage import TapeStorage
from ..tools.tool import ToolContext
from . import events
from .run_context import RunContext, measure_elapsed_ms, record_abort

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tape.model.entries import ToolCall

    from ..tools.registry import PreparedCall, ToolRegistry

SKIPPED = "Skipped due to queued user message"
"""The result of a call that was skipped because of steering."""
_MAX_SHOWN_CHARS = 20_000  # maximum characters of output in the result of a stopped command


async def run_tools(parts: RunContext, calls: Sequence[ToolCall]) -> None:
    """Give every call its result, in order; after steering the rest is skipped."""
    for group in _group_calls(parts.tools, calls):
        if parts.steering_waits():
            for call in group:
                _record_tool_result(parts, _RunningCall(call), tool.ToolResult.error(SKIPPED))
        else:
            await _run_call_group(parts, group)
    parts.record.barrier()


def _group_calls(tools: ToolRegistry, calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
    """Return groups of calls that may run in parallel: adjacent read-only calls."""
    groups: list[list[ToolCall]] = []
    safe_before = False
    for call in calls:
        known = tools.get(call.name)
        safe = known is not None and known.replay == "safe"
        if safe and safe_before:
            groups[-1].append(call)
        else:
            groups.append([call])
        safe_before = safe
    return groups


class _RunningCall:
    """One running call, with its output so far."""

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.shown = ""
        self.begun: int | None = None
        self.started = False
        self.stopped = ""
        """The result text of a call that is stopped while it runs."""
        self.result: tool.ToolResult | None = None

    def build_aborted_result(self) -> tool.ToolResult:
        """Return the result of a call that was stopped while it ran."""
        shown = f"{self.shown}\n\n" if self.shown else ""
        return tool.ToolResult.error(f"{shown}{self.stopped}")


async def _run_call_group(parts: RunContext, calls: Sequence[ToolCall]) -> None:
    """Run calls in parallel and record their results in call order, also when stopped."""
    running = [_RunningCall(call) for call in calls]
    try:
        allowed = [
            (one, prepared) for one in running if (prepared := await _admit_call(parts, one))
        ]
        if any(prepared.tool.replay == "unsafe" for _, prepared in allowed):
            parts.record.barrier()
        async with asyncio.TaskGroup() as group:
            for one, prepared in allowed:
                group.create_task(_run_tool_call(parts, one, prepared))
    except asyncio.CancelledError:
        for one in running:
            if one.started or one.result:  # repair gives the others the result that they never ran
                _record_tool_result(parts, one, one.result or one.build_aborted_result())
        record_abort(parts)
        raise
    for one in running:
        assert one.result is not None
        _record_tool_result(parts, one, one.result)


async def _admit_call(parts: RunContext, one: _RunningCall) -> PreparedCall | None:
    """Look up, check and approve a call; record its start, or return its refusal."""
    call = one.call
    one.begun = parts.clock()
    parts.emit(events.ToolExecutionStart(call.id, call.name, call.args))
    prepared = parts.tools.prepare(call)
    if isinstance(prepared, tool.ToolResult):
        one.result = prepared
        return None
    verdict, failure, trace = await decide_call(parts.policy, prepared)
    if failure:
        parts.emit(events.Warn(f"the policy failed, so {call.name} was not run: {failure}", trace))
    if not verdict.allowed:
        one.result = tool.ToolResult.error(verdict.text, kind="PermissionDenied")
        return None
    parts.record.append(ToolStart(call.id, call.name, replay=prepared.tool.replay))
    one.started, one.stopped = True, prepared.tool.stopped
    return prepared


async def _run_tool_call(parts: RunContext, one: _RunningCall, prepared: PreparedCall) -> None:
    def update(text: str) -> None:
        one.shown = (one.shown + text)[-_MAX_SHOWN_CHARS:]
        parts.emit(events.ToolExecutionUpdate(one.call.id, text))

    context = ToolContext(
        env=parts.env,
        call_id=one.call.id,
        update=update,
        storage=TapeStorage(parts.record.tape.blobs),
        session=parts.session,
        tape=TapeRecall(parts.record.tape, parts.record.head),
        request_compaction=parts.pressure.request_compaction,
    )
    one.result = await parts.tools.run(prepared, context)


def _record_tool_result(parts: RunContext, one: _RunningCall, result: tool.ToolResult) -> None:
    details = tool.encode_details(result)
    call = one.call
    duration_ms = 0 if one.begun is None else measure_elapsed_ms(parts, one.begun)
    parts.record.append(
        ToolResult(
            call_id=call.id,
            name=call.name,
            content=result.content,
            is_error=result.is_error,
            details=details,
            duration_ms=duration_ms,
            full=result.kept or result.full,
        )
    )
    parts.emit(
        events.ToolExecutionEnd(
            call_id=call.id,
            name=call.name,
            content=result.content,
            is_error=result.is_error,
            duration_ms=duration_ms,
            details=details,
            full=result.full,
        )
    )
