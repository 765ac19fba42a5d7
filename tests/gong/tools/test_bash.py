import asyncio
import json
import os
import re
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import asdict

from gong.env.local import LocalEnvironment
from gong.tool_settings import ToolSettings
from gong.tools import bash, command
from gong.tools import command as spill
from gong.tools.output_storage import TapeStorage
from gong.tools.tool import ToolContext, encode_details
from tape.model.entries import join_texts
from tape.store.store import Beginning, Store


def said(result):
    return join_texts(result.content)


def facts(result):
    return {key: value for key, value in asdict(result.details).items() if key != "duration_ms"}


def size_of(path):
    return Path(path).stat().st_size


def is_running(pid):
    """Whether a process does anything still; one that nobody has buried does not."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return bool(done.stdout.strip()) and not done.stdout.strip().startswith(b"Z")


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
        ("mkdir -p a/b && cd a/b && cd ../.. && ls -d a/../a", "a/../a\n"),
    ],
)
async def test_output_is_given_as_it_is(use, command, output):
    """M084 M086; M098 C21: commands may go up."""
    result = await use("bash", command=command)
    assert (said(result), result.is_error, result.full) == (output, False, None)
    assert facts(result) == {"command": command, "exit_code": 0, "truncated": False}
    assert 0 <= result.details.duration_ms < 10_000


@pytest.mark.parametrize(
    ("command", "output", "code"),
    [
        ("exit 1", "Command exited with code 1", 1),
        ("echo a; exit 3", "a\n\nCommand exited with code 3", 3),
        ("no-such-command 2>&-", "Command exited with code 127", 127),
        ("echo a; kill -9 $$", "a\n\nCommand exited with code 137", 137),
    ],
)
async def test_a_failed_command_is_an_error_after_its_output(use, command, output, code):
    """M087"""
    result = await use("bash", command=command)
    assert (said(result), result.is_error) == (output, True)
    assert facts(result) == {"command": command, "exit_code": code, "truncated": False}


async def test_a_time_out_is_an_error_after_the_output_so_far(use):
    """M087"""
    result = await use("bash", command="echo a; sleep 30", timeout=0.5)
    assert said(result) == "a\n\nCommand timed out after 0.5 seconds"
    assert result.is_error


@pytest.mark.parametrize("seconds", [0, None, 5000, "20"])
async def test_any_limit_of_time_lets_a_quick_command_end(use, seconds):
    assert said(await use("bash", command="echo a", timeout=seconds)) == "a\n"


async def test_waiting_for_a_key_ends_by_itself(use, folder):
    git = "git init -q . && git -c user.name=a -c user.email=b commit --allow-empty; cat"
    result = await use("bash", command=git, timeout=120)
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
    """M085 M086 M091 J8-4.2"""
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
        f"Tool error (bash): The folder {folder} no longer exists."
    )


async def test_output_that_cannot_be_kept_is_reported_as_lost(folder, tmp_path):
    env = LocalEnvironment(str(folder), {**os.environ, "TMPDIR": str(tmp_path / "none")})
    context = ToolContext(env, "c1", lambda text: None)
    result = await bash.run_bash(bash.BashArguments("seq 1 100000"), context)
    assert "Full output not saved: [Errno 2]" in said(result)
    assert said(result).startswith("9")


async def test_cancelling_leaves_no_process_and_no_file(use, heard, tmp_path, folder):
    command = "echo $$ >pid; seq 1 100000; echo ready; sleep 100"
    running = asyncio.create_task(use("bash", command=command))
    while "ready" not in "".join(heard[-2:]):  # noqa: ASYNC110 - output is all that tells
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not list(tmp_path.glob("gong-bash-*.log"))
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "pid").read_text()), 0)


PATCH = "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch"


async def test_a_patch_for_the_shell_is_applied_as_one(use, folder):
    """M081: so it is judged as a patch, too."""
    result = await use("bash", command=f"apply_patch <<'EOF'\n{PATCH}\nEOF")
    assert (said(result), result.is_error) == (
        "Success. Updated the following files:\nA a.txt",
        False,
    )
    assert (folder / "a.txt").read_text() == "hello\n"
    alone = await use("bash", command=PATCH)
    assert alone.is_error
    assert "patch detected without explicit call to apply_patch" in said(alone)
    more = await use("bash", command=f"cat >p <<'EOF'\n{PATCH}\nEOF\nwc -l <p")
    assert said(more).strip() == "4"


async def test_a_prefix_runs_first_and_is_heard(env, folder):
    """M083"""
    tool = bash.build_bash_tool(ToolSettings(command_prefix="echo before; name=you"))
    result = await tool.run(bash.BashArguments("echo $name"), ToolContext(env, "c1", print))
    assert said(result) == "before\nyou\n"
    assert result.details.command == "echo $name"


async def test_on_a_tape_the_whole_is_a_blob_under_the_path_that_is_shown(env, tmp_path):
    """M085 C40"""
    with Store(tmp_path / "store").create(Beginning(cwd="/", program="test")) as tape:
        context = ToolContext(env, "c1", lambda text: None, TapeStorage(tape.blobs))
        result = await bash.run_bash(bash.BashArguments("seq 1 30000"), context)
        path = Path(re.search(r"Full output: (.+)\]", said(result))[1])
        assert path.parent.parent.name == "blobs"
        assert tape.blobs.read(path.name) == result.full.encode()
        assert sha256(result.full.encode()).hexdigest() == path.name
    assert not list(tmp_path.glob("gong-bash-*.log"))


async def test_a_tape_that_takes_nothing_leaves_the_file(env):
    class Full:
        async def adopt(self, path):
            raise OSError(28, "No space left on device")

    context = ToolContext(env, "c1", lambda text: None, Full())
    result = await bash.run_bash(bash.BashArguments("seq 1 3000"), context)
    assert log_of(result).read_text().endswith("3000\n")


async def test_an_endless_command_fills_no_disk(use, monkeypatch):
    """M085: what is written after the limit is only counted."""
    for room in (spill, command):
        monkeypatch.setattr(room, "KEPT_BYTES", 1_000_000)
    result = await use("bash", command="yes", timeout=0.5)
    notice, ending = said(result).split("\n\n")[-2:]
    assert ending == "Command timed out after 0.5 seconds"
    path = re.search(r"First 976\.6KB of it: (.+)\]", notice)[1]
    assert size_of(path) == 1_000_000
    total = int(re.search(r"of (\d+)", notice)[1])
    assert total > 500_000
    assert result.kind == "ShellTimeout"


async def test_a_child_that_keeps_the_pipe_does_not_delay_the_result(use):
    """M089"""
    began = time.monotonic()
    assert said(await use("bash", command="sleep 30 & echo started")) == "started\n"
    assert time.monotonic() - began < 29


async def test_a_tree_of_children_ends_with_its_time(use, folder):
    """M089"""
    tree = "for i in 1 2 3; do (sh -c 'echo $$ >>pids; sleep 60 & echo $! >>pids; wait' &) ; done"
    pids = []
    for seconds in (1, 4, 16, 64):  # as many as a busy machine needs to start them all
        result = await use("bash", command=f"rm -f pids; {tree}; sleep 900", timeout=seconds)
        assert result.kind == "ShellTimeout"
        pids = [int(line) for line in (folder / "pids").read_text().split()]
        if len(pids) == 6:
            break
    assert len(pids) == 6
    assert not any(map(is_running, pids))


@pytest.mark.parametrize(
    ("text", "kind"),
    [("true", None), ("exit 4", "ShellExitError"), ("sleep 60", "ShellTimeout")],
)
async def test_a_failure_has_a_name_for_programs(use, text, kind):
    """M050"""
    timeout = {"timeout": 0.2} if kind == "ShellTimeout" else {}
    assert (await use("bash", command=text, **timeout)).kind == kind


async def test_details_are_a_channel_of_their_own(use):
    """M053 M054 TOOLRES-004"""
    result = await use("bash", command="echo a; exit 3")
    details = json.loads(bytes(encode_details(result)))
    assert details.pop("duration_ms") >= 0
    assert details == {
        "command": "echo a; exit 3",
        "exit_code": 3,
        "truncated": False,
        "error_kind": "ShellExitError",
    }


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("", "it is empty"),
        (" \t ", "it is empty"),
        ("\n \n\r\n", "it is empty"),
        ("\\\n", "it is empty"),
        ("# only a comment", "it holds only a comment"),
        ("\n  # one\n\t#two\n", "it holds only a comment"),
        ("echo a\0b", "it holds a zero byte"),
    ],
)
async def test_a_command_with_nothing_to_run_is_refused(use, command, why):
    """M223."""
    result = await use("bash", command=command)
    assert said(result).startswith(f"'command' parameter is required: {why}")
    assert (result.is_error, result.kind) == (True, "ValidationError")


@pytest.mark.parametrize(
    ("command", "output"),
    [("# why\necho a", "a\n"), ("echo a # why", "a\n"), (":", "(no output)"), ("echo '#'", "#\n")],
)
async def test_a_command_beside_a_comment_runs(use, command, output):
    assert said(await use("bash", command=command)) == output
