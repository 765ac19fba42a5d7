import asyncio
import os
import signal
import subprocess
import sys
import threading

import pytest

from gong.env.search_programs import ChildProcess


def is_there(pid):
    """Whether the process or what is left of it is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_an_end_is_told_and_leaves_no_zombie(tmp_path):
    """M089"""
    child = ChildProcess.start(["sh", "-c", "exit 3"], str(tmp_path))
    assert await child.wait() == child.returncode == 3
    assert not is_there(child.pid)
    child.send_signal(signal.SIGTERM)
    await child.end()


async def test_what_nobody_waits_for_is_buried_too(tmp_path):
    """M089"""
    child = ChildProcess.start(["true"], str(tmp_path))
    for _ in range(500):
        if not is_there(child.pid):
            break
        await asyncio.sleep(0.01)
    assert child.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="handles of processes are Linux's")
async def test_waiting_needs_no_thread(tmp_path):
    before = threading.active_count()
    child = ChildProcess.start(["sleep", "60"], str(tmp_path))
    assert threading.active_count() == before
    await child.end()
    assert child.returncode == -signal.SIGKILL


async def test_a_thread_waits_where_the_system_does_not_tell():
    process = subprocess.Popen(["sh", "-c", "exit 4"])  # noqa: ASYNC220 - it ends at once
    child = ChildProcess(process)
    child.watch_by_thread()
    assert await child.wait() == 4


async def test_a_program_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        ChildProcess.start(["/no/such/program"], str(tmp_path))
