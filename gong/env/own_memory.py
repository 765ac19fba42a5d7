"""What other programs can read of this process: nothing of its keys.

Linux shows the environment that a process began with in `/proc/PID/environ`. A command would find
there what it does not inherit, so two things are done:

    the values of secrets are overwritten where they were passed to the process    for root as well
    /proc and the memory of the process are for root alone ("not dumpable")        for all others

The variables stay what they are for this process, and programs that it starts are as usual. The
price: no core dump, and a debugger needs root. Other systems have no such file.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .variables import VariableRules

_PR_SET_DUMPABLE = 4
_ENV_START = 47
"""Where the address of the environment is among the fields after the name of the program."""


def hide_secrets(rules: VariableRules) -> None:
    """Keep other programs from reading what `rules` keeps from them; inherit-all hides nothing."""
    if sys.platform != "linux" or rules.policy == "inherit-all":
        return
    import ctypes  # only where a command runs

    with suppress(OSError, ValueError, IndexError):  # /proc is missing, or of another kernel
        _overwrite_secrets(rules)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _overwrite_secrets(rules: VariableRules) -> None:
    import ctypes

    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    place, end = int(fields[_ENV_START]), int(fields[_ENV_START + 1])
    if not place:  # the kernel does not tell
        return
    for entry in ctypes.string_at(place, end - place).split(b"\0"):
        name, _, value = entry.partition(b"=")
        if rules.is_secret(os.fsdecode(name), os.fsdecode(value)):
            # The C library uses these very bytes until the variable is set anew
            if (current := os.environ.get(os.fsdecode(name))) is not None:
                os.environ[os.fsdecode(name)] = current
            ctypes.memset(place + len(name) + 1, 0, len(value))
        place += len(entry) + 1
