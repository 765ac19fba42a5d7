"""One compaction: a summary in the anchor of a new phase replaces the older part of a view.

The entries it covers stay on the tape (tape.md §6). A model writes the summary; if that fails,
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
"""Target size of the request after a compaction, as a share of the one before."""
_REQUESTS, _SUMMARY = 0.35, 0.25
"""Shares of that size for the user's own requests and for the summary."""
_LEAST = 500
"""Tokens that each of the two may take at least."""
_ANSWER = 16_384
"""Maximum tokens of a model's summary, and of its thinking before it."""
_UNKNOWN_WINDOW = 100_000
"""Tokens a summariser gets if its context window is unknown."""
_TRIES = 4


class Wish(Struct, frozen=True):
    """A request for a compaction."""

    reason: str
    """The cause: window, overflow, user, model, handoff."""
    focus: str = ""
    """What the summary should focus on."""
    kind: Literal["compaction", "handoff"] = "compaction"
    hard: bool = False
    """Keep no recent messages besides the summary."""
    gain: float = 0.0
    """Minimum share of the request to free; below it NothingToCompact is raised."""
    to: str | None = None
    """provider/model that continues; None is the current one."""


class Compacted(NamedTuple):
    """The result of a compaction: estimated tokens of the next request before and after."""

    anchor: Entry
    before: int
    after: int


class Share(NamedTuple):
    """Tokens that each part may take."""

    kept: int
    requests: int
    summary: int


class Told(NamedTuple):
    """A summary, the model that wrote it (None: rules), and the usage of that call."""

    summary: Summary
    by: By | None
    took: SideUsage | None
    """Usage, recorded after the anchor so that undo restores the entries before it."""


def hand_on(parts: Parts, anchor: Anchor, to: str) -> Entry:
    """Set the newest anchor again for another model, if no message followed it."""
    again = replace(anchor, kind="handoff", reason="handoff", state=state_of(parts, to))
    return parts.record.anchor(again)


async def compact(parts: Parts, wish: Wish) -> Compacted:
    """Compact the view of the branch; raises NothingToCompact and leaves the branch as it is.

    Raises NotSmaller if the next request would not shrink; the usage of the summary is recorded.
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
            f"a summary would not make the next request smaller: {before:,} tokens would"
            f" become {after:,}"
        )


def _tokens(seen: View, model: Model) -> int:
    return messages_tokens(sent(repair(seen, model.target).messages, seen))


def _shares(parts: Parts, before: int, fixed: int) -> Share:
    """Return the budget of each part, so that the next request is a small share of this one."""
    room = max(int(before * SHARE) - fixed, 0)
    requests, summary = int(room * _REQUESTS), int(room * _SUMMARY)
    kept = min(room - requests - summary, parts.room.keep)
    return Share(kept, max(requests, _LEAST), max(summary, _LEAST))


def _cut(entries: Sequence[Entry], keep: int, *, hard: bool) -> Cut:
    """Return where to cut; raises NothingToCompact if no sent entry would be covered."""
    size = sizes(entries)
    found = Cut(len(entries), len(entries)) if hard else cut(entries, keep, size)
    if found is None or not any(map(size, entries[: found.first])):
        raise NothingToCompact("there is nothing to compact yet")
    return found


def note_usage(parts: Parts, took: SideUsage | None) -> None:
    """Record the usage of a summary, after its anchor."""
    if took is not None:
        parts.record.append(took)
        parts.record.barrier()


def kept_ranges(parts: Parts, kept: Sequence[Entry]) -> tuple[Kept, ...]:
    """Return the newest entries in view as the ranges that an anchor keeps.

    Raises NothingToCompact if they are not found, so that nothing leaves the view by mistake.
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
        raise NothingToCompact("this branch cannot be read: tape verify shows why")
    return (*earlier, *newest)


def state_of(parts: Parts, to: str | None) -> State:
    """Return the session state that an anchor stores; `to` is the model that continues."""
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
    """Return a summary of entries by a model, or by rules if that fails."""
    pieces = summaries.pieces(covered, previous)
    by, took = None, None
    try:
        said, took = await _asked(parts, wish, pieces, share, split=split)
        summary = limit_summary(summaries.parse(said), 2 * share.summary * _CHARACTERS)
        by = By(took.provider, took.model, took.usage)
    except (ModelError, summaries.SummaryUnusable) as error:
        parts.emit(events.Warn(f"the summary was made by rules, because {error}"))
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
"""Characters per token, to turn a token limit into characters."""


async def _asked(
    parts: Parts, wish: Wish, pieces: Sequence[TranscriptPiece], share: Share, *, split: bool
) -> tuple[str, SideUsage]:
    """Return the summarising model's answer and its usage; raises ModelError."""
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
    """Return a prompt of at most `room` tokens with as many of the pieces as fit."""
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
