"""Which repository a use of git is about: the working folder's, or another one.

Another repository is whoever's who wrote it, and so is its configuration, which names programs that
git runs. Asks the disk where a `.git` lies; nothing is run.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from tape.folders import locate_repository

from ...git_folders import GitFolder, locate_git_folder
from .real_paths import ELSEWHERE, find_real_path

if TYPE_CHECKING:
    from ..commands.invocation import Invocation


def is_in_other_repository(use: Invocation, start: str) -> bool:
    """Return whether a use of git may be about another repository than that of `start`.

    What its own options say (`--git-dir`, GIT_DIR) is judged with its words: it is never plain
    reading. A folder that is not known counts as another repository, and so does a bare one, which
    may be files of a clone.
    """
    own = find_repository(start)
    for folder in list_git_folders(use):
        repository = None if folder is None else find_repository(folder)
        if folder is None or repository != own or (repository is not None and repository.is_bare):
            return True
    return False


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
            None if where is None or folder is None else posixpath.join(folder, where)
            for folder in folders
        )
    return tuple(None if folder is None else find_real_path(folder) for folder in folders)


def find_top(folder: str) -> str | None:
    """Return the top folder of the repository around a folder; None without one."""
    if (elsewhere := ELSEWHERE.get()) is not None:
        return elsewhere.find_repository(folder)
    return locate_repository(folder)


def find_repository(folder: str) -> GitFolder | None:
    """Return the repository that git would find for a folder, links resolved; None without one."""
    if ELSEWHERE.get() is not None:
        top = find_top(folder)
        return None if top is None else GitFolder(top, f"{top}/.git")
    return locate_git_folder(find_real_path(folder))
