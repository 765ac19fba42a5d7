"""One command in its own process group: started, read live, ended with all its children.

The end of the shell is the end of the command. A child in the background may keep the pipe open
for ever, so the pipe is drained for a moment only, never until it closes.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .children import Child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

NEWEST_BYTES = 102_400
"""How much output is kept in memory."""
CHUNK_BYTES = 65_536
GRACE_SECONDS = 2.0
"""Between asking a group to end and ending it."""
DRAIN_SECONDS = 0.1
"""How long the pipe is read after the shell has ended."""
POLL_SECONDS = 0.05


class Output:
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
        asyncio.get_running_loop().add_reader(self._handle, self._read)

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

    def _read(self) -> None:
        try:
            chunk = os.read(self._handle, CHUNK_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self.close()
        elif self._wanted:
            self._take(chunk)

    def _take(self, chunk: bytes) -> None:
        self.total_bytes += len(chunk)
        self.newest += chunk
        del self.newest[:-NEWEST_BYTES]
        if self._on_output is not None:
            self._on_output(chunk)


class Command:
    """A running command and its output."""

    def __init__(self, process: Child, output: Output) -> None:
        self.output = output
        self._process = process

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        folder: str,
        variables: Mapping[str, str],
        on_output: Callable[[bytes], None] | None,
    ) -> Command:
        """Start `argv` in `folder`, in a session of its own, with nothing to read."""
        reading, writing = os.pipe()
        output = Output(reading, on_output)
        output.follow()
        try:
            process = Child.start(
                argv, folder, stdout=writing, stderr=writing, variables=variables, new_session=True
            )
        except BaseException:
            output.close()
            raise
        finally:
            os.close(writing)
        return cls(process, output)

    @property
    def exit_code(self) -> int:
        """The shell's exit code; 128 + N when signal N ended it."""
        code = self._process.returncode
        assert code is not None
        return code if code >= 0 else 128 - code

    async def ends_within(self, seconds: float | None) -> bool:
        """Wait for the shell to end; False when the time is over first."""
        try:
            async with asyncio.timeout(seconds):
                await self._process.wait()
        except TimeoutError:
            return False
        return True

    async def stop(self) -> None:
        """Ask the whole group to end, then end it; being cancelled meanwhile ends it at once."""
        try:
            self._signal(signal.SIGTERM)
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_SECONDS):
                    await self._group_gone()
        finally:
            self._signal(signal.SIGKILL)
        await self._process.wait()

    async def _group_gone(self) -> None:
        while group_lives(self._process.pid):  # noqa: ASYNC110 - the system tells nobody when a group ends
            await asyncio.sleep(POLL_SECONDS)

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return
        except PermissionError:
            # A group that holds a stranger's process refuses as a whole; the shell is still ours.
            with suppress(ProcessLookupError):
                self._process.send_signal(number)


def group_lives(group: int) -> bool:
    """Whether a process of the group still runs.

    Zombies are dead: where no init collects them they would keep their group for ever.
    """
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    states = [state for state, of in _states() if of == group]
    return not states or any(state != "Z" for state in states)


def _states() -> Iterator[tuple[str, int]]:
    """Yield state and group of every process; nothing where there is no /proc."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        # A process that went away meanwhile is nobody's.
        with suppress(OSError):
            # The name before the bracket may hold anything, blanks and brackets too.
            fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
            yield fields[0], int(fields[2])
