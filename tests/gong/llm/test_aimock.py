"""Every wire against a model host that others wrote: `@copilotkit/aimock`, where it can be had.

Run it with Node and a folder of your own for the package:

    npm install --prefix ../aimock @copilotkit/aimock
    export PATH="$PWD/../aimock/node_modules/.bin:$PATH"
    .venv/bin/python -m pytest tests/gong/llm/test_aimock.py
"""

import json
import re
import shutil
import subprocess
from contextlib import aclosing

import pytest
from msgspec import Struct

from gong import errors
from gong.llm import Client, Tool, generate
from gong.llm.types import Finish, Request, StreamFailure, TextDelta
from tape.context.view import Message
from tape.model.entries import Text, Thinking
from tests.wires.server import accumulated

HOST = shutil.which("llmock")
pytestmark = pytest.mark.skipif(
    HOST is None or shutil.which("node") is None, reason="aimock is not installed: see above"
)
BASES = {
    "anthropic/claude-sonnet-5-5": ("ANTHROPIC_BASE_URL", ""),
    "openai/gpt-6.1-sol": ("OPENAI_BASE_URL", "/v1"),
    "openai-chat/gpt-6.1-sol": ("OPENAI_CHAT_BASE_URL", "/v1"),
    "google/gemini-3.8-flash": ("GEMINI_BASE_URL", ""),
}
"""Model → variable of its host, and the path of its API there."""
FIXTURES = [
    {
        "match": {"userMessage": "read the file", "hasToolResult": True},
        "response": {"content": "It prints hello."},
    },
    {
        "match": {"userMessage": "read the file"},
        "response": {
            "blocks": [
                {"type": "text", "text": "Looking 让我看"},
                {"type": "toolCall", "name": "read", "arguments": '{"path": "src/main.py"}'},
                {"type": "toolCall", "name": "read", "arguments": '{"path": "b.py"}'},
            ]
        },
    },
    {"match": {"userMessage": "think"}, "response": {"content": "42", "reasoning": "step by step"}},
    {"match": {"userMessage": "hello"}, "response": {"content": "Hello — you 🙂."}},
    {
        "match": {"userMessage": "overload"},
        "response": {"error": {"message": "Overloaded", "type": "overloaded_error"}, "status": 529},
    },
    {
        "match": {"userMessage": "limit"},
        "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429},
    },
    {
        "match": {"userMessage": "cut"},
        "response": {"content": "never finishes at all"},
        "truncateAfterChunks": 2,
        "latency": 20,
    },
]
every_model = pytest.mark.parametrize("model", BASES)


class Asked(Struct):
    path: str


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """Run the host; give its address."""
    folder = tmp_path_factory.mktemp("aimock")
    (folder / "fixtures.json").write_text(json.dumps({"fixtures": FIXTURES}))
    command = [HOST, "-p", "0", "-f", "fixtures.json", "--strict", "--validate-on-load", "-c", "7"]
    host = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        lines = iter(host.stdout.readline, "")
        yield next(found[0] for line in lines if (found := re.search(r"http://\S+:\d+", line)))
    finally:
        host.terminate()
        host.communicate(timeout=120)


def client_of(model, url):
    variable, path = BASES[model]
    return Client.from_env({variable: url + path})


async def events_for(model, url, words):
    async with client_of(model, url) as client:
        provider, name = client.resolve(model)
        request = Request(model=name, messages=(Message("user", (Text(words),)),))
        async with aclosing(client.stream(request, provider)) as events:
            return [event async for event in events]


@every_model
async def test_words_come_in_pieces_and_join_to_the_text(model, url):
    events = await events_for(model, url, "hello")
    pieces = [event.delta for event in events if isinstance(event, TextDelta)]
    assert len(pieces) > 1
    assert "".join(pieces) == accumulated(events).text == "Hello — you 🙂."
    assert isinstance(events[-1], Finish)
    assert events[-1].stop_reason == "stop"


@every_model
async def test_calls_side_by_side_go_there_and_back(model, url):
    read = []
    tool = Tool("read", "Read a file.", Asked, lambda asked: read.append(asked.path) or "hello")
    async with client_of(model, url) as client:
        done = await generate(model, prompt="read the file", tools=(tool,), client=client)
    assert read == ["src/main.py", "b.py"]
    assert done.steps[0].text == "Looking 让我看"
    assert done.steps[0].response.stop_reason == "tool_calls"
    assert (done.text, len(done.steps)) == ("It prints hello.", 2)


@every_model
async def test_thoughts_are_distinguished_from_words(model, url):
    answer = accumulated(await events_for(model, url, "think"))
    thoughts = [block.text for block in answer.content if isinstance(block, Thinking)]
    assert (answer.text, "".join(thoughts)) == ("42", "step by step")


@every_model
@pytest.mark.parametrize(
    ("words", "expected"),
    [("overload", errors.ServerError), ("limit", errors.RateLimited), ("cut", errors.StreamError)],
)
async def test_failures_become_ours(model, url, words, expected):
    *_, last = await events_for(model, url, words)
    assert isinstance(last, StreamFailure)
    assert type(last.error) is expected
