import asyncio
import os
import resource
import sys
import threading
import time
from pathlib import Path

import pytest

from gong.env.local import LocalEnvironment
from gong.env.processes import NEWEST_BYTES
from gong.env.search import find_below, run_search
from gong.errors import ConfigurationError, FolderGone

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/home/me"}


@pytest.fixture
async def env(tmp_path):
    environment = LocalEnvironment(str(tmp_path), ENVIRON)
    yield environment
    await environment.cleanup()


def alive(pid):
    """Whether a process runs; a zombie does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


async def until(true, seconds=60.0):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:  # noqa: ASYNC110 - nobody tells of a process
        await asyncio.sleep(0.01)
    assert true()


def pids(tmp_path):
    return [int(line) for line in (tmp_path / "pids").read_text().split()]


TREE = "sleep 100 & echo $! >>pids; (sleep 100 & echo $! >>pids; wait) & echo $! >>pids; wait"


async def test_output_and_errors_come_merged_in_order(env):
    """M084 M123"""
    result = await env.exec_command("echo one; echo two >&2; echo three")
    assert (result.output, result.total_bytes, result.exit_code) == (b"one\ntwo\nthree\n", 14, 0)
    assert not result.timed_out


async def test_output_and_errors_come_apart_where_that_is_asked(env):
    """M122 C19: and merged, too, as they arrived."""
    heard = []
    result = await env.exec_command(
        "echo one; echo two >&2; echo three; exit 4", on_output=heard.append, split=True
    )
    assert (result.stdout, result.stderr, result.exit_code) == (b"one\nthree\n", b"two\n", 4)
    assert (b"".join(heard), len(result.output)) == (result.output, result.total_bytes)
    assert sorted(result.output.split()) == [b"one", b"three", b"two"]
    late = await env.exec_command("echo out; echo err >&2; sleep 60", timeout_ms=500, split=True)
    assert (late.stdout, late.stderr, late.timed_out) == (b"out\n", b"err\n", True)
    merged = await env.exec_command("echo err >&2")
    assert (merged.output, merged.stdout, merged.stderr) == (b"err\n", None, None)


async def test_output_comes_while_the_command_runs(env, tmp_path):
    """M084"""
    chunks = []

    def listen(chunk):
        chunks.append(chunk)
        (tmp_path / "go").touch()

    command = "echo first; until [ -e go ]; do sleep 0.01; done; echo second"
    result = await env.exec_command(command, timeout_ms=10_000, on_output=listen)
    assert (chunks[0], result.exit_code) == (b"first\n", 0)
    assert b"".join(chunks) == result.output


@pytest.mark.parametrize(("command", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("nope", 127)])
async def test_the_exit_code_is_the_shells(env, command, code):
    assert (await env.exec_command(command)).exit_code == code


async def test_a_broken_pipe_ends_a_pipeline_quietly(env):
    """M084"""
    result = await env.exec_command("yes | head -5")
    assert (result.output, result.exit_code) == (b"y\n" * 5, 0)


async def test_nothing_can_be_typed_into_a_command(env):
    result = await env.exec_command("cat; read -r line || echo closed; tty")
    assert result.output == b"closed\nnot a tty\n"


async def test_commands_see_a_quiet_environment_without_secrets(tmp_path):
    environ = {**ENVIRON, "SOME_API_KEY": "secret", "EDITOR": "vim"}
    env = LocalEnvironment(str(tmp_path), environ)
    result = await env.exec_command(
        'echo "$SOME_API_KEY|$HOME|$EDITOR|$GIT_TERMINAL_PROMPT|$GIVEN"', env_vars={"GIVEN": "1"}
    )
    assert result.output == b"|/home/me|true|0|1\n"


async def test_a_command_runs_in_a_group_of_its_own_by_the_wall(env):
    """M123: bash, a new process group, and the time that passed."""
    result = await env.exec_command("ps -o pgid= -p $$; echo $$; echo $0; sleep 0.2")
    group, pid, shell = result.output.decode().split()
    assert group == pid
    assert int(pid) != os.getpgrp()
    assert shell.endswith("bash")
    assert 200 <= result.duration_ms < 5_000


async def test_a_command_that_takes_too_long_leaves_its_time_and_no_zombie(env):
    """M089 M123"""
    result = await env.exec_command("echo $$; sleep 30", timeout_ms=200)
    assert (result.timed_out, result.exit_code) == (True, 143)
    assert 200 <= result.duration_ms < 2_000
    with pytest.raises(ProcessLookupError):
        os.kill(int(result.output), 0)


async def test_a_command_runs_in_the_folder_it_is_given(env, tmp_path):
    """M123"""
    (tmp_path / "sub").mkdir()
    result = await env.exec_command("pwd", working_dir="sub")
    assert result.output.decode() == f"{tmp_path}/sub\n"


async def test_a_missing_folder_is_named_and_not_made_again(tmp_path):
    """M088"""
    env = LocalEnvironment(str(tmp_path / "gone"), ENVIRON)
    for attempt in (env.initialize(), env.exec_command("true"), env.write_file("a", b"")):
        with pytest.raises(FolderGone, match="gone"):
            await attempt
    assert not (tmp_path / "gone").exists()


async def test_a_missing_shell_is_named(tmp_path):
    """M088"""
    env = LocalEnvironment(str(tmp_path), ENVIRON, shell="/no/such/bash")
    with pytest.raises(ConfigurationError, match=r"/no/such/bash \(ENOENT\)"):
        await env.exec_command("true")


async def test_bash_is_found_without_a_path(tmp_path):
    result = await LocalEnvironment(str(tmp_path), {}).exec_command("[[ a == a ]] && echo bash")
    assert result.output == b"bash\n"


async def test_a_time_out_ends_the_whole_tree(env, tmp_path):
    """M089"""
    result = await env.exec_command(f"echo started; {TREE}", timeout_ms=300)
    assert (result.output, result.timed_out) == (b"started\n", True)
    assert result.exit_code == 143
    await until(lambda: not any(map(alive, pids(tmp_path))))
    assert len(pids(tmp_path)) == 3


async def test_what_ignores_a_request_to_end_is_killed(env, tmp_path):
    """M089 M093 C2: asked, and two seconds later killed."""
    command = "trap '' TERM; echo $$ >pids; while :; do sleep 0.05; done"
    started = time.monotonic()
    result = await env.exec_command(command, timeout_ms=200)
    assert (result.timed_out, result.exit_code) == (True, 137)
    assert time.monotonic() - started >= 2.0
    assert not alive(*pids(tmp_path))


async def test_output_of_a_program_while_it_ends_is_kept(env, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    result = await env.exec_command(
        "trap 'echo bye; exit 3' TERM; while :; do read -rt 0.05 <>pipe; done", timeout_ms=200
    )
    assert (result.output, result.exit_code, result.timed_out) == (b"bye\n", 3, True)


async def test_cancelling_ends_the_whole_tree_and_keeps_the_output(env, tmp_path):
    """M089"""
    heard = []
    running = asyncio.create_task(env.exec_command(f"echo started; {TREE}", on_output=heard.append))
    await until(lambda: heard and (tmp_path / "pids").exists() and len(pids(tmp_path)) == 3)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert heard == [b"started\n"]
    await until(lambda: not any(map(alive, pids(tmp_path))))


async def test_cancelling_twice_kills_what_does_not_end_when_asked(env, tmp_path):
    command = "trap ': >asked' TERM; echo $$ >pids; echo ready; while :; do sleep 0.05; done"
    heard = []
    running = asyncio.create_task(env.exec_command(command, on_output=heard.append))
    await until(lambda: heard)
    running.cancel()
    await until((tmp_path / "asked").exists)
    assert alive(*pids(tmp_path))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: not alive(*pids(tmp_path)))


async def test_cancelling_before_the_start_runs_nothing(env, tmp_path):
    """M088"""
    running = asyncio.create_task(env.exec_command("touch ran"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not (tmp_path / "ran").exists()


async def test_a_child_that_keeps_the_pipe_open_does_not_hold_us(env, tmp_path):
    """M089: only a command that is ended takes its background children along."""
    result = await env.exec_command("(sleep 900; true) & echo $! >pids; echo done")
    assert result.output == b"done\n"
    assert alive(*pids(tmp_path))
    os.killpg(os.getpgid(*pids(tmp_path)), 9)


async def test_a_server_left_behind_does_not_die_of_a_closed_pipe(env, tmp_path):
    command = "(until [ -e go ]; do sleep 0.01; done; echo more; touch lived) & echo done"
    result = await env.exec_command(command)
    (tmp_path / "go").touch()
    await until((tmp_path / "lived").exists)
    assert result.output == b"done\n"


async def test_endless_output_takes_bounded_memory(env):
    """M085"""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await env.exec_command("yes", timeout_ms=400)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result.timed_out
    assert result.total_bytes > 10_000_000
    assert len(result.output) == NEWEST_BYTES == 100 * 1024
    assert grown < 8_000, "kilobytes"


async def test_counts_of_a_long_output_are_exact_and_memory_stays_flat(env):
    """M085 M091"""
    await env.exec_command("seq 100000")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await env.exec_command("yes 0123456789abcde | head -c 200000000")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert (result.total_bytes, result.exit_code) == (200_000_000, 0)
    assert result.output == b"0123456789abcde\n" * (NEWEST_BYTES // 16)
    assert grown < 4_000, "kilobytes"


async def test_the_newest_output_is_kept_and_all_of_it_counted(env):
    script = "import sys; sys.stdout.write(''.join(f'{n:07}\\n' for n in range(50_000)))"
    result = await env.exec_command(f'{sys.executable} -c "{script}"')
    assert result.total_bytes == 400_000
    assert result.output.endswith(b"0049999\n")
    assert result.output.startswith(b"0037200\n")


async def test_files_are_written_read_and_listed(env, tmp_path):
    await env.write_file("sub/a.txt", b"text")
    assert await env.read_file(str(tmp_path / "sub/a.txt")) == b"text"
    assert (await env.file_exists("sub"), await env.file_exists("b")) == (True, False)
    assert [entry.name for entry in await env.list_directory(".", depth=2)] == ["sub", "sub/a.txt"]


async def test_a_cancelled_write_is_whole_or_absent(env, tmp_path):
    data = b"x" * 5_000_000
    for pause in (0, 0.001, 0.005):
        writing = asyncio.create_task(env.write_file("big", data))
        await asyncio.sleep(pause)
        writing.cancel()
        await asyncio.wait({writing})
        assert [path.name for path in tmp_path.iterdir()] in ([], ["big"])
        assert not (tmp_path / "big").exists() or (tmp_path / "big").read_bytes() == data


def test_it_says_where_it_is(tmp_path):
    env = LocalEnvironment(str(tmp_path), {"TMPDIR": "/var/tmp", "HOME": "/home/me"})
    assert (env.working_directory, env.temporary_directory) == (str(tmp_path), "/var/tmp")
    assert env.resolve("@~/x") == "/home/me/x"
    assert env.platform in ("linux", "darwin")
    assert env.os_version


async def test_a_search_in_a_thread_ends_when_its_caller_is_cancelled(tmp_path):
    (tmp_path / "a").mkdir()
    begun, ended = threading.Event(), threading.Event()

    def look():
        begun.set()
        try:
            while find_below(str(tmp_path), "*"):
                pass
        finally:
            ended.set()

    looking = asyncio.create_task(run_search(look))
    assert await asyncio.to_thread(begun.wait, 60)
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    assert await asyncio.to_thread(ended.wait, 60)
    assert [one.path for one in find_below(str(tmp_path), "*")] == ["a"]
