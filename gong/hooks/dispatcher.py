"""Asks the hooks of a session, one after the other, and keeps their failures away from the run.

What becomes of one hook's answer:

    ==========================  ==========================================================
    a hook                      what follows
    ==========================  ==========================================================
    answers nothing             the next hook gets the same value
    changes fields              the next hook gets the changed value
    changes them wrongly        reported; the next hook gets the value from before
    blocks, at a gate           no further hook is asked
    asks for approval           remembered; a later block counts more, an allow less
    raises, or is too slow      reported; as no answer, or with `onFailure = "block"` a block
    decides in unknown words    the same; of a tool call it asks for approval
    ==========================  ==========================================================

A hook runs in a task of its own and gets copies. One that waits for something that never comes,
such as the end of the run it is part of, is left behind when its time is over.
"""

from __future__ import annotations

import asyncio
from copy import deepcopy
from dataclasses import dataclass, field, replace
from threading import Thread
from traceback import format_exception, format_exception_only
from typing import TYPE_CHECKING, Any, NamedTuple

from .hook import GATES, NO_ANSWER, HookAnswer, HookCall, HookFailed, UnreadableDecision

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .hook import Hook, HookSession, Point

_CLOSE_SECONDS = 1.0
"""How long hooks that were skipped are waited for at the end."""
_SPARE_SECONDS = 5.0
"""What a thread of hooks may take beyond their own time limits."""


class HookFailure(NamedTuple):
    """A hook that failed, for people."""

    hook: str
    point: Point
    error: str
    """In one line."""
    trace: str
    """Python's traceback; empty for a command and for a hook that was too slow."""


@dataclass(slots=True)
class HookOutcome:
    """What all hooks of a point answered together."""

    value: dict[str, Any]
    """The value after all changes."""
    decision: str = ""
    """allow, ask, block, or empty: no hook decided."""
    reason: str = ""
    hook: str = ""
    """The hook that decided."""
    contexts: list[str] = field(default_factory=list)
    """Texts for the model."""
    messages: list[str] = field(default_factory=list)
    """Texts for the user."""
    stop: str | None = None
    """Why the run is to end; None if it continues."""


class HookDispatcher:
    """The hooks of one session, in the order in which they were registered."""

    def __init__(
        self, hooks: Sequence[Hook], report: Callable[[HookFailure], None] = lambda _: None
    ) -> None:
        self.hooks = list(hooks)
        self.report = report
        """Called with every failure."""
        hook: Any
        for hook in self.hooks:
            if getattr(hook, "report_late", self) is None:
                hook.report_late = self._report_late
        self._unfinished: set[asyncio.Task[HookAnswer]] = set()
        """Hooks that were skipped and have not ended."""

    def wants(self, point: Point) -> bool:
        """Return whether any hook is ever asked at a point."""
        return any(hook.wants(point) for hook in self.hooks)

    async def ask(
        self,
        point: Point,
        value: Mapping[str, Any],
        facts: HookSession,
        accept: Callable[[dict[str, Any]], object] = lambda _: None,
    ) -> HookOutcome:
        """Ask every hook of a point; `accept` raises for a value that cannot be used."""
        outcome = HookOutcome(deepcopy(dict(value)))
        for hook in self.hooks:
            if not self._is_wanted(hook, HookCall(point, outcome.value, facts)):
                continue
            call = HookCall(point, deepcopy(outcome.value), facts)
            answer = await self._ask_hook(hook, call)
            # Checked after each hook, not once at the end: the report names the hook that is wrong.
            if answer.changed:
                changed = {**outcome.value, **deepcopy(dict(answer.changed))}
                try:
                    accept(changed)
                except Exception as error:  # noqa: BLE001 - the hook's value, not ours
                    answer = self._fail(hook, point, error)
                else:
                    outcome.value = changed
            _merge_answer(outcome, hook, answer)
            if answer.decision == "block" and point in GATES:
                break
        return outcome

    def ask_and_wait(
        self, point: Point, value: Mapping[str, Any], facts: HookSession
    ) -> HookOutcome:
        """As `ask`, for callers that are not asynchronous: the hooks run in a thread meanwhile."""
        outcomes: list[HookOutcome] = []
        thread = Thread(
            target=lambda: outcomes.append(asyncio.run(self.ask(point, value, facts))), daemon=True
        )
        thread.start()
        # `fork` and `switch` are not asynchronous, and their caller's event loop is busy with them.
        thread.join(sum(hook.timeout for hook in self.hooks) + _SPARE_SECONDS)
        return outcomes[0] if outcomes else HookOutcome(dict(value))

    async def close(self) -> None:
        """End what hooks left running; nothing is raised."""
        if self._unfinished:
            await asyncio.wait(self._unfinished, timeout=_CLOSE_SECONDS)
        for hook in self.hooks:
            if (close := getattr(hook, "close", None)) is not None:
                await close()

    def _is_wanted(self, hook: Hook, call: HookCall) -> bool:
        try:
            return bool(hook.handles(call))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - as in answers
            self._fail(hook, call.point, _make_failure(error))
            return False

    async def _ask_hook(self, hook: Hook, call: HookCall) -> HookAnswer:
        """Return a hook's answer; a hook that is too slow is left behind, not waited for."""
        # In a task of its own: a hook may swallow its cancellation, and then nothing waits for it.
        task = asyncio.create_task(_answer_call(hook, call))
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        try:
            await asyncio.wait({task}, timeout=hook.timeout)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not task.done():
            task.cancel()
            task.add_done_callback(_drop_result)
            return self._fail(hook, call.point, HookFailed(f"no answer in {hook.timeout:g} s"))
        if task.cancelled():
            return self._fail(hook, call.point, HookFailed("it cancelled itself"))
        error = task.exception()
        if error is None:
            return self._check_answer(hook, call.point, task.result())
        return self._fail(hook, call.point, _make_failure(error))

    def _check_answer(self, hook: Hook, point: Point, answer: object) -> HookAnswer:
        """Return the answer of a hook where it is one, with a decision that there is."""
        if not isinstance(answer, HookAnswer):
            wrong = f"it returned {type(answer).__name__}, not HookAnswer"
        elif not isinstance(answer.decision, str) or answer.decision not in _RANKS:
            wrong = f"unknown decision {answer.decision!r}: use allow, ask or block"
        else:
            return _clean_words(answer)
        return self._fail(hook, point, UnreadableDecision(wrong))

    def _report_late(self, hook: Hook, point: Point, error: Exception) -> None:
        """Report the failure of a hook in the background, which nobody waits for."""
        self._fail(hook, point, error)

    def _fail(self, hook: Hook, point: Point, error: Exception) -> HookAnswer:
        """Report a failure, and return what it counts as."""
        if isinstance(error, HookFailed):
            line, trace = str(error), ""
        else:
            line = " ".join("".join(format_exception_only(error)).split())
            trace = "".join(format_exception(error))
        self.report(HookFailure(hook.name, point, line, trace))
        if hook.on_failure == "block":
            return HookAnswer("block", f"the hook {hook.name} failed: {line}")
        if isinstance(error, UnreadableDecision) and point == "tool_call":
            return HookAnswer("ask", f"the hook {hook.name} failed: {line}")
        return NO_ANSWER


def _clean_words(answer: HookAnswer) -> HookAnswer:
    """Return an answer whose words are texts: a block whose reason is none blocks all the same."""
    words = {name: getattr(answer, name) for name in ("reason", "context", "message")}
    changes: dict[str, Any] = {
        name: "" if value is None else f"(no text, but {type(value).__name__})"
        for name, value in words.items()
        if not isinstance(value, str)
    }
    return replace(answer, **changes) if changes else answer


def _make_failure(error: BaseException) -> Exception:
    """Return an error of a hook; SystemExit and the like of a hook must not end the session."""
    if isinstance(error, Exception):
        return error
    return HookFailed(f"it raised {type(error).__name__}")


async def _answer_call(hook: Hook, call: HookCall) -> HookAnswer:
    try:
        answer = await hook.answer(call)
    except SystemExit as error:  # out of a task it would end the event loop
        raise _make_failure(error) from error
    if not isinstance(answer, HookAnswer):
        raise HookFailed(f"it answered {type(answer).__name__}")
    return answer


def _drop_result(task: asyncio.Task[HookAnswer]) -> None:
    """Take the exception of a task that nobody waits for, so that it is not logged."""
    if not task.cancelled():
        task.exception()


_RANKS = {"": 0, "allow": 1, "ask": 2, "block": 3}


def _merge_answer(outcome: HookOutcome, hook: Hook, answer: HookAnswer) -> None:
    """Add an answer to what the hooks before it said: block > ask > allow."""
    if _RANKS[answer.decision] > _RANKS[outcome.decision]:
        outcome.decision, outcome.reason = answer.decision, answer.reason
        outcome.hook = hook.name
    if answer.context:
        outcome.contexts.append(answer.context)
    if answer.message:
        outcome.messages.append(answer.message)
    outcome.messages += (f"hook {hook.name}: {remark}" for remark in answer.remarks)
    if outcome.stop is None:
        outcome.stop = answer.stop
