"""A place as an environment: the files and the shell at the far end of a link.

Every method is one request where it can be. Bytes, names and states that come back are data; no
name of the place is opened on this machine. A command sees the variables of its place, with
settings that keep it from asking, and those of this machine that are listed by name.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import posixpath
import stat
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import ConfigurationError, FolderGone, PlaceLost
from ..local import QUIET_VARIABLES
from ..processes import CommandOutput
from ..protocol import ChangeRefusal, DirEntry, ExecResult, Platform, resolve_path
from ..scanner import LinePart, read_lines
from ..wrappers import EnvironmentWrapper
from .link import CommandStream, Link, PlaceRequestFailed, RequestAnswers, decode_path
from .listing import PlaceFiles, find_in_place, list_not_ignored, search_in_place
from .looks import MAX_LOOK_BYTES, Look
from .messages import (
    BrokenAnswer,
    RequestKilled,
    build_error,
    build_exports,
    parse_records,
    parse_state,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ..protocol import ExecutionEnvironment, FileUpdate, LineMatches, ListedPath, Search
    from .connection import Greeting
    from .messages import AnswerLine, FoundPath, RemoteState

_BATCH_WORDS = 200
"""Paths of one request."""
MAX_FILE_BYTES = 256 << 20
"""Larger files are not fetched."""
_STOP_SECONDS = 15.0
_KILLED = 126
"""Exit codes of programs that could not run, or were killed, begin here."""
_XARGS_KILLED = 125
"""That of xargs whose program was killed."""
_OLDEST_CLOCK = 1_500_000_000


class Closable(Protocol):
    """Something that is closed."""

    def close(self) -> None:
        """Close it."""


class PlaceEnvironment:
    """The files and the shell of a place, seen from one folder over there.

    `folder` is absolute, or "" for where the place begins; `variables` are those that travel.
    """

    def __init__(
        self,
        link: Link,
        folder: str = "",
        *,
        name: str = "",
        folder_here: str | None = None,
        variables: Mapping[str, str] | None = None,
        shell: str = "bash",
    ) -> None:
        self.link = link
        self.name = name or link.name
        """What the place is called on the tape."""
        self.folder_here = folder_here
        """The folder of this machine that the session belongs to; None without one."""
        self.disk: Closable | None = None
        """What reads and restores its files for plans to go back; closed with it."""
        self.remarks: list[str] = []
        """What is different in this place, to tell people."""
        self._folder = folder
        self._variables = dict(variables or {})
        self._shell = shell
        self._greeting: Greeting | None = None
        self._greeted_at = 0
        """When it was greeted, by the monotonic clock of this machine, in ns."""
        self._is_open = False

    @property
    def greeting(self) -> Greeting:
        """What the place says of itself; it is initialized."""
        assert self._greeting is not None
        return self._greeting

    @property
    def working_directory(self) -> str:
        """The absolute path over there that relative ones start from."""
        return self._folder

    @property
    def temporary_directory(self) -> str:
        """A folder over there for files that may go; "" without one."""
        return self.greeting.temporary

    @property
    def platform(self) -> Platform:
        """The kind of that system."""
        return "darwin" if self.greeting.system == "Darwin" else "linux"

    @property
    def os_version(self) -> str:
        """Name and release of that system."""
        return f"{self.greeting.system} {self.greeting.release}"

    @property
    def programs(self) -> tuple[str, ...]:
        """Programs that are there, of those that make it better."""
        return self.greeting.programs

    async def initialize(self) -> None:
        """Open the link; ConfigurationError where it cannot be, FolderGone without the folder."""
        self.link.users += 1
        try:
            await self._begin()
        except PlaceLost as error:
            await self._leave()  # what was opened may be there still
            raise ConfigurationError(f"{self.name}: {error.why}") from error
        except BaseException:
            await self._leave()
            raise
        self._is_open = True

    def move(self, folder: str) -> PlaceEnvironment:
        """Return an environment of another folder of the place, to be initialized."""
        return PlaceEnvironment(
            self.link,
            folder,
            name=self.name,
            folder_here=self.folder_here,
            variables=self._variables,
        )

    async def open_copy(self) -> PlaceEnvironment:
        """Return this environment behind a channel of its own, for another event loop."""
        copy = PlaceEnvironment(self.link.copy(), self._folder, name=self.name)
        await copy.initialize()
        return copy

    async def _begin(self) -> None:
        channel = await self.link.connect()
        self._greeting, self._greeted_at = greeting, _ = channel.greeting, channel.greeted_at
        if greeting.missing:
            raise ConfigurationError(
                f"{self.name} lacks what its files are read and written with:"
                f" {', '.join(greeting.missing)}. Install coreutils, findutils and grep there."
            )
        folder = self._folder or greeting.folder
        if folder == "~" or folder.startswith("/~"):
            folder = greeting.home + folder.removeprefix("/")[1:]
        state = (await self.find_states([folder], follow=True))[folder]
        if isinstance(state, OSError) or not stat.S_ISDIR(state.mode):
            raise FolderGone(f"The folder {folder} is not in {self.name}.")
        self._folder = posixpath.normpath(folder)
        if self._shell == "bash" and "bash" not in greeting.programs:
            self._shell = "sh"
            self.remarks.append(f"{self.name} has no bash: commands run in sh")
        if not greeting.temporary:
            self.remarks.append(
                f"{self.name} has no folder for temporary files that can be written"
            )
        if greeting.seconds < _OLDEST_CLOCK:
            self.remarks.append(f"the clock of {self.name} is wrong: it is before 2017 there")

    async def cleanup(self) -> None:
        """Let go of the link; the last environment of a place closes it."""
        if self._is_open:
            self._is_open = False
            if self.disk is not None:
                await asyncio.to_thread(self.disk.close)
            await self._leave()

    async def _leave(self) -> None:
        self.link.users -= 1
        if self.link.users == 0:
            await self.link.close()

    # --- paths ---

    def resolve(self, path: str, *, exact: bool = False) -> str:
        """Return the absolute path over there that a model means by `path`; see the protocol."""
        return resolve_path(path, self._folder, self.greeting.home or None, exact=exact)

    def _resolve_path(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self._folder, path))

    async def real_path(self, path: str) -> str:
        """Return where `path` leads through all links over there."""
        return (await self._look(self._resolve_path(path))).real

    async def _look(self, path: str) -> Look:
        """Return what is at an absolute path, as it was a moment ago.

        The working directory is looked at with it: whoever asks where a path leads compares these.
        """
        looks = self.link.looks
        if (look := looks.find(path)) is not None:
            return look
        changes = looks.changes
        others = [at for at in (self._folder,) if at != path and looks.find(at) is None]
        answers = await self._ask("look", str(MAX_LOOK_BYTES), path, *others)
        paths = [path, *others]
        states, reals = self._pair(paths, answers), answers.select("r")
        if len(reals) != len(paths):
            raise self._refuse_answer("paths are missing")
        for at, real in zip(paths, map(decode_path, reals), strict=True):
            state = states[at]
            is_whole = not isinstance(state, OSError) and len(answers.output) == state.size
            data = answers.output if at == path and is_whole and answers.select("y") else None
            looks.note(at, Look(real, state, data), changes)
            if at == path:
                look = Look(real, state, data)
        assert look is not None
        return look

    async def find_real_paths(self, paths: Sequence[str]) -> dict[str, str]:
        """Return where absolute paths lead through all links."""
        real: dict[str, str] = {}
        for batch in _split_batches(paths):
            answers = (await self._ask("reals", *batch)).select("r")
            if len(answers) != len(batch):
                raise self._refuse_answer("paths are missing")
            real |= zip(batch, map(decode_path, answers), strict=True)
        return real

    async def find_states(
        self, paths: Sequence[str], *, follow: bool = False
    ) -> dict[str, RemoteState | OSError]:
        """Return the states of absolute paths, of what links lead to with `follow`."""
        states: dict[str, RemoteState | OSError] = {}
        for batch in _split_batches(paths):
            try:
                states |= self._pair(
                    batch, await self._ask("states", "-L" if follow else "-P", *batch)
                )
            except OSError as error:  # one went away meanwhile
                if len(batch) == 1:
                    states[batch[0]] = error
                else:
                    for path in batch:
                        states |= await self.find_states([path], follow=follow)
        return states

    def _pair(
        self, batch: Sequence[str], answers: RequestAnswers
    ) -> dict[str, RemoteState | OSError]:
        states = [parse_state(answer.rest) for answer in answers.select("s")]
        there = answers.select("k")
        paired: dict[str, RemoteState | OSError] = {}
        try:
            for answer, state in zip(there, states, strict=True):
                paired[batch[answer.number or 0]] = state
            for answer in answers.select("n"):
                path = batch[answer.number or 0]
                paired[path] = build_error(answer.data, path)
        except (ValueError, IndexError):
            raise self._refuse_answer("states are missing") from None
        if set(paired) != set(batch):
            raise self._refuse_answer("states are missing")
        return paired

    async def read_links(self, paths: Sequence[str]) -> dict[str, bytes | None]:
        """Return the texts of links; None for what is none."""
        texts: dict[str, bytes | None] = {}
        for batch in _split_batches(paths):
            answers = (await self._ask("links", *batch)).select("r")
            if len(answers) != len(batch):
                raise self._refuse_answer("links are missing")
            texts |= {
                path: None if answer.rest == b"-" else answer.data
                for path, answer in zip(batch, answers, strict=True)
            }
        return texts

    # --- files ---

    async def read_file(self, path: str, root: str | None = None) -> bytes:
        """Return the bytes of a regular file; see the protocol."""
        place = path if root is not None else self._resolve_path(path)
        look = self.link.looks.find(place) if root is None else self.link.looks.find_real(place)
        if look is not None and look.data is not None:
            return look.data
        answers = await self._ask("fetch", root or "", str(MAX_FILE_BYTES), place, path=place)
        (state,) = (parse_state(answer.rest) for answer in answers.select("s"))
        if state.size > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), place)
        return answers.output

    async def read_with_signature(
        self, path: str
    ) -> tuple[tuple[int, int, int, int, int, int], bytes]:
        """Return a regular file with what tells whether it has changed; see `DiskFile`."""
        look = await self._look(path)
        if isinstance(look.state, FileNotFoundError):
            raise look.state
        if look.data is not None and not isinstance(look.state, OSError):
            return look.state.signature, look.data
        answers = await self._ask("fetch", "", str(MAX_FILE_BYTES), path, path=path)
        (state,) = (parse_state(answer.rest) for answer in answers.select("s"))
        if state.size > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        return state.signature, answers.output

    async def read_many(self, paths: Sequence[str]) -> dict[str, bytes | OSError]:
        """Return the bytes of regular files, and the errors of what cannot be read."""
        contents: dict[str, bytes | OSError] = {}
        for batch in _split_batches(paths):
            try:
                answers = await self._ask("fetch_all", *batch)
            except OSError:  # one changed meanwhile
                if len(batch) == 1:
                    contents[batch[0]] = await self._read_or_error(batch[0])
                else:
                    for path in batch:
                        contents[path] = await self._read_or_error(path)
                continue
            at = 0
            states = self._pair(batch, answers)
            contents |= {p: state for p, state in states.items() if isinstance(state, OSError)}
            for path, state in (
                (batch[answer.number or 0], parse_state(size.rest))
                for answer, size in zip(answers.select("k"), answers.select("s"), strict=True)
            ):
                contents[path] = answers.output[at : at + state.size]
                at += state.size
            if at != len(answers.output):  # files of /proc have no size
                for answer in answers.select("k"):
                    path = batch[answer.number or 0]
                    contents[path] = await self._read_or_error(path)
        return contents

    async def _read_or_error(self, path: str) -> bytes | OSError:
        try:
            return await self.read_file(path)
        except OSError as error:
            return error

    async def measure_file(self, path: str, root: str | None = None) -> int:
        """Return the size of what is at `path`, in bytes."""
        place = path if root is not None else self._resolve_path(path)
        look = self.link.looks.find(place) if root is None else self.link.looks.find_real(place)
        if look is not None:
            state = look.state
        else:
            state = (await self.find_states([place], follow=root is None))[place]
        if isinstance(state, OSError):
            raise state
        return state.size

    async def find_change_time(self, path: str) -> int | None:
        """Return when a file changed, in nanoseconds since 1970; None where it is not there."""
        place = self._resolve_path(path)
        state = (await self.find_states([place], follow=True))[place]
        return None if isinstance(state, OSError) else state.changed_ns

    async def read_lines(
        self, path: str, starts: Mapping[int, int], root: str | None = None
    ) -> dict[int, LinePart]:
        """Return lines of a text file by their numbers from 1; see `scanner.read_lines`."""
        try:
            data = await self.read_file(path, root)
        except OSError:
            return {}
        with TemporaryDirectory(prefix="gong-lines-") as copies:
            await asyncio.to_thread(Path(copies, "0").write_bytes, data)
            return await asyncio.to_thread(read_lines, f"{copies}/0", starts)

    async def write_file(self, path: str, data: bytes, root: str | None = None) -> None:
        """Put `data` at `path`, whole or not at all; once begun it is finished."""
        place = path if root is not None else self._resolve_path(path)
        look = self.link.looks.find_real(place)
        expected = "none" if look is None else look.expectation
        try:
            await _wait_to_end(
                self._ask(
                    *("put", root or "", place, expected, ""),
                    bodies=(data,),
                    path=place,
                    tidied=(place,),
                )
            )
        except OSError as error:
            raise _explain_stale(error) from None

    async def change_files(self, changes: Sequence[FileUpdate], root: str) -> ChangeRefusal | None:
        """Make every change, or none of them and return why; once begun they are finished."""
        words: list[str] = [root]
        bodies: list[bytes] = []
        for change in changes:
            before = "-" if change.before is None else hashlib.sha256(change.before).hexdigest()
            kind = "d" if change.after is None else "w"
            words += [kind, change.path, before, "", change.like or ""]
            bodies.append(change.after or b"")
        try:
            paths = tuple(change.path for change in changes)
            await _wait_to_end(
                self._ask_raw("change", *words, bodies=tuple(bodies), changes=True, tidied=paths)
            )
        except PlaceRequestFailed as failed:
            named = [line for line in failed.lines if line.kind == "r"]
            where = decode_path(named[-1]) if named else root
            error = _explain_stale(failed.error)
            left = tuple(os.fsdecode(line.data) for line in failed.lines if line.kind == "l")
            return ChangeRefusal(error, where, left)
        return None

    async def restore_file(
        self, path: str, *, top: str, expected: str, kind: str, data: bytes, mode: int | None
    ) -> None:
        """Put a file, a link or nothing at a path whose state is as `expected`.

        `expected` is "-" for nothing, a SHA-256, or "l" and that of a link's text; `kind` is "w"
        for a file, "l" for a link with `data` as its text, "d" for nothing. Raises OSError.
        """
        permissions = "" if mode is None else f"{mode:o}"
        words = ("restore", top, path, expected, kind, permissions)
        await _wait_to_end(
            self._ask(*words, bodies=(data,), path=path, changes=True, tidied=(path,))
        )

    async def save_output(self, data: bytes) -> str:
        """Keep bytes as a new file among temporary ones over there; return its path."""
        folder = self.temporary_directory
        if not folder:
            raise OSError(errno.ENOENT, "there is no folder for temporary files there")
        answers = await self._ask("make_temporary", folder, bodies=(data,), path=folder)
        (named,) = answers.select("r")
        return decode_path(named)

    async def file_exists(self, path: str, root: str | None = None) -> bool:
        """Whether something is there; a dangling link is nothing."""
        if root is None:
            return (await self._look(self._resolve_path(path))).is_there
        if (look := self.link.looks.find_real(path)) is not None:
            return look.is_there
        return bool((await self._ask("exists", root, path)).select("y"))

    async def list_directory(
        self, path: str, depth: int = 1, root: str | None = None
    ) -> tuple[DirEntry, ...]:
        """Return what a folder holds, by name, `depth` levels deep."""
        place = path if root is not None else self._resolve_path(path)
        listed = await self._walk(place, root, depth, ())
        links = [item.path for item in listed if stat.S_ISLNK(item.state.mode)]
        ends: dict[str, RemoteState | OSError] = {}
        if links and root is None:
            paths = [posixpath.join(place, link) for link in links]
            ends = dict(
                zip(links, (await self.find_states(paths, follow=True)).values(), strict=True)
            )
        entries = []
        for item in sorted(listed, key=lambda item: item.path.split("/")):
            state = ends.get(item.path, item.state)
            if isinstance(state, OSError):
                continue  # a dangling link
            is_dir = stat.S_ISDIR(state.mode)
            entries.append(DirEntry(item.path, is_dir, None if is_dir else state.size))
        return tuple(entries)

    async def list_names(
        self, folder: str, depth: int, without: Collection[str] = ()
    ) -> list[FoundPath]:
        """Return what lies below a folder, `depth` levels deep; links are not followed.

        Folders of the names in `without` are left out.
        """
        tests = [word for name in sorted(without) for word in ("-o", "-name", name)][1:]
        pruned = ["-type", "d", "(", *tests, ")", "-prune", "-o"] if tests else []
        return await self._walk(self._resolve_path(folder), None, depth, pruned)

    async def grep(self, path: str, search: Search, root: str | None = None) -> LineMatches:
        """Search the text files at or below `path`; see the protocol."""
        place = path if root is not None else self._resolve_path(path)
        state = (await self.find_states([place], follow=root is None))[place]
        if isinstance(state, OSError):
            raise state
        is_folder = stat.S_ISDIR(state.mode)
        if not is_folder and not stat.S_ISREG(state.mode):
            raise OSError(errno.EINVAL, "Not a regular file", place)
        return await search_in_place(self._files, place, search, root, is_folder=is_folder)

    async def glob(
        self, path: str, pattern: str, root: str | None = None
    ) -> tuple[ListedPath, ...]:
        """Return what below a folder matches; see the protocol."""
        place = path if root is not None else self._resolve_path(path)
        return await find_in_place(self._files, place, pattern, root)

    @property
    def _files(self) -> PlaceFiles:
        return PlaceFiles(self._walk, self.read_many, self._filter_names)

    async def list_files(self, folder: str, without: Collection[str] = ()) -> list[FoundPath]:
        """Return the files and links below a folder that no .gitignore file leaves out.

        What is in folders of the names in `without` is left out, too.
        """
        listed = await list_not_ignored(self._files, folder, None, without)
        return [
            item
            for item, _ in listed
            if stat.S_ISREG(item.state.mode) or stat.S_ISLNK(item.state.mode)
        ]

    async def run_program(
        self, argv: Sequence[str], folder: str, data: bytes = b"", seconds: float = 60.0
    ) -> bytes | None:
        """Return all that a program over there prints, given `data`; None where it fails."""
        try:
            async with asyncio.timeout(seconds):
                answers = await self._ask("program", folder, *argv, bodies=(data,), path=folder)
        except (TimeoutError, OSError):
            return None
        codes = answers.select("e")
        return answers.output if len(codes) == 1 and codes[0].number == 0 else None

    def read_clock(self) -> int:
        """Return about what its clock shows, in ns since 1970: maybe a second less, never more."""
        return self.greeting.seconds * 10**9 + time.monotonic_ns() - self._greeted_at

    async def _walk(
        self, folder: str, root: str | None, depth: int, tests: Sequence[str]
    ) -> list[FoundPath]:
        words = (root or "", folder, str(depth), *tests)
        answers = await self._ask("walk", *words, path=folder)
        self._check_code(answers)
        try:
            return list(parse_records(answers.output, await self._get_nonce()))
        except BrokenAnswer as error:
            raise self._refuse_answer(error.what) from error

    def _check_code(self, answers: RequestAnswers) -> None:
        """Raise PlaceLost where the program was killed: what it printed is not all."""
        codes = [answer.number or 0 for answer in answers.select("e")]
        if len(codes) != 1 or codes[0] >= _KILLED or codes[0] == _XARGS_KILLED:
            raise PlaceLost(self.name, "a program was killed there", has_started=None)

    async def _get_nonce(self) -> str:
        return (await self.link.connect()).nonce

    async def _filter_names(
        self, folder: str, names: Sequence[str], program: Sequence[str]
    ) -> set[str]:
        body = b"".join(b"./" + os.fsencode(name) + b"\0" for name in names)
        answers = await self._ask("filter", folder, *program, bodies=(body,), path=folder)
        self._check_code(answers)
        return {os.fsdecode(line.removeprefix(b"./")) for line in answers.output.split(b"\n")}

    # --- commands ---

    async def exec_command(
        self,
        command: str,
        timeout_ms: int | None = None,
        working_dir: str | None = None,
        env_vars: Mapping[str, str] | None = None,
        on_output: Callable[[bytes], None] | None = None,
        *,
        split: bool = False,
        data: bytes | None = None,
    ) -> ExecResult:
        """Run `command` in the shell of the place; see the protocol. It reads `data`."""
        argv = (self._shell, "-c", command)
        return await self.run_argv(
            argv, timeout_ms, working_dir, env_vars, on_output, split=split, data=data
        )

    async def run_argv(
        self,
        argv: Sequence[str],
        timeout_ms: int | None = None,
        working_dir: str | None = None,
        env_vars: Mapping[str, str] | None = None,
        on_output: Callable[[bytes], None] | None = None,
        *,
        split: bool = False,
        data: bytes | None = None,
    ) -> ExecResult:
        """Run a program with arguments, as `exec_command` runs a command."""
        with self.link.looks.suspend():
            return await self._run_argv(
                argv, timeout_ms, working_dir, env_vars, on_output, split=split, data=data
            )

    async def _run_argv(
        self,
        argv: Sequence[str],
        timeout_ms: int | None,
        working_dir: str | None,
        env_vars: Mapping[str, str] | None,
        on_output: Callable[[bytes], None] | None,
        *,
        split: bool,
        data: bytes | None,
    ) -> ExecResult:
        variables = {**self._variables, **QUIET_VARIABLES, **(env_vars or {})}
        prefix, others = build_exports(variables)
        if others:
            argv = ("env", *others, *argv)
        folder = self._resolve_path(working_dir or "")
        connection = await self.link.connect()
        running = _RemoteCommand(on_output, connection.end, split=split)
        started = time.monotonic()
        mode = "s" if split else "m"
        bodies = () if data is None else (data,)
        running.call = await connection.send(
            "run", mode, folder, *argv, take=running.take, bodies=bodies, prefix=prefix
        )
        self.link.requests += 1
        try:
            try:
                async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                    await running.wait_for_end()
                in_time = True
            except TimeoutError:
                in_time = False
            duration_ms = round((time.monotonic() - started) * 1000)
            if not in_time:
                await self._stop(running)
        except PlaceLost as error:
            if not connection.is_lost:
                await _wait_to_end(self._stop(running))
            has_started = True if running.pid else None
            raise PlaceLost(self.name, error.why, has_started=has_started) from error
        except BaseException:
            await _wait_to_end(self._stop(running))
            raise
        running.ignore()
        if running.failure is not None:
            why = build_error(running.failure, folder).strerror
            raise FolderGone(f"The folder {folder} cannot be entered in {self.name}: {why}")
        if not running.is_over and in_time:
            why = "what watched the command there was killed"
            raise PlaceLost(self.name, why, has_started=True)
        merged = running.merged
        stdout, stderr = (
            None if output is None else bytes(output.newest)
            for output in (running.stdout, running.stderr)
        )
        code = 128 + 9 if running.exit_code is None else running.exit_code
        return ExecResult(
            bytes(merged.newest), merged.total_bytes, code, not in_time, duration_ms, stdout, stderr
        )

    async def _stop(self, running: _RemoteCommand) -> None:
        """End every process of a command over there, and wait for that."""
        assert running.call is not None
        with suppress(PlaceLost, PlaceRequestFailed, TimeoutError):  # its end is the end of all
            async with asyncio.timeout(_STOP_SECONDS):
                await self.link.ask(
                    "stop", str(running.call.number), str(running.pid or 0), changes=True
                )
                await running.wait_for_end()

    # --- requests ---

    async def _ask(
        self, function: str, *words: str, path: str = "", **options: Any
    ) -> RequestAnswers:
        try:
            return await self._ask_raw(function, *words, path=path, **options)
        except PlaceRequestFailed as failed:
            raise failed.error from None

    async def _ask_raw(self, function: str, *words: str, **options: Any) -> RequestAnswers:
        options.setdefault("changes", function in {"put", "make_temporary"})
        tidied = options.pop("tidied", ())
        try:
            if not options["changes"]:
                return await self.link.ask(function, *words, **options)
            with self.link.looks.suspend():
                return await self.link.ask(function, *words, **options)
        except RequestKilled as error:
            with suppress(PlaceLost, PlaceRequestFailed):
                await self.link.ask("tidy", str(error.number), *tidied)
            raise PlaceLost(self.name, error.why, has_started=None) from error
        except BrokenAnswer as error:
            raise self._refuse_answer(error.what) from error

    def _refuse_answer(self, what: str) -> PlaceLost:
        return PlaceLost(
            self.name, f"its helper does not answer as it should: {what}", has_started=None
        )


def find_place(env: ExecutionEnvironment) -> PlaceEnvironment:
    """Return the environment of another place that is inside of wrappers; `is_place` says so."""
    while isinstance(env, EnvironmentWrapper):
        env = env.inner
    assert isinstance(env, PlaceEnvironment)
    return env


class _RemoteCommand:
    """A command that runs over there."""

    def __init__(
        self, on_output: Callable[[bytes], None] | None, end: bytes, *, split: bool
    ) -> None:
        self.call: Any = None
        self.pid = 0
        self.exit_code: int | None = None
        self.failure: bytes | None = None
        self.merged = CommandOutput(on_output)
        self.stdout = CommandOutput() if split else None
        self.stderr = CommandOutput() if split else None
        self._streams = {"o": CommandStream(self._take_output, end)}
        if split:
            self._streams["e"] = CommandStream(self._take_errors, end)
        self._ended = asyncio.Event()
        self._ignored = False

    def take(self, answer: AnswerLine) -> None:
        """Take an answer."""
        match answer.kind:
            case "p" if not self.pid and answer.number:
                self.pid = answer.number
            case "e" if not answer.rest and self.exit_code is None and self.pid:
                self.exit_code = answer.number
            case "o" | "e" if answer.kind in self._streams:
                self._streams[answer.kind].take_line(answer)
            case "zo" | "ze" if answer.kind[1] in self._streams:
                self._streams[answer.kind[1]].close(answer)
            case "x":
                self.failure = answer.data
            case "z":
                pass
            case _:
                raise BrokenAnswer(f"an answer of a command: {answer.kind}")
        if self.is_over or answer.kind in {"x", "z"}:
            self._ended.set()

    @property
    def is_over(self) -> bool:
        """Whether its shell has ended, and all of its output is here."""
        return self.exit_code is not None and all(s.is_ended for s in self._streams.values())

    def _take_output(self, data: bytes) -> None:
        if not self._ignored:
            self.merged.take(data)
            if self.stdout is not None:
                self.stdout.take(data)

    def _take_errors(self, data: bytes) -> None:
        if not self._ignored:
            self.merged.take(data)
            if self.stderr is not None:
                self.stderr.take(data)

    async def wait_for_end(self) -> None:
        """Wait until the shell has ended and its output is here; PlaceLost where that is lost."""
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait({ended, self.call.done}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
        if not self._ended.is_set():
            await self.call.done

    def ignore(self) -> None:
        """Forget what comes from now on: a server that was left in the background."""
        self._ignored = True


async def _wait_to_end(work: Any) -> Any:
    """Wait for the end of what was begun, even if cancelled meanwhile."""
    doing = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait({doing})
        raise


def _explain_stale(error: OSError) -> OSError:
    if error.errno == errno.ESTALE:
        return OSError(errno.ESTALE, "the file has changed since it was read")
    return error


def _split_batches(paths: Sequence[str]) -> list[Sequence[str]]:
    unique = list(dict.fromkeys(paths))
    return [unique[at : at + _BATCH_WORDS] for at in range(0, len(unique), _BATCH_WORDS)]
