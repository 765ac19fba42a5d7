"""Programs that are started for an answer: run for what they print, and ended with their group.

Invariant: no process of a group is left, and ending one never waits for what nobody reads.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MAX_ERRORS = 65_536
"""Bytes of standard error that are kept, its beginning."""
_END_SECONDS = 1.0
"""Seconds for the output of a killed group to end: a process that left it may hold it open."""


class OutputTooLong(Exception):
    """A program printed more than it may."""


class ProgramResult(NamedTuple):
    """What a program printed, and how it ended."""

    output: bytes
    errors: bytes
    """The beginning of its standard error."""
    exit_code: int


async def run_for_output(
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    max_bytes: int,
    seconds: float,
    folder: str | os.PathLike[str] | None = None,
) -> ProgramResult:
    """Run a program without input and return what it prints.

    Raises OSError or ValueError where it cannot be run, TimeoutError, and OutputTooLong.
    """
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env=dict(environ),
        start_new_session=True,
    )
    assert process.stdout is not None, "it is a pipe"
    assert process.stderr is not None, "it is a pipe"
    reading = asyncio.create_task(_read_errors(process.stderr))
    try:
        async with asyncio.timeout(seconds):
            output = await _read_output(process.stdout, max_bytes)
            return ProgramResult(output, await reading, await process.wait())
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await kill_group(process)


async def kill_group(process: asyncio.subprocess.Process) -> None:
    """Kill a program that leads a group, and all of the group; nobody else may read its output.

    What it wrote is read and dropped: asyncio does not see the end of a program before that of its
    output.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    streams = filter(None, (process.stdout, process.stderr))
    with suppress(TimeoutError):
        async with asyncio.timeout(_END_SECONDS):
            await asyncio.gather(*map(_drop_output, streams), process.wait())


async def _drop_output(stream: asyncio.StreamReader) -> None:
    while await stream.read(65_536):
        pass


async def _read_output(stream: asyncio.StreamReader, max_bytes: int) -> bytes:
    output = bytearray()
    while piece := await stream.read(65_536):
        output += piece
        if len(output) > max_bytes:
            raise OutputTooLong
    return bytes(output)


async def _read_errors(stream: asyncio.StreamReader) -> bytes:
    """Read to the end, so that the program need not wait, and keep the beginning."""
    errors = bytearray()
    while piece := await stream.read(65_536):
        errors += piece[: _MAX_ERRORS - len(errors)]
    return bytes(errors)
