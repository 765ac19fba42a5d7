"""The command line of the store: thin click commands, the only readers of argv and environment.

`tape` is the click group, for a command line that wants it among its own commands.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys

from ..version import __version__

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from typing import NoReturn

    from .group import tape

__all__ = ["main", "tape"]

_GC_THRESHOLD = 50_000
"""Garbage collection threshold in objects: importing makes thousands, none of them garbage."""


def main() -> NoReturn:
    """Run `tape` with the arguments of this process, and end the process with its exit code.

    The version is printed before anything is imported; all else are click commands, each imported
    when it is called.
    """
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        sys.exit(print_version("tape", __version__))
    from .environment import name_complete_variable  # not for the version

    if (instruction := os.environ.get(name_complete_variable("tape"))) is not None:
        from .completion import answer_completion  # only a shell asks

        sys.exit(answer_completion(instruction))
    gc.set_threshold(_GC_THRESHOLD)
    from .group import run_command

    end_process(run_command(arguments))


def end_process(code: int) -> NoReturn:
    """End the process at once: its memory is not taken apart object by object.

    What is registered to run at the end runs, and output is written. Where that fails the
    interpreter ends as usual, which tells why.
    """
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        sys.exit(code)
    atexit._run_exitfuncs()  # noqa: SLF001 (there is no public name)
    os._exit(code)


def print_version(program: str, version: str) -> int:
    """Print the version of a program without importing anything, and return the exit code."""
    if sys.stdout is None:  # the parent closed standard output: nobody reads it
        return 0
    try:
        sys.stdout.write(f"{program} {version}\n")
        sys.stdout.flush()
    except OSError as error:
        from .streams import silence_stream  # only a failure needs it

        silence_stream(sys.stdout)
        if isinstance(error, BrokenPipeError):
            return 0
        if sys.stderr is not None:
            sys.stderr.write(f"{program}: {error.strerror}\n")
        return 1
    return 0


def __getattr__(name: str) -> object:
    """Import the click group on first use."""
    if name == "tape":
        from .group import tape

        return tape
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
