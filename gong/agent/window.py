"""Before each model call: measure context usage, and make room if needed.

First, older tool results become placeholders, in batches. Then older messages become a summary, at
most twice in a row. If that is too little, long results are cut. Every step is an entry.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..context.elide import decide, truncation
from ..context.meter import Size, context_tokens, warning
from ..errors import NothingToCompact
from . import events
from .compaction import Wish, compact
from .outgoing import Outgoing, outgoing

if TYPE_CHECKING:
    from .parts import Parts

GAIN = 0.1
"""Minimum share of a request that an automatic compaction must free."""
IN_ROW = 2
"""Maximum compactions between two answers."""


class Fill(NamedTuple):
    """How full the context window is."""

    tokens: int
    limit: int | None
    """Tokens above which a compaction is due; None if the context window is unknown."""


def fill(parts: Parts) -> Fill:
    """Return how much of the context window the next call takes."""
    return Fill(measured(next_call(parts)).tokens, _limit(parts))


def next_call(parts: Parts) -> Outgoing:
    """Return the request of the next call."""
    record = parts.record
    return outgoing(
        parts.model,
        parts.tools.specs(),
        record.path,
        record.kept,
        session=parts.session,
        load=record.load,
        plain=parts.pressure.refused,
    )


def measured(made: Outgoing) -> Size:
    """Return the size of a call that is about to be made."""
    kept = made.view.kept
    return context_tokens(made.request, (*kept, *made.view.entries), since=len(kept))


def _limit(parts: Parts) -> int | None:
    room, window = parts.room, parts.model.window
    limits = [] if window is None else [window - min(room.reserve, window // 4)]
    if room.limit is not None:
        limits.append(room.limit)
    return min(limits, default=None)


async def make_room(parts: Parts) -> Outgoing:
    """Make room for the next call if needed, and return its request."""
    pressure = parts.pressure
    if pressure.focus is not None:
        focus, pressure.focus = pressure.focus, None
        try:
            await compact(parts, Wish("model", focus))
        except NothingToCompact as error:
            parts.emit(events.Warn(str(error)))
    made = next_call(parts)
    tokens, limit = measured(made).tokens, _limit(parts)
    _warn(parts, tokens)
    if limit is None or not parts.room.auto:
        return made
    if tokens > limit:
        return next_call(parts) if await relieve(parts, "window") else made
    aside = decide(
        (*parts.record.kept, *parts.record.path),
        tokens,
        parts.model.window or limit,
        high_water=parts.room.high_water,
    )
    if aside is None:
        return made
    parts.record.append(aside)
    parts.emit(events.ResultsPutAside(tokens))
    return next_call(parts)


async def relieve(parts: Parts, reason: str) -> bool:
    """Compact because the context window is full; return whether the request shrank."""
    pressure = parts.pressure
    if pressure.in_row < IN_ROW:
        pressure.in_row += 1
        with suppress(NothingToCompact):
            await compact(parts, Wish(reason, gain=GAIN))
            return True
    cut = truncation((*parts.record.kept, *parts.record.path))
    if cut is None:
        return False
    parts.record.append(cut)
    parts.emit(events.Warn("long tool results are cut in the request: the context window is full"))
    return True


def _warn(parts: Parts, tokens: int) -> None:
    """Warn once that the context window is nearly full; warn again after it had room."""
    text = warning(tokens, parts.model.window)
    if text and not parts.pressure.warned:
        parts.emit(events.Warn(text))
    parts.pressure.warned = text is not None
