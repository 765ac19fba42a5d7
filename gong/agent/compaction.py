"""One compaction: the older part of a view becomes a summary, in the anchor of a new phase.

What it covers stays on the tape as it is (tape.md §6). A model writes the summary; where it cannot,
rules do. The user's own requests and the names of files never come from a model.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tape.blocks import Text
from tape.entries import Anchor, By, Covers, SideUsage, State, Summary, Tokens
from tape.repair import repair
from tape.summaries import summary_text
from tape.view import Message, View, view

from ..context import summary as summaries
from ..context.cut import Cut, cut
from ..context.elide import sizes
from ..context.meter import fixed_tokens, messages_tokens
from ..errors import ModelError, NothingToCompact, NotSmaller
from ..llm.accumulate import StreamAccumulator
from ..llm.offline.summary import limit_summary, summarize_pieces
from ..llm.tokens import estimate
from ..llm.transcript import format_transcript
from ..llm.types import Request
from . import events
from .outgoing import sent
from .record import newest_anchor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tape.entries import Kept
    from tape.line import Entry

    from ..llm.transcript import TranscriptPiece
    from .parts import Model, Parts

SHARE = 0.36
"""What is left of a request after a compaction is at most this share of it, where that can be."""
_REQUESTS, _SUMMARY = 0.35, 0.25
"""Shares of what is left that the user's own requests and the summary may take."""
_LEAST = 500
"""Tokens that each of them may take however little is left."""
_ANSWER = 16_384
"""Most tokens of a model's summary, and of what it thinks before it."""
_UNKNOWN_WINDOW = 100_000
"""Tokens a summariser is shown where its window is not known."""
_TRIES = 4


class Wish(Struct, frozen=True):
    """What kind of compaction is wanted."""

    reason: str
    """Who asked: window, overflow, user, model, handoff."""
    focus: str = ""
    """What the summary should look at most."""
    kind: Literal["compaction", "handoff"] = "compaction"
    hard: bool = False
    """Keep nothing beside the summary."""
    gain: float = 0.0
    """Least share of the request that must become free; else NothingToCompact is raised."""
    to: str | None = None
    """provider/model that goes on; None is the present one."""


class Compacted(NamedTuple):
    """What came of a compaction: tokens of the next request before and after, by estimate."""

    anchor: Entry
    before: int
    after: int


class Share(NamedTuple):
    """Tokens that each part may take."""

    kept: int
    requests: int
    summary: int


class Told(NamedTuple):
    """A summary, which model wrote it (rules where it is None), and what asking one took."""

    summary: Summary
    by: By | None
    took: SideUsage | None
    """Recorded behind the anchor: what stands before it stays as it was, so that undo finds it."""


def hand_on(parts: Parts, anchor: Anchor, to: str) -> Entry:
    """Set the newest anchor once more, for another model, where nothing was said since."""
    again = replace(anchor, kind="handoff", reason="handoff", state=state_of(parts, to))
    return parts.record.anchor(again)


async def compact(parts: Parts, wish: Wish) -> Compacted:
    """Compact the view of the branch; raises NothingToCompact and leaves the branch as it is.

    NotSmaller where the next request would not shrink: what a model took to sum up is recorded.
    """
    record = parts.record
    seen = view(record.path, record.kept)
    entries = (*seen.kept, *seen.entries)
    specs = parts.tools.specs()
    fixed = fixed_tokens(parts.model.system_for(specs), specs)
    before = fixed + _tokens(seen, parts.model)
    share = _shares(parts, before, fixed)
    place = _cut(entries, share.kept, hard=wish.hard)
    first = place.first
    kept = tuple(entries[first:])
    _demand_gain(wish, before, fixed + _tokens(View(None, kept, ()), parts.model))
    parts.emit(events.CompactionStart(wish.kind, wish.reason, before))
    anchor = newest_anchor(record.path)
    previous = anchor.summary if anchor else None
    summary, by, took = await told(parts, wish, entries[:first], previous, share, split=place.split)
    after = fixed + _tokens(View(summary_text(summary), kept, ()), parts.model)
    try:
        _demand_gain(wish, before, after)
    except NothingToCompact as error:
        note_usage(parts, took)
        if wish.gain:
            parts.emit(events.Warn(str(error)))
        raise
    ranges = kept_ranges(parts, kept)
    covers = Covers(entries[0].id, entries[first - 1].id, entries[first - 1].n - entries[0].n + 1)
    entry = record.anchor(
        Anchor(
            kind=wish.kind,
            summary=summary,
            kept=ranges,
            covers=covers,
            tokens=Tokens(before, after),
            by=by,
            reason=wish.reason,
            state=state_of(parts, wish.to),
        )
    )
    note_usage(parts, took)
    name = f"{by.provider}/{by.model}" if by else None
    parts.emit(events.CompactionEnd(wish.kind, entry.id, before, after, covers.count, name))
    return Compacted(entry, before, after)


def _demand_gain(wish: Wish, before: int, after: int) -> None:
    if wish.gain and after > before * (1 - wish.gain):
        raise NothingToCompact(
            f"a compaction would free too little: {before:,} tokens would become {after:,}"
        )
    if after >= before:
        raise NotSmaller(
            f"a summary would make the next request no smaller: {before:,} tokens would"
            f" become {after:,}"
        )


def _tokens(seen: View, model: Model) -> int:
    return messages_tokens(sent(repair(seen, model.target).messages, seen))


def _shares(parts: Parts, before: int, fixed: int) -> Share:
    """Return what may be left, so that the request after is a small part of the one before."""
    room = max(int(before * SHARE) - fixed, 0)
    requests, summary = int(room * _REQUESTS), int(room * _SUMMARY)
    kept = min(room - requests - summary, parts.room.keep)
    return Share(kept, max(requests, _LEAST), max(summary, _LEAST))


def _cut(entries: Sequence[Entry], keep: int, *, hard: bool) -> Cut:
    """Return where to cut; raises NothingToCompact where that would cover nothing that is sent."""
    size = sizes(entries)
    found = Cut(len(entries), len(entries)) if hard else cut(entries, keep, size)
    if found is None or not any(map(size, entries[: found.first])):
        raise NothingToCompact("there is nothing to compact yet")
    return found


def note_usage(parts: Parts, took: SideUsage | None) -> None:
    """Record what a summary took, once what it is for stands."""
    if took is not None:
        parts.record.append(took)
        parts.record.barrier()


def kept_ranges(parts: Parts, kept: Sequence[Entry]) -> tuple[Kept, ...]:
    """Return the newest entries in view as the ranges an anchor keeps.

    Raises NothingToCompact where they are not found, so that nothing leaves the view by mistake.
    """
    if not kept:
        return ()
    record = parts.record
    record.barrier()
    anchor, first = newest_anchor(record.path), kept[0].id
    earlier: tuple[Kept, ...] = ()
    behind = record.path
    if anchor is not None and any(entry.id == first for entry in record.kept):
        earlier = record.tape.kept_from(anchor, first)
        behind = record.path[1:]
        first = behind[0].id if behind else ""
    elif first != behind[0].id:
        behind = behind[next(n for n, entry in enumerate(behind) if entry.id == first) :]
    count = behind[-1].n - behind[0].n + 1 if behind else 0
    newest = record.tape.newest(record.head(), count)
    if count and (not newest or newest[0].first != first):
        raise NothingToCompact("this branch cannot be read back: tape verify says why")
    return (*earlier, *newest)


def state_of(parts: Parts, to: str | None) -> State:
    """Return what holds now, for a session that resumes from an anchor; `to` goes on with it."""
    model = to or f"{parts.model.provider}/{parts.model.id}"
    return State(model=model, tools=parts.tools.active, cwd=parts.env.working_directory)


async def told(
    parts: Parts,
    wish: Wish,
    covered: Sequence[Entry],
    previous: Summary | str | None,
    share: Share,
    *,
    split: bool,
) -> Told:
    """Return the summary of entries: a model's, or where that fails one made by rules."""
    pieces = summaries.pieces(covered, previous)
    by, took = None, None
    try:
        said, took = await _asked(parts, wish, pieces, share, split=split)
        summary = limit_summary(summaries.parse(said), 2 * share.summary * _CHARACTERS)
        by = By(took.provider, took.model, took.usage)
    except (ModelError, summaries.SummaryUnusable) as error:
        parts.emit(events.Warn(f"the summary is made by rules, because {error}"))
        summary = summarize_pieces(pieces, wish.focus, limit=share.summary * _CHARACTERS)
    whole = summaries.complete(
        summary,
        covered,
        previous,
        cwd=parts.env.working_directory,
        limit_chars=share.requests * _CHARACTERS,
    )
    return Told(whole, by, took)


_CHARACTERS = 3
"""Characters taken for a token where a limit is one of characters."""


async def _asked(
    parts: Parts, wish: Wish, pieces: Sequence[TranscriptPiece], share: Share, *, split: bool
) -> tuple[str, SideUsage]:
    """Return what the summarising model says, and what it took; raises ModelError."""
    model = parts.summariser or parts.model
    window = model.window or _UNKNOWN_WINDOW
    answer = min(_ANSWER, window // 4)
    system, prompt = _fitting(pieces, wish.focus, window - answer, share, split=split)
    request = Request(
        model=model.id,
        messages=(Message("user", (Text(prompt),)),),
        system=system,
        max_tokens=answer,
        session=parts.session,
    )
    said = StreamAccumulator(parts.call_prefix())
    async with aclosing(model.stream(request)) as stream:
        async for event in stream:
            said.process(event)
    response = said.response()
    usage = response.usage
    cost = model.cost(usage)
    parts.pressure.count(usage, cost)
    return response.text, SideUsage(wish.kind, model.provider, model.id, usage, cost=cost)


def _fitting(
    pieces: Sequence[TranscriptPiece], focus: str, room: int, share: Share, *, split: bool
) -> tuple[str, str]:
    """Return a prompt of at most `room` tokens, with as much of the pieces as fits."""
    characters = len(format_transcript(pieces))
    for _ in range(_TRIES):
        system, prompt = summaries.prompt(
            pieces,
            focus=focus,
            split_turn=split,
            budget_chars=characters,
            answer_chars=share.summary * _CHARACTERS,
        )
        tokens = estimate(system) + estimate(prompt)
        if tokens <= room:
            break
        characters = int(min(characters, len(prompt)) * room / tokens * 0.9)
    return system, prompt
