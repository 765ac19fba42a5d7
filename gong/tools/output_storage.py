"""Where the whole of a cut text is kept: a folder of files, or the blobs of a session's tape.

Every storage hands out a path that a shell can read. On a tape, what is kept stays until
`tape gc`; in a folder, until it is too old.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import re
import secrets
import shutil
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from tape.model.entries import BlobRef
from tape.store.blobs import HEAD_CHARACTERS

from ..tool_settings import RETENTION_DAYS, Direction
from .limits import FULL_BYTES, MAX_KEPT_BYTES, count_bytes, encode_text
from .truncation import keep_full_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tape.store.blobs import Blobs

    from ..tool_settings import TruncationOverride
    from .truncation import TruncationEvent

_NOT_IN_NAMES = re.compile("[^A-Za-z0-9_-]")
_DAY_SECONDS = 86_400
_MAX_CHARACTER = 4
"""Bytes of UTF-8 that one character has at most."""


class TruncationOptions(Struct, frozen=True):
    """What one call sets differently; `skip` turns cutting off, or on for a tool without it."""

    max_lines: int | None = None
    max_bytes: int | None = None
    direction: Direction | None = None
    skip: bool | None = None


@dataclass(frozen=True, slots=True)
class TruncationContext:
    """Whose result it is."""

    tool_name: str
    session_id: str | None = None
    message_id: str | None = None
    options: TruncationOptions | None = None
    declared: TruncationOverride | None = None
    """What the tool says of itself; the user's word on that tool goes before it."""
    storage: OutputStorage | None = None
    """Where to keep the whole: the session's tape, unless the service was given a storage."""
    tools: Sequence[str] | None = None
    """The tools that the model may call, for the notice of a cut; None where that is not known."""
    on_event: Callable[[TruncationEvent], None] = lambda _: None
    """Called with what became of the text."""


class OutputStorage(Protocol):
    """A place for texts. What it cannot do is an OSError, or an error of the store."""

    @property
    def directory(self) -> str:
        """The folder it keeps things in."""
        ...

    async def save(self, content: str, context: TruncationContext) -> str:
        """Keep a text of this tool, session and call, and return the path of it."""
        ...

    async def adopt(self, path: str) -> str:
        """Keep a finished file and return the path it has from now on."""
        ...

    async def read(self, path: str) -> str:
        """Return a kept text."""
        ...

    async def cleanup(self, retention_days: float) -> int:
        """Delete what is older; return how many files went."""
        ...


class FolderStorage:
    """Files in one folder that only its owner may open: `{tool}_{milliseconds}_{6 letters}.txt`.

    With the first one that is kept, those older than `retention_days` go.
    """

    def __init__(self, directory: str, retention_days: float = RETENTION_DAYS) -> None:
        self.directory = directory
        self._retention_days = retention_days
        self._is_tidy = False

    async def save(self, content: str, context: TruncationContext) -> str:
        """Write a new file; PermissionError if the folder belongs to another user."""
        path = await asyncio.to_thread(self._save_file, encode_text(content), context.tool_name)
        await self._tidy_up()
        return path

    async def adopt(self, path: str) -> str:
        """Move a file into the folder, with the name it has; PermissionError as for `save`."""
        moved = await asyncio.to_thread(self._adopt_file, path)
        await self._tidy_up()
        return moved

    async def read(self, path: str) -> str:
        """Return the text of a file."""
        data = await asyncio.to_thread(Path(path).read_bytes)
        return data.decode("utf-8", "surrogatepass")

    async def cleanup(self, retention_days: float) -> int:
        """Delete older files, by the time they were written; what cannot be deleted is left."""
        return await asyncio.to_thread(
            self._delete_old_files, time.time() - retention_days * _DAY_SECONDS
        )

    async def _tidy_up(self) -> None:
        if not self._is_tidy:
            self._is_tidy = True
            await self.cleanup(self._retention_days)

    def _make_folder(self) -> None:
        Path(self.directory).mkdir(mode=0o700, parents=True, exist_ok=True)
        folder_stat = os.lstat(self.directory)
        if not S_ISDIR(folder_stat.st_mode) or folder_stat.st_uid != os.geteuid():
            raise PermissionError(f"{self.directory} is not a folder of your own")

    def _adopt_file(self, path: str) -> str:
        self._make_folder()
        return str(shutil.move(path, Path(self.directory) / Path(path).name))

    def _save_file(self, data: bytes, tool_name: str) -> str:
        self._make_folder()
        tool = _NOT_IN_NAMES.sub("_", tool_name)
        name = f"{tool}_{time.time_ns() // 1_000_000}_{secrets.token_hex(3)}.txt"
        path = Path(self.directory) / name
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        return str(path)

    def _delete_old_files(self, before: float) -> int:
        try:
            files = [entry for entry in os.scandir(self.directory) if entry.is_file()]
        except OSError:  # nothing was kept yet
            return 0
        deleted = 0
        for entry in files:
            with suppress(OSError):  # somebody else deletes, too
                if entry.stat().st_mtime < before:
                    Path(entry.path).unlink()
                    deleted += 1
        return deleted


def build_temporary_path(directory: str) -> str:
    """Return this user's folder of saved files among temporary ones."""
    return str(Path(directory) / f"gong-output-{os.geteuid()}")


class TapeStorage:
    """The blobs of a tape: the same text is kept once, and only `tape gc` deletes.

    What a result points at stays as long as the entry names its blob: see `blob_at`.
    """

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    @property
    def directory(self) -> str:
        """The folder of the blobs, at the current path of the tape."""
        folder = self._blobs.tape.fd
        if sys.platform == "darwin":
            import fcntl  # only here

            path = os.fsdecode(fcntl.fcntl(folder, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
        else:
            path = str(Path(f"/proc/self/fd/{folder}").readlink())
        return f"{path}/blobs"

    async def save(self, content: str, context: TruncationContext) -> str:  # noqa: ARG002 (a storage's face)
        """Put a text into a blob."""
        return await asyncio.to_thread(self._put_blob, encode_text(content))

    async def adopt(self, path: str) -> str:
        """Put a file into a blob, through no more memory than its pages, and delete it."""
        return await asyncio.to_thread(self._adopt_file, path)

    async def read(self, path: str) -> str:
        """Return the text of a blob; NotFound when it is missing."""
        data = await asyncio.to_thread(self._blobs.read, Path(path).name)
        return data.decode("utf-8", "replace")

    async def reference(self, path: str) -> BlobRef:
        """Return the name, size and beginning of what is kept at a path it handed out."""

        def read() -> BlobRef:
            with Path(path).open("rb") as file:
                start = file.read(HEAD_CHARACTERS * _MAX_CHARACTER)
                head = start.decode("utf-8", "replace")[:HEAD_CHARACTERS]
                return BlobRef(Path(path).name, os.fstat(file.fileno()).st_size, head)

        return await asyncio.to_thread(read)

    def locate_blob(self, blob: BlobRef) -> str:
        """Return the path of what is kept as a blob."""
        return self._build_path(blob.hash)

    async def cleanup(self, retention_days: float) -> int:  # noqa: ARG002 (a storage's face)
        """Do nothing: blobs of a tape do not expire."""
        return 0

    def _adopt_file(self, path: str) -> str:
        with Path(path).open("rb") as file:
            if os.fstat(file.fileno()).st_size:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
                    blob = self._put_blob(memoryview(pages))
            else:
                blob = self._put_blob(b"")
        Path(path).unlink(missing_ok=True)
        return blob

    def _put_blob(self, data: bytes | memoryview) -> str:
        return self._build_path(self._blobs.put(data).hash)  # type: ignore[arg-type]  # any buffer

    def _build_path(self, digest: str) -> str:
        return f"{self.directory}/{digest[:2]}/{digest}"


async def find_blob(storage: OutputStorage | None, path: str) -> BlobRef | None:
    """Return the blob of a tape at a path; None if the storage is not a tape."""
    return await storage.reference(path) if isinstance(storage, TapeStorage) else None


class FullOutput(NamedTuple):
    """The whole of what a model saw a part of."""

    text: str | None = None
    """All of it, or its beginning with a line that says so; None where only the blob has it."""
    blob: BlobRef | None = None
    """The whole of it as a blob of the tape."""
    path: str | None = None
    """Where a storage of a host's own has it."""


async def keep_full_output(
    text: str, context: TruncationContext, rest: str = "the rest is not saved"
) -> FullOutput:
    """Return a full output, kept in the storage of the context.

    A tape has a blob of one above MAX_KEPT_BYTES, and a shorter one in the result itself; a storage
    of a host's own has each. If the storage fails, or there is none, the beginning stays, and
    `rest` says where the others are.
    """
    storage = context.storage
    is_short = len(text) * _MAX_CHARACTER <= MAX_KEPT_BYTES or count_bytes(text) <= MAX_KEPT_BYTES
    if storage is None or (is_short and isinstance(storage, TapeStorage)):
        return FullOutput(keep_full_text(text, rest))
    with suppress(Exception):  # if the storage fails, the beginning stays
        path = await storage.save(text, context)
        if not isinstance(storage, TapeStorage):
            return FullOutput(keep_full_text(text, f"the rest is in {path}"), path=path)
        size = count_bytes(text)
        return FullOutput(text if size <= FULL_BYTES else None, await storage.reference(path))
    return FullOutput(keep_full_text(text, rest))


async def keep_full_file(
    path: str, start: str, size: int, context: TruncationContext
) -> FullOutput:
    """Return a full output of `size` bytes that is in a file, for the storage of the context.

    `start` is its beginning, at least MAX_KEPT_BYTES. Raises what the storage raises.
    """
    storage = context.storage
    assert storage is not None
    if hasattr(storage, "adopt"):
        stored = await storage.adopt(path)
    else:  # one of a host that takes texts only
        data = await asyncio.to_thread(Path(path).read_bytes)
        stored = await storage.save(data.decode("utf-8", "replace"), context)
    if isinstance(storage, TapeStorage):
        return FullOutput(None, await storage.reference(stored))
    return FullOutput(keep_full_text(start, f"the rest is in {stored}", size), path=stored)
