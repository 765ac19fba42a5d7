"""Handing a session over: its state as a page for people, read from the tape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..context.gathering import Gathered
from ..context.handoff import of, page
from .record import newest_anchor

if TYPE_CHECKING:
    from .record import Recorder


def handoff_page(recorder: Recorder, *, to_model: str) -> str:
    """Return what whoever goes on has to know, as Markdown: summary, files, tokens and cost."""
    tape, head = recorder.tape, recorder.head()
    anchor = newest_anchor(recorder.path)
    told = Gathered()
    done = told.take(tape, head)
    written = of(
        anchor.summary if anchor else "",
        done,
        spending=told.spending,
        requests=told.requests,
        title=tape.title() or "",
        tape=tape.id,
        branch=recorder.branch,
        entry=head.entry,
        from_model=told.model,
        to_model=to_model,
        created=recorder.path[-1].time,
    )
    return page(written)
