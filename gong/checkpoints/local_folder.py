"""A folder of this machine as `FolderFiles` looks at it: names, states, bytes, git objects."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .disk_file import is_settled, read_disk_file, stat_own_files
from .folder_listing import read_git_objects
from .folder_tree import FolderTree

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ..env.protocol import ProgramRunner
    from .disk_file import DiskFile, FileSignature
    from .folder_listing import WantedFile


class LocalFolder(FolderTree):
    """The files of a folder, and which of them may have changed; see `FolderSource`."""

    def __init__(self, env: ProgramRunner, folder: str, skip: Sequence[str]) -> None:
        super().__init__(env, folder, skip)
        self._runner, self._top = env, folder

    def read_clock(self) -> int:
        """Return the time by which its files are dated, in ns since 1970."""
        return time.time_ns()

    def is_settled(self, signature: FileSignature, now_ns: int) -> bool:
        """Return whether an equal signature later means equal bytes."""
        return is_settled(signature, now_ns)

    def stat_files(self, paths: Collection[str]) -> dict[str, FileSignature | None]:
        """Return the signatures of files, by path relative to the folder; None without one."""
        return stat_own_files(self._top, paths)

    def read_files(
        self,
        paths: Mapping[str, FileSignature],
        refuse: Callable[[int], str],
        can_hash: Callable[[int], bool] | None,
    ) -> dict[str, DiskFile | None]:
        """Return files as they are now, as `read_disk_file` does."""
        return {path: read_disk_file(f"{self._top}/{path}", refuse, can_hash) for path in paths}

    def read_objects(self, files: Sequence[WantedFile]) -> dict[str, bytes]:
        """Return the bytes that git has of files, by path."""
        return read_git_objects(self._runner, self._top, files)
