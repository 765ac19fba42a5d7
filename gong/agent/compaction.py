"""One compaction: a summary in the anchor of a new phase replaces the older part of a view.

The entries it covers stay on the tape (tape.md §6). A model writes the summary; if that fails,
rules do. The user's own requests and the names of files never come from a model.

Leaving a branch: a summary of it is added to an anchor on the new branch.

The new branch keeps its view. The anchor adds a summary of what the other branch did since the two
diverged, and names that branch.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tape.context.repair import repair
from tape.context.view import Message, View, view
from tape.damage import warn_of_damage
from tape.history.merge_base import find_merge_base, read_path_to
from tape.model.entries import (
    Anchor,
    CoveredRange,
    SideUsage,
    State,
    Summary,
    SummaryAuthor,
    Text,
    Tokens,
)
from tape.model.summary import render_summary

from ..context import summary as summaries
from ..context.tokens import count_fixed_tokens, count_messages_tokens
from ..context.trim import HistoryCut, build_sizer, find_cut
from ..errors import ModelError, NothingToCompact, NotSmaller
from ..llm.accumulate import StreamAccumulator
from ..llm.offline.summary import limit_summary, summarize_pieces
from ..llm.summary_format import format_transcript
from ..llm.tokens import estimate_tokens
from ..llm.types import Request
from . import events
from .recorder import find_newest_anchor
from .run_context import apply_elisions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tape.model.entries import KeptRange
    from tape.model.line import Entry
    from tape.store.refs import Head

    from ..llm.summary_format import TranscriptPiece
    from .run_context import AgentModel, RunContext


TARGET_SHARE = 0.36
"""Target size of the request after a compaction, as a share of the one before."""
_REQUESTS_SHARE, _SUMMARY_SHARE = 0.35, 0.25
"""Shares of that size for the user's own requests and for the summary."""
_MIN_TOKENS = 500
"""Tokens that each of the two may take at least."""
_MAX_ANSWER_TOKENS = 16_384
"""Maximum tokens of a model's summary, and of its thinking before it."""
_UNKNOWN_WINDOW = 100_000
"""Tokens a summariser gets if its context window is unknown."""
_MAX_TRIES = 4


class CompactionRequest(Struct, frozen=True):
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


class CompactionResult(NamedTuple):
    """The result of a compaction: estimated tokens of the next request before and after."""

    anchor: Entry
    before: int
    after: int


class CompactionBudget(NamedTuple):
    """Tokens that each part may take."""

    kept: int
    requests: int
    summary: int


class SummaryResult(NamedTuple):
    """A summary, the model that wrote it (None: rules), and the usage of that call."""

    summary: Summary
    by: SummaryAuthor | None
    took: SideUsage | None
    """Usage, recorded after the anchor so that undo restores the entries before it."""


def repeat_handoff(parts: RunContext, anchor: Anchor, to: str) -> Entry:
    """Set the newest anchor again for another model, if no message followed it."""
    again = replace(anchor, kind="handoff", reason="handoff", state=build_state(parts, to))
    return parts.record.anchor(again)


async def compact_branch(parts: RunContext, wish: CompactionRequest) -> CompactionResult:
    """Compact the view of the branch; raises NothingToCompact and leaves the branch as it is.

    Raises NotSmaller if the next request would not shrink; the usage of the summary is recorded.
    """
    record = parts.record
    seen = view(record.path, record.kept)
    entries = (*seen.kept, *seen.entries)
    specs = parts.tools.specs()
    fixed = count_fixed_tokens(parts.model.build_system(specs), specs)
    before = fixed + _count_view_tokens(seen, parts.model)
    share = _plan_budget(parts, before, fixed)
    place = _choose_cut(entries, share.kept, hard=wish.hard)
    first = place.first
    kept = tuple(entries[first:])
    _require_gain(wish, before, fixed + _count_view_tokens(View(None, kept, ()), parts.model))
    parts.emit(events.CompactionStart(wish.kind, wish.reason, before))
    anchor = find_newest_anchor(record.path)
    previous = anchor.summary if anchor else None
    summary, by, took = await write_summary(
        parts, wish, entries[:first], previous, share, split=place.split
    )
    after = fixed + _count_view_tokens(View(render_summary(summary), kept, ()), parts.model)
    try:
        _require_gain(wish, before, after)
    except NothingToCompact as error:
        record_side_usage(parts, took)
        if wish.gain:
            parts.emit(events.Warn(str(error)))
        raise
    ranges = find_kept_ranges(parts, kept)
    covers = CoveredRange(
        entries[0].id, entries[first - 1].id, entries[first - 1].n - entries[0].n + 1
    )
    entry = record.anchor(
        Anchor(
            kind=wish.kind,
            summary=summary,
            kept=ranges,
            covers=covers,
            tokens=Tokens(before, after),
            by=by,
            reason=wish.reason,
            state=build_state(parts, wish.to),
        )
    )
    record_side_usage(parts, took)
    name = f"{by.provider}/{by.model}" if by else None
    parts.emit(events.CompactionEnd(wish.kind, entry.id, before, after, covers.count, name))
    return CompactionResult(entry, before, after)


def _require_gain(wish: CompactionRequest, before: int, after: int) -> None:
    if wish.gain and after > before * (1 - wish.gain):
        raise NothingToCompact(
            f"a compaction would free too little: {before:,} tokens would become {after:,}"
        )
    if after >= before:
        raise NotSmaller(
            f"a summary would not make the next request smaller: {before:,} tokens would"
            f" become {after:,}"
        )


def _count_view_tokens(seen: View, model: AgentModel) -> int:
    return count_messages_tokens(apply_elisions(repair(seen, model.target).messages, seen))


def _plan_budget(parts: RunContext, before: int, fixed: int) -> CompactionBudget:
    """Return the budget of each part, so that the next request is a small share of this one."""
    room = max(int(before * TARGET_SHARE) - fixed, 0)
    requests, summary = int(room * _REQUESTS_SHARE), int(room * _SUMMARY_SHARE)
    kept = min(room - requests - summary, parts.room.keep)
    return CompactionBudget(kept, max(requests, _MIN_TOKENS), max(summary, _MIN_TOKENS))


def _choose_cut(entries: Sequence[Entry], keep: int, *, hard: bool) -> HistoryCut:
    """Return where to cut; raises NothingToCompact if no sent entry would be covered."""
    size = build_sizer(entries)
    found = HistoryCut(len(entries), len(entries)) if hard else find_cut(entries, keep, size)
    if found is None or not any(map(size, entries[: found.first])):
        raise NothingToCompact("there is nothing to compact yet")
    return found


def record_side_usage(parts: RunContext, took: SideUsage | None) -> None:
    """Record the usage of a summary, after its anchor."""
    if took is not None:
        parts.record.append(took)
        parts.record.barrier()


def find_kept_ranges(parts: RunContext, kept: Sequence[Entry]) -> tuple[KeptRange, ...]:
    """Return the newest entries in view as the ranges that an anchor keeps.

    Raises NothingToCompact if they are not found, so that nothing leaves the view by mistake.
    """
    if not kept:
        return ()
    record = parts.record
    record.barrier()
    anchor, first = find_newest_anchor(record.path), kept[0].id
    earlier: tuple[KeptRange, ...] = ()
    behind = record.path
    if anchor is not None and any(entry.id == first for entry in record.kept):
        earlier = record.tape.trim_kept_ranges(anchor, first)
        behind = record.path[1:]
        first = behind[0].id if behind else ""
    elif first != behind[0].id:
        behind = behind[next(n for n, entry in enumerate(behind) if entry.id == first) :]
    count = behind[-1].n - behind[0].n + 1 if behind else 0
    newest = record.tape.newest(record.head(), count)
    if count and (not newest or newest[0].first != first):
        raise NothingToCompact("this branch cannot be read: tape verify shows why")
    return (*earlier, *newest)


def build_state(parts: RunContext, to: str | None) -> State:
    """Return the session state that an anchor stores; `to` is the model that continues."""
    model = to or f"{parts.model.provider}/{parts.model.id}"
    return State(model=model, tools=parts.tools.active, cwd=parts.env.working_directory)


async def write_summary(
    parts: RunContext,
    wish: CompactionRequest,
    covered: Sequence[Entry],
    previous: Summary | str | None,
    share: CompactionBudget,
    *,
    split: bool,
) -> SummaryResult:
    """Return a summary of entries by a model, or by rules if that fails."""
    pieces = summaries.build_pieces(covered, previous)
    by, took = None, None
    try:
        said, took = await _request_summary(parts, wish, pieces, share, split=split)
        summary = limit_summary(
            summaries.validate_summary(said), 2 * share.summary * _CHARS_PER_TOKEN
        )
        by = SummaryAuthor(took.provider, took.model, took.usage)
    except (ModelError, summaries.SummaryUnusable) as error:
        parts.emit(events.Warn(f"the summary was made by rules, because {error}"))
        summary = summarize_pieces(pieces, wish.focus, limit=share.summary * _CHARS_PER_TOKEN)
    whole = summaries.complete_summary(
        summary,
        covered,
        previous,
        cwd=parts.env.working_directory,
        limit_chars=share.requests * _CHARS_PER_TOKEN,
    )
    return SummaryResult(whole, by, took)


_CHARS_PER_TOKEN = 3
"""Characters per token, to turn a token limit into characters."""


async def _request_summary(
    parts: RunContext,
    wish: CompactionRequest,
    pieces: Sequence[TranscriptPiece],
    share: CompactionBudget,
    *,
    split: bool,
) -> tuple[str, SideUsage]:
    """Return the summarising model's answer and its usage; raises ModelError."""
    model = parts.summariser or parts.model
    window = model.window or _UNKNOWN_WINDOW
    answer = min(_MAX_ANSWER_TOKENS, window // 4)
    system, prompt = _fit_prompt(pieces, wish.focus, window - answer, share, split=split)
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
    parts.pressure.count_usage(usage, cost)
    return response.text, SideUsage(wish.kind, model.provider, model.id, usage, cost=cost)


def _fit_prompt(
    pieces: Sequence[TranscriptPiece],
    focus: str,
    room: int,
    share: CompactionBudget,
    *,
    split: bool,
) -> tuple[str, str]:
    """Return a prompt of at most `room` tokens with as many of the pieces as fit."""
    characters = len(format_transcript(pieces))
    for _ in range(_MAX_TRIES):
        system, prompt = summaries.build_summary_prompt(
            pieces,
            focus=focus,
            split_turn=split,
            budget_chars=characters,
            answer_chars=share.summary * _CHARS_PER_TOKEN,
        )
        tokens = estimate_tokens(system) + estimate_tokens(prompt)
        if tokens <= room:
            break
        characters = int(min(characters, len(prompt)) * room / tokens * 0.9)
    return system, prompt


_MERGE_BUDGET = CompactionBudget(kept=0, requests=2_000, summary=2_000)


async def merge_branch(parts: RunContext, left: Head) -> Entry:
    """Set an anchor on the current branch that summarises the branch that ends at `left`.

    Raises NothingToCompact if that branch has no entries of its own.
    """
    record = parts.record
    since = _list_own_entries(parts, left)
    if not any(entry.type in {"user", "assistant"} for entry in since):
        raise NothingToCompact(
            f"branch {left.branch} has no entries of its own: there is nothing to summarise"
        )
    summary, by, took = await write_summary(
        parts, CompactionRequest("left"), since, None, _MERGE_BUDGET, split=False
    )
    before = find_newest_anchor(record.path)
    entry = record.anchor(
        Anchor(
            kind="merge",
            summary=_merge_summaries(before.summary if before else None, summary, left.branch),
            kept=find_kept_ranges(parts, (*record.kept, *record.path)),
            covers=CoveredRange(since[0].id, since[-1].id, len(since)),
            by=by,
            reason="left",
            state=build_state(parts, None),
            other=Raw(msgspec.json.encode(_encode_left_branch(parts, left))),
        )
    )
    record_side_usage(parts, took)
    return entry


def _list_own_entries(parts: RunContext, left: Head) -> list[Entry]:
    """Return a branch's entries since it diverged from the current one, oldest first."""
    tape = parts.record.tape
    apart = find_merge_base(read_path_to(tape, left), read_path_to(tape, parts.record.head())).a
    return [
        entry for segment in apart for run in segment.read_runs(warn_of_damage) for entry in run
    ]


def _encode_left_branch(parts: RunContext, left: Head) -> dict[str, str]:
    return {"tape": parts.record.tape.id, "branch": left.branch, "entry": left.entry}


def _merge_summaries(before: Summary | str | None, left: Summary, branch: str) -> Summary:
    """Return the current branch's summary merged with that of the branch that was left."""
    base = before if isinstance(before, Summary) else Summary(critical_context=_wrap_lines(before))
    on = f"on branch {branch}, which was left"
    return replace(
        base,
        goal=base.goal or left.goal,
        done=(*base.done, *(f"{on}: {one}" for one in left.done)),
        blocked=(*base.blocked, *(f"{on}: {one}" for one in left.blocked)),
        decisions=(*base.decisions, *(f"{on}: {one}" for one in left.decisions)),
        critical_context=(
            *base.critical_context,
            *(f"{on}: {one}" for one in (*left.in_progress, *left.critical_context)),
        ),
        files_read=tuple(dict.fromkeys((*base.files_read, *left.files_read))),
        files_changed=tuple(dict.fromkeys((*base.files_changed, *left.files_changed))),
        requests=tuple(dict.fromkeys((*base.requests, *(f"{on}: {one}" for one in left.requests)))),
    )


def _wrap_lines(text: str | None) -> tuple[str, ...]:
    return (text,) if text else ()
