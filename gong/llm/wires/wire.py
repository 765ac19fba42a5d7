"""What an API of providers is made of: how a request is written, and how its answer is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...errors import ModelError
    from ..models import Preset
    from ..types import Request, StreamEvent
    from .failures import ProviderFailures
    from .http_client import EncodedRequest
    from .json_values import WireObject
    from .meter import AnswerMeter


class RequestEncoder(Protocol):
    """Encodes the requests of a growing history, each message once."""

    def __init__(self, preset: Preset) -> None: ...

    def encode_request(self, request: Request) -> EncodedRequest:
        """Return the call; raises MsgspecError for options that are not a JSON object."""
        ...


class Decoder(Protocol):
    """Decodes the data of one answer's server-sent events into stream events."""

    def __init__(self, failures: ProviderFailures, preset: Preset) -> None: ...

    finished: bool
    """Whether the answer is complete, so that no more is read."""
    meter: AnswerMeter
    """Counts the size of the answer."""

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Yield the stream events of one server-sent event; raises ModelError."""
        ...

    def split_answer(self, answer: WireObject) -> list[WireObject]:
        """Return the events that a stream would have sent of a whole answer; [] of other JSON."""
        ...

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the last events of a finished answer."""
        ...

    def finish_with_error(self, error: ModelError) -> Iterator[StreamEvent]:
        """Yield the last events of one that stopped with `error` before it was finished."""
        ...


class Wire(NamedTuple):
    """What encodes and decodes the calls of one API."""

    encoder: type[RequestEncoder]
    decoder: type[Decoder]
    native_objects: bool
    """Whether a `response_format` may be sent; a preset's quirk may say no."""
    sdk: str | None
    """The package of the API's SDK, for presets that ask for it."""
