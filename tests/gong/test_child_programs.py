"""A program is run for what it prints: within limits, and with nothing left of it."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from gong.child_programs import OutputTooLong, ProgramResult, run_for_output

ENVIRON = {"PATH": os.environ["PATH"]}


def wait_until(condition):
    while not condition():
        time.sleep(0.01)


def has_ended(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


async def capture(script, max_bytes=1000, seconds=60.0, **more):
    words = ("sh", "-c", script)
    return await run_for_output(words, ENVIRON, max_bytes=max_bytes, seconds=seconds, **more)


async def test_output_errors_and_exit_code_are_returned(tmp_path):
    done = await capture("pwd; echo wrong >&2; exit 3", folder=tmp_path)
    assert done == ProgramResult(f"{tmp_path}\n".encode(), b"wrong\n", 3)


async def test_a_flood_is_cut_off():
    with pytest.raises(OutputTooLong):
        await capture("yes")


async def test_a_flood_of_errors_keeps_its_beginning():
    done = await capture("head -c 300000 /dev/zero >&2; echo done")
    assert (done.output, len(done.errors)) == (b"done\n", 65_536)


@pytest.mark.parametrize("ends", [True, False])
async def test_no_process_of_it_is_left(tmp_path, ends):
    file = tmp_path / "pid"
    script = f"sleep 300 >/dev/null 2>&1 & echo $! >{tmp_path}/pid; {'echo x' if ends else 'wait'}"
    if ends:
        await capture(script)
    else:
        running = asyncio.create_task(capture(script))
        await asyncio.to_thread(wait_until, lambda: file.exists() and file.read_text())
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    pid = int(file.read_text())
    await asyncio.to_thread(wait_until, lambda: has_ended(pid))  # the kernel takes a moment


async def test_a_program_that_takes_too_long_is_ended():
    with pytest.raises(TimeoutError):
        await capture("sleep 300", seconds=0.1)


async def test_a_program_that_is_missing_is_an_os_error():
    with pytest.raises(FileNotFoundError):
        await run_for_output(("/nothing",), ENVIRON, max_bytes=1, seconds=1)
