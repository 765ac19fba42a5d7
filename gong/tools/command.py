"""The full output of a command: in memory while it is short, in a file if it is long.

A command that never stops writing fills no disk: what comes after `KEPT_BYTES` is only counted.

A running command of a shell tool: its output is streamed, counted, and saved if long.

Only the newest output stays in memory, with the first characters of it; the rest is in a file.
"""

from __future__ import annotations

import codecs
import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from .limits import MAX_BYTES, format_size
from .output_storage import find_blob

if TYPE_CHECKING:
    from typing import BinaryIO

    from tape.model.entries import BlobRef

    from ..env.protocol import ExecResult
    from .output_storage import OutputStorage
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
            file = self._file or self._open_file()
            file.write(self._memory)
            file.flush()
        except OSError as error:
            self.failure = error
            self.drop()
        self._memory.clear()

    def _open_file(self) -> BinaryIO:
        """Open the file: one without a name where the system can, so that a kill leaves nothing."""
        handle = self._open_nameless_file()
        if handle is None:
            handle, self._path = tempfile.mkstemp(_SUFFIX, _PREFIX, self._folder)
        self._file = os.fdopen(handle, "wb")
        return self._file

    def _open_nameless_file(self) -> int | None:
        if not hasattr(os, "O_TMPFILE") or not Path(_OWN_HANDLES).is_dir():
            return None
        try:
            return os.open(self._folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        except OSError:  # not every file system can; a missing folder is reported later
            return None

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


FULL_BYTES = 5 * 1024 * 1024
"""Longer output than this stays in its file only."""
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
    """Where the full output of a command is saved."""

    path: str | None
    """Path of the file; None if it could not be saved."""
    blob: BlobRef | None = None
    """The same as a blob of the tape, where there is one."""


class FinishedCommand:
    """A command that has ended, and its output."""

    def __init__(self, spill: SpillFile, storage: OutputStorage | None) -> None:
        self.done: ExecResult
        self.head = ""
        """The first characters, HEAD_CHARS of them."""
        self.total_chars = 0
        self._spill, self._storage = spill, storage

    @property
    def text(self) -> str:
        """The newest output, from the first whole character on."""
        done = self.done
        whole = len(done.output) == done.total_bytes
        data = done.output if whole else done.output.lstrip(CONTINUATION_BYTES)
        return data.decode("utf-8", "replace")

    @property
    def full(self) -> str | None:
        """All of the output, when it is not too long to be kept beside the result."""
        done = self.done
        if done.total_bytes <= len(done.output):
            return self.text
        path = self._spill.keep() if done.total_bytes <= FULL_BYTES else None
        return Path(path).read_bytes().decode("utf-8", "replace") if path else None

    @property
    def ends_a_line(self) -> bool:
        """Whether the last character ends a line."""
        return self.done.output.endswith(b"\n")

    @property
    def total_lines(self) -> int:
        """Lines of the whole output; one without its end counts."""
        return self._spill.total_lines

    async def keep(self) -> KeptOutput:
        """Save the full output and return where it is."""
        path = self._spill.keep()
        if path is None or self._storage is None:
            return KeptOutput(path)
        try:
            moved = await self._storage.adopt(path)
            return KeptOutput(moved, await find_blob(self._storage, moved))
        except Exception:  # noqa: BLE001 - if the storage fails, the file stays where it is
            return KeptOutput(path)

    def describe_location(self, path: str | None) -> str:
        """Return a text with the place of the full output."""
        if path is None:
            return f"Full output not saved: {self._spill.failure}"
        if self._spill.is_whole:
            return f"Full output: {path}"
        return f"First {format_size(KEPT_BYTES)} of it: {path}"

    def drop(self) -> None:
        """Remove the file of the output."""
        self._spill.drop()


async def execute_command(
    command: str, timeout_ms: int | None, context: ToolContext
) -> FinishedCommand:
    """Run a command to its end and stream its output; cancelling ends all its processes."""
    spill = SpillFile(context.env.temporary_directory)
    finished = FinishedCommand(spill, context.storage)
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

    try:
        finished.done = await context.env.exec_command(
            command, timeout_ms=timeout_ms, on_output=listen
        )
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
