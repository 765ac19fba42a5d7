import asyncio
import json

import msgspec
import pytest
from msgspec import Raw, Struct

from gong.errors import ConfigurationError
from gong.tools.builtin import builtin
from gong.tools.registry import Prepared, Registry
from gong.tools.tool import Tool, ToolContext, ToolResult
from tape.blocks import BlobRef, Image, Text, ToolCall, text_of


class Arguments(Struct):
    text: str
    times: int = 1
    loud: bool = False
    tags: tuple[str, ...] = ()


class Details(Struct):
    truncated: bool


async def echo(arguments, context):
    return ToolResult.from_text(arguments.text * arguments.times)


def tool(name="echo", run=echo):
    return Tool(name, "Says it again.", Arguments, run)


def call(args, name="echo"):
    raw = args if isinstance(args, bytes) else json.dumps(args).encode()
    return ToolCall(id="c1", name=name, args=Raw(raw))


def error_of(result):
    assert result.is_error
    return text_of(result.content)


async def run(tool, args, env=None):
    registry = Registry((tool,))
    prepared = registry.prepare(call(args))
    return await registry.run(prepared, ToolContext(env, "c1", lambda text: None))


def test_the_latest_of_a_name_wins_and_keeps_its_place():
    """M047"""
    registry = Registry((tool("a"), tool("b")))
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
    specs = Registry((tool("b"), tool("a"))).specs()
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
    assert specs == Registry((tool("b"), tool("a"))).specs()


def test_chosen_tools_are_all_a_model_sees_and_may_call():
    registry = Registry((tool("a"), tool("b"), tool("c")))
    registry.set_active(["c", "a", "c"])
    assert registry.active == ("c", "a")
    assert [spec.name for spec in registry.specs()] == ["c", "a"]
    assert error_of(registry.prepare(call({"text": "x"}, "b"))).startswith("Unknown tool: b")
    registry.unregister("c")
    assert registry.active == ("a",)


def test_unknown_names_and_an_empty_choice_are_refused():
    registry = builtin()
    with pytest.raises(ConfigurationError, match="Unknown tool: nonexistent"):
        registry.set_active(["read", "nonexistent"])
    with pytest.raises(ConfigurationError, match="No tools given"):
        registry.set_active([])
    with pytest.raises(ConfigurationError, match="Unknown preset of tools: all"):
        registry.preset("all")
    assert registry.active == registry.preset("default")


def test_presets_name_what_is_there():
    registry = builtin()
    assert registry.names == ("read", "write", "edit", "bash", "ls", "apply_patch")
    assert registry.preset("default") == ("read", "write", "edit", "bash", "ls")
    assert registry.preset("minimal") == ("read", "write", "edit", "bash")
    assert registry.preset("readonly") == ("read", "ls")


def test_only_tools_that_change_nothing_are_safe_to_run_twice():
    registry = builtin()
    safe = {name for name in registry.names if registry.get(name).replay == "safe"}
    assert safe == {"read", "ls"}


def test_an_unknown_tool_is_named_with_those_there_are():
    """M049"""
    result = Registry((tool(),)).prepare(call({}, "ehco"))
    assert error_of(result) == "Unknown tool: ehco: the tools there are: echo"


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
    said = error_of(Registry((tool(),)).prepare(call(args)))
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
    prepared = Registry((tool(),)).prepare(call(args))
    assert isinstance(prepared, Prepared)
    assert prepared.arguments == expected


def test_arguments_that_were_no_json_for_the_provider_are_tried_again():
    registry = Registry((tool(),))
    good = ToolCall(id="c", name="echo", args_text='{"text": "a\nb"}')
    assert registry.prepare(good).arguments == Arguments("a\nb")
    torn = ToolCall(id="c", name="echo", args_text='{"text": ')
    assert error_of(registry.prepare(torn)).startswith("Invalid arguments for tool: echo: ")


def test_no_arguments_at_all_are_an_empty_object():
    class Nothing(Struct):
        pass

    registry = Registry((Tool("now", "", Nothing, echo),))
    assert registry.prepare(ToolCall(id="c", name="now")).arguments == Nothing()
    assert registry.prepare(call(None, "now")).arguments == Nothing()


async def test_a_tool_that_raises_answers_with_its_error():
    """M049"""

    async def fail(arguments, context):
        raise LookupError(arguments.text)

    assert await run(tool(run=fail), {"text": "no such thing"}) == ToolResult.error(
        "Tool error (echo): no such thing"
    )
    assert error_of(await run(tool(run=fail), {"text": ""})) == "Tool error (echo): LookupError"


async def test_cancelling_passes_through():
    async def wait(arguments, context):
        await asyncio.sleep(60)

    running = asyncio.create_task(run(tool(run=wait), {"text": ""}))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_long_results_are_cut_with_the_whole_beside():
    result = await run(tool(), {"text": "line\n", "times": 3000})
    shown = text_of(result.content)
    assert shown.startswith("line\n" * 1999 + "line\n\n[Output cut: ")
    assert shown.endswith(
        "[Output cut: 9.8KB of 14.6KB, 2000 of 3000 lines. Ask for less to see the rest.]"
    )
    assert result.full == "line\n" * 3000


async def test_one_endless_line_is_cut_inside_between_characters():
    result = await run(tool(), {"text": "é", "times": 51_200})
    assert text_of(result.content).startswith("é" * 25_600 + "\n\n[Output cut: 50.0KB of 100.0KB")
    assert result.full == "é" * 51_200


async def test_a_picture_stays_beside_a_cut_text():
    picture = Image(blob=BlobRef("0" * 64, 3), mime="image/png")

    async def show(arguments, context):
        return ToolResult((Text("x\n" * 2500), picture))

    result = await run(tool(run=show), {"text": ""})
    assert result.content[1:] == (picture,)


@pytest.mark.parametrize("truncated", [True, False])
async def test_a_result_that_speaks_of_its_own_cut_is_left_alone(truncated):
    async def page(arguments, context):
        return ToolResult.from_text("x\n" * 2500, Details(truncated))

    result = await run(tool(run=page), {"text": ""})
    assert (text_of(result.content), result.full) == ("x\n" * 2500, None)


def test_results_have_two_channels():
    """M052"""
    details = Details(truncated=False)
    assert ToolResult.from_text("a") == ToolResult((Text("a"),), None, is_error=False)
    assert ToolResult.from_text("a", details).details is details
    assert ToolResult.error("b") == ToolResult((Text("b"),), None, is_error=True)


@pytest.mark.parametrize("name", builtin().active)
@pytest.mark.parametrize("wrong", [None, 42, ["a"], {"a": 1}])
async def test_wrong_types_never_reach_a_tool(use, name, wrong):
    registry = builtin()
    fields = msgspec.json.schema(registry.get(name).arguments)["$defs"]["Arguments"]["properties"]
    result = await use(name, **{**dict.fromkeys(fields, "1"), next(iter(fields)): wrong})
    if name == "ls" and wrong is None:
        assert not result.is_error
    else:
        assert error_of(result).startswith(f"Invalid arguments for tool: {name}: ")
