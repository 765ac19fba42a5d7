"""Routes calls to providers, which are created on first use, through middleware.

It stores nothing of a request and never retries. A model name is `provider/model`, or a provider's
own id under the default provider; `names` resolves the shorter names that people type.
"""

from __future__ import annotations

import os
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from ..errors import ConfigurationError, UnknownModel, UnsupportedToolChoice
from .accumulate import StreamAccumulator
from .models import load_presets
from .provider_factory import (
    create_provider,
    encode_neutral_body,
    encode_request_body,
    is_configured,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence

    from .model_names import Feature
    from .models import Preset
    from .provider_factory import FindKey
    from .types import Provider, Request, Response, StreamEvent

    Factory = Callable[[str], Provider]
    """Creates the provider for a model id, or raises GongError."""
    Knows = Callable[[str, Sequence[str]], bool]
    """Returns whether the provider has a key."""
    Call = Callable[[Request], AsyncGenerator[StreamEvent, None]]
    Middleware = Callable[[Request, Call], AsyncGenerator[StreamEvent, None]]
    """Answers a request by passing it on, or by itself; may change the request and the events.

    A whole answer is an accumulated stream, so the same one wraps `complete`.
    """

OFFLINE_MODEL = "offline/rules"
_KNOWN_MODELS = "anthropic/MODEL, offline/rules, scripted/FILE.json and what gong models lists"
_CALL_PREFIX = "c_00000000"


class Client:
    """The way to all models. Providers are given by name, each as an object or a factory.

    The first of `middleware` sees a request first and its events last.
    """

    def __init__(
        self,
        providers: Mapping[str, Provider | Factory],
        *,
        default: str | None = None,
        middleware: Sequence[Middleware] = (),
        presets: Mapping[str, Preset] | None = None,
    ) -> None:
        self._presets = presets or {}
        self.default = default
        self._known = dict(providers)
        self._middleware = tuple(middleware)
        self._made: dict[str, Provider] = {}

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        presets: Mapping[str, Preset] | None = None,
        find_key: FindKey | None = None,
        find_source: FindKey | None = None,
        middleware: Sequence[Middleware] = (),
    ) -> Self:
        """Return a client for all presets; the first one with a key is the default.

        `environ` defaults to this process's; `find_key` also searches other sources for keys, and
        `find_source` says in which one a key is, for the error of a host that refuses it.
        """
        environ = os.environ if environ is None else environ
        presets = load_presets({}, environ) if presets is None else presets
        find_key = find_key or partial(_find_env_key, environ)

        def create_factory(preset: Preset) -> Factory:
            return lambda model: create_provider(
                preset.choose_variant(model), environ, find_key, find_source
            )

        served = {name: create_factory(preset) for name, preset in presets.items()}
        first = next(_iter_configured_presets(presets, environ), None)
        return cls(
            {**served, "offline": _create_offline_provider, "scripted": _create_scripted_provider},
            default=first.name if first else None,
            middleware=middleware,
            presets=presets,
        )

    def resolve(self, name: str) -> tuple[Provider, str]:
        """Return the provider for `provider/model`, and the model's id there.

        Raises UnknownModel, AuthenticationError without a key, ConfigurationError if the
        provider cannot be created.
        """
        kind, _, model = name.partition("/")
        known = self._known.get(kind)
        if known is None or not model:
            raise _build_unknown_error(name)
        if not callable(known):
            self._made[kind] = known
            return known, model
        if name not in self._made:
            self._made[name] = known(model)
        return self._made[name], model

    def stream(
        self, request: Request, provider: Provider | None = None
    ) -> AsyncGenerator[StreamEvent, None]:
        """Return the answer as stream events, to be consumed under `aclosing`.

        `provider` defaults to that of the request, else to the client's default. Raises
        ConfigurationError if there is none, UnsupportedToolChoice if it lacks that choice.
        """
        if provider is None:
            name = request.provider or self.default
            if name is None:
                raise ConfigurationError(
                    "no provider for this request: name one, or set a key such as ANTHROPIC_API_KEY"
                )
            provider, _ = self.resolve(f"{name}/{request.model}")
            request = replace(request, provider=name)
        mode, supports = request.tool_choice.mode, getattr(provider, "supports_tool_choice", None)
        if request.tools and mode != "auto" and supports is not None and not supports(mode):
            raise UnsupportedToolChoice(
                f'{provider.name} takes no tool choice "{mode}": leave it at "auto", or say in '
                "words which tool is to be called",
                provider=provider.name,
            )
        call: Call = provider.stream
        for wrap in reversed(self._middleware):
            call = partial(lambda wrap, call, request: wrap(request, call), wrap, call)
        return call(request)

    def body(self, name: str, request: Request) -> bytes:
        """Return the body of a call to `name`, `provider/model`; needs no key, SDK or network.

        For providers without a wire it is the request as neutral JSON, without changes by
        middleware. Raises UnknownModel, and InvalidRequest for what the API does not support.
        """
        kind, _, model = name.partition("/")
        if kind not in self._known or not model:
            raise _build_unknown_error(name)
        actual = replace(request, model=model)
        preset = self._presets.get(kind)
        return (
            encode_neutral_body(actual) if preset is None else encode_request_body(preset, actual)
        )

    def supports(self, name: str, feature: Feature) -> bool | None:
        """Return whether `provider/model` has a feature; None where that is not known.

        Raises UnknownModel.
        """
        kind, _, model = name.partition("/")
        if kind not in self._known or not model:
            raise _build_unknown_error(name)
        from .model_names import ModelNames  # the catalogue is read only here

        return ModelNames(self._presets, {}, {}).supports(name, feature)

    async def complete(
        self, request: Request, provider: Provider | None = None, *, prefix: str = _CALL_PREFIX
    ) -> Response:
        """Return the whole answer, its calls numbered under `prefix`; raises ModelError."""
        answer = StreamAccumulator(prefix)
        async with aclosing(self.stream(request, provider)) as events:
            async for event in events:
                answer.process(event)
        return answer.response()

    async def close(self) -> None:
        """Close every provider that was created."""
        while self._made:
            _, provider = self._made.popitem()
            with suppress(Exception, SystemExit):  # it is used no more, and the others wait
                await provider.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def choose_default_model(
    environ: Mapping[str, str],
    presets: Mapping[str, Preset] | None = None,
    knows: Knows | None = None,
) -> str:
    """Return the default model: a real one if a key or a local host is configured.

    `knows` returns whether a provider has a key, by default in `environ`.
    """
    presets = load_presets({}, environ) if presets is None else presets
    for preset in _iter_configured_presets(presets, environ, knows):
        if preset.default_model:
            return f"{preset.name}/{preset.default_model}"
    return OFFLINE_MODEL


def _build_unknown_error(name: str) -> UnknownModel:
    return UnknownModel(f"unknown model {name!r}: known are {_KNOWN_MODELS}; set one with -m")


def _iter_configured_presets(
    presets: Mapping[str, Preset], environ: Mapping[str, str], knows: Knows | None = None
) -> Iterator[Preset]:
    for preset in presets.values():
        has_key = (knows or partial(_find_env_key, environ))(preset.key_name, preset.keys)
        if is_configured(preset, environ, has_key=bool(has_key)):
            yield preset


def _find_env_key(environ: Mapping[str, str], _provider: str, variables: Sequence[str]) -> str:
    values = (environ.get(name, "").strip() for name in variables)
    return next((value for value in values if value), "")


def _create_offline_provider(model: str) -> Provider:
    from .offline.provider import OfflineProvider  # loaded when used

    if f"offline/{model}" != OFFLINE_MODEL:
        raise UnknownModel(f"unknown model 'offline/{model}': the only one is {OFFLINE_MODEL}")
    return OfflineProvider()


def _create_scripted_provider(path: str) -> Provider:
    from .scripted import ScriptedProvider  # loaded when used

    return ScriptedProvider.from_file(path)
