"""Environments around another one: what they add is theirs, everything else goes through.

They can be put into one another, and no tool knows of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .protocol import (
        ChangeRefusal,
        DirEntry,
        ExecResult,
        ExecutionEnvironment,
        FileChange,
        LineMatches,
        ListedPath,
        Platform,
        Search,
    )


class EnvironmentWrapper:
    """An environment that does what the one inside does."""

    def __init__(self, inner: ExecutionEnvironment) -> None:
        self.inner = inner

    @property
    def working_directory(self) -> str:
        """See the protocol, as for all that follows."""
        return self.inner.working_directory

    @property
    def temporary_directory(self) -> str:
        """As inside."""
        return self.inner.temporary_directory

    @property
    def platform(self) -> Platform:
        """As inside."""
        return self.inner.platform

    @property
    def os_version(self) -> str:
        """As inside."""
        return self.inner.os_version

    async def initialize(self) -> None:
        """As inside."""
        await self.inner.initialize()

    async def cleanup(self) -> None:
        """As inside."""
        await self.inner.cleanup()

    def resolve(self, path: str, *, exact: bool = False) -> str:
        """As inside."""
        return self.inner.resolve(path, exact=exact)

    async def real_path(self, path: str) -> str:
        """As inside."""
        return await self.inner.real_path(path)

    async def read_file(self, path: str, root: str | None = None) -> bytes:
        """As inside."""
        return await self.inner.read_file(path, root)

    async def write_file(self, path: str, data: bytes, root: str | None = None) -> None:
        """As inside."""
        await self.inner.write_file(path, data, root)

    async def change_files(self, changes: Sequence[FileChange], root: str) -> ChangeRefusal | None:
        """As inside."""
        return await self.inner.change_files(changes, root)

    async def grep(self, path: str, search: Search, root: str | None = None) -> LineMatches:
        """As inside."""
        return await self.inner.grep(path, search, root)

    async def glob(
        self, path: str, pattern: str, root: str | None = None
    ) -> tuple[ListedPath, ...]:
        """As inside."""
        return await self.inner.glob(path, pattern, root)

    async def file_exists(self, path: str, root: str | None = None) -> bool:
        """As inside."""
        return await self.inner.file_exists(path, root)

    async def list_directory(
        self, path: str, depth: int = 1, root: str | None = None
    ) -> tuple[DirEntry, ...]:
        """As inside."""
        return await self.inner.list_directory(path, depth, root)

    async def exec_command(
        self,
        command: str,
        timeout_ms: int | None = None,
        working_dir: str | None = None,
        env_vars: Mapping[str, str] | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> ExecResult:
        """As inside."""
        return await self.inner.exec_command(command, timeout_ms, working_dir, env_vars, on_output)


class LoggingEnvironment(EnvironmentWrapper):
    """Says every command before it runs, and its exit code and duration after it."""

    def __init__(self, inner: ExecutionEnvironment, log: Callable[[str], None]) -> None:
        super().__init__(inner)
        self._log = log

    async def exec_command(
        self,
        command: str,
        timeout_ms: int | None = None,
        working_dir: str | None = None,
        env_vars: Mapping[str, str] | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> ExecResult:
        """Log what runs and how it ended."""
        self._log(f"exec: {command}")
        result = await super().exec_command(command, timeout_ms, working_dir, env_vars, on_output)
        self._log(f"exit: {result.exit_code} in {result.duration_ms}ms")
        return result


class ReadOnlyEnvironment(EnvironmentWrapper):
    """Refuses to write files; commands go through, because their writes are unknown."""

    async def write_file(self, path: str, data: bytes, root: str | None = None) -> None:
        """Raise PermissionError."""
        _ = path, data, root
        raise _build_read_only_error()

    async def change_files(self, changes: Sequence[FileChange], root: str) -> ChangeRefusal | None:
        """Raise PermissionError."""
        _ = changes, root
        raise _build_read_only_error()


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

    async def write_file(self, path: str, data: bytes, root: str | None = None) -> None:
        """Write a file below one of the folders."""
        real, own = await self._require_inside(path)
        await self.inner.write_file(real, data, root or own)

    async def change_files(self, changes: Sequence[FileChange], root: str) -> ChangeRefusal | None:
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
            if real == own or real.startswith(own.rstrip("/") + "/"):
                return real, own
        allowed = ", ".join(self._roots)
        raise PermissionError(f"Outside of the workspace: {path}. Name a file below {allowed}.")


def _build_read_only_error() -> PermissionError:
    return PermissionError("Write operations disabled in read-only mode")
