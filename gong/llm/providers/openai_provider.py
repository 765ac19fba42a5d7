"""What the adapters of both OpenAI wires do alike: one call from its body to its last event."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import msgspec

from ...errors import InvalidRequest, ModelError
from .openai_connection import Connection

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from ..presets import Preset
    from ..types import StreamEvent


class Decoder(Protocol):
    """Turns the data of one stream's events into ours."""

    finished: bool

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Yield what one event says; raises ModelError."""
        ...

    def ending(self, error: ModelError) -> Iterator[StreamEvent]:
        """Yield the last events of a stream that stopped before it was finished."""
        ...

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the last events of a finished stream."""
        ...


class Calls:
    """Makes the calls of one provider."""

    def __init__(self, preset: Preset, key: str, endpoint: str) -> None:
        self.connection = Connection(preset, key, endpoint)

    async def stream(
        self, path: str, body: Callable[[], bytes], decoder: Decoder
    ) -> AsyncGenerator[StreamEvent, None]:
        """Answer with stream events; closing it closes the connection."""
        errors = self.connection.errors
        try:
            async with (
                self.connection.answer(path, self._json(body)) as answer,
                aclosing(answer.data()) as found,
            ):
                async for data in found:
                    for event in decoder.feed(data):
                        yield event
                    if decoder.finished:
                        await answer.drain()
                        break
                else:
                    raise errors.stopped()
        except ModelError as error:
            for event in decoder.ending(error):
                yield event
            return
        for event in decoder.finish():
            yield event

    def _json(self, body: Callable[[], bytes]) -> bytes:
        try:
            return body()
        except msgspec.MsgspecError as error:
            provider = self.connection.errors.provider
            raise InvalidRequest(f"the request is no JSON: {error}", provider=provider) from error
