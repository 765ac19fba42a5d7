"""What a merge says of the branch it brings: made by rules, attributed, pure but for the reading.

The summary of the branch that is merged into stays as it is, word for word; what the other branch
did is added to it, each point with the name of the branch:

    ## Done
    - (the points of the earlier summary)
    - Merged 'try-redis' (12 entries, 3 prompts), up to 9c1b04d2
    - on branch try-redis: asked "use redis" → "Redis caches the sessions now."

Prompts are quoted word for word. Files that both branches changed are named: on disk there is only
one of each.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ..damage import warn_of_damage
from ..files.changes import list_file_changes
from ..model.entries import Anchor, Assistant, Context, Meta, Start, Summary, User, join_texts
from ..model.line import decode_line, describe_missing_blob, read_type
from ..model.summary import read_anchor_summary
from ..text import SHORT, format_count
from .activity import summarize_activity
from .merge_plan import (
    build_merge_anchor,
    find_view_state,
    plan_merge,
    read_entries_since,
    read_segment_entries,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..model.entries import Content
    from ..model.line import Entry
    from ..store.path import Segment
    from ..store.tape import Tape
    from .activity import Activity
    from .merge_plan import MergePlan

ANSWER_CHARACTERS = 4_000
"""How much of a branch's last answer a summary by rules quotes."""
_TYPED = frozenset({"steering", "follow_up"})
"""Origins of context entries that a person typed."""


class MergeFacts(NamedTuple):
    """What is known of a merged branch without asking a model."""

    activity: Activity
    requests: tuple[str, ...]
    """What its users typed, word for word."""
    answer: str
    """The beginning of its last answer; "" if it has none."""
    files: tuple[str, ...]
    """Files that it changed, sorted."""
    both: tuple[str, ...]
    """Files that both branches changed since they parted, sorted."""


def collect_merge_facts(
    plan: MergePlan, skipped: Callable[[str], None] = warn_of_damage
) -> MergeFacts:
    """Read what both branches did since they parted."""
    requests: list[str] = []
    answer = ""

    def read_entries() -> Iterator[Entry]:
        nonlocal answer
        for entry in read_entries_since(plan, skipped):
            match entry.data:
                case User(content=content):
                    _add_request(requests, content)
                case Context(origin=origin, content=content) if origin in _TYPED:
                    _add_request(requests, content)
                case Assistant(content=content):
                    answer = join_texts(content).strip()[:ANSWER_CHARACTERS] or answer
                case _:
                    pass
            yield entry

    folders = read_folder_entries((*plan.common, *plan.merged))
    activity = summarize_activity(read_entries())
    theirs = _list_changed_paths(folders, read_entries_since(plan, lambda _: None))
    folders = read_folder_entries(plan.common)
    ours = _list_changed_paths(folders, read_segment_entries(plan.ours, lambda _: None))
    both = [path for path in theirs if path in set(ours)]
    return MergeFacts(activity, tuple(requests), answer, tuple(theirs), tuple(both))


def _list_changed_paths(folders: Iterable[Entry], entries: Iterable[Entry]) -> list[str]:
    """Return the absolute paths that entries changed, sorted, the old ones of renames too."""
    changes = list_file_changes(chain(folders, entries))
    return sorted({path for change in changes for path in (change.path, change.source) if path})


def _add_request(requests: list[str], content: Content) -> None:
    if text := join_texts(content).strip():
        requests.append(text)


def read_folder_entries(segments: Iterable[Segment]) -> list[Entry]:
    """Return the entries that say in which folder a path worked, oldest first."""
    return [
        decode_line(line, describe_missing_blob)
        for segment in segments
        for _, line in segment.lines()
        if read_type(line) in {Start.entry_type, Meta.entry_type, Anchor.entry_type}
    ]


def describe_merge(plan: MergePlan, facts: MergeFacts) -> str:
    """Return what is merged in a few words: `merged 'try-redis' (12 entries, 3 prompts)`."""
    entries, prompts = plan.covers.count if plan.covers else 0, len(facts.requests)
    counts = format_count(entries, "entry")
    counts += f", {format_count(prompts, 'prompt')}"
    return f"merged {plan.other.branch!r} ({counts})"


def summarize_branch(facts: MergeFacts, text: str | None = None) -> Summary:
    """Return what a branch did: as `text`, with the files it changed, or by rules."""
    if text is not None:
        return Summary(done=(text,), files_changed=facts.files)
    return summarize_branch_by_rules(facts)


def summarize_branch_by_rules(facts: MergeFacts) -> Summary:
    """Return what a branch did, from its prompts, answers, tools and files."""
    done, tools, waiting = [], [], []
    for exchange in facts.activity.exchanges:
        question = f'asked "{exchange.prompt.text}"' if exchange.prompt else "answered"
        done.append(f'{question} → "{exchange.answer.text}"' if exchange.answer else question)
    for use in facts.activity.tools:
        tools.append(f"{use.name} {use.calls}" + f" ({use.failed} failed)" * bool(use.failed))
        if use.open:
            waiting.append(f"{use.open} of the calls of {use.name} have no result")
    context = [f"tool calls: {', '.join(tools)}"] if tools else []
    if facts.answer:
        context.append(f"its last answer: {facts.answer}")
    return Summary(
        done=tuple(done),
        in_progress=tuple(waiting),
        critical_context=tuple(context),
        files_changed=facts.files,
        requests=facts.requests,
    )


def join_merge_summaries(
    earlier: Summary | str, branch: Summary, plan: MergePlan, facts: MergeFacts
) -> Summary:
    """Return the earlier summary of the branch merged into, and that of the merged one."""
    into, name = plan.into.branch, plan.other.branch
    title = describe_merge(plan, facts)
    head = f"{title[0].upper()}{title[1:]}, up to {plan.other.entry[:SHORT]}"
    if plan.picked:
        is_one = plan.picked == 1
        head += f"; {plan.picked} picked {'entry follows' if is_one else 'entries follow'}"
        head += " word for word"
    summary = join_summaries(earlier, branch, f"on branch {name}", head)
    if facts.both:
        warning = (
            f"Changed on {into} and on {name} since they parted, look before you rely on either:"
        )
        summary = replace(
            summary,
            critical_context=(*summary.critical_context, f"{warning} {', '.join(facts.both)}"),
        )
    return summary


def join_left_summary(earlier: Summary | str, branch: Summary, plan: MergePlan) -> Summary:
    """Return the earlier summary of a branch, and that of the one that was left for it."""
    return join_summaries(earlier, branch, f"on branch {plan.other.branch}, which was left")


def join_summaries(
    earlier: Summary | str, branch: Summary, label: str, head: str | None = None
) -> Summary:
    """Return an earlier summary with the points of another branch added, each after its label.

    `head` is the first of them, without a label.
    """
    base = earlier
    if not isinstance(base, Summary):
        base = Summary(critical_context=(base,) if base else ())

    def tell(texts: Iterable[str]) -> list[str]:
        return [f"{label}: {text}" for text in texts]

    goal = tell([f"the goal was: {branch.goal}"] if branch.goal else [])
    return replace(
        base,
        constraints=(*base.constraints, *tell(branch.constraints)),
        done=(*base.done, *((head,) if head else ()), *tell(branch.done)),
        in_progress=(*base.in_progress, *tell(branch.in_progress)),
        blocked=(*base.blocked, *tell(branch.blocked)),
        decisions=(*base.decisions, *tell(branch.decisions)),
        next_steps=(*base.next_steps, *tell(branch.next_steps)),
        critical_context=(*base.critical_context, *goal, *tell(branch.critical_context)),
        files_read=tuple(dict.fromkeys((*base.files_read, *branch.files_read))),
        files_changed=tuple(dict.fromkeys((*base.files_changed, *branch.files_changed))),
        requests=tuple(dict.fromkeys((*base.requests, *tell(branch.requests)))),
    )


def read_view_summary(tape: Tape, plan: MergePlan) -> Summary | str:
    """Return the summary that the view of the branch merged into begins with; "" for none."""
    for run in tape.read_runs(plan.into, to_anchor=True, skipped=lambda _: None):
        data = run[0].data if run else None
        if isinstance(data, Anchor):
            return read_anchor_summary(data, find_view_state(tape, plan.into).cwd)
    return ""


def leave_summary(tape: Tape, left: str, into: str, text: str) -> str | None:
    """Tell a branch of the one that is left for it, by rules or with `text`; return the entry's id.

    None if that one did nothing that this branch does not know. Raises Busy.
    """
    with tape.writer(into) as writer:
        plan = plan_merge(tape, tape.head(into), tape.head(left), left=True)
        facts = collect_merge_facts(plan)
        if not (facts.requests or facts.answer):
            return None
        branch = summarize_branch(facts, text or None)
        summary = join_left_summary(read_view_summary(tape, plan), branch, plan)
        anchor = build_merge_anchor(tape, plan, summary, reason="left", left=True)
        return writer.anchor(anchor).id
