"""The command line of the agent: thin click commands, the only readers of argv and environment."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import tape.cli

from .. import __version__

HELP_PAGES = f"{os.path.dirname(__file__)}/help_pages.txt"  # noqa: PTH120 (at once)
"""The file of the help pages of `gong`."""


def main() -> None:
    """Run `gong` with the arguments of this process, and end the process with its exit code.

    Version and help pages are printed before anything is imported.
    """
    arguments = sys.argv[1:]
    if arguments[:1] == ["tape"]:
        known = tape.cli.find_known_text("tape", __version__, tape.cli.HELP_PAGES, arguments[1:])
    else:
        known = tape.cli.find_known_text("gong", __version__, HELP_PAGES, arguments)
    if known is not None:
        sys.exit(tape.cli.print_text("gong", known))
    sys.exit(import_module(".run", __package__).run_command_line(arguments))
