"""`context` and `anchors`: the messages of the next model call; the phases and their summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..clock import render_time
from ..context.repair import build_messages
from ..context.view import Target
from ..errors import TapeError
from ..model.entries import Anchor, Branch, CoveredRange, KeptRange, Place, SummaryAuthor, Tokens
from ..model.summary import render_summary
from ..render.entries import name_reason, render_content
from ..store.path import read_base
from ..store.phase import ORIGIN
from ..text import SHORT, format_count, show_controls, to_single_line
from .output import as_json, format_examples, format_size, print_json, ref
from .resolve import open_entry, open_ref
from .terminal import print_lines, style_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..context.repair import Repaired
    from ..context.view import Message
    from ..model.line import Entry
    from ..store.path import Source
    from ..store.refs import Head
    from ..store.tape import Tape
    from .group import GlobalOptions


NO_MODEL = Target("", "", "")
"""A target that wrote none of the messages, so data for one provider only is left out."""


@click.command(epilog=format_examples("tape context", "tape context 3f2a:main~2 --json"))
@ref
@as_json
@click.pass_obj
def context(options: GlobalOptions, ref: str, as_json: bool) -> None:
    """Show what the next model call would be built from: the repaired view, with sizes in bytes.

    --json prints {tape, branch, head, messages, repair, bytes}.
    """
    with open_entry(options, ref) as (tape, head):
        seen, repaired = build_messages(tape, head, NO_MODEL)
        parts = weigh_messages(repaired, has_summary=bool(seen.summary))
    if as_json:
        print_json(
            {
                "tape": tape.id,
                "branch": head.branch,
                "head": head.entry,
                "messages": repaired.messages,
                "repair": repaired.repair,
                "bytes": parts,
            }
        )
    else:
        print_lines(format_context(tape, head, repaired, parts))


def weigh_messages(repaired: Repaired, *, has_summary: bool) -> dict[str, int]:
    """Return the bytes of the summary and of the messages of each role, as JSON content."""
    parts = dict.fromkeys(("summary", "system", "user", "assistant", "tool"), 0)
    for at, message in enumerate(repaired.messages):
        parts["summary" if has_summary and at == 0 else message.role] += weigh_message(message)
    return {**parts, "total": sum(parts.values())}


def weigh_message(message: Message) -> int:
    """Return the bytes of a message's content."""
    return len(msgspec.json.encode(message.content))


def format_context(
    tape: Tape, head: Head, repaired: Repaired, parts: dict[str, int]
) -> Iterator[str]:
    """Yield the messages, the repairs, and the size of each part, as text."""
    for message in repaired.messages:
        call = f" {message.call_id}" if message.call_id else ""
        yield to_single_line(f"── {message.role}{call} · {format_size(weigh_message(message))}")
        yield from (f"  {line}".rstrip() for line in render_content(message.content))
        yield ""
    for injected in repaired.repair.injected if repaired.repair else ():
        yield to_single_line(f"repair: placeholder result for {injected.call_id}: {injected.text}")
    for dropped in repaired.repair.dropped if repaired.repair else ():
        yield f"repair: entry {dropped[:SHORT]} is not sent"
    weighed = ", ".join(f"{part} {format_size(count)}" for part, count in parts.items() if count)
    at = f"{tape.id[:SHORT]}:{head.branch}@{head.entry[:SHORT]}"
    yield f"{at}: {format_count(len(repaired.messages), 'message')}; {weighed or 'nothing'}"


SUMMARY_LINES = 3
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
    covers: CoveredRange | None = None
    tokens: Tokens | None = None
    by: SummaryAuthor | None = None
    reason: str | None = None
    kept: tuple[KeptRange, ...] = ()
    summary: str | None = None
    error: str | None = None


@click.command(
    epilog=format_examples("tape anchors", "tape anchors 3f2a:main", "tape anchors 3f2a --json")
)
@ref
@as_json
@click.pass_obj
def anchors(options: GlobalOptions, ref: str, as_json: bool) -> None:
    """Show the phases of a tape, oldest first, with the first lines of their summaries.

    A REF with a branch or an entry shows the phases on its path, including those of the tape it was
    forked from. --json prints an array of {tape, phase, branch, kind, entry, time, entries, base,
    covers, tokens, by, reason, kept, summary, error}, summaries whole.
    """
    with open_ref(options, ref) as place:
        tape: Tape = place.tape
        if place.head is None and place.branch is None:
            committed = tape.refs().phases() | {ORIGIN}
            names = tape.phases.list_with_origin()
            phases = [(tape.source, name) for name in names if name in committed]
        else:
            path = tape.path(place.head or tape.head(place.branch))
            phases = [(segment.source, segment.phase) for segment in path]
        starts = (_read_phase_start(*phase) for phase in phases)
        if as_json:
            print_json(list(starts))
        else:
            print_lines(line for start in starts for line in _format_phase_start(start))


def _read_phase_start(source: Source, phase: str) -> PhaseStart:
    try:
        first = source.phases.first(phase, source.expand)
        with source.phases.open(phase) as file:
            last = file.tail().header
        if first is None or last is None:
            return PhaseStart(source.tape, phase, error="it has no valid entry")
        return _build_phase_start(source.tape, phase, first, last.n - first.n + 1)
    except (TapeError, OSError) as error:
        return PhaseStart(source.tape, phase, error=str(error))


def _build_phase_start(tape: str, phase: str, first: Entry, entries: int) -> PhaseStart:
    data = first.data
    start = PhaseStart(tape, phase, entry=first.id, time=first.time, entries=entries)
    if phase == ORIGIN:
        return replace(start, kind="origin")
    start = replace(start, branch=getattr(data, "branch", None), base=read_base(first))
    if not isinstance(data, Anchor):
        return replace(start, kind=(data.why or "fork") if isinstance(data, Branch) else "start")
    return replace(
        start,
        kind=data.kind,
        covers=data.covers,
        tokens=data.tokens,
        by=data.by,
        reason=data.reason,
        kept=data.kept,
        summary=render_summary(data.summary),
    )


def _format_phase_start(start: PhaseStart) -> Iterator[str]:
    """Yield a heading, what an anchor covers, and the first lines of its summary."""
    if start.error is not None:
        yield to_single_line(f"{start.phase}: {start.error}")
        return
    facts = [
        name_reason(start.kind or ""),
        render_time(start.time or ""),
        (start.entry or "")[:SHORT],
        format_count(start.entries or 0, "entry"),
    ]
    if start.covers is not None:
        facts.append(f"covers {format_count(start.covers.count, 'entry')}")
    if start.kept:
        facts.append(f"keeps {sum(kept_range.count for kept_range in start.kept)}")
    if start.tokens is not None:
        facts.append(f"{start.tokens.before} → {start.tokens.after} tokens")
    if start.by is not None:
        facts.append(f"{start.by.provider}/{start.by.model}")
    if start.reason:
        facts.append(start.reason)
    phase = style_text(to_single_line(start.phase), bold=True)
    yield f"{phase} · {to_single_line(' · '.join(facts))}"
    summary = show_controls(start.summary or "").strip("\n")
    lines_with_text = [line for line in summary.split("\n") if line.strip()]
    yield from (f"    {line}" for line in lines_with_text[:SUMMARY_LINES])
    if len(lines_with_text) > SUMMARY_LINES:
        yield style_text(
            f"    … {format_count(len(lines_with_text) - SUMMARY_LINES, 'more line')}", dim=True
        )
