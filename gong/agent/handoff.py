"""Handoff of a session: an anchor for a model, and a page for people, read from the tape."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from tape.model.summary import read_anchor_summary

from ..context.handoff import Handoff, HistorySummary, build_handoff, render_handoff
from ..errors import NothingToCompact, NotSmaller
from . import events
from .compaction import CompactionRequest, build_repeated_handoff
from .recorder import find_newest_anchor

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from .recorder import Recorder
    from .session import Session


async def record_handoff(
    session: Session, to: str, focus: str = ""
) -> AsyncGenerator[events.Event, None]:
    """Set a handoff anchor for a model and yield the events; reuse an anchor that is newest.

    If a summary would be no smaller than what it covers, no anchor is set and a warning says that
    the model continues from the full history. Raises NothingToCompact if the session is empty.
    """
    request = CompactionRequest("handoff", focus, kind="handoff", hard=True, to=to)
    try:
        async with aclosing(session.compact(request)) as stream:
            async for event in stream:
                yield event
    except NotSmaller as error:
        yield events.Warn(f"{error}. So {to} continues from the full history.")
    except NothingToCompact:
        recorder = session.recorder
        anchor = None if recorder is None else find_newest_anchor(recorder.path)
        if anchor is None:
            raise
        if anchor.state.model != to:
            run = session.build_run_context()
            run.set_anchor(build_repeated_handoff(run.setup, run.recorder, anchor, to))
        yield events.Warn(f"no messages since the {anchor.kind}: it is reused for the handoff")


def build_handoff_page(recorder: Recorder, *, to_model: str, cwd: str) -> str:
    """Return the handoff page as Markdown: summary, files, tokens and cost.

    Paths below `cwd` are relative to it.
    """
    tape, head = recorder.tape, recorder.head()
    anchor = find_newest_anchor(recorder.path)
    history = HistorySummary()
    activity = history.take(tape, head)
    known = Handoff(
        title=tape.title() or "",
        requests=tuple(history.requests),
        spending=history.spending,
        tape=tape.id,
        branch=recorder.branch,
        entry=head.entry,
        from_model=history.model,
        to_model=to_model,
        created=recorder.path[-1].time,
    )
    summary = read_anchor_summary(anchor, cwd) if anchor else ""
    return render_handoff(build_handoff(known, summary, activity, cwd=cwd))
