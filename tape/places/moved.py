"""Tapes whose folder is gone, and whether it may have moved to this one.

Only what can be seen counts, and `tape mv` is offered, never done:

    the tape's folder, or its repository   this folder, or its repository         said of it
    -------------------------------------  -------------------------------------  ---------------
    is there                                                                      nothing
    is gone; was at commit C               its own log of git's HEAD names C      "was at C too"
                                           is another repository, or none         nothing
    is gone; no commit was recorded        has the same last name                 "the same name"
                                           stands where it stood, under another   nothing, unless
                                           name, and is not empty                 `beside` is asked
                                           anything else                          nothing

So what is said is a fact, and that the project moved is left to whoever reads it.
"""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..errors import TapeError
from ..folders import locate_repository
from ..index.library import find_root, list_roots, list_tapes
from ..model.entries import Start
from ..text import SHORT

if TYPE_CHECKING:
    from ..index.projection import Index
    from ..index.reader import TapeRow
    from ..store.store import Store

_MAX_READ = 20
"""How many tapes of folders that are gone are opened."""


class MovedProject(NamedTuple):
    """A folder that is gone, and this one, which may be what became of it."""

    was: str
    """The folder, or the top of its repository."""
    tapes: tuple[str, ...]
    """Ids of those that worked there last, newest first."""
    folder: str
    """What corresponds here to the folder of the newest of them."""
    why: str
    """What both have in common."""
    here: str
    """This folder, or the top of its repository."""


def find_moved_project(
    store: Store, index: Index | None, cwd: str, *, beside: bool = False
) -> MovedProject | None:
    """Return the folder that may have moved to `cwd`, or to the repository it is in; None if none.

    Of several it is the one used last. With `beside` a folder that stood beside this one counts,
    too, where no other is found: for questions to a person. Raises what `list_tapes` raises.
    """
    here = locate_repository(cwd) or cwd
    roots = [root for root in list_roots(store, index) if not os.path.isdir(root)]
    gone = [rows for root in roots if (rows := list_tapes(store, index, root=root))]
    gone.sort(key=lambda rows: (rows[0].updated, rows[0].id), reverse=True)
    for compare in (_compare_folders, *([_compare_places] if beside else [])):
        for newest, *others in gone[:_MAX_READ]:
            root = find_root(newest)
            why = compare(store, newest, root, here)
            if why:
                folder = find_moved_folder(newest.cwd, root, here)
                tapes = (newest.id, *(row.id for row in others))
                return MovedProject(root, tapes, folder, why, here)
    return None


def find_moved_folder(folder: str, root: str, here: str) -> str:
    """Return what corresponds in `here` to a folder of a project that was at `root`."""
    inside = os.path.relpath(folder, root)
    moved = os.path.normpath(os.path.join(here, inside))
    return moved if os.path.isdir(moved) else here


def describe_moved_project(moved: MovedProject) -> str:
    """Return a line that says what was found, and the command for when the folder did move."""
    count = len(moved.tapes)
    worked = "a tape worked" if count == 1 else f"{count} tapes worked"
    command = f"tape mv {moved.tapes[0][:SHORT]} {shlex.quote(moved.folder)}"
    newest = "" if count == 1 else " for the newest of them"
    return (
        f"{worked} in {moved.was}, which is gone; {moved.why}: "
        f"if it is the same project, `{command}` says so{newest}"
    )


def _compare_folders(store: Store, row: TapeRow, was: str, here: str) -> str:
    """Return what a folder that is gone and another one have in common; nothing if nothing."""
    commit = _read_commit(store, row)
    if commit:
        return f"this repository was at {commit[:SHORT]} too" if _has_been_at(here, commit) else ""
    same = os.path.basename(was) == os.path.basename(here)
    return "this folder has the same name" if same else ""


def _compare_places(store: Store, row: TapeRow, was: str, here: str) -> str:
    """Return that a folder that is gone stood beside another one, where it did."""
    if os.path.dirname(was) != os.path.dirname(here) or not os.listdir(here):
        return ""
    return "" if _read_commit(store, row) else "it stood beside this folder"


def _read_commit(store: Store, row: TapeRow) -> str | None:
    """Return the commit that a repository was at when its tape began, if one was recorded."""
    with suppress(OSError, TapeError), store.open_folder(row.folder) as tape:
        names = tape.phases.list_with_origin()
        start = tape.phases.first(names[0], tape.blobs.text) if names else None
        if start is not None and isinstance(start.data, Start) and start.data.git is not None:
            return start.data.git.commit
    return None


def _has_been_at(repository: str, commit: str) -> bool:
    """Return whether git's log of what was checked out in a repository names a commit."""
    with suppress(OSError), open(f"{repository}/.git/logs/HEAD", "rb") as log:
        return any(commit.encode() in line for line in log)
    return False
