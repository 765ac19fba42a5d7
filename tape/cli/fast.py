"""The commands that can be answered before click and the store are loaded."""

from __future__ import annotations

import os
import sys

from .streams import silence_stream, use_visible_streams
from .terminal import print_warning

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Sequence

FAST_COMMANDS = ("ls", "search")
COMPLETE_VARIABLE = "_TAPE_COMPLETE"
"""The variable by which a shell asks for completions."""
INTERRUPTED_CODE = 130
"""Exit code after Ctrl+C."""


def run_fast(verb: str, arguments: Sequence[str]) -> int | None:
    """Run a fast command and return its exit code, or do nothing and return None.

    None means that the index is missing or has to catch up first.
    """
    if sys.stdout is None:
        return None
    with use_visible_streams():
        try:
            if verb == "ls":
                from .list_view import answer_at_once  # noqa: PLC0415 (each needs what the other does not)
            else:
                from .search_view import answer_at_once  # noqa: PLC0415
            done = answer_at_once(arguments, find_store_home(os.environ))
            sys.stdout.flush()
        except BrokenPipeError:
            silence_stream(sys.stdout)
            return 0
        except OSError as error:
            silence_stream(sys.stdout)
            print_warning(error.strerror or str(error), "tape")
            return 1
        except KeyboardInterrupt:
            return INTERRUPTED_CODE
        return 0 if done else None


def find_store_home(environment: os._Environ[str]) -> str:
    """Return the default store: $TAPE_HOME, else ~/.tape."""
    return environment.get("TAPE_HOME") or os.path.expanduser("~/.tape")  # noqa: PTH111 (at once)
