"""Every call has exactly one result, on each path; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.model.entries import Assistant, ToolResult, join_texts, select_tool_calls
from tape.text import shorten_to_width

from .finding import TrajectoryFinding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tape.model.entries import ToolCall

    from .trajectory import TrajectoryStep

_DETAIL_COLUMNS = 60


def find_unpaired(steps: Sequence[TrajectoryStep]) -> Iterator[TrajectoryFinding]:
    """Yield calls without a result, or with two on one path, and results without a call.

    Where a session went two ways after a call, each way may have a result of its own.
    """
    results: dict[str, list[int]] = {}
    called: set[str] = set()
    for place, step in enumerate(steps):
        match step.data:
            case ToolResult(call_id=identity):
                results.setdefault(identity, []).append(place)
            case Assistant(content=content):
                called |= {call.id for call in select_tool_calls(content)}
    for step in steps:
        match step.data:
            case Assistant(content=content):
                for call in select_tool_calls(content):
                    places = results.get(call.id, ())
                    if not places:
                        detail = shorten_to_width(_show_arguments(call), _DETAIL_COLUMNS)
                        yield TrajectoryFinding("no-result", step.entry, call.name, detail)
                    elif again := _find_second(steps, places):
                        where = steps[again].entry
                        yield TrajectoryFinding(
                            "two-results", step.entry, call.name, f"again in {where}"
                        )
            case ToolResult(call_id=identity) as result if identity not in called:
                detail = shorten_to_width(join_texts(result.content), _DETAIL_COLUMNS)
                yield TrajectoryFinding("no-call", step.entry, result.name, detail)


def _show_arguments(call: ToolCall) -> str:
    return call.args_text or bytes(call.args).decode(errors="replace")


def _find_second(steps: Sequence[TrajectoryStep], places: Sequence[int]) -> int:
    """Return the place of a result that has another one of the same call before it; 0 for none."""
    for place in places[1:]:
        at = steps[place].parent
        while at >= places[0]:
            if at in places:
                return place
            at = steps[at].parent
    return 0
