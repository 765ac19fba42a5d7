import json
import subprocess
import sys
from contextlib import aclosing

import pytest
from msgspec import Raw
from msgspec.structs import replace

from gong.errors import (
    AuthenticationError,
    ConfigurationError,
    InvalidRequest,
    ScriptEnded,
    UnknownModel,
)
from gong.llm.client import Client, choose_default_model
from gong.llm.models import load_presets
from gong.llm.offline.provider import OfflineProvider
from gong.llm.types import Finish, Request, StreamStart, TextDelta, TextEnd, TextStart, ToolSpec
from gong.llm.wires.transport import WireProvider
from tape.context.view import Message
from tape.model.entries import Text, ToolCall, Usage
from tests.wires.server import Reply, WireServer

LOCAL = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}


def test_offline_needs_nothing_and_is_made_once():
    client = Client.from_env({})
    provider, model = client.resolve("offline/rules")
    assert isinstance(provider, OfflineProvider)
    assert model == "rules"
    assert client.resolve("offline/rules")[0] is provider


@pytest.mark.parametrize(
    "name", ["nope/x", "offline/other", "anthropic/", "anthropic", "", "/x", "claude-sonnet-5-5"]
)
def test_an_unknown_name_gets_the_known_ones(name):
    with pytest.raises(UnknownModel) as caught:
        Client.from_env({"ANTHROPIC_API_KEY": "k"}).resolve(name)
    assert str(caught.value).startswith(f"unknown model {name!r}: ")
    assert "offline/rules" in str(caught.value)


def test_anthropic_takes_key_and_address_from_the_mapping_it_is_handed():
    environ = {"ANTHROPIC_API_KEY": " k ", "ANTHROPIC_BASE_URL": "https://gate.example/"}
    provider, model = Client.from_env(environ).resolve("anthropic/claude-x")
    assert isinstance(provider, WireProvider)
    assert (provider.name, provider.api, provider.endpoint, model) == (
        "anthropic",
        "anthropic-messages",
        "https://gate.example",
        "claude-x",
    )


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9", "http://localhost:8080/x", "http://[::1]:1", "http://127.9.9.9"]
)
def test_a_local_address_needs_no_key(url):
    provider, _ = Client.from_env({"ANTHROPIC_BASE_URL": url}).resolve("anthropic/x")
    assert provider.endpoint == url


@pytest.mark.parametrize(
    "environ",
    [{}, {"ANTHROPIC_API_KEY": " "}, {"ANTHROPIC_BASE_URL": "https://127.0.0.1.example.com"}],
)
def test_a_missing_key_names_its_variable(environ):
    with pytest.raises(AuthenticationError, match="set ANTHROPIC_API_KEY") as caught:
        Client.from_env(environ).resolve("anthropic/x")
    assert caught.value.exit_code == 6


def test_a_key_with_odd_characters_is_refused_without_being_shown():
    with pytest.raises(AuthenticationError) as caught:
        Client.from_env({"ANTHROPIC_API_KEY": "sk\nsecret"}).resolve("anthropic/x")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["foo bar", "ftp://x", "http://", "http://[::1", "http://h:port"])
def test_a_bad_address_names_its_variable(url):
    environ = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": url}
    with pytest.raises(ConfigurationError, match="ANTHROPIC_BASE_URL"):
        Client.from_env(environ).resolve("anthropic/x")


@pytest.mark.parametrize(
    ("environ", "model"),
    [
        ({}, "offline/rules"),
        ({"ANTHROPIC_API_KEY": ""}, "offline/rules"),
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic/claude-sonnet-5-5"),
        (LOCAL, "anthropic/claude-sonnet-5-5"),
        ({"ANTHROPIC_BASE_URL": "https://gate.example"}, "offline/rules"),
        ({"ANTHROPIC_BASE_URL": "nonsense"}, "offline/rules"),
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "anthropic/claude-sonnet-5-5"),
        ({"OPENAI_API_KEY": "k"}, "openai/gpt-6.1-sol"),
        ({"GOOGLE_API_KEY": "k"}, "google/gemini-3.8-flash"),
        ({"OPENROUTER_API_KEY": "k"}, "offline/rules"),
    ],
)
def test_the_default_model_is_a_real_one_only_where_it_can_answer(environ, model):
    assert choose_default_model(environ) == model


async def test_a_script_path_may_have_slashes_and_complete_gives_the_whole_answer(tmp_path):
    path = tmp_path / "a" / "s.json"
    path.parent.mkdir()
    path.write_text(json.dumps([{"text": "Hi", "tool_calls": [{"name": "ls"}]}]))
    client = Client.from_env({})
    provider, model = client.resolve(f"scripted/{path}")
    assert model == str(path)
    request = Request(model=model, messages=(Message("user", (Text("x"),)),))
    answer = await client.complete(request, provider, prefix="c_00000001")
    assert (answer.text, answer.tool_calls[0].id, answer.model) == ("Hi", "c_00000001_0", model)
    with pytest.raises(ScriptEnded):
        await client.complete(request, provider, prefix="c_00000002")
    await client.close()


def asked(model="m", **more):
    return Request(model=model, messages=(Message("user", (Text("x"),)),), **more)


class Said(OfflineProvider):
    """A provider that says its name, and whether it was closed."""

    def __init__(self, name):
        self.name, self.closed, self.seen = name, 0, []

    async def stream(self, request):
        self.seen.append(request)
        yield StreamStart(request.model)
        yield TextStart(0)
        yield TextDelta(0, self.name)
        yield TextEnd(0)
        yield Finish("stop", Usage(1, 2, total=3))

    async def close(self):
        self.closed += 1


async def test_a_request_goes_where_it_says_else_to_the_default_and_close_cascades():
    """M152: by request.provider, else the default, else a configuration error."""
    one, two = Said("one"), Said("two")
    async with Client({"one": one, "two": two, "unused": Said("3")}, default="two") as client:
        assert (await client.complete(asked(provider="one"))).text == "one"
        assert (await client.complete(asked("a/b"))).text == "two"
        assert two.seen[0].model == "a/b"
    assert (one.closed, two.closed) == (1, 1)
    with pytest.raises(ConfigurationError, match="no provider"):
        await Client({"one": one}).complete(asked())


def test_from_env_makes_the_first_provider_with_a_key_the_default():
    """M152."""
    assert Client.from_env({}).default is None
    assert Client.from_env({"OPENAI_API_KEY": "k"}).default == "openai"
    assert Client.from_env({"GROQ_API_KEY": "k", "GEMINI_API_KEY": "k"}).default == "google"


ASKED_ALL = Request(
    model="m",
    system="Be \ud83d brief.",
    messages=(
        Message("user", (Text("list"),)),
        Message("assistant", (ToolCall(id="c1", name="ls", args=Raw(b'{"path":"."}')),)),
        Message("tool", (Text("a.py"),), "c1", "ls"),
    ),
    tools=(ToolSpec("ls", "List a folder.", Raw(b'{"type":"object","properties":{}}')),),
    max_tokens=99,
)


@pytest.mark.parametrize("name", ["anthropic", "openai", "openai-chat", "google", "groq"])
async def test_the_body_of_a_call_is_known_without_calling(name):
    """Byte for byte what the provider is sent, and no key is needed for it."""
    async with WireServer(Reply(status=401)) as server:
        environ = {f"{name.upper().replace('-', '_')}_BASE_URL": server.url}
        async with Client.from_env(environ) as client:
            with pytest.raises(AuthenticationError):
                await client.complete(replace(ASKED_ALL, provider=name))
        (seen,) = server.requests
    assert Client.from_env({}).body(f"{name}/m", ASKED_ALL) == seen.sent


@pytest.mark.parametrize("name", ["offline/rules", "scripted/no/such/file.json"])
def test_the_body_of_a_call_without_a_wire_is_the_request_as_json(name):
    told = json.loads(Client.from_env({}).body(name, ASKED_ALL))
    assert told["model"] == name.partition("/")[2]
    assert told["system"] == "Be \ufffd brief."
    assert told["messages"][1]["content"] == [
        {"type": "tool_call", "id": "c1", "name": "ls", "args": {"path": "."}}
    ]
    assert [tool["name"] for tool in told["tools"]] == ["ls"]


def test_the_body_of_a_call_that_cannot_be_written_says_why():
    client = Client.from_env({})
    with pytest.raises(UnknownModel, match="nope/x"):
        client.body("nope/x", ASKED_ALL)
    with pytest.raises(InvalidRequest, match="not valid JSON"):
        client.body("groq/x", replace(ASKED_ALL, options=Raw(b"[]")))


async def test_middleware_is_an_onion_around_whole_answers_and_streams():
    """M152: the first registered sees the request first and the answer last."""
    log = []

    def layer(name):
        async def wrap(request, call):
            log.append(f"{name} asks for {request.provider}")
            async with aclosing(call(replace(request, model=request.model + name))) as events:
                async for event in events:
                    if not isinstance(event, TextDelta):
                        yield event
                        continue
                    log.append(f"{name} hears")
                    yield TextDelta(event.index, event.delta + name)

        return wrap

    provider = Said("hi ")
    client = Client({"p": provider}, middleware=[layer("a"), layer("b")])
    whole = await client.complete(asked("m", provider="p"))
    assert (whole.text, whole.model) == ("hi ba", "mab")
    once = ["a asks for p", "b asks for p", "b hears", "a hears"]
    assert log == once
    async with aclosing(client.stream(asked("m", provider="p"))) as events:
        texts = [event.delta async for event in events if isinstance(event, TextDelta)]
    assert (texts, log) == (["hi ba"], once * 2)


async def test_middleware_may_answer_by_itself():
    async def cached(request, call):
        yield TextStart(0)
        yield TextDelta(0, "cached")
        yield TextEnd(0)
        yield Finish("stop", Usage())

    provider = Said("never")
    client = Client({"p": provider}, default="p", middleware=[cached])
    assert (await client.complete(asked())).text == "cached"
    assert provider.seen == []


def test_a_provider_of_the_users_own_takes_a_few_lines():
    """An Anthropic-compatible host, added by a table."""
    presets = load_presets(
        {
            "mine": {
                "api": "anthropic-messages",
                "base_url": "https://llm.example/v1/",
                "keys": ["MINE_KEY"],
                "auth": "x-api-key",
            }
        }
    )
    client = Client.from_env({"MINE_KEY": "k"}, presets=presets)
    provider, model = client.resolve("mine/big")
    assert (provider.endpoint, model) == ("https://llm.example/v1", "big")


@pytest.mark.parametrize("name", ["copilot"])
def test_what_is_not_served_yet_says_so_and_what_to_use(name):
    """Listed, with a clear error."""
    with pytest.raises(ConfigurationError, match=f"{name} is not served yet: .*use|reach"):
        Client.from_env({}).resolve(f"{name}/x")


def test_importing_the_client_imports_no_sdk():
    code = (
        "import gong.llm.client, gong.sdk.generation, gong.llm.tokens, sys;"
        "heavy = {'anthropic', 'openai', 'httpx2', 'jiter', 'tiktoken', 'keyring'};"
        "print(heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


FACE = """
import sys
import gong.llm
loaded = {name for name in sys.modules if name.startswith("gong.llm.")}
missing = [name for name in gong.llm.__all__ if getattr(gong.llm, name, None) is None]
kinds = [type(gong.llm.generate).__name__, type(gong.llm.cost).__name__]
client = gong.llm.Client.from_env()
print(loaded, missing, kinds, client.resolve("offline/rules")[1])
try:
    gong.llm.nothing
except AttributeError as error:
    print(error)
"""


def test_the_face_of_the_package_loads_nothing_until_it_is_used():
    """M152: importing gong.llm costs nothing, and every name of it is there."""
    done = subprocess.run([sys.executable, "-c", FACE], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "set() [] ['function', 'function'] rules\nmodule 'gong.llm' has no attribute 'nothing'\n"
    )
