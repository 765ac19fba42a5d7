"""One command with all its processes: started, read live, ended as a whole.

The end of the shell is the end of the command. A child in the background may keep the pipe open
for ever, so the pipe is drained for a moment only, never until it closes. Such a child may live on
until the environment is closed, and ends then.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .supervision import SupervisedProcess, SupervisorClient

NEWEST_BYTES = 102_400
"""How much output is kept in memory."""
CHUNK_BYTES = 65_536
DRAIN_SECONDS = 0.1
"""How long the pipe is read after the shell has ended."""
GONE_SECONDS = 10.0
"""How long a command that is being ended is waited for; one that hangs in the system is left."""


class CommandOutput:
    """What a command says: the newest bytes, a count, and each chunk passed on as it comes."""

    def __init__(self, handle: int, on_output: Callable[[bytes], None] | None) -> None:
        self.newest = bytearray()
        self.total_bytes = 0
        self.closed = asyncio.Event()
        self._handle = handle
        self._on_output = on_output
        self._wanted = True

    def follow(self) -> None:
        """Begin to read as output comes."""
        os.set_blocking(self._handle, False)
        asyncio.get_running_loop().add_reader(self._handle, self._read_chunk)

    async def drain(self) -> None:
        """Read what is still in the pipe, for a moment."""
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await self.closed.wait()

    def ignore(self) -> None:
        """Read on and forget: a server left in the background must not die of a closed pipe."""
        self._wanted = False

    def close(self) -> None:
        """Stop reading."""
        if not self.closed.is_set():
            asyncio.get_running_loop().remove_reader(self._handle)
            os.close(self._handle)
            self.closed.set()

    def _read_chunk(self) -> None:
        try:
            chunk = os.read(self._handle, CHUNK_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self.close()
        elif self._wanted:
            self._append_chunk(chunk)

    def _append_chunk(self, chunk: bytes) -> None:
        self.total_bytes += len(chunk)
        self.newest += chunk
        del self.newest[:-NEWEST_BYTES]
        if self._on_output is not None:
            self._on_output(chunk)


class RunningCommand:
    """A running command and its output."""

    def __init__(self, process: SupervisedProcess, output: CommandOutput) -> None:
        self.output = output
        self._process = process

    @classmethod
    async def start(
        cls,
        supervisor: SupervisorClient,
        argv: Sequence[str],
        folder: str,
        variables: Mapping[str, str],
        on_output: Callable[[bytes], None] | None,
    ) -> RunningCommand:
        """Start `argv` in `folder`, in a session of its own, with nothing to read.

        Raises OSError when it cannot be started, ValueError when a text holds a zero byte.
        """
        reading, writing = os.pipe()
        output = CommandOutput(reading, on_output)
        output.follow()
        try:
            process = await supervisor.run(argv, folder, variables, writing)
        except BaseException:
            output.close()
            raise
        finally:
            os.close(writing)
        return cls(process, output)

    @property
    def exit_code(self) -> int:
        """The shell's exit code; 128 + N when signal N ended it."""
        code = self._process.exit_code
        assert code is not None
        return code if code >= 0 else 128 - code

    @property
    def is_gone(self) -> bool:
        """Whether no process of it is left and its output is closed."""
        return self._process.gone.is_set() and self.output.closed.is_set()

    async def ends_within(self, seconds: float | None) -> bool:
        """Wait for the shell to end; False when the time is over first."""
        try:
            async with asyncio.timeout(seconds):
                await self._process.ended.wait()
        except TimeoutError:
            return False
        return True

    async def stop(self) -> None:
        """End every process of it, asking first; being cancelled meanwhile kills them at once."""
        self._process.terminate()
        try:
            async with asyncio.timeout(GONE_SECONDS):
                await self._process.gone.wait()
        except TimeoutError:
            self._process.close()
        except BaseException:
            self._process.kill()
            raise

    def close(self) -> None:
        """Stop listening; what is left of it is ended as if gong had ended."""
        self._process.close()
        self.output.close()
