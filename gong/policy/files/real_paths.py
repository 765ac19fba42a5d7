"""Where paths really lie on the disk, links followed, which names they have, what wildcards mean.

A path that no system takes, or a link that may not be read, stays as it is: whoever opens it fails.
"""

from __future__ import annotations

import os
from contextlib import suppress
from contextvars import ContextVar
from glob import iglob
from itertools import islice
from typing import TYPE_CHECKING

from ..commands.invocation import is_inside
from .place_names import NamedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .place_names import PlaceNames

    Match = Callable[[str], Iterable[str]]
    """Returns what a path with wildcards stands for."""

MAX_MATCHES = 20_000
"""So many names are looked at that a wildcard stands for, or that lie below a folder."""
_WILD = frozenset("*?[")


ELSEWHERE: ContextVar[PlaceNames | None] = ContextVar("elsewhere", default=None)
"""The names of another place, for judgements of what is done there."""


def find_real_path(path: str) -> str:
    """Return where an absolute path leads, links followed; without `..` in every case."""
    if (place := ELSEWHERE.get()) is not None:
        return place.find_real(path)
    with suppress(OSError, ValueError):
        return os.path.realpath(path)
    return os.path.normpath(path)


def match_files(path: str) -> Iterator[str]:
    """Yield what a path with wildcards matches, as a shell would."""
    if (place := ELSEWHERE.get()) is not None:
        yield from islice(place.match(path), MAX_MATCHES)
        return
    with suppress(OSError, ValueError):
        yield from islice(iglob(path), MAX_MATCHES)


def build_match() -> Match:
    """Return `match_files` for one judgement: it looks up each path once."""
    known: dict[str, list[str]] = {}

    def match(path: str) -> list[str]:
        if path not in known:
            known[path] = [*match_files(path)]
        return known[path]

    return match


def has_wildcard(path: str) -> bool:
    """Return whether a path has a wildcard, and no file has this very name."""
    return not _WILD.isdisjoint(path) and not is_there(path)


def is_there(path: str) -> bool:
    """Return whether there is something at a path, a link that leads nowhere included."""
    if (place := ELSEWHERE.get()) is not None:
        return place.find_file(path) is not None
    with suppress(OSError, ValueError):
        return os.path.lexists(path)
    return False


def is_folder(path: str) -> bool:
    """Return whether a path leads to a folder."""
    if (place := ELSEWHERE.get()) is not None:
        file = place.find_file(path)
        return file is not None and file.is_folder
    return os.path.isdir(path)


def is_file(path: str) -> bool:
    """Return whether a path leads to a file."""
    if (place := ELSEWHERE.get()) is not None:
        file = place.find_file(path)
        return file is not None and not file.is_folder
    return os.path.isfile(path)


def is_program(path: str) -> bool:
    """Return whether a path leads to a file that may be run."""
    if (place := ELSEWHERE.get()) is not None:
        file = place.find_file(path)
        return file is not None and file.is_program
    return os.path.isfile(path) and os.access(path, os.X_OK)


def list_folder(path: str) -> dict[str, NamedFile]:
    """Return what a folder holds, by name; raises OSError, ValueError."""
    if (place := ELSEWHERE.get()) is not None:
        return {**place.list_folder(place.find_real(path))}
    with os.scandir(path) as entries:
        return {
            entry.name: NamedFile(entry.is_symlink(), is_folder=entry.is_dir()) for entry in entries
        }


class LinkResolver:
    """Tells where many paths lie; each folder is looked up once."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def resolve(self, path: str) -> str:
        """Return where an absolute path without `..` leads, links followed."""
        if ELSEWHERE.get() is not None:
            return find_real_path(path)
        folder, _, name = path.rpartition("/")
        real = self._folders.get(folder)
        if real is None:
            real = self._folders[folder] = find_real_path(folder or "/")
        place = f"{real.rstrip('/')}/{name}"
        return find_real_path(place) if os.path.islink(place) else place


def list_names(path: str, folders: Sequence[str]) -> tuple[str, ...]:
    """Return the names of what is at a path, by where it really lies.

    One below one of `folders` that is reached through a link has a name by that folder, which
    comes first: a project in /home/ada/x may really lie in /data/ada/x.
    """
    real = find_real_path(path)
    places = ((folder, find_real_path(folder)) for folder in folders)
    named = (f"{folder}{real[len(place) :]}" for folder, place in places if is_inside(real, place))
    return tuple(dict.fromkeys((*named, real)))
