"""Servers that send something odd: it costs itself only, and is named (M182)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from gong.agent import events
from tape.model.entries import ToolResult, join_texts
from tests import warm
from tests.gong.agent.conftest import call, seen

RAW_SERVER = Path(__file__).with_name("raw_server.py")
GOOD = {"name": "good", "description": "g", "inputSchema": {"type": "object"}}
COIN = {"coin": {"type": "string"}, "required": ["coin"]}
ODD_TOOLS = [
    ({"inputSchema": {"anyOf": [{"type": "object"}]}}, "inputSchema.type: Field required"),
    ({"inputSchema": {"type": "string"}}, "inputSchema.type: Input should be 'object'"),
    ({"inputSchema": {}}, "inputSchema.type: Field required"),
    ({}, "inputSchema: Field required"),
    (
        {"inputSchema": {"properties": COIN}},
        "inputSchema.properties.required: Input should be a valid dictionary",
    ),
    (
        {"inputSchema": {"type": "object"}, "outputSchema": {"type": "string"}},
        "outputSchema.type: Input should be 'object'",
    ),
    ({"inputSchema": {"type": "object"}, "icons": "x"}, "icons: Input should be a valid list"),
    ({"inputSchema": {"type": "object"}, "name": "good"}, "another tool has its name"),
]


def write_answers(folder, **answers):
    """Return the entry of a server with these answers, by method with _ for the slash."""
    file = folder / "answers.json"
    file.write_text(json.dumps({name.replace("_", "/"): one for name, one in answers.items()}))
    return {"command": sys.executable, "args": [str(RAW_SERVER), str(file)]}


def warnings(shown):
    return [one.message for one in shown if isinstance(one, events.Warn)]


@pytest.mark.parametrize(("odd", "why"), ODD_TOOLS)
async def test_an_odd_tool_is_named_and_the_others_stay(stage, odd, why):
    """M182: a tool that is not as the protocol says takes no other away."""
    bad = {"name": "bad", "description": "b", **odd}
    stage.use(s=write_answers(stage.folder.parent, tools_list={"tools": [GOOD, bad]}))
    session = await stage.session({"text": "one"}, {"text": "two"})
    told = warnings(await seen(session, "hi")) + warnings(await seen(session, "again"))
    own = [name for name in session.setup.tools.active if "__" in name]
    assert own == ["s__good"]
    assert told == [f"MCP server s: the tool {bad['name']} is left out: {why}"]


async def test_what_is_no_tool_at_all_is_counted(stage):
    stage.use(s=write_answers(stage.folder.parent, tools_list={"tools": [None, GOOD, "x"]}))
    session = await stage.session({"text": "one"})
    told = warnings(await seen(session, "hi"))
    assert [one.partition(" is left out")[0] for one in told] == [
        "MCP server s: the tool no. 1",
        "MCP server s: the tool no. 3",
    ]
    assert "s__good" in session.setup.tools.active


@pytest.mark.parametrize("name", ["", " ", "\t"])
async def test_a_tool_without_a_name_is_counted(stage, name):
    """M182: a call of it could name nothing."""
    bad = {"name": name, "description": "b", "inputSchema": {"type": "object"}}
    stage.use(s=write_answers(stage.folder.parent, tools_list={"tools": [GOOD, bad]}))
    session = await stage.session({"text": "one"})
    told = warnings(await seen(session, "hi"))
    assert [name for name in session.setup.tools.active if "__" in name] == ["s__good"]
    assert told == ["MCP server s: the tool no. 2 is left out: its name is empty"]


@pytest.mark.parametrize(
    ("said", "got"),
    [("a\ud800b", "a\ufffdb"), ("a\0b", "a\0b"), ("\udc00\ud83d", "\ufffd\ufffd")],
)
async def test_half_a_surrogate_pair_in_a_result_becomes_a_mark(stage, said, got):
    """The text of the result stays, and the call ends at once."""
    result = {"content": [{"type": "text", "text": said}]}
    stage.use(
        s=write_answers(
            stage.folder.parent, tools_list={"tools": [GOOD]}, tools_call={"good": result}
        )
    )
    calls = {"tool_calls": [call("s__good")]}
    session = await stage.session(calls, {"text": "done"})
    await seen(session, "go")
    (answer,) = (one.data for one in session.recorder.path if isinstance(one.data, ToolResult))
    assert (join_texts(answer.content), answer.is_error) == (got, False)


def run_test(stage, *options):
    """Return what `gong mcp test s` prints and warns of."""
    environ = {"HOME": str(stage.folder.parent), "PATH": "/usr/bin:/bin"}
    return warm.run_text(
        [warm.BIN / "gong", "mcp", "test", "s", *options], cwd=stage.folder, env=environ
    )


async def test_the_command_names_odd_tools_resources_and_prompts(stage):
    nameless = {"name": "none", "description": None, "inputSchema": {"type": "object"}}
    entry = write_answers(
        stage.folder.parent,
        tools_list={"tools": [nameless, {"name": "bad"}, GOOD]},
        resources_list={"resources": [{"uri": "memo://1", "name": "memo"}, {"name": "lost"}]},
        prompts_list={"prompts": [{"name": "p", "arguments": "x"}, {"name": "q"}]},
    )
    stage.use(s=entry)
    done = run_test(stage)
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            "s: raw 1, protocol 2025-11-25",
            "  s__good  g",
            "  s__none",
            "  1 resources",
            "  1 prompts",
        ],
    )
    assert done.stderr.splitlines() == [
        "gong: MCP server s: the tool bad is left out: inputSchema: Field required",
        "gong: MCP server s: the resource lost is left out: uri: Field required",
        "gong: MCP server s: the prompt p is left out: arguments: Input should be a valid list",
    ]
    listed = json.loads(run_test(stage, "--json").stdout)
    assert [(one["kind"], one["name"]) for one in listed["left_out"]] == [
        ("tool", "bad"),
        ("resource", "lost"),
        ("prompt", "p"),
    ]


RESULTS = {
    "summary": (
        {"content": [{"type": "text", "text": "2 items"}], "structuredContent": {"n": [7, 8]}},
        '2 items\n{"n": [7, 8]}',
    ),
    "only": ({"content": [], "structuredContent": {"n": 1}}, '{"n": 1}'),
    "absent": ({"structuredContent": {"n": 1}}, '{"n": 1}'),
    "same": (
        {"content": [{"type": "text", "text": '{\n "n": 1}'}], "structuredContent": {"n": 1}},
        '{\n "n": 1}',
    ),
    "field": (
        {"content": [{"type": "text", "text": "a\nb"}], "structuredContent": {"text": "a\nb"}},
        "a\nb",
    ),
    "wrapped": (
        {
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            "structuredContent": {"result": ["a", "b"]},
        },
        "a\nb",
    ),
    "list": ({"content": [], "structuredContent": [1, {"n": 2}]}, '[1, {"n": 2}]'),
    "number": ({"content": [{"type": "text", "text": "one"}], "structuredContent": 7}, "one\n7"),
    "word": ({"content": [{"type": "text", "text": "w"}], "structuredContent": "w"}, "w"),
    "notes": ({"content": [{"type": "text", "text": "seen"}], "_meta": "x"}, "seen"),
    "unknown": (
        {"content": [{"type": "film", "x": 1}, {"type": "text", "text": "seen"}]},
        '{"type": "film", "x": 1}\nseen',
    ),
}


@pytest.mark.parametrize("is_error", [False, True])
async def test_structured_content_reaches_the_model_beside_other_content(stage, is_error):
    tools = [{**GOOD, "name": name} for name in RESULTS]
    made = {name: {**one, "isError": is_error} for name, (one, _) in RESULTS.items()}
    stage.use(s=write_answers(stage.folder.parent, tools_list={"tools": tools}, tools_call=made))
    calls = [call(f"s__{name}") for name in RESULTS]
    session = await stage.session({"tool_calls": calls}, {"text": "done"})
    await seen(session, "hi")
    results = [one.data for one in session.recorder.path if isinstance(one.data, ToolResult)]
    assert [join_texts(one.content).strip() for one in results] == [
        said for _, said in RESULTS.values()
    ]
    assert {one.is_error for one in results} == {is_error}


async def test_a_result_that_does_not_fit_its_schema_is_shown_with_that_remark(stage):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    tools = [{**GOOD, "name": name, "outputSchema": schema} for name in ("none", "wrong", "right")]
    text = [{"type": "text", "text": "only text 42"}]
    made = {
        "none": {"content": text},
        "wrong": {"content": text, "structuredContent": {"a": 1}},
        "right": {"content": text, "structuredContent": {"a": "1"}},
    }
    stage.use(s=write_answers(stage.folder.parent, tools_list={"tools": tools}, tools_call=made))
    calls = [call(f"s__{name}") for name in made]
    session = await stage.session({"tool_calls": calls}, {"text": "done"})
    await seen(session, "hi")
    results = [one.data for one in session.recorder.path if isinstance(one.data, ToolResult)]
    unfit = "[Not as the output schema of the tool says: a: 1 is not of type 'string']"
    assert [join_texts(one.content) for one in results] == [
        "only text 42\n[The tool has an output schema but did not return structured content]",
        f'only text 42\n{{"a": 1}}\n{unfit}',
        'only text 42\n{"a": "1"}',
    ]
    assert [one.is_error for one in results] == [False, False, False]


async def test_a_property_that_providers_refuse_has_another_name_for_the_model(stage):
    schema = {"type": "object", "properties": {"$top": {"type": "int"}, "a b": {}}}
    tools = [{**GOOD, "inputSchema": schema}]
    stage.use(s=write_answers(stage.folder.parent, tools_list={"tools": tools}, tools_call={}))
    asked = call("s__good", _top=3, a_b="x", c=True)
    session = await stage.session({"tool_calls": [asked]}, {"text": "done"})
    await seen(session, "hi")
    (result,) = [one.data for one in session.recorder.path if isinstance(one.data, ToolResult)]
    assert json.loads(join_texts(result.content)) == {"$top": 3, "a b": "x", "c": True}


async def test_a_server_without_any_list_says_what_is_wrong(stage):
    stage.use(s=write_answers(stage.folder.parent, tools_list={"tools": None}))
    session = await stage.session({"text": "one"})
    (told,) = warnings(await seen(session, "hi"))
    assert told.startswith(
        "MCP server s is left out: its answer is not as the protocol says: tools: Input should be"
    )
