"""Routes model names, `provider/model`, to providers, which are made when first asked for.

It keeps nothing of any request and never tries one again. Only `from_env` and `default_model`
read an environment, and only the one they are handed.
"""

from __future__ import annotations

from contextlib import aclosing
from importlib.util import find_spec
from ipaddress import ip_address
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from ..errors import AuthenticationError, ConfigurationError, UnknownModel
from .accumulate import StreamAccumulator

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from .types import Provider, Request, Response, StreamEvent

KEY = "ANTHROPIC_API_KEY"
BASE_URL = "ANTHROPIC_BASE_URL"
OFFLINE_MODEL = "offline/rules"
ANTHROPIC_MODEL = "anthropic/claude-sonnet-5-5"
_NO_KEY_NEEDED = "no-key-needed"
_KNOWN = "anthropic/MODEL, offline/rules, scripted/FILE.json"


class Client:
    """The one way to a model. A factory makes the provider for a model id, or raises GongError."""

    def __init__(self, factories: Mapping[str, Callable[[str], Provider]]) -> None:
        self._factories = factories
        self._providers: dict[str, Provider] = {}

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Return a client for everything `environ` has the keys for."""
        return cls(
            {
                "anthropic": lambda _: _anthropic(environ),
                "offline": _offline,
                "scripted": _scripted,
            }
        )

    def resolve(self, name: str) -> tuple[Provider, str]:
        """Return the provider for `provider/model`, and the model's id there.

        Raises UnknownModel, AuthenticationError without a key, ConfigurationError for what a
        provider cannot be made of.
        """
        kind, _, model = name.partition("/")
        factory = self._factories.get(kind)
        if factory is None or not model:
            raise _unknown(name)
        if name not in self._providers:
            self._providers[name] = factory(model)
        return self._providers[name], model

    def stream(self, provider: Provider, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Return the answer as stream events, to be consumed under `aclosing`."""
        return provider.stream(request)

    async def complete(self, provider: Provider, request: Request, *, prefix: str) -> Response:
        """Return the whole answer, its calls numbered under `prefix`; raises ModelError."""
        answer = StreamAccumulator(prefix)
        async with aclosing(self.stream(provider, request)) as events:
            async for event in events:
                answer.process(event)
        return answer.response()

    async def close(self) -> None:
        """Close every provider."""
        while self._providers:
            _, provider = self._providers.popitem()
            await provider.close()


def default_model(environ: Mapping[str, str]) -> str:
    """Return the model used when none is named: a real one where a key or a local host is set."""
    if _value(environ, KEY) or _is_loopback(_value(environ, BASE_URL)):
        return ANTHROPIC_MODEL
    return OFFLINE_MODEL


def _offline(model: str) -> Provider:
    from .providers.offline import OfflineProvider  # noqa: PLC0415 (loaded when used)

    if f"offline/{model}" != OFFLINE_MODEL:
        raise _unknown(f"offline/{model}")
    return OfflineProvider()


def _scripted(path: str) -> Provider:
    from .providers.scripted import ScriptedProvider  # noqa: PLC0415 (loaded when used)

    return ScriptedProvider.from_file(path)


def _anthropic(environ: Mapping[str, str]) -> Provider:
    from .providers.anthropic import DEFAULT_ENDPOINT, AnthropicProvider  # noqa: PLC0415 (loaded when used)

    endpoint = _value(environ, BASE_URL) or DEFAULT_ENDPOINT
    _check_endpoint(endpoint)
    key = _value(environ, KEY)
    if not key and _is_loopback(endpoint):
        key = _NO_KEY_NEEDED
    _check_key(key)
    if find_spec("anthropic") is None:
        raise ConfigurationError(
            "the anthropic package is not installed: pip install 'gong[anthropic]'"
        )
    return AnthropicProvider(key, endpoint)


def _check_endpoint(endpoint: str) -> None:
    if _host(endpoint) is None:
        raise ConfigurationError(f"{BASE_URL} is {endpoint!r}, which is no http(s) address")


def _check_key(key: str) -> None:
    if not key:
        raise AuthenticationError(
            f"no key for anthropic: set {KEY}, or use -m {OFFLINE_MODEL}", provider="anthropic"
        )
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise AuthenticationError(
            f"{KEY} holds characters no key has: copy it again", provider="anthropic"
        )


def _unknown(name: str) -> UnknownModel:
    return UnknownModel(f"unknown model {name!r}: known are {_KNOWN}; set one with -m")


def _value(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name, "").strip()


def _is_loopback(url: str) -> bool:
    host = _host(url)
    if host is None or host == "localhost":
        return host is not None
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _host(url: str) -> str | None:
    """Return the host of an http(s) address; None for anything else."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises for a port that is none)
    except ValueError:
        return None
    return parts.hostname if parts.scheme in {"http", "https"} and parts.hostname else None
