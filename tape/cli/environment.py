"""What a command's surroundings say: the store, the current folder, whether a shell asks."""

from __future__ import annotations

import os

from ..errors import NotFound


def name_complete_variable(program: str) -> str:
    """Return the variable by which a shell asks a program for completions."""
    return f"_{program.upper()}_COMPLETE"


def find_store_home(store: str | None = None) -> str:
    """Return where the store is: `store`, the value of --store, else $TAPE_HOME, else ~/.tape."""
    if store is not None:
        return store
    return os.environ.get("TAPE_HOME") or os.path.expanduser("~/.tape")  # noqa: PTH111 (no pathlib)


def get_current_folder(*, is_needed: bool = True) -> str:
    """Return the current folder; raise NotFound if it was removed, or return "" if not needed."""
    try:
        return os.getcwd()  # noqa: PTH109 (a str is what a tape keeps)
    except FileNotFoundError as error:
        if not is_needed:
            return ""
        raise NotFound(
            "the current folder no longer exists: change to another one, or name a tape"
        ) from error
