import json
import os
import re
import time
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from gong.errors import ConfigurationError
from gong.tool_settings import TruncationOverride, TruncationSettings
from gong.tools.output_storage import (
    FolderStorage,
    TapeStorage,
    TruncationContext,
    TruncationOptions,
    build_temporary_path,
)
from gong.tools.registry import TruncationMiddleware
from gong.tools.tool import ToolOutcome, encode_details
from gong.tools.truncation import (
    STRATEGIES,
    JsonItemsStrategy,
    KeptText,
    LinesAndBytesStrategy,
    TruncationEvent,
)
from gong.tools.truncation_service import TOOL_DEFAULTS, CutText, TruncationService, WholeText
from tape.model.entries import Text, join_texts
from tape.store.store import Beginning, Store

WHOSE = TruncationContext("x", "session", "message")


def lines(count):
    return "\n".join(f"line {n}" for n in range(1, count + 1))


def written(path):
    return Path(path).read_text("utf-8")


def mode(path):
    return Path(path).stat().st_mode & 0o777


def is_there(path):
    return Path(path).exists()


def hint(path):
    return (
        f"The tool call succeeded but the output was truncated. Full output saved to: {path}\n"
        "Use Grep to search the full content or Read with offset/limit to view specific sections."
    )


@pytest.fixture
def events():
    return []


@pytest.fixture
def make(tmp_path, events):
    """Make a service that keeps files in a folder of its own and tells its events."""

    def make(config=TruncationSettings(), tools=TOOL_DEFAULTS, **parts):
        storage = FolderStorage(str(tmp_path / "kept"))
        return TruncationService(
            config, tools, on_event=events.append, **{"storage": storage, **parts}
        )

    return make


def test_the_configuration_begins_with_the_agreed_values():
    """M115 M116"""
    assert TruncationSettings() == TruncationSettings(2000, 51_200, "head", True, 7, None)
    assert dict(TOOL_DEFAULTS) == {
        "bash": TruncationOverride(direction="tail", max_lines=500),
        "grep": TruncationOverride(max_lines=3000),
        "read": TruncationOverride(enabled=False),
    }


async def test_a_text_within_the_limits_stays(make, events):
    """M117"""
    text = lines(2000)
    assert await make().output(text, TruncationContext("x")) == WholeText(text)
    (event,) = events
    size = len(text)
    assert event == TruncationEvent("skipped", "x", size, size, event.timestamp)
    assert abs(event.timestamp - time.time() * 1000) < 60_000


async def test_the_head_stays_with_the_way_to_the_whole(make, events, tmp_path):
    """M117 M118 M119 M212"""
    text = lines(2100)
    cut = await make().output(text, TruncationContext("mcp__db.query"))
    path = cut.output_path
    shown = f"{lines(2000)}\n\n...100 lines truncated...\n\n{hint(path)}"
    assert cut == CutText(shown, path, removed_lines=100)
    assert Path(path).parent == tmp_path / "kept"
    assert re.fullmatch(r"mcp__db_query_\d{13}_[a-z0-9]{6}\.txt", Path(path).name)
    assert written(path) == text
    assert mode(path) == 0o600
    assert events[0].type == "truncated"
    assert (events[0].original_size, events[0].truncated_size) == (len(text), len(shown))
    assert events[0].output_path == path


async def test_the_tail_stays_after_the_notice(make):
    """M118"""
    cut = await make(TruncationSettings(max_lines=3, direction="tail")).output(
        lines(10), TruncationContext("x")
    )
    assert cut.content == (
        f"...7 lines truncated...\n\n{hint(cut.output_path)}\n\nline 8\nline 9\nline 10"
    )


async def test_bytes_are_counted_where_they_were_the_limit(make):
    """M117: lines or bytes, never both."""
    text = "\n".join(["é" * 50] * 20)
    cut = await make(TruncationSettings(max_bytes=205)).output(text, TruncationContext("x"))
    assert cut.content.startswith("é" * 50 + "\n" + "é" * 50 + "\n\n...1818 bytes truncated...")
    assert (cut.removed_lines, cut.removed_bytes) == (None, 1818)


@pytest.mark.parametrize(("direction", "kept"), [("head", "éé"), ("tail", "ééx")])
async def test_one_endless_line_is_cut_between_characters(make, direction, kept):
    """M110 M118"""
    service = make(TruncationSettings(max_bytes=5, direction=direction))
    cut = await service.output("é" * 10 + "x", TruncationContext("x"))
    assert kept in cut.content.split("\n")
    assert cut.removed_bytes == 21 - len(kept.encode())


async def test_the_end_of_the_last_line_is_no_line(make):
    assert await make(TruncationSettings(max_lines=2)).output(
        "a\nb\n", TruncationContext("x")
    ) == WholeText("a\nb\n")
    cut = await make(TruncationSettings(max_lines=2)).output("a\nb\nc\n", TruncationContext("x"))
    assert (cut.removed_lines, cut.content[:8]) == (1, "a\nb\n\n...")


@pytest.mark.parametrize(
    ("tools", "declared", "options", "kept"),
    [
        ({}, None, None, 50),
        ({"x": TruncationOverride(max_lines=10)}, None, None, 10),
        ({}, TruncationOverride(max_lines=20), None, 20),
        ({"x": TruncationOverride(max_lines=10)}, TruncationOverride(max_lines=20), None, 10),
        ({"x": TruncationOverride(max_lines=10)}, None, TruncationOptions(max_lines=5), 5),
        ({"y": TruncationOverride(max_lines=10)}, None, None, 50),
        ({"x": TruncationOverride(enabled=False)}, None, None, None),
        ({"x": TruncationOverride(enabled=False)}, None, TruncationOptions(skip=False), 50),
        ({}, None, TruncationOptions(skip=True), None),
        ({"x": TruncationOverride(max_lines=10)}, None, TruncationOptions(direction="tail"), 10),
    ],
)
async def test_later_configuration_wins(make, tools, declared, options, kept):
    """M115 M121 M212: for all < what the tool declares < for the tool < for the call."""
    service = make(TruncationSettings(max_lines=50), tools)
    cut = await service.output(
        lines(100), TruncationContext("x", options=options, declared=declared)
    )
    assert cut.truncated == (kept is not None)
    assert kept is None or cut.removed_lines == 100 - kept
    assert ("line 100" in cut.content) == (
        kept is None or (options is not None and options.direction == "tail")
    )


async def test_configuration_changes_while_it_runs(make):
    """M115"""
    service = make(tools={})
    service.update_config(max_lines=10)
    assert (await service.output(lines(12), TruncationContext("x"))).removed_lines == 2
    service.set_tool_config("x", TruncationOverride(max_lines=11))
    assert (await service.output(lines(12), TruncationContext("x"))).removed_lines == 1
    service.update_config(enabled=False)
    assert not (await service.output(lines(12), TruncationContext("x"))).truncated


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"max_line": 10}, "unknown setting max_line: did you mean max_lines"),
        ({"nosuch": 10}, "unknown setting nosuch: use max_lines, max_bytes, "),
        ({"max_lines": 0}, "max_lines is 0: expected `int` >= 1"),
        ({"direction": "left"}, "direction is 'left': choose one of "),
    ],
)
def test_a_change_that_cannot_be_is_refused(make, change, error):
    with pytest.raises(ConfigurationError) as caught:
        make(tools={}).update_config(**change)
    assert str(caught.value).startswith(error)


async def test_a_user_sets_less_for_all_tools(make):
    """M116"""
    service = make(TruncationSettings(max_lines=1500, max_bytes=30 * 1024))
    assert (await service.output(lines(1600), TruncationContext("x"))).removed_lines == 100
    assert (
        await service.output("x" * 31_000, TruncationContext("x"))
    ).removed_bytes == 31_000 - 30_720


class Full:
    """A storage that has no room."""

    async def save(self, content, context):
        raise OSError(28, "No space left on device")


class Broken:
    """A strategy that fails."""

    def needs_truncation(self, content, config):
        return True

    def truncate(self, content, config):
        raise RuntimeError


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"storage": Full()}, "[Errno 28] No space left on device"),
        ({"strategy": Broken()}, "RuntimeError"),
    ],
)
async def test_a_failure_costs_no_text(make, events, parts, said):
    """M117"""
    text = lines(3000)
    assert await make(**parts).output(text, TruncationContext("x")) == WholeText(text)
    assert [(event.type, event.error) for event in events] == [("error", said)]
    assert events[0].truncated_size == len(text)


async def test_a_folder_of_somebody_else_is_not_written(tmp_path, make, events):
    """M119"""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "kept").symlink_to(tmp_path / "theirs")
    assert not (await make().output(lines(3000), TruncationContext("x"))).truncated
    assert "is not a folder of your own" in events[0].error
    assert list((tmp_path / "theirs").iterdir()) == []


async def test_old_files_go_and_single_failures_do_not_matter(tmp_path):
    """M119"""
    storage = FolderStorage(str(tmp_path))
    old = Path(await storage.save("old", WHOSE))
    new = Path(await storage.save("new", WHOSE))
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    for path in (old, tmp_path / "folder"):
        os.utime(path, (time.time() - 8 * 86_400,) * 2)
    assert storage.directory == str(tmp_path)
    assert await storage.cleanup(7) == 1
    assert not is_there(old)
    assert await storage.read(str(new)) == "new"
    assert await FolderStorage(str(tmp_path / "none")).cleanup(7) == 0


async def test_old_files_go_with_the_first_that_is_kept(make, tmp_path):
    """M115 C40: seven days, or as many as are set, where there is no tape."""
    folder = str(tmp_path / "own")
    old = Path(await FolderStorage(folder).save("old", WHOSE))
    os.utime(old, (time.time() - 3 * 86_400,) * 2)
    service = make(TruncationSettings(storage_dir=folder), storage=None)
    await service.output(lines(3000), TruncationContext("x"))
    assert is_there(old)
    service.update_config(retention_days=2)
    await service.output(lines(10), TruncationContext("x"))
    assert is_there(old)
    await service.output(lines(3000), TruncationContext("x"))
    assert not is_there(old)
    assert await service.cleanup() == 0


async def test_a_finished_file_moves_into_the_folder(tmp_path):
    """M085 M119"""
    (tmp_path / "gong-bash-x.log").write_text("all")
    path = await FolderStorage(str(tmp_path / "own")).adopt(str(tmp_path / "gong-bash-x.log"))
    assert (path, written(path)) == (str(tmp_path / "own/gong-bash-x.log"), "all")


def test_without_a_tape_files_are_among_temporary_ones(tmp_path):
    assert build_temporary_path(str(tmp_path)) == f"{tmp_path}/gong-output-{os.geteuid()}"


@pytest.fixture
def tape(tmp_path):
    with Store(tmp_path / "store").create(Beginning(cwd="/", program="test")) as tape:
        yield tape


async def test_on_a_tape_the_whole_is_a_blob_until_gc(tape, make, tmp_path):
    """M119 C40"""
    storage = TapeStorage(tape.blobs)
    service, text = make(storage=None), lines(3000)
    first = await service.output(text, TruncationContext("x", storage=storage))
    second = await service.output(text, TruncationContext("y", storage=storage))
    path = Path(first.output_path)
    assert first.output_path == second.output_path
    assert written(path) == await storage.read(str(path)) == text
    assert tape.blobs.read(path.name) == text.encode()
    assert path.parent.parent == Path(storage.directory)
    os.utime(path, (0, 0))
    assert await storage.cleanup(0) == 0
    assert is_there(path)
    own = await make().output(text, TruncationContext("x", storage=storage))  # its own goes first
    assert Path(own.output_path).parent == tmp_path / "kept"


@pytest.mark.parametrize("data", [b"", b"\xff\0long"])
async def test_a_finished_file_becomes_a_blob(tape, tmp_path, data):
    """M119"""
    (tmp_path / "log").write_bytes(data)
    path = await TapeStorage(tape.blobs).adopt(str(tmp_path / "log"))
    assert not (tmp_path / "log").exists()
    assert tape.blobs.read(Path(path).name) == data
    assert is_there(path)


def test_strategies_judge_and_cut_by_themselves():
    """M121"""
    by_default = LinesAndBytesStrategy()
    assert not by_default.needs_truncation(lines(10), TruncationSettings(max_lines=10))
    assert by_default.needs_truncation(lines(10), TruncationSettings(max_lines=9))
    assert by_default.needs_truncation("é" * 6, TruncationSettings(max_bytes=11))
    assert by_default.truncate(lines(3), TruncationSettings(max_lines=2)) == KeptText(
        "line 1\nline 2", 1
    )


@pytest.mark.parametrize(
    ("strategy", "kept", "removed"),
    [
        ("lines_and_bytes", "aaaa", (None, 11)),
        ("lines", "aaaa\nbbbb", (1, None)),
        ("bytes", "aaaa\nbé", (None, 7)),
        ("json_items", "aaaa", (None, 11)),
    ],
)
async def test_a_setting_says_what_is_counted(make, strategy, kept, removed):
    """M222: lines and bytes, one of them, or items; for all tools, and for one."""
    text = "aaaa\nbébb\ncccc"
    for config in (
        TruncationSettings(max_lines=2, max_bytes=8, strategy=strategy),
        TruncationSettings(2, 8, tools={"x": TruncationOverride(strategy=strategy)}),
    ):
        service = make(config, {})
        cut = await service.output(text, TruncationContext("x"))
        assert cut.content.startswith(f"{kept.replace('bbbb', 'bébb')}\n\n...")
        assert (cut.removed_lines, cut.removed_bytes) == removed
    assert STRATEGIES[strategy].name == strategy


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        (("grep", "read"), "Use grep to search the full content or read with offset/limit to"),
        (("read_file",), "Use read_file with offset/limit to view specific sections."),
        (("shell",), "Use shell with grep or sed -n to view specific sections."),
    ],
)
async def test_the_notice_names_tools_that_the_session_has(make, tools, said):
    """M222"""
    cut = await make().output(lines(2100), TruncationContext("x", tools=tools))
    assert cut.content.split("\n")[-1].startswith(said)
    none = await make().output(lines(2100), TruncationContext("x", tools=("todo",)))
    assert none.content.endswith(f"saved to: {none.output_path}")


async def test_a_storage_gets_whose_output_it_is(make):
    """M222: save(content, context) and read of a storage of a host's own."""
    saved = []

    class Own:
        async def save(self, content, context):
            saved.append((content, context.tool_name, context.session_id, context.message_id))
            return "s3://bucket/1"

    about = TruncationContext("x", "session", "call", storage=Own())
    cut = await make(storage=None).output(lines(3000), about)
    assert saved == [(lines(3000), "x", "session", "call")]
    assert cut.output_path == "s3://bucket/1"


@pytest.mark.parametrize(
    ("direction", "kept"), [("head", "[\n  1,\n  2\n]"), ("tail", "[\n  3,\n  4\n]")]
)
def test_an_array_keeps_whole_items(direction, kept):
    """M121"""
    by_items = JsonItemsStrategy()
    config = TruncationSettings(max_lines=2, direction=direction)
    assert by_items.needs_truncation("[1, 2, 3, 4]", config)
    assert not by_items.needs_truncation("[1, 2]", config)
    assert by_items.truncate("[1, 2, 3, 4]", config) == KeptText(kept, removed_lines=2)


def test_what_is_no_array_or_does_not_fit_is_cut_by_default():
    """M121"""
    by_items, config = JsonItemsStrategy(), TruncationSettings(max_lines=2, max_bytes=8)
    for text in ("[1, 2", "a\nb\nc\nd", '["much too long"]', '{"a": 1}', "[" * 100_000):
        assert by_items.truncate(text, config) == LinesAndBytesStrategy().truncate(text, config)
    assert by_items.truncate("[1,2,3]", config) == KeptText("[\n  1\n]", removed_lines=2)


class Paged(Struct):
    truncated: bool


class TestMiddleware:
    """M120 M212: what no tool cut itself is cut here."""

    @pytest.fixture
    def cut(self, make):
        async def cut(result, name="x", **parts):
            middleware = TruncationMiddleware(make(TruncationSettings(max_lines=3), {}), **parts)
            return await middleware(result, TruncationContext(name))

        return cut

    async def test_a_long_result_is_cut_and_says_so(self, cut):
        result = await cut(ToolOutcome.from_text(lines(5)))
        path = result.removed.truncation_path
        assert join_texts(result.content).endswith(hint(path))
        assert json.loads(bytes(encode_details(result))) == {
            "truncated": True,
            "truncation_path": path,
            "truncation_removed_lines": 2,
        }
        assert result.removed.truncation_removed_lines == 2
        assert result.full == lines(5)

    async def test_a_short_one_stays_as_it_is(self, cut):
        """M222: a result that was looked at says so, also where nothing was cut."""
        result = ToolOutcome.from_text("a")
        assert await cut(result) == replace(result, truncated=False)
        assert json.loads(bytes(encode_details(await cut(result)))) == {"truncated": False}

    @pytest.mark.parametrize("truncated", [True, False])
    async def test_one_that_speaks_of_its_cut_is_left_alone(self, cut, truncated):
        result = ToolOutcome.from_text(lines(5), Paged(truncated))
        assert await cut(result) is result

    @pytest.mark.parametrize(
        "result",
        [
            ToolOutcome(()),
            ToolOutcome.from_text(""),
            ToolOutcome((Text(lines(5)),), full="more"),
        ],
    )
    async def test_nothing_to_cut_or_cut_already_is_left_alone(self, cut, result):
        assert await cut(result) is result

    async def test_named_tools_are_left_alone(self, cut):
        result = ToolOutcome.from_text(lines(5))
        assert await cut(result, "web_fetch") is result
        assert await cut(result, "y", skip_tools=frozenset({"y"})) is result

    async def test_a_caller_decides_by_name_and_result(self, cut):
        result = ToolOutcome.from_text(lines(5))
        assert await cut(result, should_truncate=lambda name, _: name != "x") is result
        fewer = await cut(result, should_truncate=lambda _, _result: TruncationOptions(max_lines=1))
        assert fewer.removed.truncation_removed_lines == 4
