"""The command line of the agent: thin click commands, the only readers of argv and environment."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

import tape.cli

from .. import __version__

TYPE_CHECKING = False  # `typing` is not needed for --version
if TYPE_CHECKING:
    from typing import NoReturn

COMPLETE_VARIABLE = "_GONG_COMPLETE"
"""The variable by which a shell asks for completions."""

_GC_THRESHOLD = 20_000
"""Garbage collection threshold in objects: importing makes thousands, none of them garbage."""


def main() -> NoReturn:
    """Run `gong` with the arguments of this process, and end the process with its exit code.

    The version is printed before anything is imported.
    """
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        sys.exit(tape.cli.print_version("gong", __version__))
    if COMPLETE_VARIABLE in os.environ:
        completion = import_module(".completion", __package__)  # only a shell asks
        sys.exit(completion.answer_completion(os.environ[COMPLETE_VARIABLE]))
    gc.set_threshold(_GC_THRESHOLD)
    tape.cli.end_process(import_module(".run", __package__).run_command_line(arguments))
