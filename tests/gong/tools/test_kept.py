"""What a result points at stands on the tape as long as the entry that says so."""

import hashlib
import re
import sys
import time
from pathlib import Path

import pytest
from msgspec import Struct

from gong.tools.builtin import build_registry
from gong.tools.limits import MAX_KEPT_BYTES
from gong.tools.output_storage import TapeStorage
from gong.tools.registry import ToolRegistry
from gong.tools.tool import AgentTool, ToolContext, ToolOutcome
from tape.check.finding import Counts
from tape.check.verify import verify
from tape.model.entries import ToolCall, join_texts
from tape.model.entries import ToolResult as Entry
from tape.store.maintenance.gc import delete_garbage, find_garbage
from tape.store.store import Beginning, Store
from tests.gong.tools.conftest import caller, encode_arguments

COMMAND_TOOLS = ("bash", "shell")
READING_TOOLS = ("read", "read_file", "find", "glob", "ls", "grep", "grep_search")
HOURS = 2 * 3600 * 1_000_000
COMMANDS = {
    "few bytes": "seq 1 2500",
    "a string too short for a blob": "seq -f '%0100.0f' 1 600",
    "over five megabytes": "seq -f '%0100.0f' 1 60000",
    "not UTF-8": (
        f"{sys.executable} -c 'import sys; sys.stdout.buffer.write(bytes([233, 10]) * 30000)'"
    ),
}


class Nothing(Struct):
    pass


async def rows(arguments, context):
    return ToolOutcome.from_text("row\n" * 3000)


@pytest.fixture
def tape(tmp_path):
    with Store(tmp_path / "store").create(Beginning(cwd="/", program="test")) as tape:
        yield tape


@pytest.fixture
def use(env, heard, tape):
    registry = ToolRegistry(
        (
            *map(build_registry().get, (*COMMAND_TOOLS, *READING_TOOLS)),
            AgentTool("rows", "", Nothing, rows),
        )
    )
    return caller(registry, env, heard, TapeStorage(tape.blobs))


def record(tape, result, full):
    with tape.writer() as writer:
        entry = Entry("c1", "bash", result.content, is_error=result.is_error, full=full)
        return writer.append(entry).id


def collected(tmp_path):
    """Return what goes when somebody collects garbage hours later."""
    store = Store(tmp_path / "store", clock=lambda: time.time_ns() // 1000 + HOURS)
    found = find_garbage(store)
    assert found.kept == ()
    return delete_garbage(store, found).garbage


def pointed_at(result):
    return Path(re.search(r"(?:output|saved to): ([^\]\n]+)", join_texts(result.content))[1])


@pytest.mark.parametrize("tool", COMMAND_TOOLS)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
async def test_output_that_a_result_points_at_is_no_garbage(tape, use, tmp_path, tool, command):
    """M085 M119 C40"""
    result = await use(tool, command=command)
    place = pointed_at(result)
    whole = place.read_bytes()
    assert (result.kept.hash, result.kept.bytes) == (place.name, len(whole))
    record(tape, result, result.kept)
    assert collected(tmp_path) == ()
    assert place.read_bytes() == whole
    assert list(verify(tape, Counts())) == []


@pytest.mark.parametrize("tool", ["bash", "shell", "rows"])
async def test_an_event_says_what_was_cut_and_where_the_whole_is(env, tape, tool):
    """M119: of a tool that cuts its own text, of a family's and of all others."""
    extra = AgentTool("rows", "", Nothing, rows)
    registry, happened = ToolRegistry((*map(build_registry().get, COMMAND_TOOLS), extra)), []
    arguments = {} if tool == "rows" else {"command": "yes row | head -n 3000"}
    prepared = registry.prepare(ToolCall("c1", tool, encode_arguments(arguments)))
    storage = TapeStorage(tape.blobs)
    context = ToolContext(env, "c1", str, storage, on_truncation=happened.append)
    result = await registry.run(prepared, context)
    (event,) = happened
    shown = len(join_texts(result.content).encode())
    assert (event.type, event.tool_name, event.original_size, event.truncated_size) == (
        *("truncated", tool, 12_000, shown),
    )
    path = Path(event.output_path)
    assert (path.parent.parent, tape.blobs.read(path.name).decode()) == (
        *(Path(storage.directory), "row\n" * 3000),
    )


async def test_what_the_service_cut_is_no_garbage(tape, use, tmp_path):
    """M117 M119 C40"""
    result = await use("rows")
    record(tape, result, result.kept)
    assert collected(tmp_path) == ()
    assert pointed_at(result).read_text() == "row\n" * 3000


async def test_a_picture_that_is_shown_is_no_garbage(tape, use, folder, tmp_path):
    """M063"""
    (folder / "a").write_bytes(b"GIF89a\x02\0\x03\0")
    result = await use("read", path="a")
    record(tape, result, None)
    assert collected(tmp_path) == ()
    assert tape.blobs.read(result.content[1].blob.hash) == (folder / "a").read_bytes()


async def test_the_entry_reads_as_the_whole_text(tape, use):
    """M086: what a blob holds stands in `full` for whoever reads the tape."""
    result = await use("bash", command=COMMANDS["few bytes"])
    record(tape, result, result.kept)
    (entry,) = [one for one in tape.entries(tape.head()) if one.type == "tool.result"]
    assert entry.data.full == result.full == "".join(f"{n}\n" for n in range(1, 2501))
    assert result.kept.head == result.full[:2000]


async def test_output_that_no_entry_names_is_garbage(tape, use, tmp_path):
    result = await use("bash", command=COMMANDS["few bytes"])
    record(tape, result, result.full)
    assert [one.path.rpartition("/")[2] for one in collected(tmp_path)] == [result.kept.hash]


async def test_without_a_tape_there_is_no_blob(env, heard):
    result = await caller(build_registry(), env, heard)("bash", command=COMMANDS["few bytes"])
    assert (result.kept, pointed_at(result).exists()) == (None, True)


LONG_NAME = "n" * 200
LINE = "a line with a needle in it: %06d" + " x" * 30 + "\n"


def plant_names(folder):
    """Make files whose names take more than a result keeps in itself."""
    names = [f"{n:05}-{LONG_NAME}" for n in range(MAX_KEPT_BYTES // 200)]
    for name in names:
        (folder / name).touch()
    return "\n".join(names)


def plant_lines(folder, count=20_000):
    text = "".join(LINE % n for n in range(count))
    (folder / "long.txt").write_text(text)
    return text


def number_lines(text, form):
    return "".join(form % (n, line) for n, line in enumerate(text.splitlines(True), 1))


@pytest.mark.parametrize(
    ("tool", "arguments", "plant", "shape"),
    [
        ("read", {"path": "long.txt"}, plant_lines, None),
        (
            "read_file",
            {"file_path": "long.txt", "limit": 20_000},
            plant_lines,
            lambda text: number_lines(text, "%5d | %s"),
        ),
        ("find", {"pattern": "*"}, plant_names, None),
        ("ls", {}, plant_names, None),
        ("glob", {"pattern": "*"}, plant_names, None),
        (
            "grep",
            {"pattern": "needle", "path": "long.txt", "limit": 90_000},
            plant_lines,
            lambda text: number_lines(text, "long.txt:%d: %s").removesuffix("\n"),
        ),
        (
            "grep_search",
            {"pattern": "needle", "path": "long.txt", "max_results": 90_000},
            plant_lines,
            lambda text: number_lines(text, "long.txt:%d: %s").removesuffix("\n"),
        ),
    ],
)
async def test_all_of_a_long_reading_is_on_the_tape(
    tape, use, folder, tool, arguments, plant, shape
):
    """M034: above 1 MB as that of a command."""
    planted = plant(folder)
    wanted = shape(planted) if shape else planted
    result = await use(tool, **arguments)
    assert len(wanted) > MAX_KEPT_BYTES
    found = tape.blobs.read(result.kept.hash).decode()
    assert (sorted(found.split("\n")) if tool == "glob" else found.split("\n")) == wanted.split(
        "\n"
    )
    assert result.full in {None, found}
    record(tape, result, result.kept)
    assert list(verify(tape, Counts())) == []


@pytest.mark.parametrize(("tool", "limit"), [("grep", "limit"), ("grep_search", "max_results")])
async def test_what_a_search_finds_beyond_its_limit_is_kept(use, folder, tool, limit):
    """M034: the model sees as many as it asked for."""
    text = plant_lines(folder, 150)
    result = await use(tool, pattern="needle", path="long.txt", **{limit: 120})
    wanted = number_lines(text, "long.txt:%d: %s").removesuffix("\n")
    assert result.full == wanted
    shown, _, notice = join_texts(result.content).partition("\n\n[")
    assert wanted.startswith(shown + "\n")
    assert notice.startswith("120 matches limit reached")
    whole = await use(tool, pattern="needle", path="long.txt", **{limit: 150})
    assert whole.full is None


async def test_a_page_that_is_never_in_memory_is_on_the_tape(tape, use, folder):
    """M034"""
    text = plant_lines(folder, 150_000)
    result = await use("read", path="long.txt", offset=2)
    assert (result.full, result.kept.bytes) == (None, len(text) - len(LINE % 0))
    assert tape.blobs.read(result.kept.hash).decode() == text[len(LINE % 0) :]
    assert [one for one in folder.parent.iterdir() if one.name.startswith("gong-")] == []


async def test_a_page_above_the_limit_names_its_whole_size(tape, use, folder, monkeypatch):
    """M034: what is told is what was there, not what is left of it in memory."""
    monkeypatch.setattr("gong.tools.read.MAX_STORED_BYTES", 9_000_000)
    text = plant_lines(folder, 150_000)
    result = await use("read", path="long.txt")
    assert result.kept is None
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert result.full.endswith(
        f"[{MAX_KEPT_BYTES} of {len(text)} bytes: the rest is in long.txt; SHA-256 of all {digest}]"
    )
