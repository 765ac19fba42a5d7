"""The folder that a session works in, along a path; pure."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from ..model.entries import Anchor, Meta, Start, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..model.line import Entry


class WorkFolder(NamedTuple):
    """Where a session works."""

    cwd: str
    """Absolute path; "" before the first entry that says it."""
    project: str | None
    """The top of the repository, where it is one."""
    repository: str | None = None
    """Its name, wherever it is checked out: `host/owner/name`."""


def find_work_folder(entries: Iterable[Entry]) -> WorkFolder:
    """Return the folder in force after the entries of a path, from its `start` and `meta`."""
    folder = WorkFolder("", None)
    for entry in entries:
        match entry.data:
            case Start(cwd=cwd) | Meta(cwd=str(cwd)):
                folder = WorkFolder(cwd, entry.data.project, entry.data.repository)
            case _:
                pass
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
