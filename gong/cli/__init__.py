"""The command line of the agent: thin click commands, the only readers of argv and environment."""

from __future__ import annotations

import gc
import os
import sys

import tape.cli

from .. import __version__

TYPE_CHECKING = False  # `typing` is not needed for --version
if TYPE_CHECKING:
    from typing import NoReturn

_GC_THRESHOLD = 50_000
"""Garbage collection threshold in objects: importing makes thousands, none of them garbage."""


def main() -> NoReturn:
    """Run `gong` with the arguments of this process, and end the process with its exit code.

    The version is printed before anything is imported.
    """
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        sys.exit(tape.cli.print_version("gong", __version__))
    from tape.cli.environment import name_complete_variable  # not for the version

    if (instruction := os.environ.get(name_complete_variable("gong"))) is not None:
        from .completion import answer_completion  # only a shell asks

        sys.exit(answer_completion(instruction))
    gc.set_threshold(_GC_THRESHOLD)
    from .run import run_command_line

    tape.cli.end_process(run_command_line(arguments))
