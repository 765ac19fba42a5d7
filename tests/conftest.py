"""How properties are searched: alike in every run, or, for `make fuzz`, each time elsewhere."""

from __future__ import annotations

import gc
import os
import random
import signal
import tempfile
import time
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, settings

from tests.found import Cases

UNTIL = float(os.environ.get("FUZZ_UNTIL", "0"))
"""When a search ends, in seconds since 1970; 0 in a usual run."""
CASES = Cases(adds=UNTIL > 0)

# No limit may depend on how busy the machine is. A database may not be given in one call with
# `derandomize`, because Hypothesis would save what it finds there: ours only reads in a usual run.
STEADY = settings(
    derandomize=not UNTIL, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# A found case is a file to replay, so no other hint is printed, as Hypothesis would on a CI server.
settings.register_profile("ours", settings(STEADY, database=CASES, print_blob=False))
settings.load_profile("ours")


# What is ignored stays so in every program that a test starts, and `nohup` and a shell's `&` ignore
# what tests send. A handler goes with the start of a program, so that theirs is the default; that
# of hang-ups does nothing, for `nohup` to keep its promise to the run itself.
for number, handler in {
    signal.SIGHUP: lambda *_: None,
    signal.SIGINT: signal.default_int_handler,
}.items():
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)


# How wide a table is where there is no terminal: workers inherit it from the run's own terminal.
os.environ.pop("COLUMNS", None)

MEMORY = "/dev/shm"
"""A file system in memory, where Linux has one."""
NEEDED_BYTES = 2 << 30


def find_memory():
    """Return a folder in memory with the room for all files of a run, and for programs in it.

    None without one. On a disk that others use as well, the suite mostly waits for its files to be
    written and deleted.
    """
    with suppress(OSError):
        about = os.statvfs(MEMORY)
        room = about.f_bavail * about.f_frsize
        if room >= NEEDED_BYTES and not about.f_flag & os.ST_NOEXEC and os.access(MEMORY, os.W_OK):
            return MEMORY
    return None


# Workers inherit the variable. `tempfile` has looked already: pytest's own files are on the disk.
if "TMPDIR" not in os.environ and (folder := find_memory()) is not None:
    os.environ["TMPDIR"] = tempfile.tempdir = folder


# Thousands of items are collected, and all of them stay: no use to look for garbage among them.
gc.disable()


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config, items):
    """Leave only properties in a search, in an order that differs from search to search."""
    if UNTIL:
        chosen = [one for one in items if getattr(one.obj, "is_hypothesis_test", False)]
        config.hook.pytest_deselected(items=[one for one in items if one not in chosen])
        random.Random(UNTIL).shuffle(chosen)
        items[:] = chosen


def pytest_runtest_setup(item):
    if 0 < UNTIL < time.time():
        pytest.skip(f"no time left for {item.name}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if UNTIL and call.when == "call" and call.excinfo is not None:
        CASES.describe(item.nodeid, getattr(call.excinfo.value, "__notes__", []))
    return report
