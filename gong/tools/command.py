"""A running command of a shell tool: its output is streamed, counted, and saved if long.

Only the newest output stays in memory, with the first characters of it; the rest is in a file,
which begins when the memory is full:

    | output so far      | where it is                     | after `settle(cut=True)`         |
    | ------------------ | ------------------------------- | -------------------------------- |
    | up to MAX_BYTES    | in memory                       | in a file, or a blob of the tape |
    | up to KEPT_BYTES   | in a file without a name        | the same                         |
    | more               | the rest is only counted        | "First 1.0GB of it: PATH"        |
    | the disk refuses   | the newest part, in memory      | "Full output not saved: WHY"     |

A command that never stops writing fills no disk.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import secrets
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ..env.wrappers import find_temporary_folder
from ..tool_settings import MAX_BYTES
from .limits import FULL_BYTES, format_size
from .output_storage import find_blob

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import BinaryIO

    from tape.model.entries import BlobRef

    from ..env.protocol import ExecResult
    from .output_storage import OutputStorage, TruncationContext
    from .tool import ErrorKind, ToolContext


_PREFIX, _SUFFIX = "gong-bash-", ".log"
_OWN_HANDLES = "/proc/self/fd"
KEPT_BYTES = 1 << 30
"""Maximum bytes of a command's output in its file."""


class SpillFile:
    """Receives output as it arrives, counts its lines, and can save all of it in a file.

    If the disk fails, the file is lost but the command continues: `failure` has the reason.
    """

    def __init__(self, folder: str) -> None:
        self.failure: OSError | None = None
        self.total_bytes = 0
        self._folder = folder
        self._memory = bytearray()
        self._file: BinaryIO | None = None
        self._path: str | None = None
        self._is_done = False
        self._line_feeds = 0
        self._last = b"\n"

    @property
    def total_lines(self) -> int:
        """Lines so far; one without its end counts."""
        return self._line_feeds + (self._last != b"\n")

    @property
    def is_whole(self) -> bool:
        """Whether all of it is kept."""
        return self.failure is None and self.total_bytes <= KEPT_BYTES

    def take(self, chunk: bytes) -> None:
        """Add what came."""
        room = max(KEPT_BYTES - self.total_bytes, 0)
        self.total_bytes += len(chunk)
        self._line_feeds += chunk.count(b"\n")
        self._last = chunk[-1:] or self._last
        if self.failure is not None:
            return
        self._memory += chunk[:room]
        if self._file is not None or len(self._memory) > MAX_BYTES:
            self._flush_memory()

    def keep(self) -> str | None:
        """Return the path of a file that holds what is kept; None when there could be none."""
        if self.failure is None and not self._is_done:
            self._flush_memory()
            self._give_name()
        self._is_done = True
        self._close_file()
        return self._path

    def drop(self) -> None:
        """Remove the file."""
        self._close_file()
        if self._path is not None:
            Path(self._path).unlink(missing_ok=True)
            self._path = None

    def _flush_memory(self) -> None:
        try:
            if self._file is None:
                self._file = self._open_file()
            self._file.write(self._memory)
            self._file.flush()
        except OSError as error:
            self.failure = error
            self.drop()
        self._memory.clear()

    def _open_file(self) -> BinaryIO:
        """Open the file: one without a name where the system can, so that a kill leaves nothing."""
        if hasattr(os, "O_TMPFILE") and Path(_OWN_HANDLES).is_dir():
            # Not every file system can; a folder that is missing is told of below.
            with suppress(OSError):
                flags = os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC
                return os.fdopen(os.open(self._folder, flags, 0o600), "wb")
        handle, self._path = tempfile.mkstemp(_SUFFIX, _PREFIX, self._folder)
        return os.fdopen(handle, "wb")

    def _give_name(self) -> None:
        if self._file is None or self._path is not None:
            return
        path = f"{self._folder}/{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
        try:
            handles = os.open(_OWN_HANDLES, os.O_RDONLY | os.O_DIRECTORY)
            try:
                # Python follows the link there, which stands for the file, only from a folder.
                os.link(str(self._file.fileno()), path, src_dir_fd=handles)
            finally:
                os.close(handles)
        except OSError as error:
            self.failure = error
        else:
            self._path = path

    def _close_file(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                # Only a disk that already refused the last bytes can refuse them again.
                self._file.close()
            self._file = None


HEAD_CHARS = 100_000
"""Characters of the beginning that stay in memory."""
STOPPED = "Command aborted"
"""What the result of a cancelled command says after its output."""
CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


class CommandDetails(Struct, frozen=True):
    """How the command ended."""

    command: str
    exit_code: int
    duration_ms: int
    truncated: bool


class KeptOutput(NamedTuple):
    """The full output of a command, if only a part of it is shown."""

    text: str | None = None
    """All of it, when it is not too long to be kept beside the result."""
    location: str = ""
    """Where it is, in words."""
    blob: BlobRef | None = None
    """The same as a blob of the tape, where there is one."""
    path: str | None = None
    """Where a storage of a host's own has it."""


class FinishedCommand:
    """A command that has ended, and its output."""

    def __init__(
        self,
        spill: SpillFile,
        about: TruncationContext,
        save_there: Callable[[bytes], Awaitable[str]] | None = None,
    ) -> None:
        """`save_there` keeps bytes where the command ran, if that is not this machine."""
        self.done: ExecResult
        self.head = ""
        """The first characters, HEAD_CHARS of them."""
        self.total_chars = 0
        self._spill, self._about = spill, about
        self._save_there = save_there

    @property
    def text(self) -> str:
        """The newest output, from the first whole character on."""
        done = self.done
        whole = len(done.output) == done.total_bytes
        data = done.output if whole else done.output.lstrip(CONTINUATION_BYTES)
        return data.decode("utf-8", "replace")

    @property
    def ends_a_line(self) -> bool:
        """Whether the last character ends a line."""
        return self.done.output.endswith(b"\n")

    @property
    def total_lines(self) -> int:
        """Lines of the whole output; one without its end counts."""
        return self._spill.total_lines

    async def settle(self, *, cut: bool) -> KeptOutput:
        """Save the full output where `cut` says that a part is shown, else remove its file."""
        if not cut:
            self._spill.drop()
            return KeptOutput()
        text, blob = None, None
        if self.done.total_bytes <= len(self.done.output):
            text = self.text
        path = self._spill.keep()
        if path is None:
            return KeptOutput(text, f"Full output not saved: {self._spill.failure}")
        if text is None and self.done.total_bytes <= FULL_BYTES:
            data = await asyncio.to_thread(Path(path).read_bytes)
            text = data.decode("utf-8", "replace")
        stored: str | None = None
        if self._about.storage is not None:
            with suppress(Exception):  # if the storage fails, the file stays where it is
                path = stored = await self._adopt_file(path, self._about.storage)
                blob = await find_blob(self._about.storage, path)
        if stored is None and self._save_there is not None:
            try:
                path = await self._save_there(await asyncio.to_thread(Path(path).read_bytes))
            except OSError as error:
                return KeptOutput(text, f"Full output not saved: {error}")
            finally:
                self._spill.drop()
        what = "Full output"
        if not self._spill.is_whole:
            what = f"First {format_size(KEPT_BYTES)} of it"
        return KeptOutput(text, f"{what}: {path}", blob, stored if blob is None else None)

    async def _adopt_file(self, path: str, storage: OutputStorage) -> str:
        """Give the file to a storage; one that takes texts only gets its text."""
        if hasattr(storage, "adopt"):
            return await storage.adopt(path)
        data = await asyncio.to_thread(Path(path).read_bytes)
        saved = await storage.save(data.decode("utf-8", "replace"), self._about)
        self._spill.drop()
        return saved


async def execute_command(
    command: str, timeout_ms: int | None, context: ToolContext, *, split: bool = False
) -> FinishedCommand:
    """Run a command to its end and stream its output; cancelling ends all its processes.

    With `split` its result has standard output and error apart, too.
    """
    spill = SpillFile(find_temporary_folder(context.env))
    save_there = getattr(context.env, "save_output", None)
    finished = FinishedCommand(spill, context.describe_output(), save_there)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def listen(chunk: bytes, *, final: bool = False) -> None:
        spill.take(chunk)
        text = decoder.decode(chunk, final)
        if not text:
            return
        finished.total_chars += len(text)
        if len(finished.head) < HEAD_CHARS:
            finished.head += text[: HEAD_CHARS - len(finished.head)]
        context.update(text)

    execute = context.env.exec_command
    if split:
        execute = partial(execute, split=True)
    try:
        finished.done = await execute(command, timeout_ms=timeout_ms, on_output=listen)
    except BaseException:
        spill.drop()
        raise
    listen(b"", final=True)
    return finished


def classify_ending(done: ExecResult, late: str | None) -> tuple[str | None, ErrorKind | None]:
    """Return what went wrong, in words and by name; `late` is said of a command out of time."""
    if late is not None:
        return late, "ShellTimeout"
    if done.exit_code:
        return f"Command exited with code {done.exit_code}", "ShellExitError"
    return None, None


def describe_border(done: ExecResult) -> list[str]:
    """Return what a sandbox says of a command: what it refused, and what appeared."""
    remarks = []
    if done.refused:
        remarks.append(f"[The sandbox refused {', '.join(done.refused)}.]")
    if done.appeared:
        names = ", ".join(done.appeared)
        remarks.append(
            f"[New: {names}. Other programs obey such files, so the person is warned; gong does not"
            " trust them.]"
        )
    return remarks
