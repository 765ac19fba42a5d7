"""The real command against a server of ours that speaks Gemini's wire."""

from __future__ import annotations

import asyncio
import json

from gong.tools.builtin import SESSION_TOOLS
from gong.tools.profiles import PROFILES
from tests.tape import reader
from tests.wires.google import SIGNATURE, call, chunk, stream, text, thought
from tests.wires.server import Reply, WireServer


async def chat(place, server, *argv, code=0):
    """Run `gong chat` with the server as its host and return what it printed."""
    process = await asyncio.create_subprocess_exec(
        str(place.bin / "gong"),
        *("chat", "-m", "google/gemini-3.8-flash", *argv),
        cwd=place.folder,
        env={**place.env, "GOOGLE_BASE_URL": server.url, "GEMINI_API_KEY": "AIza-secret-123"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode == code, (process.returncode, out, err)
    return out.decode(), err.decode()


async def test_a_tool_round_trip_over_the_wire_is_recorded(place):
    (place.folder / "a.txt").write_text("alpha\n")
    calling = stream(
        chunk(thought("Let me look.")),
        chunk(call("read", {"path": "a.txt"}, id="f1", thoughtSignature=SIGNATURE), finish="STOP"),
    )
    saying = stream(chunk(text("It is ")), chunk(text("alpha."), finish="STOP"))
    async with WireServer(Reply(calling, chunk=7), Reply(saying)) as server:
        out, err = await chat(place, server, "-p", "what is in a.txt?")
        first, second = (seen.body for seen in server.requests)
        assert server.connections == 1
    assert (out, err) == ("It is alpha.\n", "")
    (declared,) = first["tools"]
    names = {tool["name"] for tool in declared["functionDeclarations"]}
    family = PROFILES["gemini"]
    assert names == {
        *family.tools,
        *family.agent_tools,
        *SESSION_TOOLS,
        "notebook_edit",
        "web_fetch",
    }
    assert "Working directory" in first["systemInstruction"]["parts"][0]["text"]
    asked, answered, result = second["contents"]
    assert asked["parts"][0]["text"] == "what is in a.txt?"
    assert answered["parts"][1] == {
        "functionCall": {"name": "read", "args": {"path": "a.txt"}},
        "thoughtSignature": SIGNATURE,
    }
    assert result["parts"] == [
        {"functionResponse": {"name": "read", "response": {"output": "alpha\n"}}}
    ]
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


async def test_an_empty_answer_and_an_unreadable_call_are_tried_again(place):
    empty = Reply(stream(chunk(text(""), finish="STOP")))
    unreadable = Reply(stream(chunk(finish="MALFORMED_FUNCTION_CALL")))
    saying = Reply(stream(chunk(text("Here I am."), finish="STOP")))
    async with WireServer(empty, unreadable, saying) as server:
        out, err = await chat(place, server, "-p", "hi")
        assert len(server.requests) == 3
    assert out == "Here I am.\n"
    assert "try 2" in err


async def test_a_refused_prompt_says_so(place):
    refused = stream({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})
    async with WireServer(Reply(refused)) as server:
        out, _ = await chat(place, server, "-p", "hi", "--output-format", "json", code=1)
    assert "PROHIBITED_CONTENT" in json.loads(out)["error"]["message"]
