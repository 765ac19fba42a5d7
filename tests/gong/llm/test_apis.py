"""APIs of other programs, what models can do, and limits of connections."""

import asyncio
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from gong.config import Settings
from gong.errors import ConfigurationError, UnknownModel
from gong.llm import Client, Request, register_api
from gong.llm.model_names import ModelNames
from gong.llm.models import load_presets
from gong.llm.types import Finish, StreamStart, TextDelta, TextEnd, TextStart
from tape.context.view import Message
from tape.model.entries import Text

HELLO = (Message("user", (Text("hello"),)),)
PARROT = """
from gong.llm import Usage
from gong.llm.types import Finish, StreamStart, TextDelta, TextEnd, TextStart

class Parrot:
    def __init__(self, preset, key, endpoint):
        self.name, self.api, self.endpoint = preset.name, preset.api, endpoint
        self.key = key

    async def stream(self, request):
        yield StreamStart(request.model)
        yield TextStart(0)
        yield TextDelta(0, f"{request.messages[-1].content[0].text} with {self.key}")
        yield TextEnd(0)
        yield Finish("stop", Usage(1, 1, total=2))

    async def close(self):
        pass
"""


def build_parrot():
    names = {}
    exec(PARROT, names)
    return names["Parrot"]


def ask(rows, environ, provider="house", *, times=1):
    async def run():
        presets = load_presets(rows, environ)
        async with Client.from_env(environ, presets=presets) as client:
            request = Request(model="m", provider=provider, messages=HELLO)
            return [(await client.complete(request)).text for _ in range(times)]

    return asyncio.run(run())


ROW = {"base_url": "https://house.example/api", "keys": ["HOUSE_KEY"]}
ENVIRON = {"HOUSE_KEY": "the-key", "HOME": "/nowhere"}


def test_an_api_is_registered_by_name_and_taken_away_again():
    """M140: registerApi(type, fn): presets name it, and clients and sessions stream from it."""
    remove = register_api("parrot", build_parrot())
    try:
        rows = {"house": {**ROW, "api": "parrot"}}
        assert ask(rows, ENVIRON) == ["hello with the-key"]
        body = Client.from_env(ENVIRON, presets=load_presets(rows)).body(
            "house/m", Request(model="x", messages=HELLO)
        )
        assert json.loads(body)["model"] == "m"
        with pytest.raises(ConfigurationError, match="there is an API 'parrot' already"):
            register_api("parrot", build_parrot())
    finally:
        remove()
    with pytest.raises(ConfigurationError, match=r"providers\.house: there is no api 'parrot'"):
        load_presets(rows)
    for name in ("openai-chat", "a:b", "a/b", ""):
        with pytest.raises(ConfigurationError):
            register_api(name, build_parrot())


def test_configuration_names_a_python_object(tmp_path, monkeypatch):
    """M140."""
    (tmp_path / "house_models.py").write_text(PARROT)
    monkeypatch.syspath_prepend(tmp_path)
    rows = {"house": {**ROW, "api": "house_models:Parrot"}}
    assert ask(rows, ENVIRON) == ["hello with the-key"]
    for name, words in (
        ("house_models:Missing", "cannot be loaded"),
        ("no_such_module:x", "cannot be loaded"),
        ("house_models:Usage.__doc__", "is no function"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            ask({"house": {**ROW, "api": name}}, ENVIRON)
    sys.modules.pop("house_models", None)


def test_events_of_a_registered_api_are_those_of_every_provider():
    """M140: the same stream events, without a wire."""
    remove = register_api("parrot", build_parrot())
    try:
        presets = load_presets({"house": {**ROW, "api": "parrot"}})

        async def run():
            async with Client.from_env(ENVIRON, presets=presets) as client:
                request = Request(model="m", provider="house", messages=HELLO)
                return [type(event) async for event in client.stream(request)]

        assert asyncio.run(run()) == [StreamStart, TextStart, TextDelta, TextEnd, Finish]
    finally:
        remove()


@pytest.mark.parametrize(
    ("name", "feature", "answer"),
    [
        ("anthropic/claude-sonnet-5-5", "tools", True),
        ("anthropic/claude-sonnet-5-5", "thinking", True),
        ("anthropic/claude-sonnet-5-5", "vision", True),
        ("openrouter/anthropic/claude-sonnet-4.5", "vision", True),
        ("deepseek/deepseek-reasoner", "objects", False),
        ("openai/gpt-5", "objects", True),
        ("claudecli/default", "tools", False),
        ("claudecli/default", "streaming", True),
        ("openai/never-heard-of", "vision", None),
        ("openai/never-heard-of", "streaming", True),
    ],
)
def test_a_model_is_asked_what_it_supports(name, feature, answer):
    """M142: SupportsFeature(tool-use, thinking, vision, streaming)."""
    assert Client.from_env({}).supports(name, feature) is answer
    assert ModelNames.from_settings(Settings()).supports(name, feature) is answer
    with pytest.raises(UnknownModel):
        Client.from_env({}).supports("nobody/x", feature)


class CountingServer(ThreadingHTTPServer):
    """A chat host that counts connections, and calls at once, of which each waits for `go`."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answering)
        self.connections, self.running, self.most = 0, 0, 0
        self.go, self.arrived = Event(), Event()


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        self.server.connections += 1
        super().setup()

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.server.running += 1
        self.server.most = max(self.server.most, self.server.running)
        self.server.arrived.set()
        self.server.go.wait(30)
        message = {"role": "assistant", "content": "hi"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        data = json.dumps({"id": "1", "model": "m", "choices": [choice]}).encode()
        self.server.running -= 1
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with CountingServer() as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def row_of(server, **connections):
    url = f"http://127.0.0.1:{server.server_port}/v1"
    return {"house": {"api": "openai-chat", "base_url": url, "connections": connections}}


@pytest.mark.parametrize(
    ("connections", "count"), [({}, 1), ({"idle": 0}, 3), ({"idle_seconds": 0}, 3)]
)
def test_connections_are_kept_as_configured(server, connections, count):
    """M151: up to 10 idle connections for each host, 90 s long, and other numbers if configured."""
    server.go.set()
    assert ask(row_of(server, **connections), ENVIRON, times=3) == ["hi"] * 3
    assert server.connections == count
    limits = load_presets({})["openai"].connections
    assert (limits.idle, limits.idle_seconds) == (10, 90.0)


def test_connections_are_no_more_than_configured(server):
    """M151: further calls wait."""

    async def run():
        presets = load_presets(row_of(server, most=1), ENVIRON)
        async with Client.from_env(ENVIRON, presets=presets) as client:
            request = Request(model="m", provider="house", messages=HELLO)
            calls = [asyncio.create_task(client.complete(request)) for _ in range(3)]
            await asyncio.to_thread(server.arrived.wait, 30)
            server.go.set()
            return [answer.text for answer in await asyncio.gather(*calls)]

    assert asyncio.run(run()) == ["hi"] * 3
    assert (server.connections, server.most) == (1, 1)


@pytest.mark.parametrize(
    "row", [{"idle": -1}, {"most": -1}, {"idle_seconds": "long"}, {"total": 100}]
)
def test_limits_of_connections_that_make_no_sense_are_named(server, row):
    with pytest.raises(ConfigurationError, match=r"providers\.house"):
        load_presets(row_of(server, **row))
