"""What the environment of a command says: where the store is, and whether a shell asks."""

from __future__ import annotations

import os

COMPLETE_VARIABLE = "_TAPE_COMPLETE"
"""The variable by which a shell asks for completions."""


def find_store_home(environment: os._Environ[str]) -> str:
    """Return the default store: $TAPE_HOME, else ~/.tape."""
    return environment.get("TAPE_HOME") or os.path.expanduser("~/.tape")  # noqa: PTH111 (at once)
