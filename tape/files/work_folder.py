"""The folder that a session works in, along a path; pure."""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ..model.entries import Anchor, Meta, Start, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..model.entries import Payload
    from ..model.line import Entry


class WorkFolder(NamedTuple):
    """Where a session works."""

    cwd: str
    """Absolute path; "" before the first entry that says it."""
    project: str | None
    """The top of the repository, where it is one."""
    repository: str | None = None
    """Its name, wherever it is checked out: `host/owner/name`."""
    machine: str | None = None
    """The name of the machine it is on; None where no entry says it."""

    @property
    def root(self) -> str:
        """The top of the repository, or else the folder."""
        return self.project or self.cwd

    def follow(self, data: Payload) -> WorkFolder:
        """Return the folder in force after an entry of the path says `data`."""
        match data:
            case Start(cwd=cwd) | Meta(cwd=str(cwd)):
                return WorkFolder(cwd, data.project, data.repository, data.machine or self.machine)
            case Meta(machine=str(machine)):
                return self._replace(machine=machine)
            case _:
                return self

    def find_counterpart(self, path: str, other: WorkFolder) -> str | None:
        """Return where a file of this checkout is in another one of the same project.

        None where they are of two repositories, or the file is outside of this checkout. Paths are
        absolute and without "." and "..".
        """
        if self.repository != other.repository or posixpath.commonpath(
            (self.root, path)
        ) != posixpath.normpath(self.root):
            return None
        return posixpath.normpath(posixpath.join(other.root, posixpath.relpath(path, self.root)))


def find_work_folder(entries: Iterable[Entry]) -> WorkFolder:
    """Return the folder in force after the entries of a path, from its `start` and `meta`."""
    folder = WorkFolder("", None)
    for entry in entries:
        folder = folder.follow(entry.data)
    return folder


class Authorship(NamedTuple):
    """Who recorded a session, and where; None where no entry says it."""

    person: str | None = None
    machine: str | None = None


def find_authorship(entries: Iterable[Entry]) -> Authorship:
    """Return what the newest `start` and `meta` of a path say of person and machine."""
    person = machine = None
    for entry in entries:
        if isinstance(entry.data, Start | Meta):
            person, machine = entry.data.person or person, entry.data.machine or machine
    return Authorship(person, machine)


def drop_known_authorship(place: Meta, before: Authorship) -> Meta:
    """Return the entry of a folder without the person and machine that the path names already."""
    return replace(
        place,
        person=None if place.person == before.person else place.person,
        machine=None if place.machine == before.machine else place.machine,
    )


def find_entry_folders(
    entries: Iterable[Entry], marks: Sequence[Entry], besides: str = ""
) -> dict[str, str]:
    """Return the folder in force at each of some entries of a path, by id; not where `besides` is.

    `marks` are the `start`, `meta` and `anchor` entries of that path, oldest first; only the part
    of the path from an anchor on is needed.
    """
    folders: list[tuple[int, str]] = []
    for mark in marks:
        match mark.data:
            case Start(cwd=str(cwd)) | Meta(cwd=str(cwd)) | Anchor(state=State(cwd=str(cwd))):
                folders.append((mark.n, cwd))
            case _:
                pass
    depths = [n for n, _ in folders]
    places = ((entry.id, bisect_right(depths, entry.n)) for entry in entries)
    by_identity = ((identity, folders[at - 1][1]) for identity, at in places if at)
    return {identity: folder for identity, folder in by_identity if folder != besides}
