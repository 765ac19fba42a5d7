"""Folders on the disk that sessions work in.

Kept apart, with nothing imported, because `tape ls` and the start of `gong chat` ask.
"""

from __future__ import annotations

import os


def locate_repository(folder: str) -> str | None:
    """Return the top of the repository that a folder is in; None outside of one."""
    while not os.path.exists(f"{folder}/.git"):  # a str is what a tape keeps
        above = os.path.dirname(folder)
        if above == folder or not folder:
            return None
        folder = above
    return folder
