"""The files of the working folder, found by parts of their names.

In a repository they are what git tracks and what it does not ignore; elsewhere a bounded walk. In
another place they are listed over there.
"""

from __future__ import annotations

import asyncio
from heapq import nsmallest
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING

from ...checkpoints.folder_listing import HEAVY_FOLDERS, is_utf8, list_folder
from ...errors import PlaceLost

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Iterable, Sequence

    from ...env.protocol import ExecutionEnvironment, ProgramRunner

MAX_FILES = 50_000
"""Files outside of a repository that are looked at."""
_FRESH_SECONDS = 5.0
_PLACE_SECONDS = 20.0
_NAMES_PER_TURN = 1000
_REST_SECONDS = 0.001


class FolderNames:
    """The names of files and folders below a folder, listed again when they are old."""

    def __init__(self, list_files: Callable[[], Sequence[str]]) -> None:
        self._list_files = list_files
        self._lock = Lock()
        self._names: tuple[str, ...] = ()
        self._listed_at = -_FRESH_SECONDS

    def list_names(self) -> tuple[str, ...]:
        """Return the paths relative to the folder; those of folders end with a slash.

        It blocks: call it in a thread.
        """
        with self._lock:
            if monotonic() - self._listed_at >= _FRESH_SECONDS:
                files = self._list_files()
                self._names = (*_list_folders(files), *files)
                self._listed_at = monotonic()
            return self._names


def list_local_files(env: ProgramRunner, folder: str) -> Sequence[str]:
    """Return the files of a folder of this machine, by path relative to it."""
    listing = list_folder(env, folder, (), MAX_FILES)
    return (*listing.tracked, *listing.others)


def list_place_files(env: ExecutionEnvironment, loop: AbstractEventLoop) -> Sequence[str]:
    """Return the files of the folder of another place, asked in the loop of its environment.

    It blocks: call it in a thread. None are returned where the place does not answer.
    """
    from ...env.places.environment import find_place  # only in a place

    place = find_place(env)
    work = place.list_files(place.working_directory, HEAVY_FOLDERS)
    try:
        items = asyncio.run_coroutine_threadsafe(work, loop).result(_PLACE_SECONDS)
    except (PlaceLost, OSError, TimeoutError):
        return ()
    return [item.path for item in items if is_utf8(item.path)][:MAX_FILES]


def _list_folders(files: Iterable[str]) -> list[str]:
    folders: dict[str, None] = {}
    for file in files:
        at = file.rfind("/")
        while at > 0 and file[: at + 1] not in folders:
            folders[file[: at + 1]] = None
            at = file.rfind("/", 0, at)
    return sorted(folders)


def find_names(
    names: Iterable[str], typed: str, limit: int, *, rests: bool = False
) -> Sequence[str]:
    """Return the names that have the typed characters in this order, best first.

    Lower case finds both cases. Better is, in this order: the last part begins with what is typed,
    has it, the path has it, the characters are closer together, the path is shorter. With `rests`
    other threads get their turn in between, so that keys are not kept waiting.
    """
    is_folded = typed == typed.lower()
    ranked = []
    for count, name in enumerate(names):
        if rests and count % _NAMES_PER_TURN == 0:
            sleep(_REST_SECONDS)
        path = name.lower() if is_folded else name
        at = begin = path.find(typed[:1])
        for character in typed[1:]:
            if at < 0:
                break
            at = path.find(character, at + 1)
        if at < 0:
            continue
        last = path[path.rfind("/", 0, -1) + 1 :]
        rank = 0 if last.startswith(typed) else 1 if typed in last else 2 if typed in path else 3
        ranked.append((rank, at - begin, len(name), name))
    return [name for *_, name in nsmallest(limit, ranked)]
