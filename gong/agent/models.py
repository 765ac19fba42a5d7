"""The models of a session: each by its name, with system prompt, context window and price."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ..context.system import Surroundings, build_system_prompt
from ..errors import AuthenticationError, ConfigurationError, UnknownModel
from ..llm.maker import find_endpoint
from ..llm.types import StreamFailure
from .parts import AgentModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from ..llm.client import Client
    from ..llm.names import ModelNames
    from ..llm.types import Provider, Request, StreamEvent


@dataclass(frozen=True, slots=True)
class ModelFactory:
    """Builds models for sessions in one folder."""

    names: ModelNames
    client: Client
    where: Surroundings
    environ: Mapping[str, str]
    max_turns: int = 0

    def choose(self, name: str) -> AgentModel:
        """Return a model that can be called.

        Raises UnknownModel, AuthenticationError without a key, ConfigurationError.
        """
        provider, _ = self.client.resolve(name := self.names.resolve_name(name))
        stream = partial(self.client.stream, provider=provider)
        return self._build_model(name, provider.api, provider.endpoint, stream)

    def choose_or_failing(self, name: str) -> AgentModel:
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
            return replace(model, stream=lambda _: _stream_failure(failure))

    def describe(self, name: str) -> AgentModel:
        """Return a model without its key, for requests that are shown and never sent."""
        name = self.names.resolve_name(name)
        preset = self.names.presets.get(name.partition("/")[0])
        if preset is not None:
            return self._build_model(
                name, preset.api, find_endpoint(preset, self.environ), _refuse_stream
            )
        built_in: Provider = self.client.resolve(name)[0]
        return self._build_model(name, built_in.api, built_in.endpoint, _refuse_stream)

    def _build_model(
        self,
        name: str,
        api: str,
        endpoint: str,
        stream: Callable[[Request], AsyncGenerator[StreamEvent, None]],
    ) -> AgentModel:
        provider, _, model = name.partition("/")
        return AgentModel(
            provider=provider,
            id=model,
            api=api,
            endpoint=endpoint,
            stream=stream,
            system=partial(build_system_prompt, self.where, name),
            max_turns=self.max_turns,
            cost=partial(self.names.compute_cost, provider, model),
            window=self.names.get_context_window(provider, model),
            sees_images=self.names.sees_images(provider, model),
        )


async def _stream_failure(error: AuthenticationError) -> AsyncGenerator[StreamEvent, None]:
    yield StreamFailure(error)


def _refuse_stream(_request: Request) -> AsyncGenerator[StreamEvent, None]:
    raise ConfigurationError("this model has no connection: nothing is sent to it")
