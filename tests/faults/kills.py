"""Processes that are killed before one of their calls, or after a time; for the fault tests."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

CONTEXT = multiprocessing.get_context("fork")
_EVENTS = {
    *("open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.utime", "os.scandir"),
    *("os.link", "os.truncate"),
}
"""Calls before which a process is killed: those that Python tells of."""


def _run_until(work: Callable[[], object], at: int, calls: Any) -> None:
    """Do work in this process, which kills itself before its call number `at`."""

    def hook(event: str, _: object) -> None:
        if event in _EVENTS:
            calls.value += 1
            if calls.value == at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    work()


def kill_once(work: Callable[[], object], *, at: int = 0, after: float = 60) -> int:
    """Do work in a process, killed before a call or after some seconds; return its calls."""
    calls = CONTEXT.RawValue("i", 0)  # one with a lock could be killed while it holds that
    process = CONTEXT.Process(target=_run_until, args=(work, at, calls))
    process.start()
    process.join(after)
    process.kill()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
    return int(calls.value)


def measure(work: Callable[[], object]) -> tuple[int, float]:
    """Do work in a process that nobody kills; return its calls and its seconds."""
    begin = time.monotonic()
    return kill_once(work), time.monotonic() - begin


def kill_at_random(
    work: Callable[[], object], whole: tuple[int, float], choose: random.Random
) -> None:
    """Do work in a process, killed at one of its calls or moments; `whole` is what it takes."""
    calls, seconds = whole
    if choose.random() < 0.5:
        kill_once(work, at=choose.randint(1, calls))
    else:
        kill_once(work, after=choose.uniform(0, seconds))
