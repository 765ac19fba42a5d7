"""A merge: an anchor that tells of another branch and keeps the view of this one.

A model summarises what the other branch did since the two parted, or rules if that fails. `tape`
says which entries these are and what stays in view (`tape.history.merge_plan`).

| | the summary says | other.reason |
|---|---|---|
| a branch is joined | on branch try: … | merge |
| a branch was left for this one | on branch try, which was left: … | left |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tape.files.work_folder import find_entry_folders
from tape.history.merge_plan import build_merge_anchor, plan_merge, read_entries_since
from tape.history.merge_summary import (
    collect_merge_facts,
    describe_merge,
    join_left_summary,
    join_merge_summaries,
    read_folder_entries,
    summarize_branch,
)
from tape.model.entries import Summary
from tape.model.summary import read_anchor_summary

from ..errors import NothingToCompact
from .compaction import (
    CompactionBudget,
    CompactionRequest,
    SummaryResult,
    build_state,
    find_session_folder,
    record_side_usage,
    write_summary,
)
from .recorder import find_newest_anchor

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from tape.history.merge_plan import MergePlan
    from tape.history.merge_summary import MergeFacts
    from tape.model.line import Entry
    from tape.store.refs import Head

    from . import events
    from .run_context import RunContext
    from .session import Session

_MERGE_BUDGET = CompactionBudget(messages=0, requests=2_000, summary=2_000)


class MergeResult(NamedTuple):
    """The anchor of a merge, and what it brought."""

    anchor: Entry
    plan: MergePlan
    facts: MergeFacts


def stream_merge(
    session: Session,
    other: Head,
    picks: Sequence[Head] = (),
    *,
    left: bool = True,
    words: str = "",
    done: Callable[[MergeResult], object] = lambda _: None,
) -> AsyncGenerator[events.Event, None]:
    """Merge as `merge_branch` does, and yield the events; `done` is called with the result.

    Raises what `merge_branch` and `Session.submit` raise.
    """

    async def run_merge() -> None:
        done(await merge_branch(session.build_run_context(), other, picks, left=left, words=words))

    return session.stream_work(run_merge, compacting=True)


async def merge_branch(
    context: RunContext,
    other: Head,
    picks: Sequence[Head] = (),
    *,
    left: bool = True,
    words: str = "",
) -> MergeResult:
    """Set an anchor on the current branch that summarises the branch that ends at `other`.

    `left` is of a branch that was left for this one; without it, it is joined. `words` are the
    summary where they are given, and no model is asked. Raises NothingToCompact if that branch has
    no messages that this one lacks, and no pick does.
    """
    setup, recorder, tape = context.setup, context.recorder, context.recorder.tape
    recorder.barrier()
    plan = plan_merge(tape, recorder.head(), other, picks, recorder.skipped.append, left=left)
    since = [*read_entries_since(plan, recorder.skipped.append)]
    has_messages = any(entry.type in {"user", "assistant"} for entry in since)
    if not has_messages and not plan.picked:
        raise NothingToCompact(
            f"branch {other.branch} has no entries of its own: there is nothing to summarise"
        )
    facts = collect_merge_facts(plan, lambda _: None)
    reason = "left" if left else describe_merge(plan, facts)
    request = CompactionRequest(reason)
    result = SummaryResult(Summary(), None, None)
    if has_messages and words:
        result = SummaryResult(summarize_branch(facts, words), None, None)
    elif has_messages:
        marks = read_folder_entries((*plan.common, *plan.merged, *plan.since))
        result = await write_summary(
            context,
            request,
            since,
            None,
            _MERGE_BUDGET,
            split=False,
            folders=find_entry_folders(since, marks),
        )
    before = find_newest_anchor(recorder.path)
    earlier = read_anchor_summary(before, find_session_folder(setup, recorder)) if before else ""
    if left:
        summary = join_left_summary(earlier, result.summary, plan)
    else:
        summary = join_merge_summaries(earlier, result.summary, plan, facts)
    state = build_state(setup, recorder, None)
    entry = context.set_anchor(
        build_merge_anchor(tape, plan, summary, reason=reason, left=left, by=result.by, state=state)
    )
    record_side_usage(recorder, result.took)
    return MergeResult(entry, plan, facts)
