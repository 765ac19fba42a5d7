import json
import subprocess
import sys

import pytest

from gong.errors import AuthenticationError, ConfigurationError, ScriptEnded, UnknownModel
from gong.llm.client import Client, default_model
from gong.llm.providers.anthropic import AnthropicProvider
from gong.llm.providers.offline import OfflineProvider
from gong.llm.types import Request
from tape.blocks import Text
from tape.view import Message

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
def test_an_unknown_name_is_told_what_is_known(name):
    with pytest.raises(UnknownModel) as caught:
        Client.from_env({"ANTHROPIC_API_KEY": "k"}).resolve(name)
    assert str(caught.value) == (
        f"unknown model {name!r}: known are anthropic/MODEL, offline/rules, scripted/FILE.json;"
        " set one with -m"
    )


def test_anthropic_takes_key_and_address_from_the_mapping_it_is_handed():
    environ = {"ANTHROPIC_API_KEY": " k ", "ANTHROPIC_BASE_URL": "https://gate.example/"}
    provider, model = Client.from_env(environ).resolve("anthropic/claude-x")
    assert isinstance(provider, AnthropicProvider)
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
    ],
)
def test_the_default_model_is_a_real_one_only_where_it_can_answer(environ, model):
    assert default_model(environ) == model


async def test_a_script_path_may_have_slashes_and_complete_gives_the_whole_answer(tmp_path):
    path = tmp_path / "a" / "s.json"
    path.parent.mkdir()
    path.write_text(json.dumps([{"text": "Hi", "tool_calls": [{"name": "ls"}]}]))
    client = Client.from_env({})
    provider, model = client.resolve(f"scripted/{path}")
    assert model == str(path)
    request = Request(model=model, messages=(Message("user", (Text("x"),)),))
    answer = await client.complete(provider, request, prefix="c_00000001")
    assert (answer.text, answer.tool_calls[0].id, answer.model) == ("Hi", "c_00000001_0", model)
    with pytest.raises(ScriptEnded):
        await client.complete(provider, request, prefix="c_00000002")
    await client.close()


def test_importing_the_client_imports_no_sdk():
    code = "import gong.llm.client, sys; print({'anthropic', 'httpx2'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
