"""Records what calls do to files: their state before a call, and what is different after it.

    a call                                     before it                     after it
    -----------------------------------------  ----------------------------  -----------------
    that only reads, or changes the session    nothing                       nothing
    of a tool that names its files             a checkpoint of these         their changes
    any other, above all a command             a checkpoint of the files of  what differs there
                                               the folder that no entry
                                               tells of and git has not

Bytes are stored in the tape before an entry names them, each once. All of it runs in a thread; what
has begun is finished, also when the caller is cancelled.
"""

from __future__ import annotations

import os
import posixpath
from functools import partial
from typing import TYPE_CHECKING

from tape.files.changes import find_recorded_versions
from tape.model.entries import Checkpoint, FileState, OtherEnvironment

from ..env.local import LocalEnvironment, run_to_end
from ..env.protocol import is_inside_folder
from ..env.wrappers import EnvironmentWrapper, is_place
from ..errors import PlaceLost
from ..tools.tool import find_call_targets
from .disk_file import DiskFile, FileSignature, read_disk_file
from .file_changes import NOT_RECORDED, FileVersion, list_changes
from .folder_files import FolderFiles
from .local_folder import LocalFolder
from .stored_blobs import StoredBlobs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from tape.model.entries import ChangedFile
    from tape.model.line import Entry
    from tape.store.blobs import Blobs

    from ..config import CheckpointSettings
    from ..env.protocol import ExecutionEnvironment
    from ..tools.tool import PreparedCall
    from .folder_files import FolderSource


class FileRecorder:
    """Records the files of one session; `skip` are folders that are never recorded."""

    def __init__(self, settings: CheckpointSettings, skip: Sequence[str] = ()) -> None:
        self.settings = settings
        self._skip = [os.path.realpath(path) for path in skip]
        self._path: Sequence[Entry] | None = None
        self._stored = StoredBlobs()
        self._folder: FolderFiles | None = None
        self._where: OtherEnvironment | None = None
        """The place of that folder; None for this machine."""
        self._has_told_of_commands = False

    async def begin_call(
        self,
        prepared: PreparedCall,
        env: ExecutionEnvironment,
        blobs: Blobs,
        path: Sequence[Entry],
    ) -> RecordedCall | RecordedCommand | None:
        """Store the state of the files that a call may change; None where it changes none.

        `path` has the entries that the records follow: another list is another history, for which
        everything is recorded again. Raises WriteFailed where the disk fails, TargetsUnknown.
        """
        tool, settings = prepared.tool, self.settings
        if tool.replay == "safe":
            return None
        targets = await find_call_targets(prepared, env)
        if targets is None:
            if not settings.commands or is_reading_command(prepared, env):
                return None
            return await self._begin_command(prepared, await self._open_folder(env, blobs, path))
        if not targets:
            return None
        folder = await self._open_folder(env, blobs, path)
        call = RecordedCall(prepared.call.id, env, self._stored, settings.max_total_bytes)
        await call.read_targets(targets, folder)
        return call

    def close(self) -> None:
        """Stop watching the folder; what is recorded later is found by listing it again."""
        if self._folder is not None:
            self._folder.close()
        self._folder = None

    async def _open_folder(
        self, env: ExecutionEnvironment, blobs: Blobs, path: Sequence[Entry]
    ) -> FolderFiles | None:
        """Return the files of the working folder; None where nobody can look at them."""
        if path is not self._path:
            self._path = path
            self.close()
            self._stored, self._has_told_of_commands = StoredBlobs(), False
        self._stored.blobs = blobs
        local, where = find_local_environment(env), describe_environment(env)
        if local is None and not is_place(env):
            return None
        folder = await env.real_path(env.working_directory)
        if self._folder is None or (self._folder.folder, self._where) != (folder, where):
            self.close()
            self._where = where
            source = await _build_source(env, folder, self._skip)
            recorded = find_recorded_versions(path, where)
            self._folder = FolderFiles(source, folder, self.settings, self._stored, recorded)
        return self._folder

    async def _begin_command(
        self, prepared: PreparedCall, folder: FolderFiles | None
    ) -> RecordedCommand:
        remarks: list[str] = []
        files: Mapping[str, FileVersion | None] = {}
        if folder is not None:
            look = folder.find_unrecorded  # in a thread, which takes longer than a quiet look
            files = look() if folder.is_quiet() else await run_to_end(look)
            remarks += folder.take_remarks(has_files=bool(files))
        elif not self._has_told_of_commands:
            self._has_told_of_commands = True
            remarks.append(NOT_RECORDED)
        if getattr(prepared.arguments, "run_in_background", False):
            remarks.append(IN_BACKGROUND)
        has_mark = folder is not None and self._where is not None
        return RecordedCommand(prepared.call.id, folder, files, remarks, has_mark=has_mark)


IN_BACKGROUND = (
    "What a command in the background changes after it was started is recorded as found before or"
    " after the commands that follow."
)


def is_reading_command(prepared: PreparedCall, env: ExecutionEnvironment) -> bool:
    """Return whether a call is a command line that is known to change nothing."""
    if prepared.only_reads is not None:
        return prepared.only_reads
    # The policy is imported with the first call that it judges.
    from ..policy.call_judge import find_command
    from ..policy.commands.invocation import PathContext
    from ..policy.commands.judge import judge_command_line
    from ..policy.rules import find_family

    arguments = prepared.values
    line = find_command(arguments)
    if find_family(prepared.tool.name) != "bash" or line is None:
        return False
    folder = env.working_directory
    places = PathContext(folder, env.resolve("~"), (folder,), (folder,))
    return judge_command_line(line, places).only_reads


class RecordedCommand:
    """A command in the working folder, from its checkpoint to its changes."""

    def __init__(
        self,
        call_id: str,
        folder: FolderFiles | None,
        files: Mapping[str, FileVersion | None],
        remarks: Sequence[str],
        *,
        has_mark: bool = False,
    ) -> None:
        """Take what was found; `has_mark` of a call whose record begins even with nothing to say.

        In another place the tape tells by that mark which commands were recorded.
        """
        self.checkpoint: Checkpoint | None = None
        """What is recorded before the call starts; None if there is nothing to say."""
        if files or remarks or has_mark:
            self.checkpoint = build_checkpoint(call_id, files, remarks)
        self._folder = folder

    async def find_changes(self) -> tuple[ChangedFile, ...]:
        """Return what is different in the folder, with the bytes stored."""
        if self._folder is None or self._folder.is_quiet():
            return ()
        try:
            return list_changes(*await run_to_end(self._folder.find_changes))
        except PlaceLost:
            return ()  # the next look finds it


def build_checkpoint(
    call_id: str, files: Mapping[str, FileVersion | None], remarks: Sequence[str] = ()
) -> Checkpoint:
    """Return the checkpoint of a call."""
    states = tuple(
        FileState(path, version and version.build_saved_file(), version.mode if version else None)
        for path, version in files.items()
    )
    return Checkpoint(states, call_id=call_id, not_covered=tuple(remarks))


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
        self._rows: FolderFiles | None = None

    async def read_targets(self, targets: Sequence[str], rows: FolderFiles | None) -> None:
        """Store the files as they are before the call; `rows` learn how they are after it."""
        self._rows = rows
        folder = await self._env.real_path(self._env.working_directory)
        self._names = {path: shorten_path(path, folder) for path in targets}
        self._before = await self._read_files()
        self.checkpoint = build_checkpoint(self._call_id, self._before)

    async def find_changes(self) -> tuple[ChangedFile, ...]:
        """Return what the call has changed, with the bytes stored."""
        return list_changes(self._before, await self._read_files(is_after=True))

    async def _read_files(self, *, is_after: bool = False) -> dict[str, FileVersion | None]:
        if find_local_environment(self._env) is not None:
            read = partial(read_disk_file, refuse=self._refuse)
            files = await run_to_end(lambda: {path: read(path) for path in self._names})
        else:
            files = {path: await _read_foreign_file(self._env, path) for path in self._names}
        return await run_to_end(self._store_files, files, is_after)

    def _store_files(
        self, files: Mapping[str, DiskFile | None], is_after: bool
    ) -> dict[str, FileVersion | None]:
        named = {self._names[path]: file for path, file in files.items()}
        versions = self._stored.store_files(named, is_after=is_after)
        if self._rows is not None:
            for path, file in named.items():
                if not path.startswith("/"):
                    self._rows.note_file(path, file, versions[path])
        return versions

    def _refuse(self, size: int) -> str:
        return f"it is larger than {self._max_bytes} bytes" if size > self._max_bytes else ""


async def _read_foreign_file(env: ExecutionEnvironment, path: str) -> DiskFile | None:
    """Return a file of another machine, whose mode is not known; None where there is none."""
    read_state: Callable[[str], Awaitable[tuple[FileSignature, bytes]]] | None
    read_state = getattr(env, "read_with_signature", None)
    signature = None
    try:
        if read_state is None:
            data = await env.read_file(path)
        else:
            signature, data = await read_state(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return DiskFile(None, f"it cannot be read: {error.strerror or error}")
    return DiskFile.from_bytes(data, signature)


async def _build_source(
    env: ExecutionEnvironment, folder: str, skip: Sequence[str]
) -> FolderSource:
    local = find_local_environment(env)
    if local is not None:
        return LocalFolder(local, folder, skip)
    from ..env.places.environment import find_place  # only in a place
    from .place_folder import PlaceFolder

    return await PlaceFolder.open(find_place(env), folder, skip)


def find_local_environment(env: ExecutionEnvironment) -> LocalEnvironment | None:
    """Return the environment of this machine that is inside of wrappers; None for another one."""
    while isinstance(env, EnvironmentWrapper):
        env = env.inner
    return env if isinstance(env, LocalEnvironment) else None


def describe_environment(env: ExecutionEnvironment) -> OtherEnvironment | None:
    """Return how the tape names where calls act; None for this machine.

    An environment may have a `name`; without one it is called as its class.
    """
    if find_local_environment(env) is not None:
        return None
    inner = env
    while isinstance(inner, EnvironmentWrapper):
        inner = inner.inner
    named = getattr(inner, "name", None)
    kind = type(inner).__name__.removesuffix("Environment").lower() or "other"
    return OtherEnvironment(
        named if isinstance(named, str) and named else kind, env.working_directory
    )


def shorten_path(path: str, folder: str) -> str:
    """Return a path relative to the working folder where it is inside; both are real paths."""
    return posixpath.relpath(path, folder) if is_inside_folder(path, folder) else path
