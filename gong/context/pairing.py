"""Which tool result of a path answers which call: the rule of `tape.repair`, as indices; pure.

The first result after a call answers it; if an id repeats, its newest call counts; the calls of a
stopped or failed answer have no results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.blocks import select_tool_calls
from tape.entries import Assistant, Context, ToolResult, User
from tape.repair import NOT_SENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tape.entries import Payload
    from tape.line import Entry


class CallPair(NamedTuple):
    """A call and its result, as indices of entries."""

    id: str
    call: int
    """Index of the answer that contains the call."""
    result: int | None
    """Index of the result; None if there is none."""


def pair_calls(entries: Sequence[Entry]) -> list[CallPair]:
    """Return the calls of a path that are sent, in order; an id twice in one answer is one call."""
    asked: list[tuple[str, int]] = []
    results: list[int | None] = []
    waiting: dict[str, int] = {}
    for place, entry in enumerate(entries):
        data = entry.data
        if type(data) is ToolResult:
            at = waiting.pop(data.call_id, None)
            if at is not None:
                results[at] = place
        elif type(data) is Assistant:
            calls = dict.fromkeys([call.id for call in select_tool_calls(data.content)])
            for call in calls:
                waiting.pop(call, None)
            if is_sent_answer(data):
                for call in calls:
                    waiting[call] = len(asked)
                    asked.append((call, place))
                    results.append(None)
    return [CallPair(*call, result) for call, result in zip(asked, results, strict=True)]


def is_sent_answer(data: Payload) -> bool:
    """Return whether a payload is an answer that is sent to models again."""
    return type(data) is Assistant and data.stop_reason not in NOT_SENT


def is_turn_start(data: Payload) -> bool:
    """Return whether a payload is a prompt, or input queued like one, that may start a turn."""
    return type(data) is User or (type(data) is Context and data.role != "system")
