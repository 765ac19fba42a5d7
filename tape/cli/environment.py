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
    """Return where the store is: `store`, the value of --store, else $TAPE_HOME, else ~/.tape."""
    if store is not None:
        return store
    return os.environ.get("TAPE_HOME") or os.path.expanduser("~/.tape")  # noqa: PTH111 (no pathlib)


def find_facts(project: str | None) -> WorkFacts:
    """Return repository and person of a session that begins in the repository at `project`."""
    from ..repository import find_work_facts  # only where a tape begins

    return find_work_facts(project, os.environ)


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
