"""Signals that end the program: all are handled like Ctrl+C.

A closed terminal (SIGHUP), `kill` (SIGTERM) and Ctrl+C (SIGINT) stop the run, record it,
and end the program with exit code 130. SIGKILL alone leaves no time to record.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HANG_UPS = (signal.SIGHUP, signal.SIGTERM)
"""Signals besides SIGINT whose default action ends the program."""
INTERRUPTED_EXIT = 130


def install_interrupt_handlers() -> None:
    """Make SIGTERM and SIGHUP call the current handler of SIGINT.

    A SIGHUP that is ignored stays ignored, as nohup needs.
    """
    for number in HANG_UPS:
        if not _is_ignored_on_purpose(number):
            signal.signal(number, _raise_interrupt)


@contextmanager
def handle_signals(
    numbers: tuple[signal.Signals, ...], handle: Callable[[], None]
) -> Iterator[None]:
    """Call `handle` in the running event loop for these signals; restore them afterwards."""
    from asyncio import get_running_loop  # slow to load: not every command needs it

    loop = get_running_loop()
    before = {
        number: signal.getsignal(number) for number in numbers if not _is_ignored_on_purpose(number)
    }
    for number in before:
        loop.add_signal_handler(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def _raise_interrupt(*_: object) -> None:
    # A shell without job control starts background jobs with SIGINT ignored.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)


def _is_ignored_on_purpose(number: signal.Signals) -> bool:
    return number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN
