"""The commands that can be answered before click and the store are loaded."""

from __future__ import annotations

import os
import sys

from ..clock import show_times
from .arguments import split_command
from .environment import find_store_home
from .streams import INTERRUPTED_CODE, silence_stream, use_visible_streams
from .terminal import print_warning

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Sequence


def run_fast(arguments: Sequence[str]) -> int | None:
    """Run a fast command and return its exit code, or do nothing and return None.

    None means that it is another command, that click has to read its arguments, or that the index
    is missing or has to catch up first.
    """
    found = split_command(arguments)
    if found is None or sys.stdout is None:
        return None
    command, rest = found
    if command == "ls":
        from .list_view import answer_at_once  # noqa: PLC0415 (each needs what the other does not)
    elif command == "search":
        from .search_view import answer_at_once  # noqa: PLC0415
    else:
        return None
    with use_visible_streams():
        try:
            with show_times(local="--utc" not in rest):
                done = answer_at_once(rest, find_store_home(os.environ))
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
