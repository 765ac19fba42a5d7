"""A helper that is killed leaves no process of a command behind; one that lies has no effect."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gong.env.places.environment import PlaceEnvironment
from gong.env.places.link import Link
from gong.env.protocol import FileUpdate
from gong.errors import PlaceLost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

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


HOLDING = """#!/bin/sh
if [ -e {folder}/hold ]; then rm {folder}/hold; touch {folder}/held; sleep 300; fi
exec {program} "$@"
"""


@asynccontextmanager
async def open_holding(folder: Path, tool: str) -> AsyncIterator[PlaceEnvironment]:
    """Yield a place in which a program waits, once, when there is a file `hold`."""
    program = folder / "bin" / tool
    program.parent.mkdir()
    program.write_text(HOLDING.format(folder=folder, program=shutil.which(tool)))
    program.chmod(0o755)
    environ = {**ENVIRON, "PATH": f"{program.parent}:{ENVIRON['PATH']}"}
    link = Link("sh:test", lambda text: ("sh", "-c", text), environ)
    env = PlaceEnvironment(link, str(folder))
    await env.initialize()
    try:
        yield env
    finally:
        await env.cleanup()


async def find_requests(env: PlaceEnvironment) -> list[int]:
    """Return the processes that carry out requests over there."""
    channel = (await env.link.connect()).pid
    guard = next(child for child in list_children(channel) if list_children(child))
    main = next(child for child in list_children(guard) if list_children(child))
    return list_children(main)


def kill_with_children(pid: int) -> None:
    """Kill a process before those that it waits for, so that it sees none of them end."""
    children = list_children(pid)
    os.kill(pid, signal.SIGKILL)
    for child in children:
        kill_with_children(child)


async def send_beat(env: PlaceEnvironment) -> None:
    """Ask the helper what has ended, as is done every 20 seconds."""
    await (await env.link.connect())._send(b"beat\n")


def list_begun(folder: Path) -> list[Path]:
    """Return the files that are being written."""
    return list(folder.glob(".gong-*"))


def wait_for_file(path: Path) -> None:
    while not path.exists():
        time.sleep(0.02)


REQUESTS: dict[str, tuple[str, Callable[[PlaceEnvironment], Awaitable[object]]]] = {
    "read": ("stat", lambda env: env.read_file("f")),
    "list": ("find", lambda env: env.list_directory(".")),
    "write": ("dd", lambda env: env.write_file("f", b"new")),
    "change": (
        "sha256sum",
        lambda env: env.change_files(
            [FileUpdate(f"{env.working_directory}/f", b"old", b"new")], env.working_directory
        ),
    ),
    "program": ("true", lambda env: env.run_program(["true"], env.working_directory)),
}


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_request_whose_process_is_killed_ends(tmp_path: Path, name: str) -> None:
    """M126: one that looks is sent again; of one that changes, an error says that it may have."""
    tool, ask = REQUESTS[name]
    (tmp_path / "f").write_bytes(b"old")
    async with open_holding(tmp_path, tool) as env:
        others = set(await find_requests(env))
        (tmp_path / "hold").touch()
        asked = asyncio.ensure_future(ask(env))
        await asyncio.to_thread(wait_for_file, tmp_path / "held")
        for pid in set(await find_requests(env)) - others:
            kill_with_children(pid)
        await send_beat(env)
        if name in {"write", "change"}:
            with pytest.raises(PlaceLost, match="what carried it out there was killed"):
                await asyncio.wait_for(asked, 60)
            assert list_begun(tmp_path) == []
            assert (tmp_path / "f").read_bytes() == b"old"
        else:
            await asyncio.wait_for(asked, 60)
        assert await env.read_file("f") == b"old"


@pytest.mark.parametrize("kind", ["request", "watcher", "relay"])
async def test_a_command_ends_whose_process_is_killed(tmp_path: Path, kind: str) -> None:
    """M126: what watches a command is killed; the command ends, and an error says so."""
    async with open_holding(tmp_path, "true") as env:
        others = set(await find_requests(env))
        command = "echo $$ > pid; echo begun; for i in $(seq 3000); do sleep 0.1; echo $i; done"
        begun = asyncio.Event()
        running = asyncio.create_task(env.exec_command(command, on_output=lambda _: begun.set()))
        await asyncio.wait_for(begun.wait(), 60)
        pid = int((tmp_path / "pid").read_text())
        (request,) = {
            one
            for one in set(await find_requests(env)) - others
            if any(map(list_children, list_children(one)))
        }
        watcher = next(one for one in list_children(request) if pid in list_children(one))
        relay = next(one for one in list_children(request) if one != watcher)
        os.kill({"request": request, "watcher": watcher, "relay": relay}[kind], signal.SIGKILL)
        if kind == "watcher":  # nobody tells of that until the command ends
            os.kill(pid, signal.SIGKILL)
        await send_beat(env)
        with pytest.raises(PlaceLost, match=r"killed.*had started"):
            await asyncio.wait_for(running, 60)
        await asyncio.to_thread(wait_for_end, [pid])
        assert (await env.exec_command("echo again")).output == b"again\n"


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


def build_far(text: str) -> tuple[str, ...]:
    """Return a channel behind which the helper has a session of its own, as on another machine."""
    return ("sh", "-c", 'cat | setsid -w sh -c "$1" | cat', "sh", text)


@pytest.mark.slow
@pytest.mark.parametrize("has_guard", [True, False])
async def test_a_channel_that_falls_silent_is_given_up(tmp_path: Path, *, has_guard: bool) -> None:
    """M126: nothing comes through any more, and nothing tells so; both ends find out."""
    env = PlaceEnvironment(Link("sh:test", build_far, ENVIRON, beat_seconds=0.5), str(tmp_path))
    await env.initialize()
    begun = asyncio.Event()
    command = "echo $$ > pid; echo begun; sleep 300"
    running = asyncio.create_task(env.exec_command(command, on_output=lambda _: begun.set()))
    await asyncio.wait_for(begun.wait(), 60)
    pid = int((tmp_path / "pid").read_text())
    children = list_children((await env.link.connect()).pid)
    if not has_guard:
        (far,) = filter(list_children, children)
        (guard,) = filter(list_children, list_children(far))
        os.kill(guard, signal.SIGKILL)
    for relay in children:
        if not list_children(relay):
            os.kill(relay, signal.SIGSTOP)
    with pytest.raises(PlaceLost, match=r"said nothing for \d+ s.*had started"):
        await asyncio.wait_for(running, 60)
    await asyncio.to_thread(wait_for_end, [pid])
    assert (await env.exec_command("echo again")).output == b"again\n"
    await env.cleanup()


KILLS = int(os.environ.get("TEST_KILLS", "9"))
"""How many kills at random moments; a third of them are of the client."""
TIMEOUT = 600 + KILLS * 30
"""Seconds; a machine may be busy."""
OLD, NEW = b"old\n" * 50_000, b"new\n" * 60_000


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT)
async def test_kills_at_random_moments_leave_no_process_and_no_half_file(tmp_path: Path) -> None:
    """M126: of the channel, the helper, and its guard."""
    chance = random.Random(KILLS)
    env = PlaceEnvironment(Link("sh:test", build_far, ENVIRON), str(tmp_path))
    await env.initialize()
    for number in range(KILLS - KILLS // 3):
        await env.write_file("f", OLD)
        seconds = f"3000{number}"
        command = f"setsid sleep {seconds} & (sleep {seconds}; :) & sleep {seconds}"
        channel = (await env.link.connect()).pid
        tasks = [asyncio.create_task(env.exec_command(command))]
        tasks += [asyncio.create_task(env.write_file(name, NEW)) for name in ("f", "g")]
        await asyncio.sleep(chance.random() * 0.4)
        kill_one(channel, chance)
        done = await asyncio.wait_for(asyncio.gather(*tasks[1:], return_exceptions=True), 60)
        assert all(one is None or isinstance(one, PlaceLost) for one in done), done
        await asyncio.wait(tasks[:1], timeout=1)
        tasks[0].cancel()  # where only the guard is gone, the command still runs
        (ended,) = await asyncio.gather(tasks[0], return_exceptions=True)
        assert isinstance(ended, PlaceLost | asyncio.CancelledError), ended
        if not isinstance(ended, PlaceLost):  # nobody was told of a loss so far
            with suppress(PlaceLost):
                await env.exec_command("true")
        assert (await env.exec_command("echo again")).output == b"again\n"
        await asyncio.to_thread(wait_until_clean, tmp_path, seconds)
        assert (tmp_path / "f").read_bytes() in {OLD, NEW}
        assert not (tmp_path / "g").exists() or (tmp_path / "g").read_bytes() == NEW
        (tmp_path / "g").unlink(missing_ok=True)
    await env.cleanup()


def kill_one(channel: int, chance: random.Random) -> None:
    """Kill the channel, or a process of the helper: its first one, the guard, or main."""
    far = [child for child in list_children(channel) if list_children(child)]
    guards = [child for shell in far for child in list_children(shell)]
    mains = [child for guard in guards for child in list_children(guard)]
    kind = chance.choice(["channel", far, guards, mains])
    if kind == "channel" or not kind:
        os.killpg(channel, signal.SIGKILL)
    else:
        os.kill(int(chance.choice(kind)), signal.SIGKILL)


def wait_until_clean(folder: Path, seconds: str) -> None:
    """Wait until no process sleeps so long, and no file is being written."""
    while has_sleeper(seconds) or list_begun(folder):
        time.sleep(0.05)


def has_sleeper(seconds: str) -> bool:
    argv = ("pgrep", "-f", f"sleep {seconds}($|[^0-9])")
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0
