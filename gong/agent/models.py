"""The models of a session: each by its name, with system prompt, context window and price."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ..context.system import Surroundings, system_prompt
from ..errors import AuthenticationError, ConfigurationError, UnknownModel
from ..llm.maker import address
from ..llm.types import Failed
from .parts import Model

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from ..llm.client import Client
    from ..llm.names import Names
    from ..llm.types import Provider, Request, StreamEvent


@dataclass(frozen=True, slots=True)
class Models:
    """Builds models for sessions in one folder."""

    names: Names
    client: Client
    where: Surroundings
    environ: Mapping[str, str]
    max_turns: int = 0

    def choose(self, name: str) -> Model:
        """Return a model that can be called.

        Raises UnknownModel, AuthenticationError without a key, ConfigurationError.
        """
        provider, _ = self.client.resolve(name := self.names.full(name))
        stream = partial(self.client.stream, provider=provider)
        return self._model(name, provider.api, provider.endpoint, stream)

    def at_hand(self, name: str) -> Model:
        """Return a model that can be called, else one whose every call fails with the reason.

        Raises UnknownModel.
        """
        try:
            return self.choose(name)
        except UnknownModel:
            raise
        except (AuthenticationError, ConfigurationError) as error:
            model = self.describe(name)
            failure = AuthenticationError(str(error), provider=model.provider)
            return replace(model, stream=lambda _: _failing(failure))

    def describe(self, name: str) -> Model:
        """Return a model without its key, for requests that are shown and never sent."""
        name = self.names.full(name)
        preset = self.names.presets.get(name.partition("/")[0])
        if preset is not None:
            return self._model(name, preset.api, address(preset, self.environ), _unasked)
        built_in: Provider = self.client.resolve(name)[0]
        return self._model(name, built_in.api, built_in.endpoint, _unasked)

    def _model(
        self,
        name: str,
        api: str,
        endpoint: str,
        stream: Callable[[Request], AsyncGenerator[StreamEvent, None]],
    ) -> Model:
        provider, _, model = name.partition("/")
        return Model(
            provider=provider,
            id=model,
            api=api,
            endpoint=endpoint,
            stream=stream,
            system=partial(system_prompt, self.where, name),
            max_turns=self.max_turns,
            cost=partial(self.names.cost, provider, model),
            window=self.names.window(provider, model),
            sees_images=self.names.sees_images(provider, model),
        )


async def _failing(error: AuthenticationError) -> AsyncGenerator[StreamEvent, None]:
    yield Failed(error)


def _unasked(_request: Request) -> AsyncGenerator[StreamEvent, None]:
    raise ConfigurationError("this model has no connection: nothing is sent to it")
