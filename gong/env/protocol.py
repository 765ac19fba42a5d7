"""Where tools act: the protocol every execution environment keeps, its values, and its path rule.

Paths given to the methods are absolute, as `resolve` returns them, or relative to the working
directory. What goes wrong with a file stays an `OSError`; tools put it into words. The path rule
turns what a model writes for a path into an absolute one, without looking at any file.
"""

from __future__ import annotations

import os.path
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


LOCAL = "local"
"""The name of this machine as a place."""
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
    stdout: bytes | None = None
    """Standard output alone, its newest 102 400 bytes; None unless the outputs were split."""
    stderr: bytes | None = None
    """Standard error alone, likewise."""
    refused: tuple[str, ...] = ()
    """What a sandbox refused it, as in "writing /etc/hosts"; only what its output tells."""
    appeared: tuple[str, ...] = ()
    """Files that a sandbox watches, because other programs obey them, and that are new."""


class FileUpdate(NamedTuple):
    """One file before and after a change of many; None where there is none."""

    path: str
    before: bytes | None
    after: bytes | None
    like: str | None = None
    """The file whose mode it takes, when it was moved here."""


class ChangeRefusal(NamedTuple):
    """Why changes of files could not be made."""

    error: OSError
    path: str
    """The file it happened at."""
    left: tuple[str, ...]
    """Files that could not be put back as they were; hardly ever any."""


class ListedPath(NamedTuple):
    """Something found below a folder."""

    path: str
    """Relative to that folder, with "/" between its parts."""
    is_dir: bool
    """Whether it is a folder; a link is none, wherever it leads."""
    changed_ns: int
    """When its content last changed, in nanoseconds since 1970; 0 where that is not known."""


@dataclass(frozen=True, slots=True)
class Search:
    """What to look for in files."""

    pattern: str
    """A regular expression, or a text when `literal`."""
    glob: str | None = None
    """Only files that match it."""
    ignore_case: bool = False
    literal: bool = False
    limit: int = 100
    """Stop after so many lines."""


class LineMatch(NamedTuple):
    """A line that matches."""

    path: str
    """Relative to the folder that was searched; the file's name when a file was."""
    line: int
    """Its number, from 1."""
    at: int = 0
    """Where its first match begins, in characters from 0."""


class LineMatches(NamedTuple):
    """Lines that match, by path and number."""

    found: tuple[LineMatch, ...]
    limited: bool
    """Whether the limit stopped the search; there may be more."""
    binary: tuple[str, ...] = ()
    """Files with a match and zero bytes, whose lines are not shown.

    Beside lines that are found, only those that are text otherwise.
    """


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

    def resolve(self, path: str, *, exact: bool = False) -> str:
        """Return the absolute path a model means by `path`.

        With `exact` the name stays as it is written: "@" and odd blanks are part of it.
        """
        ...

    async def real_path(self, path: str) -> str:
        """Return where `path` leads through all links, whether or not something is there."""
        ...

    async def read_file(self, path: str, root: str | None = None) -> bytes:
        """Return the bytes of a regular file.

        With `root` both are real paths and no link below `root` is followed.
        """
        ...

    async def write_file(self, path: str, data: bytes, root: str | None = None) -> None:
        """Put `data` at `path`, whole or not at all, with the folders it needs.

        The mode of an existing file stays, and a link stays a link: its target is written. With
        `root` both are real paths and no link below `root` is followed.
        """
        ...

    async def change_files(self, changes: Sequence[FileUpdate], root: str) -> ChangeRefusal | None:
        """Make every change, or none of them and return why.

        All are real paths below `root`, and no link there is followed. A file that is no longer
        as the change has it before refuses the change (ESTALE).
        """
        ...

    async def grep(self, path: str, search: Search, root: str | None = None) -> LineMatches:
        """Search the text files at or below `path`, without what .gitignore files leave out.

        ValueError for a pattern that is not a regular expression. `root` as in `read_file`, here
        and below.
        """
        ...

    async def glob(
        self, path: str, pattern: str, root: str | None = None
    ) -> tuple[ListedPath, ...]:
        """Return what below a folder matches, by path, without what .gitignore files leave out."""
        ...

    async def file_exists(self, path: str, root: str | None = None) -> bool:
        """Whether something is there; a dangling link is nothing."""
        ...

    async def list_directory(
        self, path: str, depth: int = 1, root: str | None = None
    ) -> tuple[DirEntry, ...]:
        """Return what a folder holds, `depth` levels deep, without what cannot be looked at.

        A link is shown as what it leads to; with `root`, as a file.
        """
        ...

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
        """Run `command` in bash and return when the shell has ended.

        `on_output` is given every chunk as it comes, and must not raise. When the time is over,
        or the caller is cancelled, every process of the command is ended first. With `split` the
        result has standard output and error apart, too, and their merged order is that of their
        arrival. FolderGone when the working directory is missing, ConfigurationError when the
        shell is.
        """
        ...


class ProgramRunner(Protocol):
    """Runs programs of this machine for what is recorded, such as git."""

    def run_program(
        self,
        argv: Sequence[str],
        folder: str,
        data: bytes = b"",
        *,
        unset: Sequence[str] = (),
        accepted: Sequence[int] = (0,),
        seconds: float = 60.0,
    ) -> bytes | None:
        """Return what a program writes that is given `data`; None where it fails or is missing.

        It blocks: call it in a thread.
        """
        ...


UNICODE_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
"""Blanks that models and file dialogs put where a plain one is meant."""


def resolve_path(path: str, base: str, home: str | None, *, exact: bool = False) -> str:
    """Return the path meant by `path`: "~" expanded, relative to `base`, without "..".

    Unless `exact`, a leading "@" is dropped and odd blanks become plain ones.
    """
    path = path if exact else _normalize_spelling(path)
    if home is not None and (path == "~" or path.startswith("~/")):
        path = home + path[1:]
    return os.path.normpath(PurePath(base) / path)


def is_escaping_path(path: str, resolved: str, base: str) -> bool:
    """Whether `path`, which resolves to `resolved`, leaves `base` by way of ".."."""
    inside = is_inside_folder(resolved, os.path.normpath(base))
    return ".." in _normalize_spelling(path).split("/") and not inside


def _normalize_spelling(path: str) -> str:
    return UNICODE_SPACES.sub(" ", path).removeprefix("@")


def is_inside_folder(path: str, folder: str) -> bool:
    """Whether a path is a folder, or below it, by their names alone; both are absolute."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
