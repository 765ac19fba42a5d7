"""How long to wait before a failed model call is tried again: numbers only, no clock, no loop.

Every error knows whether it is worth a retry (`ModelError.retryable`); this says when, and when
to give up.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential back-off with jitter; times are in seconds."""

    max_retries: int = 2
    """Tries after the first one; 0 turns retrying off."""
    base: float = 1.0
    """Wait before the first retry."""
    max_delay: float = 60.0
    """Longest wait before jitter; a server that asks for more is not waited for."""
    factor: float = 2.0
    """Growth from one wait to the next."""
    jitter: float = 0.5
    """Share by which a wait may be shorter or longer, so that clients do not come back at once."""

    def delay(self, attempt: int, retry_after: float | None, random: float) -> float | None:
        """Return the seconds to wait before retry `attempt` (from 0), or None to give up.

        `retry_after` is what the server asked for and used as it is; `random` is in [0, 1).
        """
        if attempt >= self.max_retries:
            return None
        if retry_after is not None:
            return retry_after if retry_after <= self.max_delay else None
        return self._backoff(attempt) * (1 - self.jitter + 2 * self.jitter * random)

    def _backoff(self, attempt: int) -> float:
        return min(self.base * self.factor**attempt, self.max_delay)
