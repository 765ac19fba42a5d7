"""What a command's surroundings say: the store, the current folder, whether a shell asks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..errors import NotFound

if TYPE_CHECKING:
    from ..repository import WorkFacts


def name_complete_variable(program: str) -> str:
    """Return the variable by which a shell asks a program for completions."""
    return f"_{program.upper()}_COMPLETE"


def find_store_home(store: str | None = None) -> str:
    """Return where the store is: `store`, the value of --store, else $TAPE_HOME, else ~/.tape.

    For an address it is the folder of the copy here, which is brought up to date.
    """
    place = os.environ.get("TAPE_HOME") if store is None else store
    if place and is_elsewhere(store):
        from ..remote.local_copy import open_local_copy  # only for a store elsewhere
        from .terminal import print_warning

        return open_local_copy(place, os.environ, print_warning)
    if store is not None:
        return store
    return place or os.path.expanduser("~/.tape")


def is_elsewhere(store: str | None = None) -> bool:
    """Return whether the store is at an address: `store`, else $TAPE_HOME."""
    place = os.environ.get("TAPE_HOME") if store is None else store
    return "://" in (place or "")


def find_facts(project: str | None) -> WorkFacts:
    """Return repository and person of a session that begins in the repository at `project`."""
    from ..repository import find_work_facts  # only where a tape begins

    return find_work_facts(project, os.environ)


def get_current_folder(*, is_needed: bool = True) -> str:
    """Return the current folder; raise NotFound if it was removed, or return "" if not needed."""
    try:
        return os.getcwd()
    except FileNotFoundError as error:
        if not is_needed:
            return ""
        raise NotFound(
            "the current folder no longer exists: change to another one, or name a tape"
        ) from error
