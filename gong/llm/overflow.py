"""Finds prompts that overflowed a context window, if the provider did not say so: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tape.entries import Usage

_NEARLY_FULL = 0.99


def is_silent_overflow(stop_reason: str, usage: Usage, window: int | None) -> bool:
    """Return whether an answer that looks complete was made from a prompt that did not fit.

    Such a prompt is larger than the context window, or fills it and left no room for an answer.
    """
    if window is None:
        return False
    prompt = usage.input + (usage.cache_read or 0) + (usage.cache_write or 0)
    starved = stop_reason == "length" and usage.output == 0
    return prompt > window or (starved and prompt >= _NEARLY_FULL * window)
