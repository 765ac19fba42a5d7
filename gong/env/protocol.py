"""Where tools act: the protocol every execution environment keeps, and the values it hands out.

Paths given to the methods are absolute, as `resolve` returns them, or relative to the working
directory. What goes wrong with a file stays an `OSError`; tools put it into words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Platform = Literal["darwin", "linux", "windows", "wasm"]


@dataclass(frozen=True, slots=True)
class DirEntry:
    """One name in a folder."""

    name: str
    """Relative to the listed folder, with "/" between its parts."""
    is_dir: bool
    """Whether it is a folder, or a link to one."""
    size: int | None
    """Bytes of a file; None for a folder."""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended."""

    output: bytes
    """Standard output and error, merged as they came; the newest 102 400 bytes at most."""
    total_bytes: int
    """Bytes it wrote in all."""
    exit_code: int
    """As a shell says it: 128 + N when signal N ended it."""
    timed_out: bool
    """Whether it was killed for taking too long."""
    duration_ms: int
    """From start to the end of the shell, by the wall."""


class ExecutionEnvironment(Protocol):
    """A place with files and a shell: this machine, a container, a host elsewhere."""

    @property
    def working_directory(self) -> str:
        """The absolute path that relative ones start from."""
        ...

    @property
    def temporary_directory(self) -> str:
        """The absolute path of a folder for files that may go."""
        ...

    @property
    def platform(self) -> Platform:
        """The kind of system commands run on."""
        ...

    @property
    def os_version(self) -> str:
        """Name and release of that system."""
        ...

    async def initialize(self) -> None:
        """Make it ready; FolderGone when the working directory is missing."""
        ...

    async def cleanup(self) -> None:
        """Let go of what it holds."""
        ...

    def resolve(self, path: str) -> str:
        """Return the absolute path a model means by `path`."""
        ...

    async def read_file(self, path: str) -> bytes:
        """Return the bytes of a regular file."""
        ...

    async def write_file(self, path: str, data: bytes) -> None:
        """Put `data` at `path`, whole or not at all, with the folders it needs.

        The mode of an existing file stays, and a link stays a link: its target is written.
        """
        ...

    async def file_exists(self, path: str) -> bool:
        """Whether something is there; a dangling link is nothing."""
        ...

    async def list_directory(self, path: str, depth: int = 1) -> tuple[DirEntry, ...]:
        """Return what a folder holds, `depth` levels deep, without what cannot be looked at."""
        ...

    async def exec_command(
        self,
        command: str,
        timeout_ms: int | None = None,
        working_dir: str | None = None,
        env_vars: Mapping[str, str] | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> ExecResult:
        """Run `command` in bash and return when the shell has ended.

        `on_output` is given every chunk as it comes, and must not raise. When the time is over,
        or the caller is cancelled, every process of the command is ended first. FolderGone when
        the working directory is missing, ConfigurationError when the shell is.
        """
        ...
