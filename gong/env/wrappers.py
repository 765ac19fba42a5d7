"""Environments around another one: what they add is theirs, everything else goes through.

They can be put into one another, and no tool knows of them.
"""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any, NoReturn

from .protocol import LOCAL, is_inside_folder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from .pages import FilePage
    from .protocol import (
        ChangeRefusal,
        DirEntry,
        ExecResult,
        ExecutionEnvironment,
        FileUpdate,
        LineMatches,
        ListedPath,
        Search,
    )
    from .scanner import LinePart


def is_place(env: ExecutionEnvironment) -> bool:
    """Return whether tools act in another place than this machine."""
    return getattr(env, "folder_here", None) is not None


def find_place_name(env: ExecutionEnvironment) -> str:
    """Return the name of the place where tools act; `local` for this machine."""
    return str(getattr(env, "name", LOCAL)) if is_place(env) else LOCAL


def describe_folder(env: ExecutionEnvironment) -> str:
    """Return where tools act, for people: a folder, behind its place where that is another one."""
    name: str = getattr(env, "name", "")
    if not is_place(env) or name.endswith(env.working_directory):
        return name if is_place(env) else env.working_directory
    return f"{name}:{env.working_directory}"


def find_temporary_folder(env: ExecutionEnvironment) -> str:
    """Return a folder of this machine for files that may go, wherever tools act."""
    return tempfile.gettempdir() if is_place(env) else env.temporary_directory


def find_folder_here(env: ExecutionEnvironment) -> str:
    """Return the folder of this machine that a session belongs to, wherever its tools act."""
    folder: str | None = getattr(env, "folder_here", None)
    return env.working_directory if folder is None else folder


class EnvironmentWrapper:
    """An environment that does what the one inside does."""

    def __init__(self, inner: ExecutionEnvironment) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        """Return what the environment inside has of that name."""
        return getattr(self.inner, name)


class SharedEnvironment(EnvironmentWrapper):
    """An environment of somebody else, who cleans it up."""

    async def cleanup(self) -> None:
        """Do nothing."""


class LoggingEnvironment(EnvironmentWrapper):
    """Says every command before it runs, and its exit code and duration after it."""

    def __init__(self, inner: ExecutionEnvironment, log: Callable[[str], None]) -> None:
        super().__init__(inner)
        self._log = log

    async def exec_command(self, command: str, *args: Any, **kwargs: Any) -> ExecResult:
        """Log what runs and how it ended."""
        self._log(f"exec: {command}")
        result = await self.inner.exec_command(command, *args, **kwargs)
        self._log(f"exit: {result.exit_code} in {result.duration_ms}ms")
        return result


class ReadOnlyEnvironment(EnvironmentWrapper):
    """Refuses to write files; commands go through, because their writes are unknown."""

    async def write_file(self, path: str, data: bytes, root: str | None = None) -> NoReturn:
        """Raise PermissionError."""
        _ = path, data, root
        raise PermissionError(_READ_ONLY)

    async def change_files(self, changes: Sequence[FileUpdate], root: str) -> NoReturn:
        """Raise PermissionError."""
        _ = changes, root
        raise PermissionError(_READ_ONLY)


_READ_ONLY = "Write operations disabled in read-only mode"


class ConfinedEnvironment(EnvironmentWrapper):
    """Keeps files below some folders, through all links and against those put there meanwhile.

    What is outside raises PermissionError. Commands go through.
    """

    def __init__(self, inner: ExecutionEnvironment, roots: Sequence[str]) -> None:
        super().__init__(inner)
        self._roots = tuple(roots)

    async def read_file(self, path: str, root: str | None = None) -> bytes:
        """Read a file below one of the folders."""
        real, own = await self._require_inside(path)
        return await self.inner.read_file(real, root or own)

    async def read_page(
        self,
        path: str,
        first: int,
        count: int | None,
        most: int,
        root: str | None = None,
        on_piece: Callable[[bytes], None] | None = None,
    ) -> FilePage | None:
        """Read a page of a file below one of the folders, if the environment inside has pages."""
        real, own = await self._require_inside(path)
        reader: Callable[..., Awaitable[FilePage | None]] | None
        reader = getattr(self.inner, "read_page", None)
        where = real, first, count, most, root or own, on_piece
        return None if reader is None else await reader(*where)

    async def measure_file(self, path: str, root: str | None = None) -> int:
        """Return the size of a file below one of the folders; 0 if nothing inside can."""
        real, own = await self._require_inside(path)
        measure: Callable[..., Awaitable[int]] | None = getattr(self.inner, "measure_file", None)
        return 0 if measure is None else await measure(real, root or own)

    async def read_lines(
        self, path: str, starts: Mapping[int, int], root: str | None = None
    ) -> dict[int, LinePart] | None:
        """Return lines of a file below one of the folders; None if nothing inside can."""
        real, own = await self._require_inside(path)
        reader: Callable[..., Awaitable[dict[int, LinePart] | None]] | None
        reader = getattr(self.inner, "read_lines", None)
        return None if reader is None else await reader(real, starts, root or own)

    async def write_file(self, path: str, data: bytes, root: str | None = None) -> None:
        """Write a file below one of the folders."""
        real, own = await self._require_inside(path)
        await self.inner.write_file(real, data, root or own)

    async def change_files(self, changes: Sequence[FileUpdate], root: str) -> ChangeRefusal | None:
        """Change files below one of the folders."""
        await self._require_inside(root)
        return await self.inner.change_files(changes, root)

    async def grep(self, path: str, search: Search, root: str | None = None) -> LineMatches:
        """Search below one of the folders."""
        real, own = await self._require_inside(path)
        return await self.inner.grep(real, search, root or own)

    async def glob(
        self, path: str, pattern: str, root: str | None = None
    ) -> tuple[ListedPath, ...]:
        """Look below one of the folders."""
        real, own = await self._require_inside(path)
        return await self.inner.glob(real, pattern, root or own)

    async def file_exists(self, path: str, root: str | None = None) -> bool:
        """Look below one of the folders."""
        real, own = await self._require_inside(path)
        return await self.inner.file_exists(real, root or own)

    async def list_directory(
        self, path: str, depth: int = 1, root: str | None = None
    ) -> tuple[DirEntry, ...]:
        """List below one of the folders."""
        real, own = await self._require_inside(path)
        return await self.inner.list_directory(real, depth, root or own)

    async def _require_inside(self, path: str) -> tuple[str, str]:
        """Return where a path leads and the folder it is below."""
        real = await self.inner.real_path(path)
        for root in self._roots:
            own = await self.inner.real_path(root)
            if is_inside_folder(real, own):
                return real, own
        allowed = ", ".join(self._roots)
        raise PermissionError(f"Outside of the workspace: {path}. Name a file below {allowed}.")
