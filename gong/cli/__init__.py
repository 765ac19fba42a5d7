"""The command line of the agent: thin click commands, the only readers of argv and environment."""

from __future__ import annotations

import sys
from importlib import import_module

from tape.cli import print_version

from .. import __version__


def main() -> None:
    """Run `gong` with the arguments of this process, and end the process with its exit code.

    `--version` is answered before any import.
    """
    if sys.argv[1:] == ["--version"]:
        sys.exit(print_version("gong", __version__))
    sys.exit(import_module(".run", __package__).run_command_line(sys.argv[1:]))
