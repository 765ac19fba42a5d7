"""A redirect is refused on every wire: neither the key nor the prompt goes where nobody sent it."""

from __future__ import annotations

import pytest

from gong import errors
from gong.llm.models import load_presets
from gong.llm.provider_factory import create_provider
from gong.llm.types import Request, StreamFailure
from tape.context.view import Message
from tape.model.entries import Text
from tests.wires.raw_server import RawServer, head
from tests.wires.server import events_of

KEY = "sk-secret-0123456789"
HELLO = Request(model="model-x", messages=(Message("user", (Text("hello"),)),))
PRESETS = load_presets({})
SERVED = [name for name, preset in PRESETS.items() if preset.base_url]


async def failure_of(name, url):
    """Return the error of a call to a preset whose host is at `url`."""
    preset = PRESETS[name]
    environ = {variable: "p" for names in preset.variables.values() for variable in names}
    environ[preset.base_url_variables[0]] = url
    events = await events_of(create_provider(preset, environ, lambda *_: KEY), HELLO)
    assert [type(event) for event in events] == [StreamFailure]
    return events[0].error


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("name", ["anthropic", "openai", "openai-chat", "google"])
async def test_no_redirect_is_followed(name, status):
    """M150."""
    with RawServer(lambda: [head()]) as other:
        target = f"{other.url}/v1/elsewhere?key={KEY}"
        with RawServer(lambda: [head(status, location=target), b"moved"]) as server:
            error = await failure_of(name, server.url)
        assert (len(server.requests), other.requests) == (1, [])
    assert (type(error), error.exit_code, error.retryable, error.status) == (
        *(errors.RedirectRefused, 2, False),
        status,
    )
    assert str(error) == (
        f"{server.url} redirects to {other.url}/v1/elsewhere ({status}); the key and the "
        "conversation were not sent there: if that address is right, set base_url of "
        f"providers.{name} to {other.url}/v1/elsewhere"
    )


@pytest.mark.parametrize("name", SERVED)
async def test_no_preset_follows_one(name):
    with RawServer(lambda: [head()]) as other:
        answer = [head(307, location=f"{other.url}/x")]
        with RawServer(lambda: answer) as server:
            error = await failure_of(name, server.url)
    assert (type(error), other.requests) == (errors.RedirectRefused, [])


async def test_one_to_the_same_address_is_refused_too():
    with RawServer(lambda: [head(308, location="/v2/messages")]) as server:
        error = await failure_of("anthropic", server.url)
        assert len(server.requests) == 1
    assert f"redirects to {server.url}/v2/messages (308)" in str(error)


@pytest.mark.parametrize(
    ("location", "base"),
    [
        ("https://api.other.example/new/v1/messages", "https://api.other.example/new"),
        ("https://user:pass@other.example/", "https://other.example"),
        ("//other.example:8443/x", "http://other.example:8443/x"),
    ],
)
async def test_the_address_to_set_is_named_without_what_may_be_secret(location, base):
    with RawServer(lambda: [head(307, location=location)]) as server:
        error = await failure_of("anthropic", server.url)
    assert str(error).endswith(f"set base_url of providers.anthropic to {base}")
    assert "pass" not in str(error)


@pytest.mark.parametrize("location", ["", "http://[", "javascript:alert(1)", "\u00ff", "x" * 9_000])
async def test_a_redirect_to_nowhere_is_an_error_like_any_other(location):
    with RawServer(lambda: [head(302, location=location)]) as server:
        error = await failure_of("openai-chat", server.url)
    assert isinstance(error, errors.ModelError)
    assert len(str(error)) < 900
