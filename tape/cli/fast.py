"""The commands that can be answered before click and the store are loaded."""

from __future__ import annotations

import os
import sys

from .streams import use_visible_streams
from .terminal import print_warning, silence_stdout

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Sequence

FAST_COMMANDS = ("ls", "search")

_INTERRUPTED_CODE = 130


def run_fast(verb: str, arguments: Sequence[str]) -> int | None:
    """Run a fast command and return its exit code, or do nothing and return None.

    None means that the index is missing or has to catch up first.
    """
    if sys.stdout is None:
        return None
    with use_visible_streams():
        return _run_catching_errors(verb, arguments)


def _run_catching_errors(verb: str, arguments: Sequence[str]) -> int | None:
    try:
        done = _run_fast_command(verb, arguments, find_store_home(os.environ))
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
        return 0
    except OSError as error:
        silence_stdout()
        print_warning(error.strerror or str(error), "tape")
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED_CODE
    return 0 if done else None


def _run_fast_command(verb: str, arguments: Sequence[str], home: str) -> bool:
    if verb == "ls":
        from .list_view import answer_at_once  # noqa: PLC0415 (each needs what the other does not)
    else:
        from .search_view import answer_at_once  # noqa: PLC0415
    return answer_at_once(arguments, home)


def find_store_home(environment: os._Environ[str]) -> str:
    """Return the default store: $TAPE_HOME, else ~/.tape."""
    return environment.get("TAPE_HOME") or os.path.expanduser("~/.tape")  # noqa: PTH111 (at once)
