"""A judgement that ends: in a thread of its own, for so much processor time and no more.

The event loop goes through its other work meanwhile. What takes longer is stopped where it is, and
answered as something that nobody could judge.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

LIMIT_SECONDS = 0.1
"""Processor time of one judgement."""
_GRACE_SECONDS = 1.0
"""How long it is waited for a judgement that was stopped: a single step may take long."""


class JudgementTooLong(Exception):
    """A judgement took more than its time; raised into it, or by it."""


async def judge_in_time(
    judge: Callable[[], T], late: T, prepare: Callable[[], object] = lambda: None
) -> T:
    """Return what `judge` returns, or `late` where it takes too long; raises what it raises.

    What `prepare` takes, which is called before it in the same thread, does not count: to load
    modules and tables takes longer than most judgements, once in a program.
    """
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    starts: list[float] = []

    def judge_prepared() -> T:
        prepare()
        starts.append(time.thread_time())
        return judge()

    thread = threading.Thread(
        target=_judge_to_future, args=(judge_prepared, late, done), daemon=True
    )
    thread.start()
    while not done.done():
        await asyncio.wait({done}, timeout=LIMIT_SECONDS)
        if done.done() or not starts or _measure_seconds(thread) - starts[0] < LIMIT_SECONDS:
            continue
        _stop_thread(thread)
        await asyncio.wait({done}, timeout=_GRACE_SECONDS)
        if not done.done():
            done.cancel()
            return late
    return done.result()


def _judge_to_future(judge: Callable[[], T], late: T, done: asyncio.Future[T]) -> None:
    """Judge, and put the result into a future of another thread's loop."""
    loop = done.get_loop()

    def settle(put: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lambda: None if done.done() else put())

    try:
        try:
            result = judge()
        except JudgementTooLong:
            result = late
        except BaseException as error:  # noqa: BLE001 (raised in the task that waits)
            settle(partial(done.set_exception, error))
            return
        settle(partial(done.set_result, result))
    except JudgementTooLong:  # it was stopped just as it ended
        settle(partial(done.set_result, late))


def _measure_seconds(thread: threading.Thread) -> float:
    """Return the processor time of a thread; none where it has ended or the system tells none."""
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(thread.ident or 0))
    except (OSError, AttributeError):
        return 0.0


def _stop_thread(thread: threading.Thread) -> None:
    """Raise JudgementTooLong in a thread, at its next step."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(JudgementTooLong)
    )
