import asyncio
import os
import re
import sys
from pathlib import Path

import pytest
from msgspec.structs import asdict

from gong.env.local import LocalEnvironment
from gong.tools import bash
from gong.tools.tool import ToolContext
from tape.blocks import text_of


def said(result):
    return text_of(result.content)


def facts(result):
    return {key: value for key, value in asdict(result.details).items() if key != "duration_ms"}


def log_of(result):
    return Path(re.search(r"Full output: (.+)\]", said(result))[1])


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("echo hello", "hello\n"),
        ("printf 'no end'", "no end"),
        ("true", "(no output)"),
        ("[[ -f /etc/hosts ]] && a=(x y) && echo ${a[1]} && cat <(echo z)", "y\nz\n"),
        ("echo out; echo err >&2", "out\nerr\n"),
        ("yes | head -2", "y\ny\n"),
    ],
)
async def test_output_is_given_as_it_is(use, command, output):
    """M086"""
    result = await use("bash", command=command)
    assert (said(result), result.is_error, result.full) == (output, False, None)
    assert facts(result) == {"command": command, "exit_code": 0, "truncated": False}
    assert 0 <= result.details.duration_ms < 10_000


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("exit 1", "Command exited with code 1", 1),
        ("echo a; exit 3", "a\n\nCommand exited with code 3", 3),
        ("echo a; kill -9 $$", "a\n\nCommand exited with code 137", 137),
    ],
)
async def test_a_failed_command_is_an_error_after_its_output(use, command, output, code):
    result = await use("bash", command=command)
    assert (said(result), result.is_error) == (output, True)
    assert facts(result) == {"command": command, "exit_code": code, "truncated": False}


async def test_a_time_out_is_an_error_after_the_output_so_far(use):
    result = await use("bash", command="echo a; sleep 30", timeout=0.5)
    assert said(result) == "a\n\nCommand timed out after 0.5 seconds"
    assert result.is_error


@pytest.mark.parametrize("seconds", [0, None, 5000, "20"])
async def test_any_limit_of_time_lets_a_quick_command_end(use, seconds):
    assert said(await use("bash", command="echo a", timeout=seconds)) == "a\n"


async def test_waiting_for_a_key_ends_by_itself(use, folder):
    """M090"""
    git = "git init -q . && git -c user.name=a -c user.email=b commit --allow-empty; cat"
    result = await use("bash", command=git, timeout=20)
    assert "timed out" not in said(result)


async def test_the_last_2000_lines_are_shown_and_all_kept(use):
    """M086 M091"""
    result = await use("bash", command="seq 1 2500")
    log = log_of(result)
    shown = "\n".join(str(n) for n in range(501, 2501))
    assert said(result) == f"{shown}\n\n[Showing lines 501-2500 of 2500. Full output: {log}]"
    everything = "".join(f"{n}\n" for n in range(1, 2501))
    assert (log.read_text(), result.full) == (everything, everything)
    assert result.details.truncated


async def test_exactly_2000_lines_are_shown_whole(use, tmp_path):
    """M086"""
    result = await use("bash", command="seq 1 2000")
    assert said(result) == "".join(f"{n}\n" for n in range(1, 2001))
    assert [path.name for path in tmp_path.iterdir()] == ["work"]


async def test_the_last_50_kilobytes_are_shown_with_limit_and_size(use):
    """M085 M086 M091"""
    command = f"{sys.executable} -c \"print(('x' * 1023 + chr(10)) * 80, end='')\""
    result = await use("bash", command=command)
    assert said(result).endswith(
        "x\n\n[Showing lines 31-80 of 80 (50.0KB limit), 80.0KB in all."
        f" Full output: {log_of(result)}]"
    )
    assert said(result).count("x" * 1023) == 50
    assert log_of(result).stat().st_size == 80 * 1024


async def test_counts_stay_exact_beyond_what_memory_holds(use):
    """M085 M091"""
    result = await use("bash", command="seq -f '%099.0f' 1 100000")
    shown, _, notice = said(result).rpartition("\n\n")
    assert [int(line) for line in shown.split("\n")] == list(range(99_489, 100_001))
    assert notice == (
        "[Showing lines 99489-100000 of 100000 (50.0KB limit), 9.5MB in all."
        f" Full output: {log_of(result)}]"
    )
    assert (log_of(result).stat().st_size, result.full) == (10_000_000, None)


async def test_an_endless_last_line_shows_its_end_between_characters(use):
    """M091"""
    command = f"{sys.executable} -c \"print('é' * 60000 + 'x', end='')\""
    result = await use("bash", command=command)
    shown, _, notice = said(result).rpartition("\n\n")
    assert shown == "é" * 25_599 + "x"
    assert notice.startswith("[Showing last 50.0KB of line 1, 117.2KB in all. Full output: ")
    assert "\ufffd" not in result.full


async def test_characters_cut_by_chunks_come_whole(use, heard):
    """M091"""
    parts = r"printf '\344'; sleep 0.05; printf '\275\240'; sleep 0.05; printf '\345\245\275'"
    result = await use("bash", command=parts)
    assert (said(result), heard) == ("你好", ["你", "好"])
    long = f"{sys.executable} -c \"print('你好' * 8000, end='')\""
    heard.clear()
    assert said(await use("bash", command=long)) == "你好" * 8000
    assert "".join(heard) == "你好" * 8000


async def test_stray_bytes_are_replaced(use):
    assert said(await use("bash", command=r"printf 'a\377b'")) == "a\ufffdb"


async def test_a_failed_long_command_shows_notice_then_code(use):
    result = await use("bash", command="seq 1 3000; exit 2")
    assert said(result).endswith("]\n\nCommand exited with code 2")
    assert "[Showing lines 1001-3000 of 3000. Full output: " in said(result)


async def test_a_missing_folder_is_named(folder, use):
    """M088"""
    folder.rmdir()
    assert said(await use("bash", command="true")).startswith(
        f"Tool error (bash): The folder {folder} is not there."
    )


async def test_output_that_cannot_be_kept_is_said_to_be_lost(folder, tmp_path):
    env = LocalEnvironment(str(folder), {**os.environ, "TMPDIR": str(tmp_path / "none")})
    context = ToolContext(env, "c1", lambda text: None)
    result = await bash.run(bash.Arguments("seq 1 100000"), context)
    assert "Full output not kept: [Errno 2]" in said(result)
    assert said(result).startswith("9")


async def test_cancelling_leaves_no_process_and_no_file(use, heard, tmp_path, folder):
    command = "echo $$ >pid; seq 1 100000; echo ready; sleep 100"
    running = asyncio.create_task(use("bash", command=command))
    while "ready" not in "".join(heard[-2:]):  # noqa: ASYNC110 - output is all that tells
        await asyncio.sleep(0.01)
    assert list(tmp_path.glob("gong-bash-*.log"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not list(tmp_path.glob("gong-bash-*.log"))
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "pid").read_text()), 0)
