"""Leaving a branch: a summary of it is added to an anchor on the new branch.

The new branch keeps its view. The anchor adds a summary of what the other branch did since the two
diverged, and names that branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from tape.damage import warn_of_damage
from tape.entries import Anchor, CoveredRange, Summary
from tape.tree.parting import find_merge_base, read_path_to

from ..errors import NothingToCompact
from .compaction import (
    CompactionBudget,
    CompactionRequest,
    build_state,
    find_kept_ranges,
    record_side_usage,
    write_summary,
)
from .record import find_newest_anchor

if TYPE_CHECKING:
    from tape.branches import Head
    from tape.line import Entry

    from .parts import RunContext

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
