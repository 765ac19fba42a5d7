"""Sessions inside another program."""

import json
from pathlib import Path

from msgspec import Struct

import gong
from gong import trust
from gong.agent import events
from gong.tool_settings import TruncationOverride, TruncationSettings
from gong.tools.output_storage import FolderStorage
from gong.tools.truncation import KeptText
from tape.model.entries import ToolResult, join_texts
from tests.gong.agent.conftest import call


class NoArguments(Struct):
    """Nothing."""


async def count(_arguments, _context):
    return gong.ToolOutcome.from_text("".join(f"{n}\n" for n in range(100)))


class FirstAndLast:
    """Keeps the first and the last line."""

    name = "first and last"

    def needs_truncation(self, content, config):
        return content.count("\n") > config.max_lines

    def truncate(self, content, _config):
        first, *others, last = content.splitlines()
        return KeptText(f"{first}\n{last}", removed_lines=len(others))


async def run_count(tmp_path, **how):
    """Return the result of a tool that counts to a hundred, in a session that is opened so."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"tool_calls": [call("count")]}, {"text": "done"}]))
    tool = gong.AgentTool("count", "Counts", NoArguments, count)
    paths = {"store": tmp_path / "tapes", "environ": {"HOME": str(tmp_path)}}
    async with gong.open_session(
        tmp_path, model=f"scripted/{script}", tools=[tool], **paths, **how
    ) as session:
        session.use_permission("bypass")
        await gong.answer_prompt(session, "go")
        path = [entry.data for entry in session.recorder.path]
    (result,) = [join_texts(one.content) for one in path if isinstance(one, ToolResult)]
    return result


async def test_limits_of_results_are_given_to_a_session(tmp_path):
    """M232: for all tools, and for one."""
    limits = TruncationSettings(max_lines=3, tools={"count": TruncationOverride(direction="tail")})
    assert (await run_count(tmp_path, truncation=limits)).endswith("97\n98\n99")


async def test_a_way_to_cut_and_a_storage_are_given_to_a_session(tmp_path):
    """M232: the whole is in the storage, and nowhere else."""
    storage = FolderStorage(str(tmp_path / "kept"))
    limits = TruncationSettings(max_lines=3)
    how = {"truncation": limits, "strategy": FirstAndLast(), "storage": storage}
    result = await run_count(tmp_path, **how)
    assert result.startswith("0\n99\n\n...98 lines truncated...")
    (kept,) = (tmp_path / "kept").iterdir()
    assert f"saved to: {kept}\n" in result
    assert len(kept.read_text().splitlines()) == 100


async def test_the_output_of_built_in_tools_is_in_the_storage_too(tmp_path):
    """M222: bash, read, grep, find and ls; each result says where."""
    work, script = tmp_path / "work", tmp_path / "script.json"
    for number in range(20):
        (work / "many").mkdir(parents=True, exist_ok=True)
        (work / "many" / f"{number}.txt").write_text("word\n" * 20)
    calls = [
        call("bash", command="seq 20"),
        call("read", path="many/1.txt"),
        call("grep", pattern="word", path="many"),
        call("find", pattern="*.txt"),
        call("ls", path="many"),
        call("count"),
    ]
    script.write_text(json.dumps([{"tool_calls": calls}, {"text": "done"}]))
    named = dict.fromkeys(("grep", "find", "ls"), TruncationOverride(max_lines=3))
    storage = FolderStorage(str(tmp_path / "kept"))
    how = {
        "truncation": TruncationSettings(max_lines=3, tools=named),
        "storage": storage,
        "tools": [gong.AgentTool("count", "Counts", NoArguments, count)],
        "store": tmp_path / "tapes",
        "environ": {"HOME": str(tmp_path)},
    }
    async with gong.open_session(work, model=f"scripted/{script}", **how) as session:
        session.use_permission("bypass")
        told = [event async for event in session.submit("go")]
        path = [entry.data for entry in session.recorder.path]
    results = {one.name: one for one in path if isinstance(one, ToolResult)}
    kept = {one.name.split("_")[0].split("-")[0]: one.read_text() for one in storage_files(storage)}
    kept["bash"] = kept.pop("gong")
    assert {name: len(text.splitlines()) for name, text in kept.items()} == {
        "bash": 20,
        "read": 20,
        "grep": 400,
        "find": 20,
        "ls": 20,
        "count": 100,
    }
    places = {str(one) for one in storage_files(storage)}
    said = {name: json.loads(bytes(one.details)) for name, one in results.items()}
    assert all(said[name]["truncation_path"] in places for name in kept)
    assert any(place in join_texts(results["bash"].content) for place in places)
    cuts = {event.tool: event for event in told if isinstance(event, events.ResultTruncated)}
    assert {*cuts} == {"bash", "read", "grep", "find", "ls", "count"}
    sizes = {str(one): one.stat().st_size for one in storage_files(storage)}
    for name, cut in cuts.items():
        assert cut.output_path == said[name]["truncation_path"]
        assert cut.truncated_size == len(join_texts(results[name].content).encode())
        assert cut.original_size == sizes[cut.output_path]


def storage_files(storage):
    return list(Path(storage.directory).iterdir())


async def test_the_settings_of_a_folder_s_project_count_once_they_are_trusted(tmp_path):
    """M009: as on the command line."""
    project, home = tmp_path / "work", tmp_path / "home"
    (project / ".git").mkdir(parents=True)
    (project / ".gong").mkdir()
    (project / ".gong/config.toml").write_text("max_turns = 7\n")
    environ = {"HOME": str(home)}
    home.mkdir()

    async def read_limit():
        how = {"model": "offline/rules", "store": tmp_path / "tapes", "environ": environ}
        async with gong.open_session(project, **how) as session:
            return session.setup.config.max_turns

    assert await read_limit() == 0
    trust.trust_project(trust.read_project(str(project), environ), environ)
    assert await read_limit() == 7
