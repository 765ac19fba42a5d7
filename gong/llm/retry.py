"""Retries of failed model calls: when, how often, and never after an answer has begun.

Each error says whether a retry may help (`ModelError.retryable`). Sleep and random numbers are
arguments. An answer that has begun is not repeated, because its beginning has been shown.

| events of a try | then |
|---|---|
| StreamStart, StreamFailure, retryable | both are dropped; the next try, after a wait |
| StreamStart, TextStart, StreamFailure | all are passed on: the front end has shown the text |
| StreamFailure, not retryable, or no try is left | it is passed on |
| StreamStart, …, Finish | all are passed on; the start with the event after it |
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .types import StreamFailure, StreamStart

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from ..errors import ModelError
    from .types import Request, StreamEvent


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential back-off with jitter; times are in seconds."""

    max_retries: int = 2
    """Retries after the first try; 0 turns retries off."""
    base: float = 1.0
    """Wait before the first retry."""
    max_delay: float = 60.0
    """Maximum wait before jitter; if a server asks for more, there is no retry."""
    factor: float = 2.0
    """Factor from one wait to the next."""
    jitter: float = 0.5
    """Random share added or subtracted, so that clients do not retry all at once."""

    def compute_delay(self, attempt: int, retry_after: float | None, random: float) -> float | None:
        """Return the seconds to wait before retry `attempt` (from 0), or None to give up.

        `retry_after` is what the server asked for and used as it is; `random` is in [0, 1).
        """
        if attempt >= self.max_retries:
            return None
        # Asked to wait for an hour, a person would rather choose another model than watch it wait.
        if retry_after is not None:
            return retry_after if retry_after <= self.max_delay else None
        backoff = min(self.base * self.factor**attempt, self.max_delay)
        return backoff * (1 - self.jitter + 2 * self.jitter * random)


PATIENT_RETRY = RetryPolicy(max_retries=10)
"""For where a person is, who can stop it: it takes about five minutes."""


async def stream_with_retries(
    stream: Callable[[Request], AsyncGenerator[StreamEvent, None]],
    request: Request,
    policy: RetryPolicy,
    *,
    sleep: Callable[[float], Awaitable[None]],
    random: Callable[[], float],
    on_retry: Callable[[ModelError, int, float], None],
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of one answer, after as many quiet failures as `policy` allows.

    `on_retry` gets the error, the number of the next try and the seconds until it.
    """
    attempt = 0
    while True:
        delay = None
        async with aclosing(stream(request)) as events:
            held: list[StreamEvent] = []
            spoken = False
            async for event in events:
                # a start alone shows nothing: it is held, so that a retry leaves no trace of it
                if isinstance(event, StreamStart) and not spoken:
                    held.append(event)
                    continue
                if isinstance(event, StreamFailure) and not spoken and event.error.retryable:
                    delay = policy.compute_delay(attempt, event.error.retry_after, random())
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
