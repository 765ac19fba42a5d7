"""Merge: what one branch has that another lacks, and the anchor that tells of it (tape.md §8).

Nothing is copied. The anchor keeps the whole view of the branch it continues, then the picked
entries, as ranges of the files they are in; its summary is what the first branch's was, and what
the second one did:

    main   1 ─ 2 ─ 3 ─ 4 ─ 5 ─ A       A.kept    1–5, then 7–8 of try
                   └ 6 ─ 7 ─ 8 ─ 9     A.covers  6–9
           try                         A.other   {branch try, entry 9, picks [7]}

A pick is widened until no call is cut from its results: of an answer with calls and their results
all of them are in view or none (7 above is an answer, 8 the result of its call).

| the merged entry | result |
|---|---|
| is on the path merged into, or was merged there | nothing new: `since` is empty |
| has entries the other path lacks | these, from the newest common or merged entry on |
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ..damage import warn_of_damage
from ..errors import Damaged
from ..model.entries import (
    TODOS_KIND,
    Anchor,
    Assistant,
    CoveredRange,
    Custom,
    KeptRange,
    MergedBranch,
    Meta,
    Mode,
    Model,
    Start,
    State,
)
from ..model.line import decode_line, describe_missing_blob, read_id, read_type
from .merge_base import find_merge_base, read_path_to
from .picks import choose_picks, group_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..model.entries import Payload, Summary, SummaryAuthor
    from ..model.line import Entry
    from ..store.path import Segment
    from ..store.refs import Head
    from ..store.tape import Tape


class MergePlan(NamedTuple):
    """What a merge would bring to a branch."""

    into: Head
    other: Head
    base: Head | None
    """The newest entry that both paths have."""
    since: tuple[Segment, ...]
    """What only the merged branch has, oldest first, without what was merged earlier."""
    ours: tuple[Segment, ...]
    """What only the branch that is merged into has."""
    common: tuple[Segment, ...]
    merged: tuple[Segment, ...]
    """What only the merged branch has, and was merged earlier: between `common` and `since`."""
    covers: CoveredRange | None
    """The entries of `since`; None if there are none."""
    kept: tuple[KeptRange, ...]
    """The view of `into`, then the picked entries."""
    picks: tuple[str, ...]
    """Full ids of the entries that were asked for."""
    picked: int
    """How many entries the picks bring, those of their calls and results included."""
    notes: tuple[str, ...]
    """What happened to picks that could not be taken as they are, for people."""
    earlier: Entry | None
    """The newest anchor of the path that merged entries of this branch before."""

    @property
    def has_news(self) -> bool:
        """Return whether the merge would change what a model sees."""
        return self.covers is not None or self.picked > 0


def plan_merge(
    tape: Tape,
    into: Head,
    other: Head,
    picks: Sequence[Head] = (),
    skipped: Callable[[str], None] = warn_of_damage,
    *,
    left: bool = False,
) -> MergePlan:
    """Return what merging the path of `other` into that of `into` brings; nothing is written.

    With `left` that branch is left, not joined: what is said of it already counts as merged too.
    All are entries of this tape or of the past it shares with its origin. Raises Damaged where a
    path, or an entry that is in view, cannot be read.
    """
    ours, theirs = read_path_to(tape, into), read_path_to(tape, other)
    parted = find_merge_base(ours, theirs)
    if parted.base is None:
        why = "; ".join(parted.broken) or "it has no common entry with the branch merged into"
        raise Damaged(f"branch {other.branch} cannot be merged: {why}")
    merged = _find_earlier_merges(parted.a, {"merge", "left"} if left else {"merge"})
    before, since, newest = _cut_merged_entries(parted.b, merged)
    in_view: set[str] = set()
    view = tuple(_list_view_ranges(tape, into, in_view))
    names, batches, notes = choose_picks(tape, picks, in_view, skipped)
    return MergePlan(
        into,
        other,
        parted.base,
        since,
        parted.a,
        parted.common,
        before,
        _measure_covered_range(since),
        (*view, *chain.from_iterable(group_ranges(tape, batch) for batch in batches)),
        names,
        sum(map(len, batches)),
        notes,
        newest,
    )


def read_entries_since(
    plan: MergePlan, skipped: Callable[[str], None] = warn_of_damage
) -> Iterator[Entry]:
    """Yield the entries that the merge tells of, oldest first."""
    return read_segment_entries(plan.since, skipped)


def read_segment_entries(
    segments: Sequence[Segment], skipped: Callable[[str], None]
) -> Iterator[Entry]:
    """Yield the entries of parts of a path, in their order."""
    return (entry for part in segments for run in part.read_runs(skipped) for entry in run)


def build_merge_anchor(
    tape: Tape,
    plan: MergePlan,
    summary: Summary | str,
    *,
    reason: str,
    left: bool = False,
    by: SummaryAuthor | None = None,
    state: State | None = None,
) -> Anchor:
    """Return the anchor of a merge, once the file of what is merged is synced.

    `left` tells of a branch that was left rather than joined.
    """
    tape.phases.sync(plan.other.phase)  # its writer may have been killed before its sync
    other = MergedBranch(
        tape.id, plan.other.branch, plan.other.entry, plan.picks, "left" if left else "merge"
    )
    return Anchor(
        kind="merge",
        summary=summary,
        kept=plan.kept,
        covers=plan.covers,
        by=by,
        reason=reason,
        state=state or find_view_state(tape, plan.into),
        other=Raw(msgspec.json.encode(other)),
    )


def find_view_state(tape: Tape, head: Head) -> State:
    """Return the session state at a head: that of the newest anchor, and what changed since."""
    state = State()
    for run in tape.read_runs(head, to_anchor=True, skipped=lambda _: None):
        for entry in run:
            state = _update_state(state, entry.data)
    return state


def _update_state(state: State, data: Payload) -> State:
    """Return the state after an entry."""
    match data:
        case Anchor():
            state = data.state
        case Assistant(provider=provider, model=model) if provider and model:
            state = replace(state, model=f"{provider}/{model}")
        case Model(provider=provider, model=model, effort=effort):
            state = replace(state, model=f"{provider}/{model}", effort=effort)
        case Custom(kind=kind, data=todos) if kind == TODOS_KIND:  # newer than those of the anchor
            state = replace(state, todos=todos)
        case Mode(permission=mode, tools=tools):
            state = replace(state, mode=mode, tools=tools)
        case Start(cwd=cwd) | Meta(cwd=str(cwd)):
            state = replace(state, cwd=cwd)
        case _:
            pass
    return state


def _find_earlier_merges(ours: Sequence[Segment], reasons: set[str]) -> dict[str, Entry]:
    """Return the id of each entry that was merged into a path → the anchor that tells of it."""
    merges: dict[str, Entry] = {}
    for segment in ours:
        first = segment.source.phases.first(segment.phase, describe_missing_blob)
        if segment.start == 0 and first is not None and isinstance(first.data, Anchor):
            merged = first.data.merged
            if merged is not None and merged.reason in reasons:
                merges[merged.entry] = first
    return merges


def _cut_merged_entries(
    theirs: Sequence[Segment], merged: dict[str, Entry]
) -> tuple[tuple[Segment, ...], tuple[Segment, ...], Entry | None]:
    """Return a path up to the newest entry that was merged, the rest of it, and its anchor."""
    cut: tuple[int, int, Entry] | None = None
    for number, segment in enumerate(theirs if merged else ()):
        for offset, line in segment.lines():
            if anchor := merged.get(read_id(line)):
                cut = number, offset + len(line) + 1, anchor
    if cut is None:
        return (), tuple(theirs), None
    number, end, anchor = cut
    before = (*theirs[:number], theirs[number]._replace(end=end))
    rest = theirs[number]._replace(start=end)
    return before, (*((rest,) if rest.start < rest.end else ()), *theirs[number + 1 :]), anchor


def _measure_covered_range(segments: Sequence[Segment]) -> CoveredRange | None:
    lines = [read_id(line) for segment in segments for _, line in segment.lines()]
    return CoveredRange(lines[0], lines[-1], len(lines)) if lines else None


def _list_view_ranges(tape: Tape, head: Head, in_view: set[str]) -> Iterator[KeptRange]:
    """Yield the view of a head as ranges, oldest first, and add the ids of its entries.

    The anchor that the view begins with is left out: its summary goes into that of the merge.
    """
    path = [*tape.walk_path_back(head, to_anchor=True)][::-1]
    for number, segment in enumerate(path):
        lines = [*segment.lines()]
        if number == 0 and (anchor := _read_first_anchor(segment, lines)) is not None:
            for kept_range in anchor.kept:
                in_view.update(map(read_id, tape.read_kept_lines(kept_range)[0]))
            yield from anchor.kept
            del lines[0]
        if lines:
            (offset, first), (_, last) = lines[0], lines[-1]
            in_view.update(read_id(line) for _, line in lines)
            yield tape.build_kept_range(segment, offset, first, last, len(lines))


def _read_first_anchor(segment: Segment, lines: Sequence[tuple[int, bytes]]) -> Anchor | None:
    if not lines or read_type(lines[0][1]) != Anchor.entry_type:
        return None
    data = decode_line(lines[0][1], segment.source.expand).data
    if not isinstance(data, Anchor):
        raise Damaged(f"{segment.phase}: its anchor cannot be read; `tape fsck` explains it")
    return data
