"""The trash: removed tapes until it is emptied, and which tapes depend on which.

Only `delete` deletes, on request; never on a timer.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from .disk import Folder
from .errors import TapeError
from .payload import JSON_ERRORS
from .phase import ORIGIN
from .tape import INFO_NAME

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

_DELETED_PREFIX = ".deleted-"


class Trashed(NamedTuple):
    """A tape in the trash."""

    folder: str
    """Name of its folder in `trash/`."""
    id: str
    """Empty when tape.json cannot be read."""


class _TapeIdentity(Struct):
    """The fields of tape.json in every format; `origin` names a tape, if it is an object."""

    id: str
    origin: Any = None


def read_tape_id(folder: Path) -> str:
    """Return the id of the tape in a folder, "" if it is unknown."""
    return _read_tape_identity(folder).id


def _read_tape_identity(path: Path) -> _TapeIdentity:
    with (
        suppress(OSError, TapeError, *JSON_ERRORS),
        Folder.open(path.parent) as parent,
        parent.sub(path.name) as folder,
    ):
        return msgspec.json.decode(folder.read(INFO_NAME), type=_TapeIdentity)
    return _TapeIdentity("")


def list_trashed_tapes(trash: Path) -> list[Trashed]:
    """Return the tapes in the trash, by folder name."""
    return [Trashed(name, told.id) for name, told in sorted(_iter_tape_identities(trash))]


def find_dependent_tapes(tapes: Collection[str], *folders: Path) -> list[str]:
    """Return the names of other tapes in these folders that were forked from one of `tapes`."""
    return sorted(
        name
        for folder in folders
        for name, told in _iter_tape_identities(folder)
        if told.id not in tapes and _is_dependent_tape(told, folder / name, tapes)
    )


def _is_dependent_tape(told: _TapeIdentity, path: Path, tapes: Collection[str]) -> bool:
    origin = told.origin.get("tape") if isinstance(told.origin, dict) else None
    return origin in tapes and not (path / "phases" / ORIGIN).is_dir()


def _iter_tape_identities(folder: Path) -> Iterator[tuple[str, _TapeIdentity]]:
    """Yield folder name and tape.json of every tape in `tapes/` or `trash/`."""
    with suppress(FileNotFoundError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
                yield path.name, _read_tape_identity(path)


def move_tape_folder(name: str, source: Folder, to: Folder) -> str:
    """Move a tape's folder into another, and return its name there, with `.2` if it is taken."""
    taken = set(to.names())
    free, k = name, 2
    while free in taken:
        free, k = f"{name}.{k}", k + 1
    source.move(name, to, free)
    return free


def delete_trashed_tapes(trash: Folder, names: Sequence[str]) -> None:
    """Delete tapes permanently, each renamed first so that none is restored in part."""
    for name in names:
        if not name.startswith(_DELETED_PREFIX):
            trash.move(name, trash, _DELETED_PREFIX + name)
    for name in trash.names():
        if name.startswith(_DELETED_PREFIX):
            _remove_tape_folder(trash, name)
    trash.sync()


def _remove_tape_folder(trash: Folder, name: str) -> None:
    """Remove a folder with its content, or a file that a repair moved there."""
    try:
        import shutil  # noqa: PLC0415 (slow to load, and seldom needed)

        shutil.rmtree(name, dir_fd=trash.fd)
    except NotADirectoryError:
        os.unlink(name, dir_fd=trash.fd)
