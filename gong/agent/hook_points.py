"""The hooks of a session at the points of a run: agent values to hook values and back.

The order in a run, as session, loop and tool step ask for it:

    take_input (setup, session_start, input) ─▶ begin_run (before_agent) ─▶ record prompt ─▶ loop:
        change_request ─▶ model ─▶ check_call ─▶ tool ─▶ change_result ─▶ settle_turn
        nothing left to do ─▶ keep_working ─▶ end

`decide_permission` comes where the policy would ask a person about a call, after `check_call`.
`check_operation` comes before fork, switch and compact. Text that hooks add for the model becomes a
`context` entry with origin hook: after the prompt, or after the results of the turn, never between
a call and its result.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace as replace_fields

from tape.context.view import Message
from tape.formats.wire import encode_json
from tape.model.entries import Approval, Assistant, Content, Context, Text, Usage, join_texts
from tape.store.phase import ENTRIES
from tape.text import shorten_to_width, to_single_line

from ..hooks.command_hook import CommandHook
from ..hooks.dispatcher import HookDispatcher
from ..hooks.hook import HookSession
from ..hooks.python_hook import PythonHook
from ..tools.tool import ToolOutcome, encode_details
from . import events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tape.model.entries import ToolCall

    from ..env.sandbox.sandbox import Sandbox
    from ..hooks.dispatcher import HookFailure, HookOutcome
    from ..hooks.hook import Hook, Point
    from ..llm.types import Request
    from ..policy.approval import ApprovalRequest
    from ..tools.tool import PreparedCall
    from .events import Emit
    from .recorder import Recorder

MAX_STOP_BLOCKS = 8
"""How often in a row hooks may keep a run from ending."""
_REASON_COLUMNS = 200
"""How much a person sees of why a hook blocked: the model reads all of it."""
_WATCHING_POINTS = frozenset({"event", "notification"})
_END_SECONDS = 5.0
"""How long watching hooks are waited for at the end of a session."""


class SessionHooks:
    """The hooks of one session, and what they said that has not been used yet."""

    def __init__(
        self,
        hooks: Sequence[Hook | object],
        cwd: str = "",
        tapes: str = "",
        agent: tuple[str, str] = ("", ""),
    ) -> None:
        """Take hooks, or objects with hook methods (see gong.hooks.python_hook), in order.

        `cwd` is the folder in which commands run, `tapes` the folder of the store's tapes, `agent`
        the id and type of the sub-agent whose session it is.
        """
        self.dispatcher = HookDispatcher([_wrap_hook(hook) for hook in hooks])
        self.cwd, self.tapes, self._agent = cwd or str(Path.cwd()), tapes, agent
        self._find_mode: Callable[[], str] = lambda: "default"
        self._recorder: Recorder | None = None
        self._emit: Emit = lambda _: None
        self._contexts: list[Context] = []
        """Text for the model that is not recorded yet."""
        self._system: str | None = None
        """The system prompt of this run; None if no hook changed it."""
        self._stop: str | None = None
        self._stop_blocks = 0
        self.prepares = False
        """Whether the project is new here, so that hooks at `setup` prepare it first."""
        self._has_started = False
        self._tally = _EventTally()
        self._watching: asyncio.Queue[dict[str, Any]] | None = None
        self._watcher: asyncio.Task[None] | None = None

    def enter_sandbox(self, sandbox: Sandbox) -> None:
        """Let the commands that a project brings run inside a sandbox from now on."""
        for hook in self.dispatcher.hooks:
            if isinstance(hook, CommandHook) and hook.rule.is_of_project:
                hook.sandbox = sandbox

    def begin(self, emit: Emit, find_mode: Callable[[], str]) -> None:
        """Report failures of hooks as events from now on; `find_mode` gives the permission mode."""
        self._emit, self._find_mode = emit, find_mode
        self.dispatcher.report = self._report_failure

    @property
    def starts_session(self) -> bool:
        """Whether the next prompt is the first of a session whose id hooks want before it."""
        points: tuple[Point, ...] = ("session_start", "input")
        wants = self.prepares or any(map(self.dispatcher.wants, points))
        return wants and not self._has_started

    async def take_input(self, prompt: str, recorder: Recorder | None) -> str | None:
        """Return the prompt as hooks changed it; None if one took it, and the run is over."""
        self._recorder, self._system = recorder, None
        self._stop, self._stop_blocks = None, 0
        if recorder is not None and not self._has_started:
            with self._end_if_stopped():
                await self._start_session(recorder)
        if not self.dispatcher.wants("input"):
            return prompt
        known = len(self._contexts)
        with self._end_if_stopped():
            outcome = await self._ask("input", {"text": prompt, "images": []}, _check_input)
        if outcome.decision != "block":
            return str(outcome.value["text"])
        del self._contexts[known:]
        if outcome.reason:
            text = f"the prompt was blocked by a hook: {outcome.reason}"
            self._emit(events.RunFailure("InputBlocked", text, retryable=False, exit_code=1))
        self._emit(events.RunEnd("stop", 0, Usage(), 0))
        return None

    async def _start_session(self, recorder: Recorder) -> None:
        """Tell hooks that the session starts, once, before its first prompt."""
        self._has_started = True
        if self.prepares:
            await self._ask("setup", {"trigger": "init"})
        is_new = not any(isinstance(entry.data, Assistant) for entry in recorder.path)
        await self._ask("session_start", {"source": "startup" if is_new else "resume"})

    async def begin_run(
        self, recorder: Recorder, prompt: str, build_system: Callable[[], str]
    ) -> str:
        """Return the prompt as hooks changed it; a changed system prompt holds in the whole run."""
        self._recorder = recorder
        if not self.dispatcher.wants("before_agent"):
            return prompt
        with self._end_if_stopped():
            system = build_system()
            value = {"prompt": prompt, "system": system, "messages": []}
            changed = (await self._ask("before_agent", value, _check_start)).value
        self._contexts += [_read_injected(text) for text in changed["messages"]]
        self._system = changed["system"] if changed["system"] != system else None
        return str(changed["prompt"])

    def record_contexts(self, recorder: Recorder) -> None:
        """Record the text that hooks added for the model."""
        for context in self._contexts:
            recorder.append(context)
        self._contexts.clear()

    async def change_request(self, recorder: Recorder, request: Request) -> Request:
        """Return the request of one call with messages and system prompt as hooks changed them."""
        if self._system is not None:
            request = replace_fields(request, system=self._system)
        if not self.dispatcher.wants("context"):
            return request
        self._recorder = recorder  # it changes when the session forks
        value = {"messages": _to_json(tuple(request.messages))}
        outcome = await self._ask("context", value, _check_messages)
        if outcome.value == value:
            return request
        messages = tuple(_read_message(message) for message in outcome.value["messages"])
        return replace_fields(request, messages=messages)

    async def check_call(
        self,
        recorder: Recorder,
        prepare: Callable[[ToolCall], PreparedCall | ToolOutcome],
        prepared: PreparedCall,
    ) -> PreparedCall | ToolOutcome:
        """Return the call as hooks changed it, or the refusal for the model.

        `prepare` checks changed arguments: that of the registry of tools.
        """
        if not self.dispatcher.wants("tool_call"):
            return prepared
        call, value = prepared.call, _describe_call(prepared)
        latest = prepared

        def accept(changed: dict[str, Any]) -> None:
            nonlocal latest
            raw = Raw(encode_json(changed["args"]))
            name = prepared.tool.name
            again = prepare(replace_fields(call, name=name, args=raw, args_text=None))
            if isinstance(again, ToolOutcome):
                raise ValueError(join_texts(again.content))  # noqa: TRY004 (of the arguments)
            latest = again

        outcome = await self._ask("tool_call", value, accept)
        if outcome.decision == "ask":
            return replace(latest, wish="ask", wish_reason=outcome.reason)
        if outcome.decision == "allow":
            return replace(latest, wish="allow", wish_reason=outcome.reason)
        if outcome.decision != "block":
            return latest
        approval = Approval(call.id, "deny", by="hook", rule=outcome.hook, reason=outcome.reason)
        recorder.append(approval)
        reason = outcome.reason or "no reason was given"
        self._report_block(outcome.hook, f"blocked {prepared.tool.name}", reason)
        return ToolOutcome.error(f"Blocked by a hook: {reason}", kind="PermissionDenied")

    async def decide_permission(self, request: ApprovalRequest) -> Approval | None:
        """Return what hooks decide in place of the person; None if they leave it to the person.

        A decision is about the arguments that were asked about: a hook that changes them fails.
        """
        if not self.dispatcher.wants("permission"):
            return None
        value = {
            "tool": request.name,
            "args": dict(request.arguments),
            "call_id": request.call_id,
            "suggestions": [*map(_describe_rule, request.ruling.offered)],
        }
        outcome = await self._ask("permission", value, _refuse_changes)
        if outcome.decision not in {"allow", "block"}:
            return None
        decision = "allow" if outcome.decision == "allow" else "deny"
        if decision == "deny":
            self._report_block(outcome.hook, f"denied {request.name}", outcome.reason)
        reason = outcome.reason or None
        return Approval(request.call_id, decision, "hook", outcome.hook, reason)

    async def change_result(
        self, prepared: PreparedCall, result: ToolOutcome, duration_ms: int
    ) -> ToolOutcome:
        """Return a result as hooks changed it; the original text stays on the tape as `full`.

        Content and details change each by itself (000 §11).
        """
        if not self.dispatcher.wants("tool_result"):
            return result
        text = join_texts(result.content)
        details = msgspec.json.decode(encode_details(result) or b"{}")
        value = _describe_call(prepared)
        value["duration_ms"] = duration_ms
        value["result"] = {"content": text, "is_error": result.is_error, "details": details}
        changed = (await self._ask("tool_result", value, _check_result)).value["result"]
        if changed["content"] != text:
            full = changed.get("full", result.full or text)
            result = replace_fields(result.replace_text(changed["content"], text), full=full)
            if full is None:
                result = replace_fields(result, kept=None)
        if changed["details"] != details:
            result = replace_fields(result, details=changed["details"])
        return replace_fields(result, is_error=changed["is_error"])

    def settle_turn(self, recorder: Recorder) -> bool:
        """Record what hooks added in this turn; return False if one of them ends the run."""
        self.record_contexts(recorder)
        if self._stop is None:
            return True
        self._emit(events.Warn(f"a hook ended the run: {self._stop}"))
        return False

    async def keep_working(self, recorder: Recorder) -> bool:
        """Return whether a hook has more for the agent to do, and record it; else the run ends."""
        if not self.dispatcher.wants("stop"):
            return False
        answers = (entry.data for entry in reversed(recorder.path))
        last = next((answer for answer in answers if isinstance(answer, Assistant)), None)
        text = join_texts(last.content) if last else ""
        outcome = await self._ask("stop", {"text": text, "active": self._stop_blocks > 0})
        if outcome.decision != "block" or self._stop is not None:
            return False
        if self._stop_blocks >= MAX_STOP_BLOCKS:
            self._emit(
                events.Warn(f"hooks kept the run from ending {MAX_STOP_BLOCKS} times: it ends now")
            )
            return False
        self._stop_blocks += 1
        self._report_block(outcome.hook, "keeps the agent working", outcome.reason)
        self._contexts.append(_build_context(outcome.reason or "Continue."))
        self.record_contexts(recorder)
        return True

    async def check_operation(self, operation: str, meta: dict[str, Any]) -> str | None:
        """Return why hooks cancel a fork, switch or compact; None if they do not."""
        if not self.dispatcher.wants("session_op"):
            return None
        return _read_cancel(await self._ask("session_op", {"op": operation, "meta": meta}))

    def check_operation_now(self, operation: str, meta: dict[str, Any]) -> str | None:
        """As `check_operation`, for callers that are not asynchronous."""
        if not self.dispatcher.wants("session_op"):
            return None
        value = {"op": operation, "meta": meta}
        return _read_cancel(
            self._take_outcome(self.dispatcher.ask_and_wait("session_op", value, self._facts()))
        )

    async def end_compaction(self, recorder: Recorder, trigger: str, summary: str) -> None:
        """Tell hooks of a compaction; those of a session's start may add context again."""
        self._recorder = recorder
        await self._ask("after_compact", {"trigger": trigger, "compact_summary": summary})
        if self.dispatcher.wants("session_start"):
            await self._ask("session_start", {"source": "compact"})
            self.record_contexts(recorder)

    def watch_event(self, event: events.Event) -> None:
        """Hand a session event to the hooks that watch; they run one event after the other."""
        if isinstance(event, events.HookError) and event.point in _WATCHING_POINTS:
            return  # a watching hook that fails would watch its own failure
        if self._watching is None:
            self._watching = asyncio.Queue()
            self._watcher = asyncio.get_running_loop().create_task(self._run_watchers())
        self._watching.put_nowait(self._tally.describe_event(event))

    async def end_session(self, reason: str) -> None:
        """Tell hooks that the session ends, after the events they have not seen yet."""
        if self._watching is not None and self._watcher is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await self._watching.join()
            self._watcher.cancel()
        if self._agent[0]:
            return  # the hooks are those of the session, which goes on
        if self.dispatcher.wants("session_end"):
            await self._ask("session_end", {"reason": reason})
        await self.dispatcher.close()

    def share(self, cwd: str, agent: str, kind: str) -> SessionHooks:
        """Return the same hooks for a sub-agent of the session."""
        return SessionHooks(self.dispatcher.hooks, cwd, self.tapes, (agent, kind))

    async def _run_watchers(self) -> None:
        assert self._watching is not None
        while True:
            event = await self._watching.get()
            try:
                if event["kind"] == "approval_request" and self.dispatcher.wants("notification"):
                    await self._ask(
                        "notification",
                        {
                            "message": "gong needs your approval",
                            "notification_type": "permission_prompt",
                        },
                    )
                await self._ask("event", {"event": event})
            finally:
                self._watching.task_done()

    @property
    def has_watchers(self) -> bool:
        """Whether any hook wants to see session events."""
        return self.dispatcher.wants("event") or self.dispatcher.wants("notification")

    async def _ask(
        self,
        point: Point,
        value: dict[str, Any],
        accept: Callable[[dict[str, Any]], object] = lambda _: None,
    ) -> HookOutcome:
        outcome = await self.dispatcher.ask(point, value, self._facts(), accept)
        return self._take_outcome(outcome)

    def _take_outcome(self, outcome: HookOutcome) -> HookOutcome:
        """Show what hooks say to the user, and keep what they say to the model."""
        for message in outcome.messages:
            self._emit(events.Warn(message))
        self._contexts += map(_build_context, outcome.contexts)
        if self._stop is None:
            self._stop = outcome.stop
        return outcome

    def _report_block(self, hook: str, did: str, reason: str) -> None:
        """Say which hook decided, and the begin of its reason."""
        reason_text = shorten_to_width(to_single_line(reason), _REASON_COLUMNS)
        self._emit(events.Warn(f"hook {hook} {did}{f': {reason_text}' if reason_text else ''}"))

    def _facts(self) -> HookSession:
        recorder = self._recorder
        if recorder is None:
            return HookSession(self.cwd, "", "", self._find_mode(), *self._agent)
        phase = f"phases/{recorder.writer.place.phase}/{ENTRIES}"
        transcript = f"{self.tapes}/{recorder.tape.folder.name}/{phase}" if self.tapes else ""
        return HookSession(self.cwd, recorder.tape.id, transcript, self._find_mode(), *self._agent)

    def _report_failure(self, failure: HookFailure) -> None:
        self._emit(events.HookError(failure.hook, failure.point, failure.error, failure.trace))

    @contextmanager
    def _end_if_stopped(self) -> Iterator[None]:
        """Tell of the end of a run that is stopped before it began."""
        try:
            yield
        except asyncio.CancelledError:
            self._emit(events.RunEnd("aborted", 0, Usage(), 0))
            raise


class _EventTally:
    """Adds to events what watching hooks want to know of a whole turn or run.

    The end of a turn gets its `calls`, the end of a run the number of its `steps`.
    """

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []

    def describe_event(self, event: events.Event) -> dict[str, Any]:
        """Return an event as JSON, with what is added to it."""
        payload: dict[str, Any] = _to_json(event)
        match event:
            case events.TurnStart():
                self._calls = []
            case events.ToolExecutionStart():
                self._calls.append({key: payload.get(key) for key in ("call_id", "name", "args")})
            case events.TurnEnd():
                payload["calls"] = self._calls
            case events.RunEnd():
                payload["steps"] = event.turns
            case _:
                pass
        return payload


def _to_json(value: Any) -> Any:
    """Return a value as JSON has it; raw JSON in it becomes values too."""
    return msgspec.json.decode(encode_json(value))


def _wrap_hook(hook: Hook | object) -> Hook:
    return hook if hasattr(hook, "wants") and hasattr(hook, "answer") else PythonHook(hook)  # type: ignore[return-value]


def _describe_call(prepared: PreparedCall) -> dict[str, Any]:
    """Return the call as hooks see it: the tool that is meant, arguments that are given."""
    call, args = prepared.call, prepared.values
    written = set(args)
    if prepared.tool.name == call.name and call.args_text is None:
        with suppress(ValueError):  # repaired arguments are shown as they will be used
            written = set(msgspec.json.decode(call.args, type=dict[str, Any]))
    visible_args = {name: args[name] for name in args if name in written and args[name] is not None}
    return {"tool": prepared.tool.name, "args": visible_args, "call_id": call.id}


def _describe_rule(rule: str) -> dict[str, Any]:
    """Return a rule that could be allowed as Claude's hooks read it."""
    tool, _, content = rule.removesuffix(")").partition("(")
    named = {"toolName": tool} | ({"ruleContent": content} if content else {})
    return {"type": "addRules", "rules": [named], "behavior": "allow", "destination": "session"}


def _refuse_changes(_value: dict[str, Any]) -> None:
    raise ValueError("what is decided about cannot be changed: PreToolUse hooks change arguments")


def _build_context(text: str) -> Context:
    return Context("user", "hook", (Text(text),))


def _read_cancel(outcome: HookOutcome) -> str | None:
    if outcome.decision != "block":
        return None
    return outcome.reason or "no reason was given"


def _read_injected(message: dict[str, Any]) -> Context:
    content = message["content"]
    if isinstance(content, str):
        blocks: Content = (Text(content),)
    else:  # blocks as JSON
        blocks = msgspec.json.decode(encode_json(content), type=Content)
    return Context(message.get("role", "user"), "hook", blocks)


def _read_message(message: dict[str, Any]) -> Message:
    if isinstance(message.get("content"), str):
        message = {**message, "content": [{"type": "text", "text": message["content"]}]}
    return msgspec.json.decode(encode_json(message), type=Message)


def _check_input(value: dict[str, Any]) -> None:
    if not isinstance(value["text"], str) or not value["text"].strip():
        raise ValueError("the changed prompt is empty, or not a text")


def _check_start(value: dict[str, Any]) -> None:
    if not isinstance(value["prompt"], str) or not isinstance(value["system"], str):
        raise TypeError("prompt and system are texts")
    for text in value["messages"]:
        _read_injected(text)


def _check_messages(value: dict[str, Any]) -> None:
    for message in value["messages"]:
        _read_message(message)


def _check_result(value: dict[str, Any]) -> None:
    result = value["result"]
    if not isinstance(result["content"], str) or not isinstance(result["is_error"], bool):
        raise TypeError("content is a text, and is_error true or false")
    if not isinstance(result.get("full", ""), str | None):
        raise TypeError("full is a text or None")
    if not isinstance(result["details"], dict):
        raise TypeError("details is an object")
    msgspec.json.encode(result["details"])  # what is no JSON fails here, in the hook that sent it
