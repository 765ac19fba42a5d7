"""The real command against a server of ours that speaks the provider's wire."""

from __future__ import annotations

import asyncio
import json

from gong.tools.builtin import SESSION_TOOLS
from gong.tools.profiles import PROFILES
from tests.tape import reader
from tests.wires.anthropic import THINKING, start, stop, text_block, tool_block
from tests.wires.server import Reply, WireServer, json_reply, sse

MODEL = "anthropic/claude-sonnet-5-5"


async def start_gong(place, server, *argv, stdin=asyncio.subprocess.PIPE):
    """Start `gong` with the server as its host."""
    return await asyncio.create_subprocess_exec(
        str(place.bin / "gong"),
        *argv,
        cwd=place.folder,
        env={**place.env, "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-secret-123"},
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def chat(place, server, *argv, code=0):
    """Run `gong chat` with the server as its host and return what it printed."""
    stdin = asyncio.subprocess.DEVNULL
    process = await start_gong(place, server, "chat", "-m", MODEL, *argv, stdin=stdin)
    out, err = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode == code, (process.returncode, out, err)
    return out.decode(), err.decode()


def calling(tool, **args):
    return sse(
        start(), *THINKING, *tool_block(1, "toolu_1", tool, json.dumps(args)), *stop("tool_use")
    )


def saying(words):
    return sse(start(), *text_block(0, words), *stop("end_turn", output_tokens=3))


async def test_a_tool_round_trip_over_the_wire_is_recorded(place):
    (place.folder / "a.txt").write_text("alpha\n")
    async with WireServer(
        Reply(calling("read", path="a.txt"), chunk=7), Reply(saying("It is alpha."))
    ) as server:
        out, err = await chat(place, server, "-p", "what is in a.txt?")
        first, second = (seen.body for seen in server.requests)
    assert (out, err) == ("It is alpha.\n", "")
    assert {tool["name"] for tool in first["tools"]} == {
        *PROFILES["anthropic"].tools,
        *PROFILES["anthropic"].agent_tools,
        *SESSION_TOOLS,
        *("NotebookEdit", "WebFetch"),
    }
    assert "Working directory" in first["system"][0]["text"]
    user, assistant, result = second["messages"]
    assert user["content"][0]["text"] == "what is in a.txt?"
    assert [block["type"] for block in assistant["content"]] == ["thinking", "tool_use"]
    assert assistant["content"][0]["signature"]
    assert result["content"][0]["tool_use_id"] == assistant["content"][1]["id"]
    assert result["content"][0]["content"][0]["text"] == "alpha\n"
    kinds = [entry["type"] for entry in place.json("tape", "log", "--json")]
    assert kinds == [
        "start",
        "user",
        "assistant",
        "approval",
        "tool.start",
        "tool.result",
        "assistant",
    ]
    assert reader.faults(place.tapes()[0]) == []


async def test_the_prefix_of_a_request_does_not_change_between_turns(place):
    async with WireServer(Reply(calling("ls", path=".")), Reply(saying("Nothing."))) as server:
        await chat(place, server, "-p", "look")
        first, second = (seen.body for seen in server.requests)
    assert first["tools"] == second["tools"]
    assert first["system"] == second["system"]


async def test_a_refused_key_ends_with_6_and_is_nowhere_to_be_read(place):
    """J9-5.6"""
    error = {
        "type": "error",
        "error": {"type": "authentication_error", "message": "bad sk-secret-123"},
    }
    async with WireServer(json_reply(401, error)) as server:
        out, err = await chat(place, server, "-p", "hi", "--output-format", "json", code=6)
        assert len(server.requests) == 1
    assert json.loads(out)["error"]["class"] == "AuthenticationError"
    assert "sk-secret-123" not in out + err
    tape = b"".join(reader.files(place.tapes()[0]).values())
    assert b"sk-secret-123" not in tape


async def test_an_overloaded_host_is_tried_again(place):
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    refused = json_reply(529, error, retry_after="0")
    async with WireServer(refused, Reply(saying("Here I am."))) as server:
        out, err = await chat(place, server, "-p", "hi")
        assert len(server.requests) == 2
    assert out == "Here I am.\n"
    assert "try 2" in err


async def test_a_connection_cut_in_the_answer_keeps_its_text(place):
    """J9-5.1"""
    cut = Reply(saying("Half of what")[:-120], cut=True)
    async with WireServer(cut) as server:
        await chat(place, server, "-p", "hi", code=75)
    last = place.json("tape", "log", "--json")[-2:]
    assert [entry["type"] for entry in last] == ["assistant", "error"]
    assert last[0]["data"]["partial"] is True


SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srv_1",
    "content": [{"type": "web_search_result", "url": "https://a.example/", "title": "Page A"}],
}
CITED = {
    "type": "web_search_result_location",
    "url": "https://a.example/",
    "title": "Page A",
    "cited_text": "forty-two",
}


def event(kind, **fields):
    return {"type": kind, **fields}


def searching():
    """Return an answer for which the provider has searched the web."""
    question = {"type": "input_json_delta", "partial_json": '{"query": "the answer"}'}
    words = {"type": "text_delta", "text": "It is 42."}
    return sse(
        start(),
        event("content_block_start", index=0, content_block=SEARCH),
        event("content_block_delta", index=0, delta=question),
        event("content_block_stop", index=0),
        event("content_block_start", index=1, content_block=FOUND),
        event("content_block_stop", index=1),
        event("content_block_start", index=2, content_block={"type": "text", "text": ""}),
        event("content_block_delta", index=2, delta=words),
        event("content_block_delta", index=2, delta={"type": "citations_delta", "citation": CITED}),
        event("content_block_stop", index=2),
        *stop("end_turn", output_tokens=3, server_tool_use={"web_search_requests": 1}),
    )


async def test_events_name_the_pages_that_an_answer_cites(place):
    """M195: in the lines of stream-json, and to programs that speak to `gong rpc`."""
    cited = [{"url": "https://a.example/", "title": "Page A"}]
    requests = [
        {"id": 1, "method": "session/new", "params": {"cwd": str(place.folder)}},
        {"id": 2, "method": "prompt", "params": {"session": "?", "text": "and here?"}},
    ]
    async with WireServer(Reply(searching()), Reply(searching())) as server:
        streaming = ("-p", "what is it?", "--output-format", "stream-json")
        out, _ = await chat(place, server, *streaming)
        process = await start_gong(place, server, "rpc", "-m", MODEL)
        lines = []
        for request in requests:
            if lines:
                request["params"]["session"] = lines[-1]["result"]["session"]
            process.stdin.write(json.dumps(request).encode() + b"\n")
            while not lines or lines[-1].get("id") != request["id"]:
                lines.append(json.loads(await process.stdout.readline()))
        process.stdin.close()
        await process.communicate()
    events = [json.loads(line) for line in out.splitlines()]
    streamed = [event for event in events if event.get("kind") == "message_end"]
    sent = [event for event in lines if event.get("type") == "message_end"]
    assert [event["sources"] for event in (*streamed, *sent)] == [cited, cited]


async def test_a_search_of_the_provider_is_shown_with_its_sources(place):
    """M195: by -p, in JSON, in what tape shows and exports, priced; and it goes back whole."""
    config = place.home / ".config/gong/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[web.search]\nnative = true\n")
    async with WireServer(Reply(searching()), Reply(searching()), Reply(saying("ok"))) as server:
        out, _ = await chat(place, server, "-p", "what is it?")
        document, _ = await chat(place, server, "-p", "again?", "--output-format", "json")
        await chat(place, server, "-c", "-p", "thanks")
        bodies = [seen.body for seen in server.requests]
    assert out == "It is 42.\n\nSources:\n[1] Page A – https://a.example/\n"
    printed = json.loads(document)
    assert printed["sources"] == [{"url": "https://a.example/", "title": "Page A"}]
    assert printed["usage"]["server_tools"] == {"web_search": 1}
    assert printed["cost"]["amount"] > 0.01  # a search is a cent
    assert bodies[0]["tools"][0]["type"] == "web_search_20250305"
    answer = bodies[2]["messages"][1]["content"]
    assert [block["type"] for block in answer] == [
        *("server_tool_use", "web_search_tool_result", "text")
    ]
    assert answer[2]["citations"] == [CITED]
    page = place.run("tape", "export", "--to", "md").stdout
    assert "> web_search: the answer" in page
    assert "> web_search found 1 page" in page
    assert "1. Page A – https://a.example/" in page
    page = place.run("tape", "export", "--to", "html").stdout
    assert '[{"url":"https://a.example/","title":"Page A"}]' in page
    assert "[1] Page A – https://a.example/" in place.run("tape", "show", "~2").stdout
