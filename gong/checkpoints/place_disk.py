"""The files of another place as plans to go back see them: read, and put back there.

Plans are made and applied by plain functions, while environments are asynchronous: so there is an
event loop in a thread of its own, with a channel of its own to the place. A path is that of the
place behind its name and a colon, as changes have it, so no path of a place is one of this machine.
"""

from __future__ import annotations

import asyncio
import posixpath
import stat
import threading
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from tape.files.changes import is_link_mode
from tape.model.entries import OtherEnvironment

from ..env.places.identity import is_same_machine
from ..errors import PlaceLost
from .disk_file import DiskFile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from tape.files.changes import KnownVersion
    from tape.files.plan import FileRestore

    from ..env.places.environment import PlaceEnvironment

T = TypeVar("T")


class PlaceDisk:
    """The files of the place that `open_env` opens; `name` is that of the place."""

    def __init__(self, name: str, open_env: Callable[[], Awaitable[PlaceEnvironment]]) -> None:
        self.name = name
        self._open_env = open_env
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._env: PlaceEnvironment | None = None
        self._prefixes: set[str] = set()

    def take_name(self, name: str) -> bool:
        """Return whether a name on a tape is that of this place, whose paths are known then."""
        if not is_same_machine(name, self.name):
            return False
        self._prefixes.add(f"{name}:")
        return True

    def has_path(self, path: str) -> bool:
        """Return whether a path is one of this place."""
        return any(path.startswith(f"{prefix}/") for prefix in self._prefixes)

    def split_path(self, path: str) -> tuple[str, str]:
        """Return the name of the place, as the tape has it, and the path there."""
        own = (prefix for prefix in self._prefixes if path.startswith(f"{prefix}/"))
        prefix = max(own, key=len)
        return prefix[:-1], path[len(prefix) :]

    def describe(self, path: str) -> OtherEnvironment:
        """Return how the tape names the place of a path."""
        return OtherEnvironment(self.split_path(path)[0], self._open().working_directory)

    def read(self, path: str) -> DiskFile | None:
        """Return a file or link as it is there; None where there is none."""
        return self._run(lambda env: _read_file(env, self.split_path(path)[1]))

    def find_obstacle(self, path: str) -> str:
        """Return why nothing may be written at a path, "" if it may."""
        return self._run(lambda env: _find_obstacle(env, self.split_path(path)[1]))

    def restore(self, file: FileRestore, load: Callable[[str], bytes]) -> None:
        """Put one file back; raises OSError, also where it is not as it was when it was planned."""
        path = self.split_path(file.path)[1]
        self._run(lambda env: _restore_file(env, path, file.now, file.target, load))

    def close(self) -> None:
        """End the channel and the thread."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        if self._env is not None:
            asyncio.run_coroutine_threadsafe(self._env.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        if self._thread is not None:
            self._thread.join()
        loop.close()

    def _open(self) -> PlaceEnvironment:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
            self._thread.start()
        if self._env is None:
            opening = _wait_for(self._open_env())
            self._env = asyncio.run_coroutine_threadsafe(opening, self._loop).result()
        return self._env

    def _run(self, work: Callable[[PlaceEnvironment], Coroutine[Any, Any, T]]) -> T:
        env = self._open()
        assert self._loop is not None
        try:
            return asyncio.run_coroutine_threadsafe(work(env), self._loop).result()
        except PlaceLost as error:
            raise OSError(str(error)) from error


async def _wait_for(work: Awaitable[T]) -> T:
    return await work


async def _read_file(env: PlaceEnvironment, path: str) -> DiskFile | None:
    parent = posixpath.dirname(path)
    if await env.real_path(parent) != parent:
        return None  # what a link leads to is another file
    state = (await env.find_states([path]))[path]
    if isinstance(state, OSError):
        is_missing = isinstance(state, FileNotFoundError | NotADirectoryError)
        return None if is_missing else DiskFile(None, f"it cannot be read: {state.strerror}")
    signature = state.signature
    if not (stat.S_ISLNK(state.mode) or stat.S_ISREG(state.mode)):
        return None
    try:
        if stat.S_ISLNK(state.mode):
            data = (await env.read_links([path]))[path] or b""
        else:
            data = await env.read_file(path)
    except OSError as error:
        return DiskFile(signature, f"it cannot be read: {error.strerror}")
    return DiskFile.from_bytes(data, signature)


async def _find_obstacle(env: PlaceEnvironment, path: str) -> str:
    parent = posixpath.dirname(path)
    if await env.real_path(parent) != parent:
        return "a link leads its folder elsewhere"
    state = (await env.find_states([path]))[path]
    if not isinstance(state, OSError) and stat.S_ISDIR(state.mode):
        return "a folder is in its place"
    return ""


async def _restore_file(
    env: PlaceEnvironment,
    path: str,
    now: KnownVersion | None,
    target: KnownVersion | None,
    load: Callable[[str], bytes],
) -> None:
    expected = "-"
    if now is not None:
        expected = f"l {now.digest}" if is_link_mode(now.mode) else str(now.digest)
    kind, data, mode = "d", b"", None
    if target is not None:
        kind = "l" if is_link_mode(target.mode) else "w"
        if target.blob is not None:
            data = load(target.blob)
        elif target.text is not None:
            data = target.text.encode("utf-8", "surrogatepass")
        else:  # only the mode differs
            data = await env.read_file(path)
            if sha256(data).hexdigest() != target.digest:
                raise OSError("it was changed meanwhile")
        if target.mode is not None and kind == "w":
            mode = stat.S_IMODE(int(target.mode, 8))
    await env.restore_file(
        path, top=env.working_directory, expected=expected, kind=kind, data=data, mode=mode
    )
