"""The commands that can be answered before click and the store are loaded."""

from __future__ import annotations

import os
import sys

from .plain import silence, warn
from .streams import shown_streams

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS = ("ls", "search")

_INTERRUPTED = 130


def at_once(verb: str, arguments: Sequence[str]) -> int | None:
    """Run a fast command and return its exit code, or do nothing and return None.

    None means that the index is missing or has to catch up first.
    """
    if sys.stdout is None:
        return None
    with shown_streams():
        return _at_once(verb, arguments)


def _at_once(verb: str, arguments: Sequence[str]) -> int | None:
    try:
        done = _done(verb, arguments, home_in(os.environ))
        sys.stdout.flush()
    except BrokenPipeError:
        silence()
        return 0
    except OSError as error:
        silence()
        warn(error.strerror or str(error), "tape")
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    return 0 if done else None


def _done(verb: str, arguments: Sequence[str], home: str) -> bool:
    if verb == "ls":
        from .tapes import at_once  # noqa: PLC0415 (each needs what the other does not)
    else:
        from .hits import at_once  # noqa: PLC0415
    return at_once(arguments, home)


def home_in(environment: os._Environ[str]) -> str:
    """Return the default store: $TAPE_HOME, else ~/.tape."""
    return environment.get("TAPE_HOME") or os.path.expanduser("~/.tape")  # noqa: PTH111 (at once)
