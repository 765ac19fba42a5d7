"""Room in the context window: how full it is, and what is done before it is too small.

Before each model call the loop measures context usage and makes room if needed, step by step;
every step is an entry:

    =======================  =====================================  ============================
    when                     what                                   entry
    =======================  =====================================  ============================
    the model asked for it   older messages become a summary        anchor, reason `model`
    above `high_water`       older results become placeholders      custom, `gong.elided`
    above the limit          older messages become a summary,       anchor, reason `window`
                             at most twice between two answers
    still above it           long results are cut                   custom, `gong.truncated`
    the provider refuses     as above the limit, then the call is   anchor, reason `overflow`
    the length               repeated once
    =======================  =====================================  ============================
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from ..context.tokens import NEARLY_FULL_SHARE, build_fill_warning
from ..context.trim import decide_elision, decide_truncation
from ..errors import CompactionCancelled, NothingToCompact
from ..llm.provider_errors import find_window_in_error
from . import events
from .compaction import CompactionRequest, compact_branch

if TYPE_CHECKING:
    from ..config import CompactionSettings
    from ..errors import ContextLengthExceeded
    from .request import PreparedRequest
    from .run_context import RunContext


MIN_GAIN = 0.1
"""Minimum share of a request that an automatic compaction must free."""
MAX_COMPACTIONS_IN_ROW = 2
"""Maximum compactions between two answers."""


class ContextFill(NamedTuple):
    """How full the context window is."""

    tokens: int
    limit: int | None
    """Tokens above which a compaction is due; None if the context window is unknown."""


def measure_fill(
    prepared: PreparedRequest, settings: CompactionSettings, window: int | None
) -> ContextFill:
    """Return how much of the context window a request takes; estimated near the limit only.

    `window` is the context window in tokens; None if it is unknown.
    """
    limit = _compute_limit(settings, window)
    size = prepared.history.size
    return ContextFill(size.measure_near(prepared.request, inf if limit is None else limit), limit)


def _compute_limit(settings: CompactionSettings, window: int | None) -> int | None:
    """Return the tokens above which a compaction is due; None if nothing limits them."""
    limits = [] if window is None else [window - min(settings.reserve, window // 4)]
    if settings.limit is not None:
        limits.append(settings.limit)
    return min(limits, default=None)


def _find_lowest_mark(settings: CompactionSettings, window: int | None, limit: int | None) -> float:
    """Return the tokens up to which `make_room` does nothing."""
    marks = [inf] if window is None else [NEARLY_FULL_SHARE * window]
    if limit is not None and settings.auto:
        marks += [limit, settings.high_water * (window or limit)]
    return min(marks)


async def make_room(context: RunContext) -> PreparedRequest:
    """Make room for the next call if needed, and return its request."""
    state, settings, window = context.state, context.setup.compaction, context.window
    if state.focus is not None:
        focus, state.focus = state.focus, None
        try:
            await compact_branch(context, CompactionRequest("model", focus))
        except NothingToCompact as error:
            context.emit(events.Warn(str(error)))
    prepared, limit = context.prepare_next_call(), _compute_limit(settings, window)
    tokens = prepared.history.size.compute_bound(prepared.request)
    mark = _find_lowest_mark(settings, window, limit)
    if tokens > mark:  # else nothing depends on how many they are
        tokens = prepared.history.size.measure_near(prepared.request, mark)
    warning = build_fill_warning(tokens, window)
    if warning and not state.warned:
        context.emit(events.Warn(warning))
    state.warned = warning is not None  # warn again after the context window had room
    if limit is None or not settings.auto:
        return prepared
    # A summary is due at once; elided results alone would only postpone it by a turn or two.
    if tokens > limit:
        has_shrunk = await shrink_context(context, "window")
        return context.prepare_next_call() if has_shrunk else prepared
    entries = (*context.recorder.kept, *context.recorder.path)
    elision = decide_elision(entries, tokens, window or limit, high_water=settings.high_water)
    if elision is None:
        return prepared
    context.recorder.append(elision)
    context.emit(events.ResultsElided(tokens))
    return context.prepare_next_call()


async def shrink_context(context: RunContext, reason: str) -> bool:
    """Compact because the context window is full; return whether the request shrank."""
    recorder = context.recorder
    # A view that stays too large, because of one huge result, must not be summarised for ever.
    if context.state.in_row < MAX_COMPACTIONS_IN_ROW:
        context.state.in_row += 1
        try:
            await compact_branch(context, CompactionRequest(reason, gain=MIN_GAIN))
        except CompactionCancelled as error:
            context.emit(events.Warn(str(error)))
            return False
        except NothingToCompact:
            pass
        else:
            return True
    truncation = decide_truncation((*recorder.kept, *recorder.path))
    if truncation is None:
        return False
    recorder.append(truncation)
    context.emit(
        events.Warn("long tool results are cut in the request: the context window is full")
    )
    return True


_LEARNED_SHARE = 0.95
"""Share of a request that did not fit that is taken for the context window, if nothing names it."""


def learn_window(
    known: int | None, error: ContextLengthExceeded, prepared: PreparedRequest
) -> int | None:
    """Return the context window that an overflow shows: the one it names, else an estimate.

    None if the `known` one is no larger; an estimate is taken only for an unknown one.
    """
    learned = find_window_in_error(str(error))
    if learned is None and known is None:
        learned = int(prepared.measure().tokens * _LEARNED_SHARE)
    return learned if learned is not None and (known is None or learned < known) else None
