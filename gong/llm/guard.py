"""The border to providers of other programs: whatever one does ends one call, and names it.

the provider                                    the loop gets
----------------------------------------------  ----------------------------------------------
yields stream events                            them, without lone surrogates in their words
yields anything else                            a StreamFailure that says what it was
raises anything, also SystemExit                a StreamFailure with it
ends before its answer is whole                 what came; the loop says that it is not whole
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from traceback import format_exception_only
from typing import TYPE_CHECKING, get_args

from msgspec.structs import replace

from tape.text import replace_surrogates

from ..errors import ModelError
from .types import ReasoningDelta, StreamEvent, StreamFailure, TextDelta, ToolCallDelta

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from .types import Request

_EVENTS = get_args(StreamEvent)


async def check_stream(
    name: str, stream: Callable[[Request], AsyncGenerator[StreamEvent, None]], request: Request
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of a provider; its failure is the last of them, and nothing is raised."""
    try:
        async with aclosing(stream(request)) as events:
            async for event in events:
                if not isinstance(event, _EVENTS):
                    what = f"it sent {type(event).__name__}, not a stream event"
                    yield StreamFailure(ModelError(f"the provider of {name} failed: {what}"))
                    return
                yield _clean_event(event)
    except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt):
        raise
    except ModelError as error:
        yield StreamFailure(error)
    except BaseException as error:  # noqa: BLE001 - code of others
        what = " ".join("".join(format_exception_only(error)).split())
        yield StreamFailure(ModelError(f"the provider of {name} failed: {what}"))


def _clean_event(event: StreamEvent) -> StreamEvent:
    if isinstance(event, TextDelta | ReasoningDelta | ToolCallDelta) and not event.delta.isascii():
        return replace(event, delta=replace_surrogates(event.delta))
    return event
