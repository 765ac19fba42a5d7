import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from gong.env.local import LocalEnvironment
from gong.env.processes import SupervisorClient

ENVIRON = {"PATH": os.environ["PATH"]}
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
async def client():
    client = SupervisorClient()
    yield client
    await client.close()


@pytest.fixture
async def plain():
    """A supervisor as it is where the system has no subreaper."""
    client = SupervisorClient(without_subreaper=True)
    yield client
    await client.close()


async def bash(client, command, folder):
    return await run(client, ("/bin/bash", "-c", command), str(folder), ENVIRON)


async def run(client, argv, folder, variables):
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        return await client.run(argv, folder, variables, nowhere)
    finally:
        os.close(nowhere)


def alive(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not come about in time"
        await asyncio.sleep(0.01)
    return value


async def number(file):
    """Return the process id that a command writes into a file."""
    return int(await until(lambda: file.exists() and file.read_text().strip()))


async def test_a_program_starts_ends_and_is_gone(client, tmp_path):
    process = await bash(client, "exit 3", tmp_path)
    await asyncio.wait_for(process.gone.wait(), 20)
    assert (process.exit_code, process.ended.is_set()) == (3, True)


async def test_what_is_left_behind_keeps_it_from_being_gone(client, tmp_path):
    process = await bash(client, "setsid sleep 600 & echo $! >pid", tmp_path)
    await asyncio.wait_for(process.ended.wait(), 20)
    assert not process.gone.is_set()
    process.terminate()
    await asyncio.wait_for(process.gone.wait(), 20)
    assert not alive(await number(tmp_path / "pid"))


async def test_commands_run_side_by_side(client, tmp_path):
    """Each waits for the next one."""
    chain = [f"touch {n}; until [ -e {n + 1} ]; do sleep 0.01; done" for n in range(5)]
    processes = [await bash(client, command, tmp_path) for command in [*chain, "touch 5"]]
    async with asyncio.timeout(20):
        for process in processes:
            await process.gone.wait()
    assert [process.exit_code for process in processes] == [0] * 6


@pytest.mark.parametrize(
    ("argv", "folder", "variables", "error"),
    [
        (("/no/such/program",), "/", {}, FileNotFoundError),
        (("/etc/passwd",), "/", {}, PermissionError),
        (("/bin/true",), "/no/such/folder", {}, FileNotFoundError),
        (("/bin/echo", "x" * 3_000_000), "/", {}, OSError),
        (("/bin/echo",), "/", {"A": "x" * 3_000_000}, OSError),
        (("/bin/echo", "a\0b"), "/", {}, ValueError),
        (("/bin/echo",), "/", {"A": "a\0b"}, ValueError),
    ],
)
async def test_what_cannot_start_is_an_error_and_the_next_one_starts(
    client, tmp_path, argv, folder, variables, error
):
    with pytest.raises(error):
        await run(client, argv, folder, variables)
    process = await run(client, ("/bin/true",), "/", {})
    await asyncio.wait_for(process.gone.wait(), 20)
    assert process.exit_code == 0


@linux
async def test_a_killed_keeper_takes_its_command_along(client, tmp_path):
    process = await bash(client, "setsid sleep 600 & echo $! >pid; sleep 600", tmp_path)
    daemon = await number(tmp_path / "pid")
    os.kill(parent(process.pid), signal.SIGKILL)
    await asyncio.wait_for(process.gone.wait(), 20)
    assert process.exit_code == -signal.SIGKILL
    await until(lambda: not alive(process.pid) and not alive(daemon))


@linux
async def test_a_killed_supervisor_takes_its_commands_along_and_is_replaced(client, tmp_path):
    process = await bash(client, "setsid sleep 600 & echo $! >pid; sleep 600", tmp_path)
    daemon = await number(tmp_path / "pid")
    supervisor = client.pid
    os.kill(supervisor, signal.SIGKILL)
    await asyncio.wait_for(process.gone.wait(), 20)
    await until(lambda: not any(map(alive, (supervisor, process.pid, daemon))))
    for _ in range(3):
        again = await bash(client, "exit 5", tmp_path)
        await asyncio.wait_for(again.gone.wait(), 20)
        assert again.exit_code == 5


@linux
async def test_a_command_that_kills_its_parent_does_not_escape(client, tmp_path):
    command = "(sleep 600 & echo $! >pid); kill $PPID; kill -HUP $PPID; kill -INT $PPID; sleep 600"
    process = await bash(client, command, tmp_path)
    left = await number(tmp_path / "pid")
    process.kill()
    await asyncio.wait_for(process.gone.wait(), 20)
    assert not alive(left)
    assert not alive(process.pid)


@linux
async def test_processes_that_multiply_are_all_killed(client, tmp_path):
    command = "run() { while :; do (setsid sleep 600 &) ; sleep 0.01; done; }; run & run & run"
    process = await bash(client, f"trap '' TERM; {command}", tmp_path)
    supervisor = client.pid
    await until(lambda: len(below(supervisor)) > 30)
    process.kill()
    await asyncio.wait_for(process.gone.wait(), 30)
    assert [line for line in below(supervisor).values() if "sleep" in line] == []


def below(pid):
    """Return the processes that descend from one, as number → command line."""
    parents, lines = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            one = int(folder.name)
            parents[one] = parent(one)
            lines[one] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    found = {pid}
    while more := {one for one, of in parents.items() if of in found} - found:
        found |= more
    return {one: lines[one] for one in found - {pid} if one in lines}


async def test_without_a_subreaper_the_group_and_all_descendants_end(plain, tmp_path):
    command = "sleep 600 & echo $! >group; setsid bash -c 'echo $$ >session; sleep 600' & wait"
    process = await bash(plain, command, tmp_path)
    pids = [await number(tmp_path / name) for name in ("group", "session")]
    process.terminate()
    await asyncio.wait_for(process.gone.wait(), 20)
    assert [pid for pid in pids if alive(pid)] == []


async def test_without_a_subreaper_what_is_left_behind_in_the_group_ends_at_the_end(
    plain, tmp_path
):
    process = await bash(plain, "trap '' TERM; sleep 600 & echo $! >pid", tmp_path)
    await asyncio.wait_for(process.ended.wait(), 20)
    left = await number(tmp_path / "pid")
    assert alive(left)
    await plain.close()
    await until(lambda: not alive(left))


@linux
async def test_many_commands_leave_no_descriptor_and_no_zombie(tmp_path):
    env = LocalEnvironment(str(tmp_path), ENVIRON)
    await env.exec_command("true")

    def descriptors():
        return len(list(Path("/proc/self/fd").iterdir()))

    before = descriptors()
    for n in range(150):
        command = "(exit 3) & (true | false) & true" if n % 2 else "sleep 0.01 & disown"
        await env.exec_command(command)
    await until(lambda: descriptors() <= before)
    supervisor = env._supervisor.pid
    assert await until(lambda: len(below(supervisor)) == 1), "only the keeper in reserve is left"
    await env.cleanup()
    with pytest.raises(ProcessLookupError):
        os.kill(supervisor, 0)
    assert descriptors() < before


@linux
async def test_nothing_that_is_open_here_is_open_in_a_command(tmp_path):
    secret = os.open(tmp_path / "secret", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(secret, True)  # as a careless library would
    env = LocalEnvironment(str(tmp_path), ENVIRON)
    try:
        shown = await env.exec_command("ls -l /proc/self/fd /proc/$PPID/fd")
    finally:
        await env.cleanup()
        os.close(secret)
    assert b"secret" not in shown.output


async def test_an_unclosed_environment_ends_its_supervisor_when_it_is_collected(tmp_path):
    env = LocalEnvironment(str(tmp_path), ENVIRON)
    await env.exec_command("true")
    supervisor = env._supervisor.pid
    del env
    await until(lambda: not alive(supervisor))


@linux
async def test_a_command_inherits_its_three_streams_and_nothing_else(tmp_path):
    env = LocalEnvironment(str(tmp_path), ENVIRON)
    done = await env.exec_command("ls /proc/self/fd")
    await env.cleanup()
    assert done.output.split() == [b"0", b"1", b"2", b"3"]  # the last one is the folder it lists
