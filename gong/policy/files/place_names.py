"""The names of files in another place, for one judgement of what is done there.

A judgement is made in a thread beside the event loop, which asks the place. In the loop itself
nobody can wait: there no folder holds anything, and a path leads where it says.

A folder is listed with what lies a few levels below it, so that a tree is few requests.
"""

from __future__ import annotations

import asyncio
import posixpath
import stat
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping, Sequence

    from ...env.protocol import ExecutionEnvironment

T = TypeVar("T")
_DEPTH = 3
"""So many levels are listed at once."""
_FLAT = ("/proc", "/sys", "/dev")
"""Folders of the kernel, whose levels are listed one by one, as those of / are."""
PASSED_FOLDERS = {".git", ".hg", ".svn", "node_modules", "site-packages", ".tox", ".nox"}
"""Folders of programs, which hold none of the user's files."""


def _is_in_loop() -> bool:
    """Return whether an event loop runs in this thread, which must not wait."""
    with suppress(RuntimeError):
        return asyncio.get_running_loop() is not None
    return False


class NamedFile(NamedTuple):
    """What a folder holds under a name."""

    is_link: bool
    is_folder: bool
    """Of a link: whether it leads to one."""
    is_program: bool = False


class PlaceNames:
    """What is known of the names in a place; `known` has real paths, for whoever cannot wait."""

    def __init__(
        self,
        env: ExecutionEnvironment,
        loop: asyncio.AbstractEventLoop,
        known: dict[str, str],
    ) -> None:
        self._env, self._loop, self._known = env, loop, known
        self._real: dict[str, str] = {}
        self._folders: dict[str, Mapping[str, NamedFile]] = {}
        self._files: dict[str, bytes | None] = {}

    def _ask(self, coroutine: Coroutine[Any, Any, T]) -> T | None:
        """Return what the place answers; None where it fails, or where nobody can wait."""
        if _is_in_loop():
            coroutine.close()
            return None
        with suppress(OSError):
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
        return None

    def find_real(self, path: str) -> str:
        """Return where a path leads, links followed."""
        if path not in self._real:
            real = self._ask(self._env.real_path(path))
            if real is None:
                return self._known.get(path) or posixpath.normpath(path)
            self._real[path] = self._known[path] = real
        return self._real[path]

    def list_folder(self, folder: str) -> Mapping[str, NamedFile]:
        """Return what a folder holds, by name; nothing where it cannot be listed."""
        folder = posixpath.normpath(folder)
        if folder not in self._folders:
            self._folders[folder] = {}
            self._folders |= self._ask(self._fetch(folder)) or {}
        return self._folders[folder]

    async def _fetch(self, folder: str) -> dict[str, dict[str, NamedFile]]:
        listed: dict[str, dict[str, NamedFile]] = {folder: {}}
        list_names = getattr(self._env, "list_names", None)
        if list_names is None:
            for entry in await self._env.list_directory(folder):
                listed[folder][entry.name] = NamedFile(is_link=False, is_folder=entry.is_dir)
            return listed
        is_flat = any(f"{folder}/".startswith(f"{each}/") for each in _FLAT)
        depth = 1 if folder == "/" or is_flat else _DEPTH
        links: list[str] = []
        for item in await list_names(folder, depth, PASSED_FOLDERS):
            path, mode = posixpath.join(folder, item.path), item.state.mode
            above, _, name = path.rpartition("/")
            is_folder, is_link = stat.S_ISDIR(mode), stat.S_ISLNK(mode)
            file = NamedFile(is_link, is_folder, bool(mode & 0o111) and not is_folder)
            listed.setdefault(above or "/", {})[name] = file
            if is_link:
                links.append(path)
            elif is_folder and item.path.count("/") < depth - 1 and name not in PASSED_FOLDERS:
                listed.setdefault(path, {})
        if links:
            for path, state in (await self._find_states(links)).items():
                above, _, name = path.rpartition("/")
                if not isinstance(state, OSError):
                    is_folder = stat.S_ISDIR(state.mode)
                    is_program = bool(state.mode & 0o111) and not is_folder
                    listed[above or "/"][name] = NamedFile(
                        is_link=True, is_folder=is_folder, is_program=is_program
                    )
        return listed

    async def _find_states(self, paths: Sequence[str]) -> Mapping[str, Any]:
        find_states = getattr(self._env, "find_states")  # noqa: B009 (that of a place)
        states: Mapping[str, Any] = await find_states(paths, follow=True)
        return states

    def find_file(self, path: str) -> NamedFile | None:
        """Return what is at a path; None where nothing is."""
        path = posixpath.normpath(path)
        if path == "/":
            return NamedFile(is_link=False, is_folder=True)
        above, _, name = path.rpartition("/")
        return self.list_folder(self.find_real(above or "/")).get(name)

    def match(self, pattern: str) -> Iterator[str]:
        """Yield what an absolute path with wildcards matches, as a shell does."""
        yield from self._match("", [part for part in pattern.split("/") if part])

    def _match(self, start: str, parts: Sequence[str]) -> Iterator[str]:
        if not parts:
            yield start or "/"
            return
        part, *rest = parts
        if not any(sign in part for sign in "*?["):
            path = f"{start}/{part}"
            if rest or self.find_file(path) is not None:
                yield from self._match(path, rest)
            return
        for name, file in sorted(self.list_folder(self.find_real(start or "/")).items()):
            if (name[:1] == ".") > (part[:1] == ".") or not fnmatchcase(name, part):
                continue
            if file.is_folder or not rest:
                yield from self._match(f"{start}/{name}", rest)

    def find_repository(self, folder: str) -> str | None:
        """Return the top of the repository around a folder; None without one."""
        top = self.find_real(folder)
        while self._ask(self._env.file_exists(posixpath.join(top, ".git"))) is not True:
            if top == "/":
                return None
            top = posixpath.dirname(top)
        return top

    def read_file(self, path: str) -> bytes | None:
        """Return the bytes of a file of git's; None where it cannot be read."""
        if path not in self._files:
            self._files[path] = self._ask(self._env.read_file(path))
        return self._files[path]
