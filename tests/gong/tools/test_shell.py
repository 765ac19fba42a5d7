import asyncio
import json
import re

import pytest
from msgspec import Raw

from gong.policy.danger import check_command
from gong.tools import bash
from gong.tools.limits import OutputLimits
from gong.tools.registry import ToolRegistry
from gong.tools.tool import ToolContext
from tape.model.entries import ToolCall, join_texts


@pytest.fixture
def run(env):
    shell_tool = bash.build_shell_tool()

    async def run(tool=shell_tool, **arguments):
        registry = ToolRegistry((tool,))
        call = ToolCall(id="c1", name="shell", args=Raw(json.dumps(arguments).encode()))
        result = await registry.run(registry.prepare(call), ToolContext(env, "c1", lambda _: None))
        return result, re.sub(r"\d+ ms", "N ms", join_texts(result.content))

    return run


async def test_output_exit_code_and_duration_are_returned(run):
    """M093"""
    result, said = await run(command="echo out; echo err >&2; exit 3", description="both")
    assert said == "out\nerr\n\n[exit code 3, N ms]"
    assert (result.is_error, result.kind, result.details.exit_code) == (True, "ShellExitError", 3)
    assert (await run(command="true"))[1] == "[exit code 0, N ms]"


@pytest.mark.parametrize(
    ("command", "timeout_ms", "said"),
    [
        ("echo hello", None, "hello"),
        ("echo to >&2; exit 1", None, "[exit code 1, "),
        ("echo safe", None, "safe"),
        ("sleep 10", 1000, "Command timed out after 1000ms"),
        ("echo fast", 5000, "fast"),
    ],
)
async def test_commands_of_the_last_design_run_and_end(run, command, timeout_ms, said):
    """M212: five of its seven; the other two are dangerous, and only judged."""
    limit = {} if timeout_ms is None else {"timeout_ms": timeout_ms}
    shown = (await run(command=command, **limit))[1]
    assert said in shown
    assert ("timed out" in shown) is (timeout_ms == 1000)
    assert check_command(command, "/work", "/home", "zh").allowed


@pytest.mark.parametrize("command", ["rm -rf /", "format c:"])
def test_commands_that_the_last_design_blocks_are_refused_in_its_words(command):
    """M212"""
    verdict = check_command(command, "/work", "/home", "zh")
    assert (verdict.allowed, "危险命令" in verdict.text) == (False, True)


async def test_a_command_out_of_time_says_how_to_get_more(run):
    """M094"""
    result, said = await run(command="echo a; sleep 30", timeout_ms=300)
    assert said == (
        "a\n\n[exit code 143, N ms]\n\n"
        "[ERROR: Command timed out after 300ms. Partial output is shown above.\n"
        "You can retry with a longer timeout by setting the timeout_ms parameter.]"
    )
    assert (result.is_error, result.kind) == (True, "ShellTimeout")


@pytest.mark.parametrize(
    ("default", "asked", "used"),
    [(10_000, None, 10_000), (120_000, None, 120_000), (10_000, 5, 5), (10_000, 10**9, 600_000)],
)
async def test_time_is_the_default_unless_asked_and_never_above_the_limit(default, asked, used):
    """M093 C1: 120000 for a family that is used to it."""
    given = []

    class Remembers:
        temporary_directory = "/tmp"

        async def exec_command(self, command, timeout_ms, on_output):
            given.append(timeout_ms)
            raise asyncio.CancelledError

    tool = bash.build_shell_tool(default_ms=default)
    with pytest.raises(asyncio.CancelledError):
        await tool.run(bash.ShellArguments("true", asked), ToolContext(Remembers(), "c1", print))
    assert given == [used]


async def test_many_lines_lose_their_middle(run):
    """M112 M113"""
    result, said = await run(command="seq 1 1000")
    shown = said.split("\n")
    assert shown[127:130] == ["128", "[... 744 lines omitted ...]", "873"]
    path = re.search(r"\[exit code 0, N ms, Full output: (.+)\]$", said)[1]
    assert path.endswith(".log")
    assert result.full == "".join(f"{n}\n" for n in range(1, 1001))
    assert result.details.truncated


async def test_ends_of_a_huge_output_are_right_though_it_never_was_in_memory(run):
    """M112 M114"""
    tool = bash.build_shell_tool(limits=OutputLimits(1000, "head_tail"))
    _, said = await run(tool, command="printf é; head -c 2000000 /dev/zero | tr '\\0' x; printf ü")
    assert said.startswith("é" + "x" * 499 + "\n\n[WARNING: Tool output was truncated. 1999002 ")
    assert "x" * 499 + "ü\n\n[exit code 0" in said


async def test_a_patch_is_applied_as_one(run, folder):
    patch = "apply_patch <<'E'\n*** Begin Patch\n*** Add File: a\n+b\n*** End Patch\nE"
    assert not (await run(command=patch))[0].is_error
    assert (folder / "a").read_text() == "b\n"
