"""The command line of the store: thin click commands, the only readers of argv and environment.

`tape` is the click group, for a command line that wants it among its own verbs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from .. import __version__

if TYPE_CHECKING:
    from .group import tape

__all__ = ["main", "tape"]


def main() -> None:
    """Run `tape` with the arguments of this process, and end the process with its exit code.

    The version is told before anything is imported.
    """
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"tape {__version__}\n")
        return
    sys.exit(import_module(".run", __package__).run(sys.argv[1:]))


def __getattr__(name: str) -> object:
    """Load the group when it is asked for."""
    if name == "tape":
        return import_module(".group", __package__).tape
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
