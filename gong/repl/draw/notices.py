"""Events beside the answer → one line each; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from tape.text import format_count, format_seconds

from ...agent import events
from ...context.costs import format_money
from .lines import render_remark

if TYPE_CHECKING:
    from .lines import StyledLine

    Notice = (
        events.HistoryRepaired
        | events.CompactionEnd
        | events.ResultsElided
        | events.CostLimit
        | events.TurnLimit
        | events.LoopDetection
        | events.Warn
        | events.HookError
        | events.RunFailure
    )


def describe_limit(
    event: events.TurnLimit | events.CostLimit | events.LoopDetection, *, is_kept: bool = True
) -> str:
    """Return in one line which limit a run came to, and how to continue where the tape is kept."""
    match event:
        case events.LoopDetection():
            what = event.message.partition(":")[2].strip().partition(".")[0]
            if not event.stopped:
                return f"the model repeats itself: {what}"
            again = "" if event.what == "text" else ", once more after a warning to the model"
            remark = f"stopped: {what}{again}"
        case events.CostLimit():
            limit, spent = format_money(event.limit), format_money(event.spent)
            remark = f"stopped at the max cost of {limit}: {spent} spent"
        case events.TurnLimit(limit="time"):
            remark = f"stopped at the time limit of {format_seconds(event.value)}"
        case events.TurnLimit(limit="round"):
            rounds = format_count(int(event.value), "round of tool calls", "rounds of tool calls")
            remark = f"stopped at the limit of {rounds} for one prompt"
        case _:
            remark = f"stopped at the limit of {format_count(int(event.value), 'model call')}"
    return f"{remark}; a new prompt continues (gong chat -c)" if is_kept else remark


def describe_compaction(event: events.CompactionEnd) -> str:
    """Return the result of a compaction or handoff in one line."""
    by = event.by or "rules"
    head = (
        "Compacted" if event.anchor == "compaction" else f"{event.anchor.capitalize()}: compacted"
    )
    return (
        f"{head} {format_count(event.covered, 'entry', 'entries')} "
        f"({event.before:,} → {event.after:,} tokens, summary by {by})"
    )


def _name_undo(event: events.CompactionEnd) -> str:
    return "/merge --undo" if event.anchor == "merge" else "/compact --undo"


def render_notice(event: Notice, *, is_kept: bool) -> StyledLine:
    """Return the line of an event that is shown as one remark."""
    match event:
        case events.HistoryRepaired():
            calls = format_count(event.injected, "interrupted tool call")
            left = format_count(event.dropped, "entry", "entries")
            additions = [f"{calls} got a placeholder result"] if event.injected else []
            counts = ", ".join([*additions, *([f"{left} left out"] if event.dropped else [])])
            remark = f"History repaired{f': {counts}' if counts else ''} ({event.why})"
        case events.CompactionEnd():
            remark = f"{describe_compaction(event)} · {_name_undo(event)} reverts this"
        case events.ResultsElided():
            remark = "older tool results become placeholders: the context window is filling up"
        case events.CostLimit() | events.TurnLimit() | events.LoopDetection():
            remark = describe_limit(event, is_kept=is_kept)
        case events.Warn():
            remark = event.message
        case events.HookError():
            remark = f"hook {event.hook}: {event.error}"
        case events.RunFailure():
            again = " (trying again may help)" if event.retryable else ""
            return render_remark(f"{event.message}{again}", "error")
        case _:
            assert_never(event)
    return render_remark(remark)
