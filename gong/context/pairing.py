"""Which tool result of a path answers which call: the rule of `tape.repair`, as places; pure.

The first result behind a call answers it, the newest call of an id is meant, and an answer that
was stopped or failed has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.blocks import tool_calls
from tape.entries import Assistant, Context, ToolResult, User
from tape.repair import NOT_SENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tape.entries import Payload
    from tape.line import Entry


class Pair(NamedTuple):
    """A call and what answers it, as indices of entries."""

    id: str
    call: int
    """Of the answer that asks."""
    result: int | None
    """Of the result; None when there is none."""


def pairs(entries: Sequence[Entry]) -> list[Pair]:
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
            calls = dict.fromkeys([call.id for call in tool_calls(data.content)])
            for call in calls:
                waiting.pop(call, None)
            if is_sent(data):
                for call in calls:
                    waiting[call] = len(asked)
                    asked.append((call, place))
                    results.append(None)
    return [Pair(*call, result) for call, result in zip(asked, results, strict=True)]


def is_sent(data: Payload) -> bool:
    """Tell whether a payload is an answer that models see again."""
    return type(data) is Assistant and data.stop_reason not in NOT_SENT


def begins(data: Payload) -> bool:
    """Tell whether a payload is a prompt, or words put in like one: a turn may begin with it."""
    return type(data) is User or (type(data) is Context and data.role != "system")
