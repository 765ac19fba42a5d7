"""Hooks in Python: any object with some of the methods below, each plain or `async`.

    | method                                | returns                                             |
    | ------------------------------------- | --------------------------------------------------- |
    | `on_input(text, images)`              | None, a text, (text, images), HANDLED, Block(why)   |
    | `on_session_start(source)`            | None, or text for the model                         |
    | `on_before_agent(prompt, system)`     | None, a prompt, (prompt, system[, messages])        |
    | `on_context(messages)`                | None, or the messages to send                       |
    | `before_tool_call(tool, args)`        | None, Block(why), Ask(why), Allow(args)             |
    | `on_permission_request(tool, args)`   | None, Block(why), Allow()                           |
    | `on_tool_result(tool, result)`        | None, a text, or changed fields of the result       |
    | `on_stop(text)`                       | None, or Block(what is left to do)                  |
    | `before_session_op(op, meta)`         | None, False or Block(why)                           |
    | `on_event(event)`                     | nothing: it only watches                            |

A plain method runs in a thread, so a slow one holds up nothing but itself. An object may set
`timeout` (seconds) and `on_failure` ("continue" or "block").
"""

from __future__ import annotations

import asyncio
import inspect
from contextvars import copy_context
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING, Any

from .hook import NO_ANSWER, Allow, Ask, Block, HookAnswer, HookFailed, UnreadableDecision

if TYPE_CHECKING:
    from collections.abc import Callable

    from .hook import HookCall, OnFailure, Point

DEFAULT_SECONDS = 10.0
"""How long a Python hook may take if it does not say."""

_METHODS: dict[Point, tuple[str, tuple[str, ...]]] = {
    "input": ("on_input", ("text", "images")),
    "session_start": ("on_session_start", ("source",)),
    "before_agent": ("on_before_agent", ("prompt", "system")),
    "context": ("on_context", ("messages",)),
    "tool_call": ("before_tool_call", ("tool", "args")),
    "permission": ("on_permission_request", ("tool", "args")),
    "tool_result": ("on_tool_result", ("tool", "result")),
    "stop": ("on_stop", ("text",)),
    "session_op": ("before_session_op", ("op", "meta")),
    "event": ("on_event", ("event",)),
}
"""Point → the method, and the fields of the value that it gets."""


_RESULT_FIELDS = ("content", "is_error", "details", "full")
"""What a hook may change of a result; None for `details` and `full` leaves nothing of them."""


class PythonHook:
    """An object with hook methods."""

    def __init__(self, target: object, name: str = "") -> None:
        own = getattr(target, "__name__", "") or type(target).__name__
        self.name = name or str(own)
        self.timeout = float(getattr(target, "timeout", DEFAULT_SECONDS))
        self.on_failure: OnFailure = getattr(target, "on_failure", "continue")
        self._target = target

    def wants(self, point: Point) -> bool:
        """Return whether it has the method of a point."""
        return point in _METHODS and callable(getattr(self._target, _METHODS[point][0], None))

    def handles(self, call: HookCall) -> bool:
        """Return whether it has the method of the point."""
        return self.wants(call.point)

    async def answer(self, call: HookCall) -> HookAnswer:
        """Call the method and return what it says; UnreadableDecision for another."""
        name, fields = _METHODS[call.point]
        method = getattr(self._target, name)
        arguments = [call.value[name] for name in fields]
        if inspect.iscoroutinefunction(method):
            result = await method(*arguments)
        else:
            result = await _call_in_thread(lambda: method(*arguments))
            if inspect.isawaitable(result):
                result = await result
        if result is None:
            return NO_ANSWER
        answer = _read_answer(call.point, result)
        # A hook need not repeat messages of others, or fields of a result
        whole = dict(answer.changed)
        if call.point == "before_agent" and "messages" in answer.changed:
            whole["messages"] = [*call.value["messages"], *answer.changed["messages"]]
        if call.point == "tool_result" and "result" in answer.changed:
            whole["result"] = {**call.value["result"], **answer.changed["result"]}
        return replace(answer, changed=whole)


async def _call_in_thread(call: Callable[[], Any]) -> Any:
    """Call in a thread that nobody waits for at the end: a hook that hangs must not hold it up."""
    loop, context = asyncio.get_running_loop(), copy_context()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        elif isinstance(error, StopIteration):  # no future takes it
            future.set_exception(RuntimeError(f"it raised {error!r}"))
        else:
            future.set_exception(error)

    def run() -> None:
        value, error = None, None
        try:
            value = context.run(call)
        except BaseException as raised:  # noqa: BLE001 - it belongs to whoever awaits
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    Thread(target=run, daemon=True).start()
    return await future


def _read_answer(point: Point, result: Any) -> HookAnswer:
    """Return the answer that a method's result means; raises UnreadableDecision for others."""
    if point == "event":
        return NO_ANSWER
    if isinstance(result, Block):
        return HookAnswer("block", result.reason)
    answer = _READERS[point](result)
    if answer is None:
        raise UnreadableDecision(f"{_METHODS[point][0]} cannot answer {type(result).__name__}")
    return answer


def _read_input(result: Any) -> HookAnswer | None:
    match result:
        case str(text):
            return HookAnswer(changed={"text": text})
        case (str(text), images):
            return HookAnswer(changed={"text": text, "images": list(images)})
    return None


def _read_session_start(result: Any) -> HookAnswer | None:
    return HookAnswer(context=result) if isinstance(result, str) else None


def _read_before_agent(result: Any) -> HookAnswer | None:
    match result:
        case str(prompt):
            return HookAnswer(changed={"prompt": prompt})
        case (str(prompt), str(system)):
            return HookAnswer(changed={"prompt": prompt, "system": system})
        case (str(prompt), str(system), messages):
            changed = {"prompt": prompt, "system": system, "messages": list(messages)}
            return HookAnswer(changed=changed)
    return None


def _read_context(result: Any) -> HookAnswer | None:
    return (
        HookAnswer(changed={"messages": list(result)}) if isinstance(result, list | tuple) else None
    )


def _read_tool_call(result: Any) -> HookAnswer | None:
    match result:
        case True:
            return NO_ANSWER
        case Ask(reason=reason):
            return HookAnswer("ask", reason)
        case Allow(args=args):
            return HookAnswer("allow", changed={} if args is None else {"args": dict(args)})
    return None


def _read_permission(result: Any) -> HookAnswer | None:
    return HookAnswer("allow") if isinstance(result, Allow) and result.args is None else None


def _read_tool_result(result: Any) -> HookAnswer | None:
    if isinstance(result, str):
        result = {"content": result}
    if not isinstance(result, dict):
        return None
    unknown = [str(field) for field in result if field not in _RESULT_FIELDS]
    if unknown:
        wrong = f"a result has no {', '.join(unknown)}: its fields are {', '.join(_RESULT_FIELDS)}"
        raise HookFailed(f"on_tool_result: {wrong}")
    if "details" in result and result["details"] is None:
        result = {**result, "details": {}}
    return HookAnswer(changed={"result": result})


def _read_session_op(result: Any) -> HookAnswer | None:
    if not isinstance(result, bool):
        return None
    return NO_ANSWER if result else HookAnswer("block")


def _read_stop(result: Any) -> HookAnswer | None:
    return NO_ANSWER if result is True else None


_READERS: dict[Point, Callable[[Any], HookAnswer | None]] = {
    "input": _read_input,
    "session_start": _read_session_start,
    "before_agent": _read_before_agent,
    "context": _read_context,
    "tool_call": _read_tool_call,
    "permission": _read_permission,
    "tool_result": _read_tool_result,
    "session_op": _read_session_op,
    "stop": _read_stop,
}
"""Point → a function that reads what its method returned; None is an answer it cannot give."""
