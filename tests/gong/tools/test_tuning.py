"""What people set of tools, as the registry that is made of it acts on it."""

import re

import msgspec
import pytest

from gong.errors import ConfigurationError
from gong.tool_settings import ToolSettings, TruncationOverride, TruncationSettings
from gong.tools.bash import build_bash_tool
from gong.tools.builtin import build_registry
from gong.tools.tool import AgentTool, ToolOutcome
from tape.model.entries import join_texts
from tests.gong.env.memory import MemoryEnvironment
from tests.gong.tools.conftest import caller


class Nothing(msgspec.Struct):
    pass


async def rows(arguments, context):
    return ToolOutcome.from_text("row\n" * 3000)


@pytest.fixture
def tuned(env, heard):
    """Return what runs a call of any tool as it is set."""

    def tuned(**fields):
        registry = build_registry(msgspec.convert(fields, ToolSettings))
        registry.register(AgentTool("mcp__rows", "", Nothing, rows))
        registry.set_active(registry.names)
        use = caller(registry, env, heard)

        async def say(name, **arguments):
            return join_texts((await use(name, **arguments)).content)

        return say

    return tuned


@pytest.mark.parametrize("tool", ["bash", "shell"])
async def test_a_prefix_comes_before_every_command(tuned, tool):
    """M083 J2-1.3 J2-1.4"""
    said = await tuned(command_prefix="echo prefix; export NAME=you")(tool, command="echo $NAME")
    assert said.startswith("prefix\nyou\n")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo out; echo err >&2; echo more", "stdout:\nout\nmore\nstderr:\nerr"),
        ("true", "stdout:\n\nstderr:\n"),
        ("echo err >&2; exit 3", "Command exited with code 3\nstderr:\nerr"),
        ("echo out; exit 3", "Command exited with code 3\nstderr:\n\nstdout:\nout"),
        (
            "echo out; echo err >&2; exec sleep 60",
            "Command timed out after 1 seconds\nstderr:\nerr\nstdout:\nout",
        ),
    ],
)
async def test_output_and_errors_come_apart_where_that_is_set(tuned, command, said):
    """M096 C19: the forms of success, failure and timeout; merged is the default."""
    assert await tuned(bash_output="split")("bash", command=command, timeout=1) == said
    assert "stderr:" not in await tuned()("bash", command=command, timeout=1)


async def test_each_of_two_long_streams_keeps_its_end(tuned, env):
    """M096: half of the limits each, or what the other leaves; the whole is in the file."""
    use = tuned(bash_output="split", line_limits={"bash": 10})
    said = await use("bash", command="seq 1 100; seq 101 200 >&2")
    lines = [*range(96, 101)], [*range(196, 201)]
    stdout, stderr = ("\n".join(map(str, numbers)) for numbers in lines)
    shown = r"\[Showing the last 15B of stdout and 19B of stderr, 692B in all. Full output: (\S+)\]"
    found = re.fullmatch(f"stdout:\n{stdout}\nstderr:\n{stderr}\n\n{shown}", said)
    whole = (await env.read_file(found[1])).split()
    assert sorted(map(int, whole)) == [*range(1, 201)]
    said = await use("bash", command="seq 1 100; echo oops >&2")
    assert said.startswith("stdout:\n92\n93\n")
    assert "\n100\nstderr:\noops\n\n[Showing" in said


@pytest.mark.parametrize(
    ("tool", "asked", "said"),
    [
        ("bash", {}, "Command timed out after 0.3 seconds"),
        ("bash", {"timeout": 60}, "Command timed out after 0.6 seconds"),
        ("shell", {}, "[ERROR: Command timed out after 300ms."),
        ("shell", {"timeout_ms": 60_000}, "[ERROR: Command timed out after 600ms."),
    ],
)
async def test_times_can_be_set(tuned, tool, asked, said):
    """M093 C1: what a command has that asks for none, and the most for one that does."""
    use = tuned(default_timeout_ms=300, max_timeout_ms=600)
    assert said in await use(tool, command="sleep 5", **asked)


@pytest.mark.parametrize(
    ("tool", "asked", "said"),
    [
        ("bash", {}, "Command timed out after 0.4 seconds"),
        ("bash", {"timeout": 0}, "Command timed out after 0.4 seconds"),
        ("bash", {"timeout": None}, "Command timed out after 0.4 seconds"),
        ("bash", {"timeout": 1e300}, "Command timed out after 0.4 seconds"),
        ("bash", {"timeout": 1e-9}, "Command timed out after 0.001 seconds"),
        ("shell", {}, "[ERROR: Command timed out after 400ms."),
    ],
)
async def test_no_command_takes_longer_than_the_limit_with_any_timeout(tuned, tool, asked, said):
    """M083 C1: bash has no default of its own, and the most bounds it all the same."""
    use = tuned(max_timeout_ms=400)
    assert said in await use(tool, command="exec tail -f /dev/null", **asked)
    late = tuned(default_timeout_ms=60_000, max_timeout_ms=400)
    assert said in await late(tool, command="exec tail -f /dev/null", **asked)


async def test_every_shell_tool_refuses_an_empty_command(tuned):
    """Also where lines come before every command."""
    use = tuned(command_prefix="echo prefix")
    for tool in ("bash", "shell"):
        assert await use(tool, command=" ") == (
            "'command' parameter is required: it is empty. Say what to run."
        )


@pytest.mark.parametrize(
    ("tuning", "said"),
    [
        ({}, "timeout is in seconds, 600 at most and if absent."),
        ({"default_timeout_ms": 60_000}, "timeout is in seconds, 600 at most, 60 if absent."),
        ({"max_timeout_ms": 1500}, "timeout is in seconds, 1.5 at most and if absent."),
    ],
)
def test_the_model_learns_how_long_a_command_may_take(tuning, said):
    assert build_bash_tool(ToolSettings(**tuning)).description.endswith(said)


async def test_limits_of_family_tools_can_be_set(tuned, folder):
    """M113: by the name of the table or of the face."""
    (folder / "a").write_text("word\n" * 100)
    use = tuned(
        output_limits={"read_file": 200, "shell": 10, "grep": 60},
        line_limits={"glob": 2, "shell": 3},
    )
    assert "characters were removed from the middle" in await use("read_file", file_path="a")
    assert "2 characters were removed" in await use("shell", command="printf 123456789012")
    assert "60B limit reached]" in await use("grep_search", pattern="word")
    for name in "bcd":
        (folder / name).touch()
    assert "[2 newest of 4 files shown." in await use("glob", pattern="*")
    own = tuned(output_limits={"grep": 60, "grep_search": 90})
    assert "90B limit reached]" in await own("grep_search", pattern="word")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            {"output_limits": {"bash": 40}},
            "[Showing lines 2993-3000 of 3000 (40B limit), 13.6KB in all. Full output: ",
        ),
        ({"line_limits": {"bash": 2}}, "2999\n3000\n\n[Showing lines 2999-3000 of 3000. "),
        ({"truncation": {"max_lines": 3}}, "2998\n2999\n3000\n\n[Showing lines 2998-3000"),
        ({"truncation": {"tools": {"bash": {"max_lines": 1}}}}, "3000\n\n[Showing lines 3000-3000"),
    ],
)
async def test_a_tool_that_cuts_its_own_text_cuts_it_where_it_is_set(tuned, setting, said):
    """M113 M115 M116: one cut, and it says so once."""
    shown = await tuned(**setting)("bash", command="seq 1 3000")
    assert said in shown
    assert shown.count("[Showing") == 1


async def test_lines_left_out_are_counted_exactly(tuned):
    """M091 J2-5.5: 150 lines, of which the last 100 are shown."""
    shown = await tuned(line_limits={"bash": 100})("bash", command="seq 1 150")
    lines, _, notice = shown.partition("\n\n")
    assert lines.split("\n") == [str(n) for n in range(51, 151)]
    assert notice.startswith("[Showing lines 51-150 of 150. Full output: ")


async def test_read_pages_by_what_is_set(tuned, folder):
    """M113 M116"""
    (folder / "a").write_text("line\n" * 100)
    assert "[Showing lines 1-7 of 100. Use offset=8 to continue.]" in (
        await tuned(line_limits={"read": 7})("read", path="a")
    )
    assert "[Showing lines 1-4 of 100 (20B limit). Use offset=5 to continue.]" in (
        await tuned(truncation={"max_bytes": 20})("read", path="a")
    )


async def test_the_service_is_set_for_all_and_for_single_tools(tuned):
    """M115 M116: for tools that cut nothing themselves, those of servers too."""
    assert "...2990 lines truncated..." in await tuned(truncation={"max_lines": 10})("mcp__rows")
    one = {"max_lines": 10, "tools": {"mcp__rows": {"max_lines": 3, "direction": "tail"}}}
    said = await tuned(truncation=one)("mcp__rows")
    assert said.startswith("...2997 lines truncated...")
    assert said.endswith("\n\nrow\nrow\nrow")
    off = {"tools": {"mcp__rows": {"enabled": False}}}
    assert await tuned(truncation=off)("mcp__rows") == "row\n" * 3000
    assert await tuned(truncation={"enabled": False})("mcp__rows") == "row\n" * 3000


async def test_kept_files_go_where_and_as_long_as_it_is_set(tuned, tmp_path):
    """M115 M119"""
    place = {"storage_dir": str(tmp_path / "own"), "retention_days": 0}
    assert f"saved to: {tmp_path}/own/mcp__rows_" in await tuned(truncation=place)("mcp__rows")


@pytest.mark.parametrize("setting", ["output_limits", "line_limits"])
def test_a_limit_that_nothing_keeps_is_refused(setting):
    """M113"""
    with pytest.raises(ConfigurationError, match=f"tool_{setting}: raed has no limit of its own"):
        build_registry(ToolSettings(**{setting: {"raed": 5}}))
    for name in ("read", "bash", "grep", "grep_search", "replace", "apply_patch", "spawn_agent"):
        build_registry(ToolSettings(**{setting: {name: 5}}))


@pytest.mark.parametrize(("name", "most"), [("bash", 100_000), ("shell", 50_000)])
def test_no_more_is_shown_of_a_command_than_memory_holds(name, most):
    """M085"""
    build_registry(ToolSettings(output_limits={name: most}))
    with pytest.raises(ConfigurationError, match=f"{name} shows {most} at most"):
        build_registry(ToolSettings(output_limits={name: most + 1}))


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_lines": 0},
        {"max_bytes": -1},
        {"direction": "middle"},
        {"retention_days": -1},
        {"tools": {"bash": {"maxLines": 3}}},
        {"skip": True},
    ],
)
def test_a_wrong_setting_is_named(wrong):
    """M115"""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, TruncationSettings)


def test_what_is_set_for_a_tool_leaves_its_other_fields():
    """M115 M116: the logs of bash keep their end."""
    tuning = ToolSettings(
        truncation=TruncationSettings(tools={"bash": TruncationOverride(max_lines=9)})
    )
    service = build_registry(tuning).truncation.service
    assert service._tools["bash"] == TruncationOverride(max_lines=9, direction="tail")


SEVEN = {
    "read": ({"path": "a.txt"}, "one\n"),
    "write": ({"path": "b.txt", "content": "two"}, "Successfully wrote 3 bytes to b.txt"),
    "edit": (
        {"path": "a.txt", "oldText": "one", "newText": "1"},
        "Successfully replaced text in a.txt.",
    ),
    "bash": ({"command": "true"}, "\n\nCommand exited with code 127"),
    "grep": ({"pattern": "one"}, "a.txt:1: one"),
    "find": ({"pattern": "*.txt"}, "a.txt"),
    "ls": ({}, "a.txt"),
}


@pytest.mark.parametrize("name", SEVEN)
async def test_the_seven_tools_act_on_any_environment(name, heard):
    """M041 M042 M127: none touches this machine by itself."""
    env = MemoryEnvironment({"a.txt": b"one\n"})
    arguments, said = SEVEN[name]
    result = await caller(build_registry(), env, heard)(name, **arguments)
    assert join_texts(result.content).endswith(said)
    if name == "bash":
        assert env.commands == ["true"]


def test_seven_tools_are_what_a_session_begins_with():
    """M041"""
    assert build_registry().active == tuple(SEVEN)


async def test_only_the_file_tools_that_search_have_no_limit_of_lines(use, folder):
    """M111: read keeps the head, bash the tail; grep, find and ls are cut by bytes alone."""
    (folder / "lines").write_text("x\n" * 2500)
    names = [f"{n:04}" for n in range(2001)]
    (folder / "many").mkdir()
    for name in names:
        (folder / "many" / name).touch()
    found = {
        "read": await use("read", path="lines"),
        "bash": await use("bash", command="seq 1 2500"),
        "grep": await use("grep", pattern="x", limit=2500),
        "find": await use("find", pattern="*", path="many", limit=2500),
        "ls": await use("ls", path="many", limit=2500),
    }
    said = {name: join_texts(result.content) for name, result in found.items()}
    assert "[Showing lines 1-2000 of 2500." in said["read"]
    assert "[Showing lines 501-2500 of 2500." in said["bash"]
    assert said["grep"].count("\n") == 2499 + 2
    assert said["find"].split("\n") == said["ls"].split("\n") == names


async def test_output_of_a_command_is_shown_while_it_runs(use, heard):
    """M042"""
    await use("bash", command="echo one; sleep 0.1; echo two")
    assert heard == ["one\n", "two\n"]


async def test_a_stopped_tool_returns_its_output():
    """M042 M075 M087"""
    registry = build_registry()
    assert registry.get("edit").stopped == "Operation aborted"
    assert registry.get("bash").stopped == registry.get("shell").stopped == "Command aborted"
