"""The real command against a server of ours that speaks the OpenAI wires."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.tape import reader
from tests.wires import openai_chat as chat_wire
from tests.wires import openai_responses as responses_wire
from tests.wires.server import Reply, WireServer, chunks, json_reply, sse

KEY = "sk-secret-0123456789"


async def chat(place, server, model, *argv, code=0):
    """Run `gong chat` with the server as the model's host and return what it printed."""
    variable = f"{model.partition('/')[0].upper().replace('-', '_')}_BASE_URL"
    process = await asyncio.create_subprocess_exec(
        str(place.bin / "gong"),
        *("chat", "-m", model, *argv),
        cwd=place.folder,
        env={**place.env, variable: server.url, "OPENAI_API_KEY": KEY},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode == code, (process.returncode, out, err)
    return out.decode(), err.decode()


def called_in_responses(tool, **args):
    call = responses_wire.function(1, "call_1", tool, json.dumps(args))
    return sse(responses_wire.start(), *responses_wire.THINKING, *call, responses_wire.end())


def called_in_chat(tool, **args):
    thought = chat_wire.chunk({"reasoning_content": "hm"})
    call = chat_wire.call(0, json.dumps(args), "call_1", tool)
    return chunks(thought, chat_wire.calls(call, finish="tool_calls"))


def said_in_responses(words):
    return sse(responses_wire.start(), *responses_wire.message(0, words), responses_wire.end())


def said_in_chat(words):
    return chunks(chat_wire.chunk({"content": words}), chat_wire.chunk(finish="stop"))


WIRES = {
    "openai/gpt-6.1-sol": (called_in_responses, said_in_responses),
    "openai-chat/gpt-6.1-sol": (called_in_chat, said_in_chat),
}


@pytest.mark.parametrize("model", WIRES)
async def test_a_tool_round_trip_over_the_wire_is_recorded(place, model):
    calling, saying = WIRES[model]
    (place.folder / "a.txt").write_text("alpha\n")
    replies = (Reply(calling("read", path="a.txt"), chunk=7), Reply(saying("It is alpha.")))
    async with WireServer(*replies) as server:
        out, err = await chat(place, server, model, "-p", "what is in a.txt?")
        first, second = (seen.body for seen in server.requests)
        assert server.connections == 1
    assert (out, err) == ("It is alpha.\n", "")
    assert first["tools"] == second["tools"]
    if model.startswith("openai/"):
        assert "Working directory" in first["instructions"]
        _, thought, call, result = second["input"]
        assert thought == responses_wire.REASONING
        assert (call["name"], result["output"]) == ("read", "alpha\n")
        assert call["call_id"] == result["call_id"]
        assert first["prompt_cache_key"]
    else:
        prompt, _, answer, result = second["messages"]
        assert "Working directory" in prompt["content"]
        assert answer["reasoning_content"] == "hm"
        assert answer["tool_calls"][0]["id"] == result["tool_call_id"]
        assert result["content"] == "alpha\n"
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


@pytest.mark.parametrize("model", WIRES)
async def test_a_refused_key_ends_with_6_and_is_nowhere_to_be_read(place, model):
    """M150."""
    refused = {"error": {"code": "invalid_api_key", "message": f"Incorrect API key: {KEY}"}}
    async with WireServer(json_reply(401, refused)) as server:
        out, err = await chat(place, server, model, "-p", "hi", "--output-format", "json", code=6)
        assert len(server.requests) == 1
    assert json.loads(out)["error"]["class"] == "AuthenticationError"
    assert KEY not in out + err
    assert KEY.encode() not in b"".join(reader.files(place.tapes()[0]).values())


@pytest.mark.parametrize("model", WIRES)
async def test_a_busy_host_is_tried_again(place, model):
    busy = json_reply(429, {"error": {"message": "slow down"}}, retry_after="0")
    _, saying = WIRES[model]
    async with WireServer(busy, Reply(saying("Here I am."))) as server:
        out, err = await chat(place, server, model, "-p", "hi")
        assert len(server.requests) == 2
    assert out == "Here I am.\n"
    assert "try 2" in err


async def test_options_of_a_models_row_are_in_each_body(place):
    """M128: what is not known is passed on, and a format stands beside the user's own text."""
    config = place.home / ".config/gong/config.toml"
    config.parent.mkdir(parents=True)
    row = '[models."openai/gpt-6.1-sol"]\nprovider_options = '
    config.write_text(f'{row}{{ service_tier = "flex", text = {{ verbosity = "low" }} }}\n')
    replies = (Reply(called_in_responses("ls", path=".")), Reply(said_in_responses('{"a": 1}')))
    async with WireServer(*replies) as server:
        how = ("-p", "x", "--json-schema", '{"type": "object"}')
        await chat(place, server, "openai/gpt-6.1-sol", *how)
        bodies = [seen.body for seen in server.requests]
    assert [body["service_tier"] for body in bodies] == ["flex"] * 2
    assert [sorted(body["text"]) for body in bodies] == [["format", "verbosity"]] * 2
    config.write_text(f"{row}{{ input = [] }}\n")
    done = place.run("gong", "-p", "x", code=2)
    assert "models.'openai/gpt-6.1-sol': provider_options may not set input" in done.stderr
