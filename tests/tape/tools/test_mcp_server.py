"""`tape mcp` as agents see it: the SDK's own client, in real processes."""

from __future__ import annotations

import socket
import subprocess
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import jsonschema
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from msgspec import Raw

from tape import Assistant, Beginning, Text, User, open_store
from tape.model.entries import ChangedFile, ToolCall, ToolResult, Usage
from tape.tools.agent_tools import TOOLS
from tape.tools.mcp_server import build_server, serve_http
from tests import warm

READING = ["search", "log", "show", "context", "blame", "files"]
WRITING = ["append", "label", "fork"]


@pytest.fixture
def place(tmp_path):
    """A store with one session, which wrote a file in its folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "notes.txt").write_text("the heron\nflies\n")
    store, _ = open_store(tmp_path / "store")
    with (
        store.create(Beginning(cwd=str(folder), program="me/1", title="Birds")) as tape,
        tape.writer() as writer,
    ):
        writer.append(User((Text("Write about a heron."),)))
        args = Raw(b'{"path":"notes.txt","content":"the heron\\nflies\\n"}')
        call = ToolCall(id="c1", name="write", args=args)
        who = dict.fromkeys(("provider", "api", "endpoint", "model"), "m")
        writer.append(Assistant((call,), **who, stop_reason="tool_calls", usage=Usage()))
        files = (ChangedFile("notes.txt", "created"),)
        writer.append(ToolResult("c1", "write", (Text("written"),), files=files))
    return tmp_path


def command(place, *more):
    return [str(warm.find_commands() / "tape"), "--store", str(place / "store"), "mcp", *more]


@asynccontextmanager
async def connect(place, *more, mode="auto"):
    program, *words = command(place, *more)
    parameters = StdioServerParameters(
        command=program, args=words, cwd=place / "work", env={"LC_ALL": "C.UTF-8"}
    )
    async with Client(parameters, mode=mode) as client:
        yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_reading_tools_are_served_with_schemas_and_hints(place, mode):
    """M182: a server of our own."""
    async with connect(place, mode=mode) as client:
        tools = (await client.list_tools()).tools
    assert [one.name for one in tools] == READING
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        assert tool.annotations.read_only_hint is True
        assert tool.input_schema["type"] == tool.output_schema["type"] == "object"


CALLS = [
    ("search", {"query": "heron"}, "matches", "Birds"),
    ("log", {"limit": 2}, "entries", "written"),
    ("show", {"ref": "~1"}, "text", "notes.txt"),
    ("context", {}, "messages", "Write about a heron."),
    ("blame", {"file": "notes.txt"}, "ranges", "prompt: Write about a heron."),
]


@pytest.mark.parametrize(("name", "arguments", "key", "shown"), CALLS)
async def test_an_answer_has_a_text_and_the_same_as_values(place, name, arguments, key, shown):
    async with connect(place) as client:
        result = await client.call_tool(name, arguments)  # the SDK checks the output schema
    assert not result.is_error
    assert shown in result.content[0].text
    assert result.structured_content[key]


async def test_files_that_a_session_changed_are_listed(place):
    async with connect(place) as client:
        result = await client.call_tool("files", {})
    assert [one["path"] for one in result.structured_content["files"]] == ["notes.txt"]


async def test_a_list_comes_in_pages(place):
    seen, offset = [], 0
    async with connect(place) as client:
        while offset is not None:
            page = (
                await client.call_tool("log", {"limit": 1, "offset": offset})
            ).structured_content
            seen += [one["type"] for one in page["entries"]]
            offset = page["next"]
    assert seen == ["tool.result", "assistant", "user", "start"]


WRONG = [
    ("show", {"ref": "nowhere"}, "nowhere"),
    ("log", {"limit": 0}, "limit"),
    ("log", {"more": 1}, "more"),
    ("search", {}, "query"),
    ("blame", {"file": "none"}, "does not exist"),
]


@pytest.mark.parametrize(("name", "arguments", "said"), WRONG)
async def test_a_wrong_call_is_an_error_that_says_what_is_wrong(place, name, arguments, said):
    async with connect(place) as client:
        result = await client.call_tool(name, arguments)
    assert result.is_error
    assert said in result.content[0].text


async def test_nothing_is_written_without_the_flag(place):
    async with connect(place) as client:
        with pytest.raises(MCPError, match="Unknown tool: append"):
            await client.call_tool("append", {"text": "x"})


async def test_the_flag_serves_what_writes(place):
    async with connect(place, "--write") as client:
        tools = (await client.list_tools()).tools
        assert [one.name for one in tools] == [*READING, *WRITING]
        assert [one.annotations.read_only_hint for one in tools][-3:] == [False] * 3
        added = await client.call_tool("append", {"text": "look here"})
        named = await client.call_tool("label", {"name": "good"})
        forked = await client.call_tool("fork", {"ref": "@good", "name": "other"})
        shown = await client.call_tool("show", {"ref": ":other"})
        refused = await client.call_tool("append", {"ref": "@good", "text": "x"})
    assert added.structured_content["ref"] == named.structured_content["ref"]
    assert forked.structured_content["branch"] == "other"
    assert "look here" in shown.content[0].text
    assert refused.is_error


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_it_is_served_over_http_on_the_loopback_address(place, mode):
    with subprocess.Popen(  # noqa: ASYNC220 (nothing else runs here)
        command(place, "--http", "0"), cwd=place / "work", stdout=subprocess.PIPE, text=True
    ) as served:
        try:
            address = served.stdout.readline().removeprefix("serving ").strip()
            assert address.startswith("http://127.0.0.1:")
            async with Client(address, mode=mode) as client:
                result = await client.call_tool("search", {"query": "heron"})
        finally:
            served.terminate()
    assert result.structured_content["matches"][0]["title"] == "Birds"


def test_an_address_that_is_reported_can_be_connected_to():
    class Connected(Exception):
        pass

    def connect_there(address):
        url = urlsplit(address)
        socket.create_connection((url.hostname, url.port), timeout=5).close()
        raise Connected

    with pytest.raises(Connected):
        serve_http(build_server([]), 0, connect_there)


def test_every_tool_has_an_answer_of_its_own_kind():
    assert [tool.name for tool in TOOLS] == [*READING, *WRITING]
    assert [tool.name for tool in TOOLS if tool.writes] == WRITING
