"""Which repository a use of git is about: the working folder's, or another one.

Another repository is whoever's who wrote it, and so is its configuration, which names programs that
git runs. Asks the disk where a `.git` lies; nothing is run.
"""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING

from .real_paths import find_real_path

if TYPE_CHECKING:
    from .invocation import Invocation


_BARE_ENTRIES = ("HEAD", "objects", "refs")
"""What git looks for in a bare repository."""


def is_in_other_repository(use: Invocation, start: str) -> bool:
    """Return whether a use of git may be about another repository than that of `start`.

    What git is told itself (`--git-dir`, GIT_DIR) is judged with its words: it is never plain
    reading. A folder that is not known counts as another repository.
    """
    own = find_repository(start)
    return any(one is None or find_repository(one) != own for one in list_git_folders(use))


def list_git_folders(use: Invocation) -> tuple[str | None, ...]:
    """Return the folders in which a use of git may work, as real paths; None for an unknown one.

    Behind a link `..` is the folder above where it leads, also in `-C linked/..`.
    """
    folders: tuple[str | None, ...] = use.places.folders
    left = iter(use.arguments)
    for option in left:
        if option.text != "-C" and option.text[:1] != "-":
            break  # the subcommand, after which -C means something else
        if option.text != "-C" or (value := next(left, None)) is None:
            continue
        where = value.text if value.known and not value.glob else None
        folders = tuple(
            None if where is None or one is None else posixpath.join(one, where) for one in folders
        )
    return tuple(None if one is None else find_real_path(one) for one in folders)


def find_repository(folder: str) -> str | None:
    """Return the nearest folder upwards, links resolved, that is a repository; None without one.

    That is one that holds a `.git`, or what a bare repository holds.
    """
    folder = find_real_path(folder)
    while not _is_repository(folder):
        above = posixpath.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder


def _is_repository(folder: str) -> bool:
    if os.path.lexists(posixpath.join(folder, ".git")):
        return True
    return all(os.path.lexists(posixpath.join(folder, name)) for name in _BARE_ENTRIES)
