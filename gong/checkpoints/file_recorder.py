"""Records what calls do to files: their state before a call, and what is different after it.

    a call                                     before it                     after it
    -----------------------------------------  ----------------------------  -----------------
    that only reads, or changes the session    nothing                       nothing
    of a tool that names its files             a checkpoint of these         their changes

Bytes are stored in the tape before an entry names them, each once. All of it runs in a thread; what
has begun is finished, also when the caller is cancelled.
"""

from __future__ import annotations

import posixpath
from functools import partial
from typing import TYPE_CHECKING

from tape.errors import TapeError
from tape.model.entries import Checkpoint, FileState

from ..env.local import LocalEnvironment, run_to_end
from ..env.protocol import is_inside_folder
from ..env.wrappers import EnvironmentWrapper
from .disk_file import DiskFile, read_disk_file
from .file_changes import FileVersion, list_changes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tape.model.entries import BlobRef, ChangedFile
    from tape.store.blobs import Blobs

    from ..config import CheckpointSettings
    from ..env.protocol import ExecutionEnvironment
    from ..tools.tool import PreparedCall


class FileRecorder:
    """Records the files of one session."""

    def __init__(self, settings: CheckpointSettings) -> None:
        self.settings = settings
        self._path: object = None
        self._stored = StoredBlobs()

    async def begin_call(
        self, prepared: PreparedCall, env: ExecutionEnvironment, blobs: Blobs, path: object
    ) -> RecordedCall | None:
        """Store the state of the files that a call may change; None where it changes none.

        `path` is the list of entries that the records are added to: another list is another
        history, for which everything is recorded again. Raises WriteFailed where the disk fails.
        """
        if path is not self._path:
            self._path = path
            self._stored = StoredBlobs()
        self._stored.blobs = blobs
        tool = prepared.tool
        if tool.replay == "safe" or tool.find_targets is None:
            return None
        targets = await tool.find_targets(prepared.arguments, env)
        if not targets:
            return None
        call = RecordedCall(prepared.call.id, env, self._stored, self.settings.max_total_bytes)
        await call.read_targets(targets)
        return call


class StoredBlobs:
    """The bytes that a session has stored in its tape, each once."""

    def __init__(self) -> None:
        self.blobs: Blobs | None = None
        self._refs: dict[str, BlobRef] = {}

    def store_file(self, file: DiskFile, *, is_after: bool) -> FileVersion:
        """Store the bytes of a file, and return it with their reference.

        Raises WriteFailed before a call, which must not run then; after it, `why` says so.
        """
        if file.data is None or file.digest is None:
            return FileVersion(file.mode, file.digest, file.size, None, file.why)
        ref, why = self._refs.get(file.digest), file.why
        if ref is None:
            assert self.blobs is not None, "a call is recorded in a tape"
            try:
                ref = self._refs[file.digest] = self.blobs.put(file.data)
            except TapeError as error:
                if not is_after:
                    raise
                why = f"its bytes could not be stored: {error}"
        return FileVersion(file.mode, file.digest, file.size, ref, why)


class RecordedCall:
    """A call of a tool that names the files it changes, from its checkpoint to its changes."""

    def __init__(
        self, call_id: str, env: ExecutionEnvironment, stored: StoredBlobs, max_bytes: int
    ) -> None:
        self.checkpoint: Checkpoint | None = None
        """What is recorded before the call starts."""
        self._call_id, self._env = call_id, env
        self._stored, self._max_bytes = stored, max_bytes
        self._names: dict[str, str] = {}
        """Real path → path as it is recorded."""
        self._before: Mapping[str, FileVersion | None] = {}

    async def read_targets(self, targets: Sequence[str]) -> None:
        """Store the files as they are before the call."""
        folder = await self._env.real_path(self._env.working_directory)
        self._names = {path: shorten_path(path, folder) for path in targets}
        self._before = await self._read_files()
        files = tuple(
            FileState(path, one and one.build_saved_file(), one.mode if one else None)
            for path, one in self._before.items()
        )
        self.checkpoint = Checkpoint(files, call_id=self._call_id)

    async def find_changes(self) -> tuple[ChangedFile, ...]:
        """Return what the call has changed, with the bytes stored."""
        return list_changes(self._before, await self._read_files(is_after=True))

    async def _read_files(self, *, is_after: bool = False) -> dict[str, FileVersion | None]:
        if find_local_environment(self._env) is not None:
            read = partial(read_disk_file, max_bytes=self._max_bytes)
            found = await run_to_end(lambda: {path: read(path) for path in self._names})
        else:
            found = {path: await _read_foreign_file(self._env, path) for path in self._names}
        return await run_to_end(self._store_files, found, is_after)

    def _store_files(
        self, found: Mapping[str, DiskFile | None], is_after: bool
    ) -> dict[str, FileVersion | None]:
        return {
            self._names[path]: file and self._stored.store_file(file, is_after=is_after)
            for path, file in found.items()
        }


async def _read_foreign_file(env: ExecutionEnvironment, path: str) -> DiskFile | None:
    """Return a file of another machine, whose mode is not known; None where there is none."""
    try:
        data = await env.read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return DiskFile(None, f"it cannot be read: {error.strerror or error}")
    return DiskFile.from_bytes(data)


def find_local_environment(env: ExecutionEnvironment) -> LocalEnvironment | None:
    """Return the environment of this machine that is inside of wrappers; None for another one."""
    while isinstance(env, EnvironmentWrapper):
        env = env.inner
    return env if isinstance(env, LocalEnvironment) else None


def shorten_path(path: str, folder: str) -> str:
    """Return a path relative to the working folder where it is inside; both are real paths."""
    return posixpath.relpath(path, folder) if is_inside_folder(path, folder) else path
