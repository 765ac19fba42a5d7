"""A helper that is killed leaves no process of a command behind; one that lies has no effect."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gong.env.places.environment import PlaceEnvironment
from gong.env.places.link import Link
from gong.errors import PlaceLost

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/"}


def list_children(pid: int) -> list[int]:
    done = subprocess.run(("pgrep", "-P", str(pid)), capture_output=True, check=False)
    return [int(line) for line in done.stdout.split()]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for_end(pids: list[int]) -> None:
    while any(map(is_running, pids)):
        time.sleep(0.05)


async def test_a_helper_that_is_killed_leaves_no_process_behind(tmp_path: Path) -> None:
    env = PlaceEnvironment(Link("sh:test", lambda text: ("sh", "-c", text), ENVIRON), str(tmp_path))
    await env.initialize()
    begun = asyncio.Event()
    command = "sleep 300 & setsid sleep 300 & echo $$ $! > pids; echo begun; sleep 300"
    running = asyncio.create_task(env.exec_command(command, on_output=lambda _: begun.set()))
    await asyncio.wait_for(begun.wait(), 60)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    pids += list_children(pids[0])
    channel = (await env.link.connect()).pid
    guard = next(child for child in list_children(channel) if list_children(child))
    main = next(child for child in list_children(guard) if list_children(child))
    os.kill(main, signal.SIGKILL)
    with pytest.raises(PlaceLost, match="had started"):
        await asyncio.wait_for(running, 60)
    await asyncio.to_thread(wait_for_end, pids)
    assert (await env.exec_command("echo again")).output == b"again\n"
    await env.write_file("f", b"1")
    listed = await env.list_directory(str(tmp_path))
    assert [entry.name for entry in listed] == ["f", "pids"]
    await env.cleanup()


LIES = (
    "7 z",
    "1 k 0\\n1 s 0 zz 1 1 1 1 1 1 1\\n1 z",
    "1 r Li4v\\n1 z",
    "1 z\\n1 z",
    "1 o 5 YQ==",
    "?",
)


async def test_an_invented_answer_is_an_error_of_the_place_and_has_no_effect(
    tmp_path: Path,
) -> None:
    """The program answers the greeting as a helper does, then something else."""
    for lie in LIES:
        script = (
            'IFS=" " read -r p rest; n=${p#G=}; '
            "f() { for w; do printf '%s\\0' \"$w\"; done | base64 | tr -d '\\n'; }; "
            'echo "gong $n $(f Linux r / / /tmp "" bash 0 1700000000 u h)"; '
            f"while IFS= read -r l; do case $l in 0*states*) printf '{lie}\\n';; esac; done"
        )
        env = PlaceEnvironment(Link("sh:lie", lambda _, s=script: ("sh", "-c", s), ENVIRON), "/")
        with pytest.raises(Exception, match=r"does not answer as it should|no greeting"):
            await asyncio.wait_for(env.initialize(), 60)
        await env.cleanup()
