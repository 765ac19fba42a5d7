"""The request of the next model call, computed from the entries on the path and nothing else.

So the loop sends exactly what `gong context` shows:

    entries ──view──▶ View ──repair──▶ messages ──elide_results──▶ Request

`view` drops what an anchor replaced by its summary, `repair` makes the messages valid for the
target, and `elide_results` puts placeholders for results that a decision on the path elided. What
was folded so is kept between calls (`context/sent_history.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ..context.sent_history import HistoryFold
from ..llm.models import fit_effort
from ..llm.types import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tape.model.entries import BlobRef, Repair
    from tape.model.line import Entry

    from ..context.sent_history import SentHistory
    from ..context.tokens import ContextSize
    from ..llm.models import EffortChoice
    from ..llm.types import ToolSpec
    from .model import AgentModel


class PreparedRequest(NamedTuple):
    """A request, the model it is for, and what the history in it is made of."""

    model: AgentModel
    request: Request
    history: SentHistory
    remark: str | None = None
    """Why it is not what was asked for."""

    @property
    def repair(self) -> Repair | None:
        """What was repaired; None if nothing was."""
        return self.history.repair

    def mark_repair_recorded(self) -> PreparedRequest:
        """Return the same request for another call, which need not record the repair again."""
        return self._replace(history=self.history._replace(unrecorded=None))

    def measure(self) -> ContextSize:
        """Return the size of the call."""
        return self.history.size.measure(self.request)


def prepare_request(
    model: AgentModel,
    tools: Sequence[ToolSpec],
    path: Sequence[Entry],
    kept: Sequence[Entry],
    *,
    session: str,
    load: Callable[[BlobRef], bytes],
    plain: bool = False,
    fold: HistoryFold | None = None,
    effort: EffortChoice | None = None,
    max_output: int = 0,
) -> PreparedRequest:
    """Return the next call's request; `plain` leaves out provider-specific blocks.

    `fold` is what an earlier call was given: then only new entries are read. `effort` is that of
    the session, None for the model's own, and `max_output` its limit of an answer in tokens, 0 for
    the model's own.
    """
    target = replace(model.target, endpoint="", api="", model="") if plain else model.target
    history = (fold or HistoryFold()).follow(model.id, target, path, kept)
    fitted = fit_effort(
        effort or model.effort, model.name, efforts=model.efforts, reasons=model.reasons
    )
    request = Request(
        model=model.id,
        messages=history.messages,
        system=model.build_system(tools),
        tools=tuple(tools),
        reasoning_effort=fitted.effort,
        session=session,
        options=model.choose_options(has_tools=bool(tools)),
        load=load,
    )
    prepared = PreparedRequest(model, request, history, fitted.remark)
    if model.api == _NAMES_LIMIT or max_output:
        limit = min(filter(None, (max_output, model.max_output)), default=None)
        request = replace(request, max_tokens=_limit_answer(prepared, limit))
    return prepared._replace(request=request)


_NAMES_LIMIT = "anthropic-messages"
"""The wire API that must be told how long an answer may be; with others it is the model's limit."""
_ESTIMATE_SHARE = 1.05
_MIN_ANSWER = 4_096


def _limit_answer(prepared: PreparedRequest, limit: int | None) -> int | None:
    """Return how long an answer may be, in tokens: `limit`, or less near a full window.

    None if the limit is unknown.
    """
    window = prepared.model.window
    if limit is None or window is None:
        return limit
    size, room = prepared.history.size, (window - limit) / _ESTIMATE_SHARE
    tokens = size.compute_bound(prepared.request)
    if tokens > room:  # else the model's limit holds, however many they are
        tokens = size.measure_near(prepared.request, room)
    left = window - int(tokens * _ESTIMATE_SHARE)
    return max(min(limit, left), min(_MIN_ANSWER, limit))
