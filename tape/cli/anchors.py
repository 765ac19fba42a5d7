"""`anchors`: the phases of a tape or of a path, each with the summary it begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import Struct
from msgspec.structs import replace

from ..clock import moment
from ..entries import Anchor, Branch, By, Covers, Kept, Place, Tokens
from ..errors import TapeError
from ..path import base_of
from ..phase import ORIGIN
from ..render import SHORT, single, visible
from ..summaries import summary_text
from .call import found
from .out import as_json, counted, document, examples, ref, say, style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..line import Entry
    from ..path import Source
    from ..tape import Tape
    from .call import Found
    from .group import Options

CUT = 3
"""Lines of each summary to show."""


class PhaseStart(Struct, frozen=True):
    """A phase and what it begins with; what cannot be read is None, and `error` says why."""

    tape: str
    phase: str
    branch: str | None = None
    kind: str | None = None
    """start, fork, go-on, compaction, handoff, merge, or origin."""
    entry: str | None = None
    time: str | None = None
    entries: int | None = None
    """How many entries it holds, those on other branches' paths included."""
    base: Place | None = None
    covers: Covers | None = None
    tokens: Tokens | None = None
    by: By | None = None
    reason: str | None = None
    kept: tuple[Kept, ...] = ()
    summary: str | None = None
    error: str | None = None


@click.command(
    epilog=examples("tape anchors", "tape anchors 3f2a:main", "tape anchors 3f2a --json")
)
@ref
@as_json
@click.pass_obj
def anchors(options: Options, ref: str, as_json: bool) -> None:
    """Show the phases of a tape, oldest first, with the first lines of their summaries.

    A REF with a branch or an entry shows the phases on its path, including those of the tape it was
    forked from. --json prints an array of {tape, phase, branch, kind, entry, time, entries, base,
    covers, tokens, by, reason, kept, summary, error}, summaries whole.
    """
    with found(options, ref) as place:
        starts = (_start(source, phase) for source, phase in _phases(place))
        if as_json:
            document(list(starts))
        else:
            say(line for start in starts for line in _lines(start))


def _phases(place: Found) -> list[tuple[Source, str]]:
    """Return the phases to show: the committed ones of a tape, or those on a path."""
    tape: Tape = place.tape
    if place.head is None and place.branch is None:
        committed = tape.refs().phases() | {ORIGIN}
        names = tape.phases.with_origin()
        return [(tape.source, name) for name in names if name in committed]
    head = place.head or tape.head(place.branch)
    return [(segment.source, segment.phase) for segment in tape.path(head)]


def _start(source: Source, phase: str) -> PhaseStart:
    try:
        first = source.phases.first(phase, source.expand)
        with source.phases.open(phase) as file:
            last = file.tail().header
        if first is None or last is None:
            return PhaseStart(source.tape, phase, error="it has no entry that verifies")
        return _told(source.tape, phase, first, last.n - first.n + 1)
    except (TapeError, OSError) as error:
        return PhaseStart(source.tape, phase, error=str(error))


def _told(tape: str, phase: str, first: Entry, entries: int) -> PhaseStart:
    data = first.data
    begun = PhaseStart(tape, phase, entry=first.id, time=first.time, entries=entries)
    if phase == ORIGIN:
        return replace(begun, kind="origin")
    begun = replace(begun, branch=getattr(data, "branch", None), base=base_of(first))
    if not isinstance(data, Anchor):
        return replace(begun, kind=(data.why or "fork") if isinstance(data, Branch) else "start")
    return replace(
        begun,
        kind=data.kind,
        covers=data.covers,
        tokens=data.tokens,
        by=data.by,
        reason=data.reason,
        kept=data.kept,
        summary=summary_text(data.summary),
    )


def _lines(start: PhaseStart) -> Iterator[str]:
    """Yield a heading, what an anchor covers, and the first lines of its summary."""
    if start.error is not None:
        yield single(f"{start.phase}: {start.error}")
        return
    at = [start.kind or "", moment(start.time or ""), (start.entry or "")[:SHORT]]
    facts = [*at, counted(start.entries or 0, "entry"), *_facts(start)]
    yield f"{style(single(start.phase), bold=True)} · {single(' · '.join(facts))}"
    summary = visible(start.summary or "").strip("\n")
    shown = [line for line in summary.split("\n") if line.strip()]
    yield from (f"    {line}" for line in shown[:CUT])
    if len(shown) > CUT:
        yield style(f"    … {counted(len(shown) - CUT, 'more line')}", dim=True)


def _facts(start: PhaseStart) -> Iterator[str]:
    if start.covers is not None:
        yield f"covers {counted(start.covers.count, 'entry')}"
    if start.kept:
        yield f"keeps {sum(kept.count for kept in start.kept)}"
    if start.tokens is not None:
        yield f"{start.tokens.before} → {start.tokens.after} tokens"
    if start.by is not None:
        yield f"{start.by.provider}/{start.by.model}"
    if start.reason:
        yield start.reason
