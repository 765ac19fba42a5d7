"""Before each model call: measure context usage, and make room if needed.

First, older tool results become placeholders, in batches. Then older messages become a summary, at
most twice in a row. If that is too little, long results are cut. Every step is an entry.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..context.elide import decide_elision, decide_truncation
from ..context.meter import ContextSize, build_fill_warning, measure_context
from ..errors import NothingToCompact
from . import events
from .compaction import CompactionRequest, compact_branch
from .outgoing import PreparedRequest, prepare_request

if TYPE_CHECKING:
    from .parts import RunContext

MIN_GAIN = 0.1
"""Minimum share of a request that an automatic compaction must free."""
MAX_COMPACTIONS_IN_ROW = 2
"""Maximum compactions between two answers."""


class ContextFill(NamedTuple):
    """How full the context window is."""

    tokens: int
    limit: int | None
    """Tokens above which a compaction is due; None if the context window is unknown."""


def measure_fill(parts: RunContext) -> ContextFill:
    """Return how much of the context window the next call takes."""
    return ContextFill(measure_request(prepare_next_call(parts)).tokens, _compute_limit(parts))


def prepare_next_call(parts: RunContext) -> PreparedRequest:
    """Return the request of the next call."""
    record = parts.record
    return prepare_request(
        parts.model,
        parts.tools.specs(),
        record.path,
        record.kept,
        session=parts.session,
        load=record.load,
        plain=parts.pressure.refused,
    )


def measure_request(made: PreparedRequest) -> ContextSize:
    """Return the size of a call that is about to be made."""
    kept = made.view.kept
    return measure_context(made.request, (*kept, *made.view.entries), since=len(kept))


def _compute_limit(parts: RunContext) -> int | None:
    room, window = parts.room, parts.model.window
    limits = [] if window is None else [window - min(room.reserve, window // 4)]
    if room.limit is not None:
        limits.append(room.limit)
    return min(limits, default=None)


async def make_room(parts: RunContext) -> PreparedRequest:
    """Make room for the next call if needed, and return its request."""
    pressure = parts.pressure
    if pressure.focus is not None:
        focus, pressure.focus = pressure.focus, None
        try:
            await compact_branch(parts, CompactionRequest("model", focus))
        except NothingToCompact as error:
            parts.emit(events.Warn(str(error)))
    made = prepare_next_call(parts)
    tokens, limit = measure_request(made).tokens, _compute_limit(parts)
    _warn_nearly_full(parts, tokens)
    if limit is None or not parts.room.auto:
        return made
    if tokens > limit:
        return prepare_next_call(parts) if await shrink_context(parts, "window") else made
    aside = decide_elision(
        (*parts.record.kept, *parts.record.path),
        tokens,
        parts.model.window or limit,
        high_water=parts.room.high_water,
    )
    if aside is None:
        return made
    parts.record.append(aside)
    parts.emit(events.ResultsElided(tokens))
    return prepare_next_call(parts)


async def shrink_context(parts: RunContext, reason: str) -> bool:
    """Compact because the context window is full; return whether the request shrank."""
    pressure = parts.pressure
    if pressure.in_row < MAX_COMPACTIONS_IN_ROW:
        pressure.in_row += 1
        with suppress(NothingToCompact):
            await compact_branch(parts, CompactionRequest(reason, gain=MIN_GAIN))
            return True
    cut = decide_truncation((*parts.record.kept, *parts.record.path))
    if cut is None:
        return False
    parts.record.append(cut)
    parts.emit(events.Warn("long tool results are cut in the request: the context window is full"))
    return True


def _warn_nearly_full(parts: RunContext, tokens: int) -> None:
    """Warn once that the context window is nearly full; warn again after it had room."""
    text = build_fill_warning(tokens, parts.model.window)
    if text and not parts.pressure.warned:
        parts.emit(events.Warn(text))
    parts.pressure.warned = text is not None
