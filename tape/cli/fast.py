"""The commands that can be answered before click and the store are loaded."""

from __future__ import annotations

import os
import sys

from .environment import find_store_home
from .streams import INTERRUPTED_CODE, silence_stream, use_visible_streams
from .terminal import print_warning

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Sequence

FAST_COMMANDS = ("ls", "search")


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
