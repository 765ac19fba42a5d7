"""Files in memory as an environment: it runs no commands, and nothing it does lasts."""

from __future__ import annotations

import errno
import os
import posixpath
from typing import TYPE_CHECKING

from gong.env.globs import compile_glob
from gong.env.protocol import (
    ChangeRefusal,
    DirEntry,
    ExecResult,
    LineMatch,
    LineMatches,
    ListedPath,
    resolve_path,
)
from gong.env.scanner import find_lines, split_text_lines
from gong.env.search import IgnoreRules, compile_expression, parse_ignore_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gong.env.protocol import FileUpdate, Platform, Search

_NOT_FOUND = 127


class MemoryEnvironment:
    """Files by absolute path, below folders that are there as long as something is in them."""

    def __init__(self, files: Mapping[str, bytes] | None = None, folder: str = "/work") -> None:
        self._folder = folder
        self.files = {self._resolve_path(path): data for path, data in (files or {}).items()}
        """Absolute path → what it holds."""
        self.commands: list[str] = []
        """What it was asked to run."""

    @property
    def working_directory(self) -> str:
        """The absolute path that relative ones start from."""
        return self._folder

    @property
    def temporary_directory(self) -> str:
        """A folder like any other."""
        return "/tmp"

    @property
    def platform(self) -> Platform:
        """Paths are those of Linux."""
        return "linux"

    @property
    def os_version(self) -> str:
        """What it is."""
        return "memory"

    async def initialize(self) -> None:
        """Do nothing: it is always ready."""

    async def cleanup(self) -> None:
        """Do nothing: it holds no more than its files."""

    def resolve(self, path: str, *, exact: bool = False) -> str:
        """Return the absolute path a model means by `path`; see the protocol."""
        return resolve_path(path, self._folder, "/home", exact=exact)

    async def real_path(self, path: str) -> str:
        """There are no links."""
        return self._resolve_path(path)

    async def read_file(self, path: str, root: str | None = None) -> bytes:
        """Return what a file holds."""
        place = self._require_below(path, root)
        if place in self.files:
            return self.files[place]
        if self._is_folder(place):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), place)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place)

    async def write_file(self, path: str, data: bytes, root: str | None = None) -> None:
        """Put `data` at `path`."""
        place = self._require_below(path, root)
        if self._is_folder(place):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), place)
        above = posixpath.dirname(place)
        while above != "/":
            if above in self.files:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), place)
            above = posixpath.dirname(above)
        self.files[place] = data

    async def change_files(self, changes: Sequence[FileUpdate], root: str) -> ChangeRefusal | None:
        """Make every change, or none of them and return why."""
        before = dict(self.files)
        for change in changes:
            try:
                self._require_unchanged(change, root)
                if change.after is None:
                    del self.files[change.path]
                else:
                    await self.write_file(change.path, change.after, root)
            except OSError as error:
                self.files = before
                return ChangeRefusal(error, change.path, ())
        return None

    async def file_exists(self, path: str, root: str | None = None) -> bool:
        """Whether something is there."""
        _ = root
        place = self._resolve_path(path)
        return place in self.files or self._is_folder(place)

    async def list_directory(
        self, path: str, depth: int = 1, root: str | None = None
    ) -> tuple[DirEntry, ...]:
        """Return what a folder holds, by name, `depth` levels deep."""
        _ = root
        listed = self._list_below(self._resolve_path(path))
        return tuple(
            DirEntry(name, data is None, None if data is None else len(data))
            for name, data in listed.items()
            if name.count("/") < depth
        )

    async def grep(self, path: str, search: Search, root: str | None = None) -> LineMatches:
        """Search the files; see the protocol."""
        _ = root
        place, pattern = self._resolve_path(path), compile_expression(search)
        wanted = compile_glob(search.glob).matches if search.glob else None
        whole = {posixpath.basename(place): self.files[place]} if place in self.files else None
        found = []
        for name, data in (whole or self._list_not_ignored(place)).items():
            if data is None or (wanted is not None and not wanted(name)):
                continue
            found += [
                LineMatch(name, number, at)
                for number, at in find_lines(pattern, split_text_lines(data))
            ]
        return LineMatches(tuple(found[: search.limit]), limited=len(found) >= search.limit)

    async def glob(
        self, path: str, pattern: str, root: str | None = None
    ) -> tuple[ListedPath, ...]:
        """Return what matches; see the protocol."""
        _ = root
        matches = compile_glob(pattern).matches
        kept = self._list_not_ignored(self._resolve_path(path)).items()
        return tuple(ListedPath(name, data is None, 0) for name, data in kept if matches(name))

    async def exec_command(
        self,
        command: str,
        timeout_ms: int | None = None,
        working_dir: str | None = None,
        env_vars: Mapping[str, str] | None = None,
        on_output: Callable[[bytes], None] | None = None,
        *,
        split: bool = False,
    ) -> ExecResult:
        """Take note of the command; there is no shell to run it."""
        _ = timeout_ms, working_dir, env_vars
        self.commands.append(command)
        said = b"no commands run in memory\n"
        if on_output is not None:
            on_output(said)
        streams = (b"", said) if split else (None, None)
        return ExecResult(said, len(said), _NOT_FOUND, False, 0, *streams)

    def _resolve_path(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self._folder, path))

    def _require_unchanged(self, change: FileUpdate, root: str) -> None:
        if self.files.get(self._require_below(change.path, root)) != change.before:
            raise OSError(errno.ESTALE, "the file has changed since it was read")

    def _require_below(self, path: str, root: str | None) -> str:
        place = self._resolve_path(path)
        if root is not None and not place.startswith(root.rstrip("/") + "/"):
            raise OSError(errno.EXDEV, "not below the folder it belongs to", place)
        return place

    def _is_folder(self, place: str) -> bool:
        prefix = place.rstrip("/") + "/"
        return place == self._folder or any(file.startswith(prefix) for file in self.files)

    def _list_below(self, place: str) -> dict[str, bytes | None]:
        """Return what is below a folder by relative path; None for a folder."""
        if place in self.files:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), place)
        if not self._is_folder(place):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place)
        prefix, found = place.rstrip("/") + "/", dict[str, bytes | None]()
        for file, data in self.files.items():
            if file.startswith(prefix):
                parts = file[len(prefix) :].split("/")
                found.update(("/".join(parts[:n]), None) for n in range(1, len(parts)))
                found["/".join(parts)] = data
        return dict(sorted(found.items(), key=lambda one: os.fsencode(one[0]).split(b"/")))

    def _list_not_ignored(self, place: str) -> dict[str, bytes | None]:
        """Return what is below a folder and not left out by a .gitignore file there."""
        listed = self._list_below(place)
        ignored = {"": self._load_rules(place, None)}
        kept = dict[str, bytes | None]()
        for name, data in listed.items():
            above = posixpath.dirname(name)
            if above not in ignored or posixpath.basename(name) == ".git":
                continue
            rules, at = ignored[above], f"{place.rstrip('/')}/{name}"
            if rules and rules.is_ignored(at, is_dir=data is None):
                continue
            kept[name] = data
            if data is None:
                ignored[name] = self._load_rules(at, rules)
        return kept

    def _load_rules(self, folder: str, outer: IgnoreRules | None) -> IgnoreRules | None:
        text = self.files.get(f"{folder.rstrip('/')}/.gitignore")
        return outer if text is None else IgnoreRules(folder, parse_ignore_file(text), outer)
