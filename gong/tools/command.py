"""A running command of a shell tool: its output is streamed, counted, and saved if long.

Only the newest output stays in memory, with the first characters of it; the rest is in a file.
"""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from .spill import KEPT_BYTES, SpillFile
from .truncate import format_size
from .truncation.storage import find_blob

if TYPE_CHECKING:
    from tape.blocks import BlobRef

    from ..env.protocol import ExecResult
    from .tool import ErrorKind, ToolContext
    from .truncation.storage import OutputStorage

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
