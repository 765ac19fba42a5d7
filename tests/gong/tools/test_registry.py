import asyncio
import json
from dataclasses import replace
from enum import StrEnum

import msgspec
import pytest
from msgspec import Raw, Struct

from gong.env.local import LocalEnvironment
from gong.env.wrappers import EnvironmentWrapper
from gong.errors import ConfigurationError
from gong.llm.types import Grammar
from gong.tool_settings import TruncationOverride
from gong.tools.builtin import build_registry
from gong.tools.limits import OutputLimits
from gong.tools.output_storage import FolderStorage
from gong.tools.registry import ToolRegistry, build_schema
from gong.tools.tool import (
    AgentTool,
    Diversion,
    PreparedCall,
    ToolContext,
    ToolOutcome,
    encode_details,
)
from gong.tools.truncation_service import TruncationOptions
from tape.model.entries import NO_JSON, BlobRef, Image, Text, ToolCall, join_texts
from tests.gong.tools.conftest import caller


class Arguments(Struct):
    text: str
    times: int = 1
    loud: bool = False
    tags: tuple[str, ...] = ()


class Details(Struct):
    truncated: bool


class Size(Struct):
    size: int


async def echo(arguments, context):
    return ToolOutcome.from_text(arguments.text * arguments.times)


def tool(name="echo", run=echo):
    return AgentTool(name, "Says it again.", Arguments, run)


def call(args, name="echo"):
    raw = args if isinstance(args, bytes) else json.dumps(args).encode()
    return ToolCall(id="c1", name=name, args=Raw(raw))


def error_of(result):
    assert result.is_error
    return join_texts(result.content)


async def run(tool, args, env=None, storage=None):
    registry = ToolRegistry((tool,))
    prepared = registry.prepare(call(args))
    return await registry.run(prepared, ToolContext(env, "c1", lambda text: None, storage))


@pytest.fixture
def storage(tmp_path):
    return FolderStorage(str(tmp_path / "kept"))


def test_the_latest_of_a_name_wins_and_keeps_its_place():
    """M047"""
    registry = ToolRegistry((tool("a"), tool("b")))
    newer = tool("a")
    registry.register(newer)
    registry.register(tool("c"))
    assert registry.names == ("a", "b", "c")
    assert registry.get("a") is newer
    registry.unregister("a")
    assert (registry.names, registry.get("a")) == (("b", "c"), None)
    with pytest.raises(ConfigurationError, match="Unknown tool: a"):
        registry.unregister("a")


def test_specs_say_name_description_and_schema_in_a_stable_order():
    """M046 M047"""
    specs = ToolRegistry((tool("b"), tool("a"))).specs()
    assert [(spec.name, spec.description) for spec in specs] == [
        ("b", "Says it again."),
        ("a", "Says it again."),
    ]
    assert msgspec.json.decode(specs[0].parameters) == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "times": {"type": "integer", "default": 1},
            "loud": {"type": "boolean", "default": False},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
        },
        "required": ["text"],
    }
    assert specs == ToolRegistry((tool("b"), tool("a"))).specs()


def test_chosen_tools_are_all_a_model_sees_and_may_call():
    registry = ToolRegistry((tool("a"), tool("b"), tool("c")))
    registry.set_active(["c", "a", "c"])
    assert registry.active == ("c", "a")
    assert [spec.name for spec in registry.specs()] == ["c", "a"]
    assert error_of(registry.prepare(call({"text": "x"}, "b"))).startswith("Unknown tool: b")
    registry.unregister("c")
    assert registry.active == ("a",)


SEVEN = ("read", "write", "edit", "bash", "grep", "find", "ls")


def test_all_tools_are_active_at_first():
    """M051 TOOLCFG-001"""
    registry = ToolRegistry(map(tool, SEVEN))
    assert registry.active == registry.preset("default") == SEVEN
    assert build_registry().active == build_registry().preset("default")


def test_presets_name_what_is_there():
    """M051 TOOLCFG-002 TOOLCFG-003"""
    registry = ToolRegistry(map(tool, SEVEN))
    assert registry.preset("minimal") == ("read", "write", "edit", "bash")
    assert registry.preset("readonly") == ("read", "grep", "find", "ls")
    registry.unregister("find")
    assert registry.preset("readonly") == ("read", "grep", "ls")


def test_a_choice_counts_from_the_next_call_on():
    """M051 TOOLCFG-004"""
    registry = ToolRegistry(map(tool, SEVEN))
    registry.set_active(registry.preset("readonly"))
    assert [spec.name for spec in registry.specs()] == ["read", "grep", "find", "ls"]
    assert registry.prepare(call({"text": "x"}, "bash")).kind == "UnknownTool"
    registry.set_active(["bash"])
    assert isinstance(registry.prepare(call({"text": "x"}, "bash")), PreparedCall)


def test_unknown_names_and_an_empty_choice_are_refused():
    """M051 TOOLCFG-005 TOOLCFG-006"""
    registry = build_registry()
    with pytest.raises(ConfigurationError, match="Unknown tool: nonexistent"):
        registry.validate(["nonexistent"])
    with pytest.raises(ConfigurationError, match="Unknown tool: nonexistent"):
        registry.set_active(["read", "nonexistent"])
    with pytest.raises(ConfigurationError, match="No tools given"):
        registry.set_active([])
    with pytest.raises(ConfigurationError, match="Unknown preset of tools: all"):
        registry.preset("all")
    assert registry.active == registry.preset("default")


def test_no_tool_that_changes_something_is_safe_to_run_twice():
    registry = build_registry()
    safe = {name for name in registry.names if registry.get(name).replay == "safe"}
    assert safe >= {"read", "ls"}
    assert safe.isdisjoint({"write", "edit", "bash", "apply_patch", "shell", "write_file"})


def test_an_unknown_tool_is_named_with_those_there_are():
    """M049 M050"""
    registry = ToolRegistry((tool(), tool("list_dir")))
    for name, meant in (("ehco", "echo"), ("Echo", "echo"), ("list_directory", "list_dir")):
        result = registry.prepare(call({}, name))
        assert error_of(result) == (
            f"Unknown tool: {name}: did you mean {meant}? the tools there are: echo, list_dir"
        )
        assert result.kind == "UnknownTool"
    other = registry.prepare(call({}, "web_search"))
    assert error_of(other) == "Unknown tool: web_search: the tools there are: echo, list_dir"


@pytest.mark.parametrize(
    ("args", "wrong"),
    [
        ({}, "Object missing required field `text`"),
        ({"text": None}, "Expected `str`, got `null` - at `$.text`"),
        ({"text": 42}, "Expected `str`, got `int` - at `$.text`"),
        ({"text": ["a"]}, "Expected `str`, got `array` - at `$.text`"),
        ({"text": "a", "times": "many"}, "Expected `int`, got `str` - at `$.times`"),
        ([1], "Expected `object`, got `array`"),
        (b'{"text": "a', "Unterminated string starting at: line 1 column 10 (char 9)"),
        (b"\xff", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (b"[" * 100_000, "maximum recursion depth exceeded while decoding a JSON array"),
    ],
)
def test_wrong_arguments_say_what_is_wrong_and_what_is_expected(args, wrong):
    """M049"""
    said = error_of(ToolRegistry((tool(),)).prepare(call(args)))
    assert said.startswith(f"Invalid arguments for tool: echo: {wrong}")
    assert said.endswith(
        ". Expected: text (string), times (integer, optional), loud (boolean, optional),"
        " tags (array, optional)"
    )


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"text": "a", "times": "3"}, Arguments("a", 3)),
        ({"text": "a", "times": 3.0, "loud": "true"}, Arguments("a", 3, loud=True)),
        ({"text": "a", "times": None, "loud": None}, Arguments("a")),
        ({"text": "a", "tags": '["x", "y"]'}, Arguments("a", tags=("x", "y"))),
        ({"text": "a", "colour": "red"}, Arguments("a")),
        (json.dumps({"text": "a"}), Arguments("a")),
        (b'{"text": "a\nb\tc"}', Arguments("a\nb\tc")),
    ],
)
def test_arguments_are_bent_to_the_schema(args, expected):
    prepared = ToolRegistry((tool(),)).prepare(call(args))
    assert isinstance(prepared, PreparedCall)
    assert prepared.arguments == expected


def test_arguments_that_were_no_json_for_the_provider_are_tried_again():
    registry = ToolRegistry((tool(),))
    good = ToolCall(id="c", name="echo", args_text='{"text": "a\nb"}')
    assert registry.prepare(good).arguments == Arguments("a\nb")
    torn = ToolCall(id="c", name="echo", args_text='{"text": ')
    assert error_of(registry.prepare(torn)).startswith("Invalid arguments for tool: echo: ")


def test_no_arguments_at_all_are_an_empty_object():
    class Nothing(Struct):
        pass

    registry = ToolRegistry((AgentTool("now", "", Nothing, echo),))
    assert registry.prepare(ToolCall(id="c", name="now")).arguments == Nothing()
    assert registry.prepare(call(None, "now")).arguments == Nothing()


class Patch(Struct):
    input: str


def test_text_for_a_tool_that_takes_text_is_its_input():
    registry = ToolRegistry(
        (AgentTool("patch", "", Patch, echo, freeform=Grammar("lark", "start: /.*/")),)
    )

    def given(**parts):
        return registry.prepare(ToolCall(id="c", name="patch", **parts)).arguments.input

    assert given(args_text="*** Begin Patch\n") == "*** Begin Patch\n"
    assert given(args_text='{"input": "a\nb"}') == "a\nb"
    assert given(args=Raw(b'{"input": "a"}')) == "a"
    assert given(args=Raw(b'"a"')) == "a"


def test_another_tool_may_be_meant():
    other = tool("other")

    def divert(arguments):
        if arguments.text == "no":
            return ToolOutcome.error("not so")
        return Diversion(other, Arguments("b")) if arguments.text == "other" else None

    registry = ToolRegistry((replace(tool(), divert=divert),))
    meant = registry.prepare(call({"text": "other"}))
    assert (meant.tool, meant.arguments, meant.call.name) == (other, Arguments("b"), "echo")
    assert error_of(registry.prepare(call({"text": "no"}))) == "not so"
    assert registry.prepare(call({"text": "a"})).tool.name == "echo"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError("a"), "FileNotFound"),
        (PermissionError("a"), "PermissionDenied"),
        (ValueError("a"), None),
    ],
)
async def test_errors_have_names_for_programs(error, kind):
    """M050"""

    async def fail(arguments, context):
        raise error

    result = await run(tool(run=fail), {"text": ""})
    assert (error_of(result), result.kind) == ("Tool error (echo): a", kind)
    assert encode_details(result) == (
        Raw(b'{"error_kind":"%s"}' % kind.encode()) if kind else Raw(b"")
    )


async def test_a_tool_that_raises_answers_with_its_error():
    """M049"""

    async def fail(arguments, context):
        raise LookupError(arguments.text)

    assert await run(tool(run=fail), {"text": "no such thing"}) == ToolOutcome.error(
        "Tool error (echo): no such thing"
    )
    assert error_of(await run(tool(run=fail), {"text": ""})) == "Tool error (echo): LookupError"


class Speechless(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Shade(StrEnum):
    RED = "red"


async def test_an_error_whose_words_fail_answers_with_its_name():
    async def fail(arguments, context):
        raise Speechless

    assert error_of(await run(tool(run=fail), {"text": ""})) == "Tool error (echo): Speechless"


@pytest.mark.parametrize("answer", [Shade.RED, ToolOutcome.from_text(Shade.RED)])
async def test_a_text_of_its_own_class_is_a_plain_one(answer):
    async def name_shade(arguments, context):
        return answer

    (block,) = (await run(tool(run=name_shade), {"text": ""})).content
    assert type(block.text) is str
    assert block.text == "red"


async def test_a_block_whose_text_is_none_answers_with_an_error():
    async def count(arguments, context):
        return ToolOutcome.from_text(5)

    words = "Tool error (echo): the text of a block is int, not text"
    assert error_of(await run(tool(run=count), {"text": ""})) == words


async def test_cancelling_passes_through():
    async def wait(arguments, context):
        await asyncio.sleep(60)

    running = asyncio.create_task(run(tool(run=wait), {"text": ""}))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_long_results_are_cut_with_the_whole_beside(storage):
    """M120 M222: the only tool there is does not help to see the rest."""
    result = await run(tool(), {"text": "line\n", "times": 3000}, storage=storage)
    shown = join_texts(result.content)
    assert shown.startswith("line\n" * 1999 + "line\n\n...1000 lines truncated...\n\n")
    path = result.removed.truncation_path
    assert shown.endswith(f"Full output saved to: {path}")
    assert await storage.read(path) == result.full == "line\n" * 3000


async def test_one_endless_line_is_cut_inside_between_characters(storage):
    result = await run(tool(), {"text": "é", "times": 51_200}, storage=storage)
    assert join_texts(result.content).startswith("é" * 25_600 + "\n\n...51200 bytes truncated...")
    assert result.full == "é" * 51_200


async def test_a_tool_declares_how_its_results_are_cut(storage):
    """M121"""
    declared = replace(tool(), truncation=TruncationOverride(direction="tail", max_lines=2))
    result = await run(declared, {"text": "a\nb\nc\nd"}, storage=storage)
    assert join_texts(result.content).startswith("...2 lines truncated...")
    assert join_texts(result.content).endswith("c\nd")
    at_length = replace(tool(), truncation=TruncationOverride(enabled=False))
    assert join_texts((await run(at_length, {"text": "a\n" * 3000})).content) == "a\n" * 3000


async def test_a_call_is_cut_differently(storage):
    """M115: one call goes before all else."""
    registry = ToolRegistry((tool(),))
    prepared = registry.prepare(call({"text": "a\nb\nc"}))
    context = ToolContext(None, "c1", lambda text: None, storage)
    cut = await registry.run(prepared, context, TruncationOptions(max_lines=1))
    assert cut.removed.truncation_removed_lines == 2


async def test_a_tool_of_a_family_is_cut_as_the_family_expects():
    """M112 C3: one cut, not two."""
    tool_of_family = replace(tool(), limits=OutputLimits(10, "tail"))
    result = await run(tool_of_family, {"text": "x", "times": 60_000})
    assert join_texts(result.content).startswith(
        "[WARNING: Tool output was truncated. First 59990 "
    )
    assert (result.full, result.removed) == ("x" * 60_000, None)
    assert (await run(tool_of_family, {"text": "x"})).full is None


async def test_a_changed_content_leaves_details(storage):

    async def long(arguments, context):
        return ToolOutcome.from_text("x\n" * 3000, Size(6000))

    result = await run(tool(run=long), {"text": ""}, storage=storage)
    assert join_texts(result.content).startswith(
        "x\n" * 1999 + "x\n\n...1000 lines truncated...\n\n"
    )
    assert result.details == Size(6000)
    assert json.loads(bytes(encode_details(result)))["size"] == 6000


async def test_a_picture_stays_beside_a_cut_text(storage):
    picture = Image(blob=BlobRef("0" * 64, 3), mime="image/png")

    async def show(arguments, context):
        return ToolOutcome((Text("x\n" * 2500), picture))

    result = await run(tool(run=show), {"text": ""}, storage=storage)
    assert result.content[1:] == (picture,)


@pytest.mark.parametrize("truncated", [True, False])
async def test_a_result_that_speaks_of_its_own_cut_is_left_alone(truncated):
    async def page(arguments, context):
        return ToolOutcome.from_text("x\n" * 2500, Details(truncated))

    result = await run(tool(run=page), {"text": ""})
    assert (join_texts(result.content), result.full) == ("x\n" * 2500, None)


def test_results_have_two_channels():
    """M052 M054 TOOLRES-001 TOOLRES-002"""
    details = Details(truncated=False)
    assert ToolOutcome.from_text("a") == ToolOutcome((Text("a"),), None, is_error=False)
    assert ToolOutcome.from_text("a", details).details is details
    assert encode_details(ToolOutcome.from_text("a")) == NO_JSON


def test_an_error_says_so_in_its_text():
    """M054 TOOLRES-005"""
    assert ToolOutcome.error("b") == ToolOutcome((Text("b"),), None, is_error=True)


async def test_an_edit_has_its_diff_for_people_only(use, folder):
    """M054 TOOLRES-003"""
    (folder / "a").write_text("old\n")
    result = await use("edit", path="a", oldText="old", newText="new")
    details = json.loads(bytes(encode_details(result)))
    assert join_texts(result.content) == "Successfully replaced text in a."
    assert (details["old_text"], details["new_text"]) == ("old", "new")
    assert "+ 1 new" in details["diff_lines"]


DETAILS = {
    "write": ({"path": "b.txt", "content": "é\n"}, {"path": "b.txt", "byte_size": 3}),
    "edit": (
        {"path": "a.txt", "oldText": "one", "newText": "1"},
        {"path": "a.txt", "old_text": "one", "new_text": "1", "diff_lines": ["- 1 one", "+ 1 1"]},
    ),
    "read": (
        {"path": "a.txt", "limit": 1},
        {"path": "a.txt", "line_count": 2, "truncated": False, "encoding": "utf-8"},
    ),
    "bash": ({"command": "exit 3"}, {"command": "exit 3", "exit_code": 3, "truncated": False}),
    "grep": ({"pattern": "o"}, {"pattern": "o", "file_count": 1, "match_count": 2}),
    "find": ({"pattern": "*"}, {"pattern": "*", "result_count": 1, "truncated": False}),
    "ls": ({"path": "."}, {"path": ".", "entry_count": 1, "total_size": 8}),
}


@pytest.mark.parametrize("name", build_registry().active)
async def test_details_of_each_tool_say_what_it_did(use, folder, name):
    """M053: created and duration_ms are there, too."""
    (folder / "a.txt").write_text("one\ntwo\n")
    given, expected = DETAILS[name]
    details = json.loads(bytes(encode_details(await use(name, **given))))
    if name == "edit":
        assert details["diff_lines"].pop() == "  2 two"
    assert {key: details[key] for key in expected} == expected
    assert name != "write" or details["created"] is True
    assert name != "bash" or details["duration_ms"] >= 0


@pytest.mark.parametrize("name", build_registry().active)
@pytest.mark.parametrize("wrong", [None, 42, ["a"], {"a": 1}])
async def test_wrong_types_never_reach_a_tool(use, name, wrong):
    """M045 M050"""
    schema = build_schema(build_registry().get(name).arguments)
    first = next(iter(schema["properties"]))
    result = await use(name, **{**dict.fromkeys(schema["properties"], "1"), first: wrong})
    if wrong is None and first not in schema.get("required", ()):
        assert result.kind != "ValidationError"
    else:
        assert error_of(result).startswith(f"Invalid arguments for tool: {name}: ")
        assert result.kind == "ValidationError"


class ClosedEnvironment(EnvironmentWrapper):
    """Refuses to look at anything."""

    async def read_file(self, path, root=None):
        raise PermissionError(13, "Permission denied", path)

    list_directory = grep = glob = read_file


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"path": "../x"}),
        ("ls", {"path": "../x"}),
        ("grep", {"path": "../x", "pattern": "a"}),
        ("find", {"path": "../x", "pattern": "a"}),
    ],
)
async def test_a_closed_path_is_the_same_error_for_every_tool(tmp_path, tool, arguments):
    """M050: grep and find named no kind, read and ls did."""
    env = ClosedEnvironment(LocalEnvironment(str(tmp_path), {"PATH": ""}))
    result = await caller(build_registry(), env, [])(tool, **arguments)
    assert (result.is_error, result.kind) == (True, "PermissionDenied"), result
