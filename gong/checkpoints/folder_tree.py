"""The folders of a working folder: what is listed in them, and which names may have changed since.

Asking again is cheap as long as no folder changes:

    since all files were listed               asked again
    ----------------------------------------  ------------------------------------------------
    nothing happened                          one read that finds nothing
    known files changed                       their names
    new files                                 their names, but for those that git ignores now
    a folder came, went or moved; a           all files are listed again, and the folders watched
    .gitignore changed; too many events
    no watch, or more folders than it takes   all files are listed again
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from .folder_listing import HEAVY_FOLDERS, find_ignored, is_utf8, list_folder
from .folder_watch import FolderWatch

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from ..env.protocol import ProgramRunner
    from .folder_listing import Listing
    from .folder_watch import WatchEvent


class FolderTree:
    """The folders below one; `skip` are real paths of folders that are left out."""

    def __init__(self, env: ProgramRunner, folder: str, skip: Sequence[str]) -> None:
        self._env, self._folder = env, folder
        top = f"{folder.rstrip('/')}/"
        self._skip = tuple(path.removeprefix(top) for path in skip if path.startswith(top))
        self._watch: FolderWatch | None = None
        self._has_git = False
        self._events: set[WatchEvent] | None = set()
        """What was told and not looked at; None where some of it is lost."""
        self._left_out: set[str] = set()
        """Files and folders that are there and not listed."""

    def close(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.close()
        self._watch = None

    def has_folder_of(self, path: str) -> bool:
        """Return whether the folder is watched that a file is in."""
        return self._watch is not None and path.rpartition("/")[0] in self._watch.folders

    def list_files(self, max_files: int) -> Listing:
        """Return all files, and watch their folders from before they were listed."""
        self.close()
        self._left_out, self._events = set(), set()
        listing = list_folder(self._env, self._folder, self._skip, max_files)
        self._has_git = listing.has_git
        is_cut = listing.limits and not listing.has_git
        watch = None if is_cut else FolderWatch.open(self._folder)
        if watch is None:
            return listing
        self._watch = watch
        late = self._watch_folders(watch, {*listing.tracked, *listing.others})
        if late is None:
            self.close()
            return listing
        return listing._replace(others=sorted((*listing.others, *late)))

    def has_events(self) -> bool:
        """Return whether anything may have changed since; asking it is cheap."""
        if self._watch is None or self._events is None:
            return True
        events = self._watch.read_events()
        self._events = None if events is None else self._events | events
        return self._events is None or bool(self._events)

    def find_changed_names(self, known: Container[str]) -> set[str] | None:
        """Return files that may have changed since, known and new; None where it may be any."""
        self.has_events()
        events, self._events = self._events, set()
        if self._watch is None or events is None:
            return None
        names, new = set[str](), list[str]()
        for path, is_folder in events:
            is_there = os.path.lexists(f"{self._folder}/{path}")
            if path in self._left_out and not is_there:
                self._left_out.remove(path)
            if path in self._left_out and (path != ".git" or self._has_git):
                continue
            if is_folder and (is_there or path in self._watch.folders):
                return None
            if path.endswith(".gitignore"):
                return None
            if path in known:
                names.add(path)
            elif is_there:
                new.append(path)
        unignored = self._leave_out_ignored(new)
        return None if unignored is None else names.union(unignored)

    def _leave_out_ignored(self, paths: Sequence[str]) -> list[str] | None:
        """Return the paths that count; note the others. None where git fails."""
        ignored = find_ignored(self._env, self._folder, paths) if self._has_git else set()
        if ignored is None:
            return None
        ignored.update(path for path in paths if path in self._skip or not is_utf8(path))
        self._left_out |= ignored
        return [path for path in paths if path not in ignored]

    def _watch_folders(self, watch: FolderWatch, listed: set[str]) -> list[str] | None:
        """Watch all folders but those left out; return files that came after `listed` was made.

        Each folder is watched before it is read. None where not all of them can be watched.
        """
        above = {folder for path in listed for folder in _list_parents(path)}
        late: list[str] = []
        waiting = [""]
        while waiting:
            others, inner = list[str](), set[str]()
            while waiting:
                folder = waiting.pop()
                if not watch.add_folder(folder):
                    return None
                files, folders = self._read_folder(folder)
                waiting += (folder for folder in folders if folder in above)
                # What holds no listed file is empty, or new, or git ignores it.
                bare = [folder for folder in folders if folder not in above]
                inner.update(bare)
                others += (path for path in (*files, *bare) if path not in listed)
            unignored = self._leave_out_ignored(others)
            if unignored is None:
                return None
            waiting += (path for path in unignored if path in inner)
            late += (path for path in unignored if path not in inner)
        return late

    def _read_folder(self, folder: str) -> tuple[list[str], list[str]]:
        """Return the files and the folders in a folder, without those that are never listed."""
        files, folders = [], []
        prefix = f"{folder}/" if folder else ""
        with suppress(OSError), os.scandir(f"{self._folder}/{folder}") as entries:
            for entry in entries:
                path = f"{prefix}{entry.name}"
                if entry.name == ".git":
                    self._left_out.add(path)
                elif not entry.is_dir(follow_symlinks=False):
                    if entry.is_file(follow_symlinks=False) or entry.is_symlink():
                        files.append(path)
                elif self._is_left_out(path, entry.name):
                    self._left_out.add(path)
                else:
                    folders.append(path)
        return files, folders

    def _is_left_out(self, path: str, name: str) -> bool:
        if path in self._skip:
            return True
        if not self._has_git:
            return name in HEAVY_FOLDERS
        return os.path.lexists(f"{self._folder}/{path}/.git")  # a repository inside


def _list_parents(path: str) -> Iterable[str]:
    while path := path.rpartition("/")[0]:
        yield path
