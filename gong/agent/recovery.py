"""Recovery above the loop: a model call that failed before it said anything is tried again.

An answer that has begun is never asked for twice, because the first half has been shown.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from ..llm.types import Failed, StreamStart

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from ..errors import ModelError
    from ..llm.retry import RetryPolicy
    from ..llm.types import Request, StreamEvent


async def persistent(
    stream: Callable[[Request], AsyncGenerator[StreamEvent, None]],
    request: Request,
    policy: RetryPolicy,
    *,
    sleep: Callable[[float], Awaitable[None]],
    random: Callable[[], float],
    on_retry: Callable[[ModelError, int, float], None],
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of one answer, after as many quiet failures as `policy` allows.

    `on_retry` is told the error, the number of the coming try and the seconds until it.
    """
    attempt = 0
    while True:
        delay = None
        async with aclosing(stream(request)) as events:
            held: list[StreamEvent] = []
            spoken = False
            async for event in events:
                if isinstance(event, StreamStart) and not spoken:
                    held.append(event)
                    continue
                if isinstance(event, Failed) and not spoken and event.error.retryable:
                    delay = policy.delay(attempt, event.error.retry_after, random())
                    if delay is not None:
                        on_retry(event.error, attempt + 1, delay)
                        break
                for earlier in (*held, event):
                    yield earlier
                held, spoken = [], True
        if delay is None:
            return
        attempt += 1
        await sleep(delay)
