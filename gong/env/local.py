"""The local machine as an environment: its files, and bash in process groups.

A command sees the variables that `variables` leaves it, with settings that keep it from asking or
paging.
"""

from __future__ import annotations

import asyncio
import errno
import os.path
import platform
import shutil
import stat
import subprocess
import sys
import time
from contextlib import suppress
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ..errors import ConfigurationError, FolderGone
from .files import (
    commit_changes,
    find_real_path,
    find_status,
    has_path,
    is_small_file,
    list_entries,
    read_file_below,
    read_regular_file,
    stat_below,
    write_file_atomically,
    write_file_below,
)
from .pages import FilePage, read_page
from .processes import RunningCommand, SupervisorClient
from .protocol import DirEntry, ExecResult, Platform, resolve_path
from .scanner import LinePart, is_text_with_zeros, read_lines
from .search import find_below, is_plain_search, run_search, search_below
from .search_programs import list_with_fd, search_with_ripgrep, search_with_scanner
from .variables import VariablePolicy, VariableRules

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from .protocol import ChangeRefusal, FileUpdate, LineMatches, ListedPath, Search
    from .sandbox.sandbox import Sandbox


QUIET_VARIABLES = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "EDITOR": "true",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
    "GIT_CONFIG_KEY_1": "core.fsmonitor",
    "GIT_CONFIG_VALUE_1": "false",
}
"""Nobody sits at the command's terminal: it must not ask, page or open an editor.

And a repository among the files of a project must not run a program of its own by `git status`.
"""


def build_child_variables(
    environ: Mapping[str, str],
    policy: VariablePolicy | VariableRules,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the variables of a command; `extra` wins over everything."""
    rules = policy if isinstance(policy, VariableRules) else VariableRules(policy)
    inherited = rules.select_variables(environ)
    return {**inherited, **QUIET_VARIABLES, **_add_git_settings(inherited), **(extra or {})}


def _add_git_settings(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that put our settings of git behind those inherited, if there are any.

    A setting without its value, which is a secret then, would make git fail: it is left out. An
    example: one is inherited, so ours become those of number 1 and 2, and the count is 3.
    """
    count_text = inherited.get("GIT_CONFIG_COUNT", "")
    if not (count_text.isascii() and count_text.isdigit()):
        return {}
    settings = [
        (key, value)
        for variables, count in (
            (inherited, int(count_text)),
            (QUIET_VARIABLES, len(QUIET_VARIABLES)),
        )
        for number in range(min(count, len(variables)))
        if (key := variables.get(f"GIT_CONFIG_KEY_{number}")) is not None
        and (value := variables.get(f"GIT_CONFIG_VALUE_{number}")) is not None
    ]
    added = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        added |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return added


SANDBOX_REFUSAL = "the sandbox refused writing it"
"""The words of the error where a file cannot be written inside."""

P = ParamSpec("P")
T = TypeVar("T")


class LocalEnvironment:
    """The files and the shell of this machine, seen from one folder.

    `working_directory` is absolute; `environ` is what commands inherit, cut by `policy`; `shell`
    is a bash, by path or by name. With a `sandbox` programs run inside of it, and files are written
    only where they may be written inside; it is let go of by `cleanup`.
    """

    def __init__(
        self,
        working_directory: str,
        environ: Mapping[str, str],
        *,
        policy: VariablePolicy | VariableRules = "filter",
        shell: str = "bash",
        sandbox: Sandbox | None = None,
    ) -> None:
        self._folder = working_directory
        self._environ = environ
        self._policy: VariablePolicy | VariableRules = policy
        self.shell = shell
        """The bash that runs commands, by path or by name."""
        self.sandbox = sandbox
        """The border around its programs; None where there is none."""
        self._supervisor = SupervisorClient()
        self._left_behind: set[RunningCommand] = set()
        """Commands whose shell has ended, while something of them still runs or is read."""

    @property
    def working_directory(self) -> str:
        """The absolute path that relative ones start from."""
        return self._folder

    @property
    def temporary_directory(self) -> str:
        """TMPDIR, else /tmp; in a sandbox its own."""
        if self.sandbox is not None:
            return self.sandbox.temporary_directory
        return self._environ.get("TMPDIR") or "/tmp"

    @property
    def platform(self) -> Platform:
        """The kind of this system."""
        return _PLATFORMS.get(sys.platform, "linux")

    @property
    def os_version(self) -> str:
        """Name and release of this system, such as "Linux 6.1.0"."""
        return f"{platform.system()} {platform.release()}"

    @property
    def outside(self) -> LocalEnvironment:
        """The same environment without its sandbox, for what a person allowed.

        Its shell is none that a program inside could have put on the search path.
        """
        if self.sandbox is None:
            return self
        other = copy(self)
        other.shell = self._find_outer_program(self.shell) or "/bin/bash"
        other.sandbox = None
        return other

    async def initialize(self) -> None:
        """Check that the working directory is there."""
        _require_folder(self._folder)
        if self.sandbox is not None:
            self.sandbox.hold()
            await self.sandbox.start()

    async def cleanup(self) -> None:
        """End whatever commands left running in the background; its last words are not read."""
        left, self._left_behind = self._left_behind, set()
        try:
            await asyncio.gather(*(command.stop() for command in left))
        finally:
            for command in left:
                command.close()
            await self._supervisor.close()
            if self.sandbox is not None:
                self.sandbox.release()

    def resolve(self, path: str, *, exact: bool = False) -> str:
        """Return the absolute path a model means by `path`; see the protocol."""
        place = resolve_path(path, self._folder, self._environ.get("HOME"), exact=exact)
        return place if self.sandbox is None else self.sandbox.border.find_inside(place)

    async def real_path(self, path: str) -> str:
        """Return where `path` leads through all links."""
        return find_real_path(self._resolve_path(path))

    async def read_file(self, path: str, root: str | None = None) -> bytes:
        """Return the bytes of a regular file; see the protocol."""
        read = partial(read_regular_file, self._resolve_path(path))
        if root is not None:
            read = partial(read_file_below, root, path)
        if is_small_file(self._resolve_path(path)):  # a thread takes longer than reading it
            return read()
        return await asyncio.to_thread(read)

    async def read_page(
        self,
        path: str,
        first: int,
        count: int | None,
        most: int,
        root: str | None = None,
        on_piece: Callable[[bytes], None] | None = None,
    ) -> FilePage | None:
        """Return lines of a large text file, None for any other; see `pages.read_page`.

        `on_piece` is called in a thread.
        """
        place = path if root is not None else self._resolve_path(path)
        return await asyncio.to_thread(read_page, place, first, count, most, root, on_piece)

    async def measure_file(self, path: str, root: str | None = None) -> int:
        """Return the size of what is at `path`, in bytes."""
        place = self._resolve_path(path)
        return (stat_below(root, path) if root is not None else find_status(place)).st_size

    async def read_lines(
        self, path: str, starts: Mapping[int, int], root: str | None = None
    ) -> dict[int, LinePart]:
        """Return lines of a text file by their numbers from 1; see `scanner.read_lines`."""
        place = path if root is not None else self._resolve_path(path)
        return await asyncio.to_thread(read_lines, place, starts, root)

    async def write_file(self, path: str, data: bytes, root: str | None = None) -> None:
        """Put `data` at `path`, whole or not at all; once begun it is finished, even if cancelled.

        FolderGone when the working directory is missing: making it again would hide the loss.
        """
        _require_folder(self._folder)
        if self.sandbox is not None:
            path = self.require_writable(path)
            root = root or self.sandbox.border.find_root(path)
        if root is not None:
            await run_to_end(write_file_below, root, path, data)
        else:
            await run_to_end(write_file_atomically, self._resolve_path(path), data)

    async def change_files(self, changes: Sequence[FileUpdate], root: str) -> ChangeRefusal | None:
        """Make every change, or none; once begun they are finished, even if cancelled."""
        if self.sandbox is not None:
            for change in changes:
                self.require_writable(change.path)
        return await run_to_end(commit_changes, root, changes)

    async def grep(self, path: str, search: Search, root: str | None = None) -> LineMatches:
        """Search with ripgrep where it is installed; see the protocol."""
        place = self._resolve_path(path)
        matches = await self._search_files(place, search, root)
        if not (matches.found and matches.binary):
            return matches
        return await asyncio.to_thread(_leave_out_pictures, matches, place, root)

    async def _search_files(self, place: str, search: Search, root: str | None) -> LineMatches:
        if root is not None:  # ripgrep opens files by their names
            if is_plain_search(search):
                return await run_search(search_below, place, search, root)
            return await search_with_scanner(place, search, root)
        program = self._find_outer_program("rg")
        matches = await search_with_ripgrep(program, place, search) if program else None
        if matches is not None:
            return matches
        if is_plain_search(search):
            return await run_search(search_below, place, search)
        return await search_with_scanner(place, search)

    async def glob(
        self, path: str, pattern: str, root: str | None = None
    ) -> tuple[ListedPath, ...]:
        """Look with fd where it is installed; see the protocol."""
        place = self._resolve_path(path)
        if root is not None:
            return await run_search(find_below, place, pattern, root)
        program = self._find_outer_program("fd", "fdfind")
        paths = await list_with_fd(program, place, pattern) if program else None
        return await run_search(find_below, place, pattern) if paths is None else paths

    async def file_exists(self, path: str, root: str | None = None) -> bool:
        """Whether something is there; a dangling link is nothing."""
        if root is not None:
            with suppress(OSError):
                return not stat.S_ISLNK(stat_below(root, path).st_mode)
            return False
        return has_path(self._resolve_path(path))

    async def list_directory(
        self, path: str, depth: int = 1, root: str | None = None
    ) -> tuple[DirEntry, ...]:
        """Return what a folder holds, by name, `depth` levels deep."""
        return await asyncio.to_thread(
            lambda: tuple(list_entries(self._resolve_path(path), depth, root))
        )

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
        """Run `command` in bash; see the protocol."""
        folder = self._resolve_path(working_dir or "")
        _require_folder(folder)
        variables = build_child_variables(self._environ, self._policy, env_vars)
        started = time.monotonic()
        shell = self._find_program(self.shell)
        if shell is None:
            raise ConfigurationError(
                f"Shell not found: {self.shell} (ENOENT). Install bash, or put it on PATH."
            )
        argv: Sequence[str] = (shell, "-c", command)
        if self.sandbox is not None:
            argv, variables = self.sandbox.wrap(argv, variables)
        running = await self._start_command(
            RunningCommand.start(self._supervisor, argv, folder, variables, on_output, split=split)
        )
        try:
            in_time = await running.ends_within(None if timeout_ms is None else timeout_ms / 1000)
            duration_ms = round((time.monotonic() - started) * 1000)
            if not in_time:
                await self._end_command(running)
            else:
                await running.output.drain()
                running.output.ignore()
                # What the command started in the background lives on.
                self._left_behind = {group for group in self._left_behind if not group.is_gone}
                if not running.is_gone:
                    self._left_behind.add(running)
        except BaseException:
            await self._end_command(running)
            raise
        merged, *streams = running.output.merged, running.output.stdout, running.output.stderr
        stdout, stderr = (None if stream is None else bytes(stream.newest) for stream in streams)
        refused: tuple[str, ...] = ()
        appeared: tuple[str, ...] = ()
        if self.sandbox is not None:
            refused = self.sandbox.find_refusals(bytes(merged.newest), running.exit_code)
            appeared = self.sandbox.find_appeared()
        return ExecResult(
            bytes(merged.newest),
            merged.total_bytes,
            running.exit_code,
            not in_time,
            duration_ms,
            stdout,
            stderr,
            refused,
            appeared,
        )

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
        """Return what a program writes that is given `data`, with the variables of commands.

        None where it is missing, takes too long, or ends with a code that is not accepted.
        It blocks: call it in a thread. Its errors are not read.
        """
        program = self._find_program(argv[0])
        if program is None:
            return None
        variables = build_child_variables(self._environ, self._policy)
        env = {name: value for name, value in variables.items() if name not in unset}
        words: Sequence[str] = (program, *argv[1:])
        if self.sandbox is not None:
            words, env = self.sandbox.wrap(words, env)
        try:
            done = subprocess.run(
                words,
                cwd=folder,
                env=env,
                input=data,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=seconds,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode in accepted else None

    def _resolve_path(self, path: str) -> str:
        return os.path.normpath(Path(self._folder) / path)

    def _find_program(self, *names: str) -> str | None:
        path = self._environ.get("PATH", os.defpath)
        return next(filter(None, (shutil.which(name, path=path) for name in names)), None)

    def _find_outer_program(self, *names: str) -> str | None:
        """Return a program that runs outside of the sandbox: none that one inside could write."""
        if self.sandbox is None:
            return self._find_program(*names)
        places = self._environ.get("PATH", os.defpath).split(os.pathsep)
        may_write = self.sandbox.border.may_write
        path = os.pathsep.join(place for place in places if not may_write(os.path.realpath(place)))
        return next(filter(None, (shutil.which(name, path=path) for name in names)), None)

    def require_writable(self, path: str) -> str:
        """Return where a path leads; PermissionError where the sandbox refuses writing there."""
        real = find_real_path(self._resolve_path(path))
        if self.sandbox is not None and not self.sandbox.border.may_write(real):
            raise PermissionError(errno.EACCES, SANDBOX_REFUSAL, path)
        return real

    async def _start_command(self, start: Coroutine[Any, Any, RunningCommand]) -> RunningCommand:
        """Start a command; when that is cancelled, it is asked to end as one that runs is.

        It may run, and have written something, before the news of its start are here.
        """
        starting = asyncio.create_task(start)
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            with suppress(OSError):  # it could not be started
                await self._end_command(await starting)
            raise

    async def _end_command(self, command: RunningCommand) -> None:
        """End all of a command; when that is cancelled, `cleanup` waits for it."""
        try:
            await command.stop()
            await command.output.drain()
        finally:
            command.output.close()
            if not command.is_gone:
                self._left_behind.add(command)


def _leave_out_pictures(matches: LineMatches, place: str, root: str | None) -> LineMatches:
    """Return matches in a folder without files that are no text, which nobody looks for in it."""
    texts = (path for path in matches.binary if is_text_with_zeros(f"{place}/{path}", root))
    return matches._replace(binary=tuple(texts))


_PLATFORMS: Mapping[str, Platform] = {
    "darwin": "darwin",
    "win32": "windows",
    "emscripten": "wasm",
    "wasi": "wasm",
}


async def run_to_end(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do blocking work in a thread and wait for its end, even if cancelled meanwhile."""
    doing = asyncio.create_task(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait({doing})
        raise


def _require_folder(path: str) -> None:
    if not Path(path).is_dir():
        raise FolderGone(
            f"The folder {path} no longer exists. Create it again, or work in another."
        )
