"""Copies of tapes elsewhere: push to them, pull from them. The only room with a network."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

REGISTRY_NAME = "remotes.json"
"""In the folder of a store: its remotes."""


def locate_copies(environ: Mapping[str, str]) -> str:
    """Return the folder of the copies of stores that are elsewhere (`local_copy`)."""
    caches = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME", "/"), ".cache")
    return f"{caches}/tape/stores"
