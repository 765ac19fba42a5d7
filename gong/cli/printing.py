"""`gong chat -p`: answer one prompt without a terminal, as text, JSON or a stream of JSON lines.

The JSON document is read from the tape: it shows what was recorded.
"""

from __future__ import annotations

import errno
import shlex
import signal
import sys
from contextlib import aclosing
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import astuple, replace

from tape.cli.streams import silence_stream
from tape.formats.wire import encode_json
from tape.model.entries import (
    NO_JSON,
    AgentStart,
    Approval,
    Assistant,
    Cost,
    Failure,
    SideUsage,
    ToolResult,
    Usage,
    join_texts,
    select_tool_calls,
)
from tape.render.sources import CitedPage, list_sources
from tape.text import shorten_to_width

from .. import signals
from ..agent import events
from ..agent.answer_form import ANSWER_TOOL
from ..agent.short_answer import describe_short_answer
from ..policy.approval import find_mode
from ..policy.modes import PermissionMode
from ..policy.permissions import PermissionPolicy
from ..repl.draw.notices import describe_compaction, describe_limit
from ..repl.draw.tool_cards import describe_call, read_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tape.model.line import Entry
    from tape.store.tape import Tape

    from ..agent.recorder import Recorder
    from ..agent.session import Session
    from ..assembly.open_session import OpenSession

OutputFormat = Literal["text", "json", "stream-json"]
_CLOSED_ERRORS = {errno.EPIPE, errno.EIO}
"""Error numbers of a write to a closed pipe or terminal."""
LIMIT_EXIT = 8
DENIED_EXIT = 7
CUT_EXIT = 9
_CALL_COLUMNS = 100


class PrintedCall(Struct, frozen=True):
    """One tool call of a run; `args` is JSON as the model wrote it, or its text."""

    id: str
    name: str
    args: Raw
    is_error: bool


class DeniedCall(Struct, frozen=True):
    """A tool call that was not allowed."""

    id: str
    name: str
    why: str
    rules: tuple[str, ...]
    """Rules that would allow it, for --allow; empty where none can."""


class RunDocument(Struct, frozen=True):
    """What `--output-format json` prints: the result of one run."""

    session: str
    branch: str
    result: str
    stop_reason: str
    usage: Usage
    cost: Cost | None
    """The cost of all calls; None if that of one is unknown."""
    turns: int
    tool_calls: tuple[PrintedCall, ...]
    is_error: bool
    error: Failure | None
    structured_output: dict[str, Any] | UnsetType = UNSET
    """The answer of --json-schema."""
    denied: tuple[DeniedCall, ...] | UnsetType = UNSET
    """Calls that were not allowed; absent where all were."""
    sources: tuple[CitedPage, ...] | UnsetType = UNSET
    """Pages that the answer cites; absent where it cites none."""


class RunResult(RunDocument, frozen=True, tag_field="type", tag="result"):
    """The same as the last line of `--output-format stream-json`."""

    kind: str = "result"


_OLD_TYPES = {
    "tool_start": "tool_execution_start",
    "tool_update": "tool_execution_update",
    "tool_end": "tool_execution_end",
}
"""The names of kinds in `type`, which came before `kind` and stays for those who read it."""


def encode_event(event: events.Event) -> bytes:
    """Return an event as JSON, its `type` first."""
    kind = _OLD_TYPES.get(event.kind, event.kind)
    return events.encode_event(event, kind)


class RunWatcher:
    """Collects from events how the run ended, and with which exit code."""

    def __init__(
        self,
        emit: Callable[[bytes], None] | None,
        warn: Callable[[str], None],
        *,
        is_kept: bool = True,
    ) -> None:
        self.exit_code = 0
        self.error: Failure | None = None
        self.end = events.RunEnd("error", 0, Usage(), 0)
        self.first: str | None = None
        """Id of the user entry that the run answers."""
        self._last: events.MessageEnd | None = None
        """The newest answer."""
        self._emit, self._warn, self._is_kept = emit, warn, is_kept

    @property
    def has_output(self) -> bool:
        """Whether events are written."""
        return self._emit is not None

    def take_event(self, event: events.Event) -> None:  # noqa: C901, PLR0912 (a case each)
        """Record one event."""
        if self._emit is not None:
            self._emit(encode_event(event))
        if event.agent:
            return  # a sub-agent's: how the run ended is said by its own events
        match event:
            case events.RunStart(entry=entry):
                self.first = entry
            case events.RunFailure(error_class=kind, message=message, exit_code=code):
                self.error, self.exit_code = Failure(kind, message), code
                self._warn(message)
            case events.TurnLimit() | events.CostLimit() | events.LoopDetection():
                limit = describe_limit(event, is_kept=self._is_kept)
                self._warn(limit)
                if not isinstance(event, events.LoopDetection) or event.stopped:
                    self.exit_code, self.error = LIMIT_EXIT, Failure("LimitReached", limit)
            case events.CompactionEnd():
                self._warn(describe_compaction(event))
            case events.Warn(message=message):
                self._warn(message)
            case events.HookError(hook=hook, error=error):
                self._warn(f"hook {hook}: {error}")
            case events.MessageEnd():
                self._last = event
            case events.RunEnd():
                self.end = event
                if not self.exit_code:
                    self._finish_run(event.stop_reason)
            case _:
                pass

    def _finish_run(self, stop_reason: str) -> None:
        """Set the exit code of a run that was stopped, or whose last answer is not a whole one."""
        last = self._last
        if stop_reason == "aborted":
            self.exit_code = signals.INTERRUPTED_EXIT
        elif last and (short_answer := describe_short_answer(last.content, last.stop_reason)):
            self._warn(short_answer)
            self.exit_code, self.error = CUT_EXIT, Failure("AnswerIncomplete", short_answer)


async def answer_prompt(
    host: OpenSession,
    prompt: str,
    output: OutputFormat,
    *,
    out: Callable[[bytes], None],
    warn: Callable[[str], None],
) -> int:
    """Answer one prompt, write the result with `out`, and return the exit code.

    Raises BrokenPipeError after a run that was stopped because its reader left.
    """
    session, reader = host.session, _OutputPipe(out)
    emit = None
    if output == "stream-json":
        recorder = session.open_recorder(prompt)
        first = {
            "type": "init",
            "kind": "init",
            "session": recorder.tape.id,
            "branch": recorder.branch,
            "model": host.model_name,
            "tools": session.setup.tools.active,
            "mode": find_mode(session.setup.policy),
            "cwd": session.setup.env.working_directory,
        }
        reader.write(_encode_json_line(first))
        emit = lambda line: reader.write(line + b"\n")  # noqa: E731 (one use)
    watch = RunWatcher(emit, warn, is_kept=host.is_kept)
    try:
        interrupted = await _watch_run(session, prompt, watch, reader)
        denied = await _list_denied_calls(session, watch)
        for text in dict.fromkeys(map(_describe_denied_call, denied)):
            warn(text)
        if not watch.exit_code and _is_all_denied(session, watch):
            watch.exit_code = DENIED_EXIT
            watch.error = Failure("PermissionDenied", "no call of the run was allowed")
        done = build_document(session, watch, host.library.store.open)
        if denied:
            done = replace(done, denied=denied)
    finally:
        if output == "stream-json":
            await _end_session(session, watch)
    if output == "text":
        is_shown = done.result and not _is_object_missing(session)
        cited = "" if done.sources is UNSET else _format_sources(done.sources)
        reader.write(f"{done.result}\n{cited}".encode() if is_shown else b"")
    else:
        reader.write(encode_document(done, output))
    if reader.left and interrupted:
        silence_stream(sys.stdout)
    elif reader.left:
        raise BrokenPipeError
    return watch.exit_code


async def _end_session(session: Session, watch: RunWatcher) -> None:
    """Close the session, and take the events of that, its end last."""
    closing_events: list[events.Event] = []
    leave = session.subscribe(closing_events.append, agents=True)
    try:
        await session.close()
    finally:
        leave()
        for event in sorted(closing_events, key=lambda event: isinstance(event, events.SessionEnd)):
            watch.take_event(event)


async def _list_denied_calls(session: Session, watch: RunWatcher) -> tuple[DeniedCall, ...]:
    """Return the calls of a run that were not allowed, and the rules that would allow them."""
    if session.recorder is None:
        return ()
    run = _find_run_entries(session.recorder, watch.first)
    answers = (entry.data for entry in run if isinstance(entry.data, Assistant))
    calls = {call.id: call for answer in answers for call in select_tool_calls(answer.content)}
    policy, denied = session.setup.policy, []
    for entry in run:
        approval = entry.data
        if not isinstance(approval, Approval) or approval.decision != "deny":
            continue
        if (call := calls.get(approval.call_id)) is None:
            continue
        rules: tuple[str, ...] = ()
        if approval.by == "headless" and isinstance(policy, PermissionPolicy):
            arguments = read_arguments(bytes(call.args))
            rules = (await policy.judge_in_time(call.name, arguments)).offered
        why = approval.reason or f"by {approval.by}"
        denied.append(DeniedCall(call.id, describe_call(call), why, rules))
    return tuple(denied)


def _describe_denied_call(call: DeniedCall) -> str:
    """Return a call that was not allowed in one line, with what would allow it."""
    flags = " ".join(f"--allow {shlex.quote(rule)}" for rule in call.rules)
    advice = f"; {flags} allows it" if flags else ""
    return f"not allowed: {shorten_to_width(call.name, _CALL_COLUMNS)} ({call.why}){advice}"


def build_failure_document(error: Exception) -> RunDocument:
    """Return the document of a run that an error kept from its beginning."""
    message = (
        error.format_message() if isinstance(error, click.ClickException) else str(error)
    ) or type(error).__name__
    failure = Failure(type(error).__name__, message)
    return RunDocument("", "", "", "error", Usage(), None, 0, (), is_error=True, error=failure)


def encode_document(document: RunDocument, output: OutputFormat) -> bytes:
    """Return a document as the line of JSON that the output format ends with."""
    result = document if output == "json" else RunResult(*astuple(document))
    return _encode_json_line(result)


def _is_all_denied(session: Session, watch: RunWatcher) -> bool:
    """Whether the run called tools, and permission was denied to every call; hooks do not count."""
    if session.recorder is None or find_mode(session.setup.policy) == PermissionMode.BYPASS:
        return False
    run = _find_run_entries(session.recorder, watch.first)
    results = [entry.data for entry in run if isinstance(entry.data, ToolResult)]
    done = {result.call_id for result in results if result.name != ANSWER_TOOL}
    denied = {
        entry.data.call_id
        for entry in run
        if isinstance(entry.data, Approval)
        and entry.data.decision == "deny"
        and entry.data.by != "hook"
    }
    return bool(done) and done <= denied


def _is_object_missing(session: Session) -> bool:
    """Whether an object was required as answer, and none came."""
    return session.run_state.form is not None and session.object_answer is None


class _OutputPipe:
    """The output, whose reader may leave before the end."""

    def __init__(self, out: Callable[[bytes], None]) -> None:
        self.left = False
        self._out = out

    def write(self, data: bytes) -> None:
        """Write unless the reader has left."""
        if self.left:
            return
        try:
            self._out(data)
        except OSError as error:
            if error.errno not in _CLOSED_ERRORS:
                raise
            self.left = True


def _encode_json_line(value: Any) -> bytes:
    return encode_json(value) + b"\n"


def _format_sources(sources: Sequence[CitedPage]) -> str:
    """Return the pages that an answer cites as they follow it."""
    lines = (f"[{number}] {page}\n" for number, page in enumerate(sources, 1))
    return f"\nSources:\n{''.join(lines)}"


async def _watch_run(session: Session, prompt: str, watch: RunWatcher, reader: _OutputPipe) -> bool:
    """Run to the end; return whether a signal stopped it.

    A signal, or a reader that left, stops the run, and what it was doing is recorded; a second
    signal kills the running command at once.
    """
    stopped = interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        interrupted = True
        session.abort()

    with signals.handle_signals((signal.SIGINT, *signals.HANG_UPS), interrupt):
        async with aclosing(session.submit(prompt, agents=watch.has_output)) as stream:
            async for event in stream:
                watch.take_event(event)
                if reader.left and not stopped:
                    stopped = True
                    session.abort()
    return interrupted


def build_document(
    session: Session, watch: RunWatcher, open_tape: Callable[[str], Tape]
) -> RunDocument:
    """Return the result of a run, read from its entries; a hook may have taken its prompt.

    Usage and cost are those of sub-agents, too; `open_tape` opens theirs by its id.
    """
    recorder = session.recorder
    run = _find_run_entries(recorder, watch.first) if recorder else ()
    answers = [entry.data for entry in run if isinstance(entry.data, Assistant)]
    calls = _list_model_calls(run, recorder, open_tape) if recorder else []
    answer = session.object_answer
    text = join_texts(answers[-1].content) if answers else ""
    cited = list_sources(answers[-1].content) if answers else ()
    known = [call.cost.amount for call in calls if call.cost is not None]
    return RunDocument(
        session=recorder.tape.id if recorder else "",
        branch=recorder.branch if recorder else "",
        result=text if answer is None else msgspec.json.encode(answer).decode(),
        stop_reason=watch.end.stop_reason,
        usage=watch.end.usage,
        cost=Cost("USD", sum(known)) if known and len(known) == len(calls) else None,
        turns=watch.end.turns,
        tool_calls=_list_tool_calls(run, answers),
        is_error=watch.exit_code != 0,
        error=watch.error,
        structured_output=UNSET if answer is None else answer,
        sources=cited or UNSET,
    )


def _list_model_calls(
    run: Sequence[Entry], recorder: Recorder, open_tape: Callable[[str], Tape]
) -> list[Assistant | SideUsage]:
    """Return the model calls of a run and of the sub-agents that it started."""
    source: Iterable[tuple[str, Entry]] = ((recorder.branch, entry) for entry in run)
    if any(isinstance(entry.data, AgentStart) for entry in run):
        from ..context.agent_calls import add_agent_calls  # few runs start one

        source = add_agent_calls(source, recorder.tape, open_tape, lambda _: None)
    return [entry.data for _, entry in source if isinstance(entry.data, Assistant | SideUsage)]


def _find_run_entries(recorder: Recorder, first: str | None) -> Sequence[Entry]:
    """Return the entries of a run, even if a summary replaced the first ones."""
    path = recorder.path
    for place in range(len(path) - 1, -1, -1):
        if path[place].id == first:
            return path[place:]
    if first is None:
        return ()
    all_ = (entry for run in recorder.tape.read_runs(recorder.head()) for entry in run)
    return tuple(dropwhile(lambda entry: entry.id != first, all_))


def _list_tool_calls(run: Sequence[Entry], answers: Sequence[Assistant]) -> tuple[PrintedCall, ...]:
    failed = {
        entry.data.call_id: entry.data.is_error
        for entry in run
        if isinstance(entry.data, ToolResult)
    }
    return tuple(
        PrintedCall(
            call.id,
            call.name,
            call.args if call.args != NO_JSON else Raw(msgspec.json.encode(call.args_text)),
            failed.get(call.id, True),
        )
        for answer in answers
        for call in select_tool_calls(answer.content)
    )
