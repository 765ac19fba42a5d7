"""Which files of this machine the changes on a path are about.

A session that began on another machine, or in a folder that is gone, has its files here in the
checkout of the same repository.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from tape.files.work_folder import (
    WorkFolder,
    drop_known_authorship,
    find_authorship,
    find_work_folder,
)
from tape.model.entries import Meta

from ..errors import FilesElsewhere

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tape.files.changes import PathChange
    from tape.model.line import Entry
    from tape.store.tape import Tape

    from .place_disk import PlaceDisk

FindPlace = Callable[[], Meta | None]
"""Returns what an entry would say of the folder here that a session works in; None without one."""


class LocalChanges(NamedTuple):
    """Changes with the paths that their files have on this machine."""

    changes: Sequence[PathChange]
    folder: str
    """What relative paths are relative to."""
    place: Meta | None = None
    """What an entry says of `folder`, where the head is in another one."""
    elsewhere: Mapping[str, str] = MappingProxyType({})
    """Paths of files that are not here, each with where they were changed."""


def find_local_changes(
    tape: Tape,
    entries: Sequence[Entry],
    changes: Sequence[PathChange],
    find_place: FindPlace | None,
    disk: PlaceDisk | None = None,
) -> LocalChanges:
    """Return the changes of some entries of a path, with the paths of their files here.

    A file that was changed on another machine, or in a folder that is gone, is in the checkout of
    the same repository that `find_place` returns. Raises FilesElsewhere where changes were made in
    another environment than a machine, and `disk` is not of that one.
    """
    _refuse_other_environments(changes, disk)
    folder = find_work_folder(entries)
    replica = tape.replica()
    machine = None if replica is None else replica.machine
    folders = {change.folder for change in changes if change.environment is None}
    gone = {one for one in folders if not _is_on_machine(one, machine)}
    place = find_place() if find_place is not None and gone else None
    here = None
    if place is not None:
        here = WorkFolder(place.cwd or "/", place.project, place.repository, machine)
    located: list[PathChange] = []
    elsewhere: dict[str, str] = {}
    for change in changes:
        if change.environment is not None or change.folder not in gone:
            located.append(change)
        elif here is not None and (moved := _move_change(change, here)) is not None:
            located.append(moved)
        elif change.folder.machine in (None, machine):
            located.append(change)
        else:
            elsewhere[change.path] = f"{change.folder.machine}:{change.folder.root}"
    if place is None or here is None or _is_on_machine(folder, machine):
        return LocalChanges(located, os.path.normpath(folder.cwd or "/"), None, elsewhere)
    place = replace(place, machine=machine)
    place = drop_known_authorship(place, find_authorship(entries))
    return LocalChanges(located, os.path.normpath(here.cwd), place, elsewhere)


def _move_change(change: PathChange, here: WorkFolder) -> PathChange | None:
    """Return a change as one of another checkout; None where its file has no place there."""
    path = change.folder.find_counterpart(change.path, here)
    source = change.source and change.folder.find_counterpart(change.source, here)
    if path is None or (change.source is not None and source is None):
        return None
    return change._replace(path=path, source=source)


def _is_on_machine(folder: WorkFolder, machine: str | None) -> bool:
    """Return whether a folder is one of this machine, and there."""
    return folder.machine in (None, machine) and os.path.isdir(folder.root)


def _refuse_other_environments(changes: Sequence[PathChange], disk: PlaceDisk | None) -> None:
    """Raise FilesElsewhere where changes were made in another environment than that of `disk`."""
    elsewhere = [
        change
        for change in changes
        if change.environment is not None
        and not (
            disk is not None and disk.take_name(change.environment) and disk.has_path(change.path)
        )
    ]
    if elsewhere:
        raise FilesElsewhere(
            tuple(dict.fromkeys(change.environment or "" for change in elsewhere)),
            tuple(dict.fromkeys(change.path for change in elsewhere)),
        )


def find_folder(entries: Sequence[Entry]) -> str:
    """Return the folder in force after the entries of a path, without "." and ".."."""
    return os.path.normpath(find_work_folder(entries).cwd or "/")
