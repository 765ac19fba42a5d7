"""`merge`: bring what a branch did to another one, as a summary and picked entries."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..errors import NotFound, UsageError
from ..history.merge_plan import build_merge_anchor, plan_merge
from ..history.merge_summary import (
    collect_merge_facts,
    describe_merge,
    join_merge_summaries,
    read_view_summary,
    summarize_branch,
)
from ..model.entries import Anchor
from ..places.reference import Reference, parse_reference, render_reference
from ..places.resolve import resolve_reference
from ..store.refs import read_head_at
from ..text import SHORT, format_count, format_names, to_single_line
from .environment import get_current_folder
from .output import as_json, complete_ref, format_examples, print_json
from .resolve import clean_argument, open_library, warn_of_skipped_refs
from .terminal import print_lines, print_warning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..history.merge_plan import MergePlan
    from ..history.merge_summary import MergeFacts
    from ..index.library import Library
    from ..store.refs import Head
    from ..store.tape import Hit, Tape
    from .group import GlobalOptions

_SPOKEN_TYPES = frozenset({"user", "assistant", "tool.result", "context"})
"""Types of entries that someone built on a merge."""


class MergeOutcome(NamedTuple):
    """What `merge` prints: as JSON the first three, else the text."""

    tape: str
    branch: str
    entry: str
    text: str


def add_merge_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options --into and --pick to a command, as `into` and `picks`."""
    pick = click.option(
        "--pick",
        "picks",
        metavar="REF",
        multiple=True,
        help="Also keep this entry in view, word for word; of TAPE:BRANCH its head. Repeatable.",
    )
    into = click.option(
        "--into", metavar="BRANCH", help="Merge into this branch. Default: the current one."
    )
    return into(pick(command))


@click.command(
    epilog=format_examples(
        "tape merge :try-redis",
        "tape merge :try-redis --into main --pick :try-redis~2",
        'tape merge 3f2a:try-redis --summary "Redis was slower."',
        "tape merge --undo",
    )
)
@click.argument("ref", default="", metavar="REF", shell_complete=complete_ref)
@add_merge_options
@click.option(
    "--summary",
    metavar="TEXT|FILE",
    help="What the branch did: a text, a file, or - for standard input. Default: made by rules.",
)
@click.option("--undo", is_flag=True, help="Undo the newest merge of the branch.")
@click.option("--wait", is_flag=True, help="Wait while the branch merged into is being written.")
@as_json
@click.pass_obj
def merge(
    options: GlobalOptions,
    ref: str,
    into: str | None,
    picks: tuple[str, ...],
    summary: str | None,
    undo: bool,
    wait: bool,
    as_json: bool,
) -> None:
    """Bring a branch back as a summary that says where it comes from.

    Everything that the branch merged into has in view stays there. The summary tells what the
    branch REF did since the two parted; picked entries follow word for word, a call always with its
    results. Nothing is copied and nothing is lost: :BRANCH@{1} is the branch before, and --undo
    goes back to it. Files on disk are not touched; those that both branches changed are named.

    --json prints {tape, branch, entry}: the branch merged into, and the entry of the merge.
    """
    if undo and (picks or summary is not None):
        raise UsageError("--undo takes no --pick and no --summary")
    if not undo and not ref:
        raise UsageError("name the branch to merge, as in `tape merge :try-redis`")
    with open_library(options) as library, ExitStack() as stack:
        hit = open_merged_entry(library, ref, stack)
        warn_of_skipped_refs(hit.tape)
        if undo:
            done = _undo_merge(
                hit.tape, find_target_branch(hit.tape, into or hit.head.branch), wait=wait
            )
        else:
            target = find_target_branch(hit.tape, into)
            heads = [find_picked_entry(library, hit.tape, pick, stack) for pick in picks]
            done = _merge_branch(hit, target, heads, read_given_summary(summary), wait=wait)
    print_outcome(done, as_json=as_json)


def print_outcome(done: MergeOutcome, *, as_json: bool) -> None:
    """Print what a merge did."""
    if as_json:
        print_json({"tape": done.tape, "branch": done.branch, "entry": done.entry})
    else:
        print_lines([to_single_line(done.text)])


def open_merged_entry(library: Library, ref: str, stack: ExitStack) -> Hit:
    """Return the entry that a REF names; its tape is open until the stack ends."""
    reference = parse_reference(ref)
    hit = resolve_reference(*library, ref, get_current_folder(is_needed=not reference.tape))
    stack.enter_context(hit.tape)
    if reference.names_entry:
        owner = open_merged_entry(library, render_reference(Reference(reference.tape)), stack).tape
        if owner.id != hit.tape.id:
            raise UsageError(
                f"{ref!r} is in tape {hit.tape.id[:SHORT]}, from which {owner.id[:SHORT]} was "
                "forked: both have it already"
            )
    return hit


def find_target_branch(tape: Tape, into: str | None) -> str:
    """Return the branch to merge into: `into`, with or without a colon, else the current one."""
    refs = tape.refs()
    name = refs.current if into is None else clean_argument(into)
    owner, colon, branch = name.rpartition(":")
    if colon and owner and not tape.id.startswith(owner):
        raise UsageError(
            f"--into {name!r} is a branch of another tape: only branches of one tape can be merged"
        )
    if branch not in refs.branches:
        known = format_names(refs.branches, branch)
        raise NotFound(f"no branch {branch!r} to merge into; there are: {known}")
    return branch


def find_picked_entry(library: Library, tape: Tape, text: str, stack: ExitStack) -> Head:
    """Return the entry of a pick; what names no tape, or a bare word, means this one first."""
    reference = parse_reference(clean_argument(text))
    choices = [reference]
    if not reference.tape:
        choices = [reference._replace(tape=tape.id)]
    elif reference.is_bare:
        own, word = reference._replace(tape=tape.id), reference.tape
        choices = [own._replace(entry=word), own._replace(branch=word), reference]
    for choice in choices:
        with suppress(*((NotFound, UsageError) if choice is not choices[-1] else ())):
            hit = open_merged_entry(library, render_reference(choice), stack)
            break
    if hit.tape.id != tape.id:
        raise UsageError(
            f"--pick {text!r} is in tape {hit.tape.id[:SHORT]}: "
            f"picks are entries of the tape of the merge, {tape.id[:SHORT]}"
        )
    return hit.head


def read_given_summary(option: str | None) -> str | None:
    """Return the text of --summary: standard input, the content of a file, or the text itself."""
    if option is None:
        return None
    if option == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    elif len(os.fsencode(option)) < 4096 and "\n" not in option and Path(option).is_file():  # noqa: PLR2004
        text = Path(option).read_bytes().decode("utf-8", "replace")
    else:
        text = clean_argument(option)
    if not text.strip():
        raise UsageError("the summary is empty")
    return text.strip()


def _merge_branch(
    hit: Hit, into: str, picks: Sequence[Head], text: str | None, *, wait: bool
) -> MergeOutcome:
    tape, other = hit
    refuse_merge_into_itself(hit, into)
    with tape.writer(into, wait=wait) as writer:
        plan = plan_merge(tape, tape.head(into), other, picks)
        for note in plan.notes:
            print_warning(f"--pick: {note}")
        if not plan.has_news:
            return describe_nothing_new(tape, plan)
        facts = collect_merge_facts(plan)
        branch = summarize_branch(facts, text)
        summary = join_merge_summaries(read_view_summary(tape, plan), branch, plan, facts)
        title = describe_merge(plan, facts)
        entry = writer.anchor(build_merge_anchor(tape, plan, summary, reason=title))
    return describe_done_merge(tape, plan, facts, entry.id)


def refuse_merge_into_itself(hit: Hit, into: str) -> None:
    """Raise UsageError if the entry to merge is the head of the branch to merge into."""
    tape, other = hit
    if other.branch == into and other.entry == tape.head(into).entry:
        names = [name for name in tape.refs().branches if name != into]
        others = f"others are: {format_names(names, into)}"
        raise UsageError(
            f"branch {into!r} cannot be merged into itself; "
            + (others if names else "this tape has no other branch")
        )


def describe_done_merge(tape: Tape, plan: MergePlan, facts: MergeFacts, entry: str) -> MergeOutcome:
    """Return what was merged; warn of files that both branches changed."""
    if facts.both:
        paths = to_single_line(", ".join(facts.both))
        print_warning(f"changed on both branches since they parted, on disk only once: {paths}")
    where = f"{tape.id[:SHORT]}:{plan.into.branch}"
    done = f"{where}: {describe_merge(plan, facts)}"
    if plan.picked:
        done += f", keeping {format_count(plan.picked, 'picked entry')}"
    undo = f"`tape merge {where} --undo` undoes it"
    return MergeOutcome(tape.id, plan.into.branch, entry, f"{done}; entry {entry[:SHORT]}; {undo}")


def describe_nothing_new(tape: Tape, plan: MergePlan) -> MergeOutcome:
    """Return the answer where the branch has nothing that the other lacks."""
    into, other = plan.into.branch, plan.other
    if plan.earlier is not None:
        why = f"{other.branch!r} was merged at {plan.earlier.id[:SHORT]} and has nothing new"
        entry = plan.earlier.id
    else:
        why, entry = f"{other.entry[:SHORT]} is on the path of {into!r}", plan.into.entry
    return MergeOutcome(tape.id, into, entry, f"{tape.id[:SHORT]}:{into}: already there: {why}")


def _undo_merge(tape: Tape, branch: str, *, wait: bool) -> MergeOutcome:
    """Set a branch back to before its newest merge, with one line of the journal."""
    with tape.writer(branch, wait=wait) as writer:
        head = tape.head(branch)
        path = tape.entries(head, to_anchor=True)
        anchor = path[0].data if path else None
        where = f"{tape.id[:SHORT]}:{branch}"
        if not isinstance(anchor, Anchor) or anchor.kind != "merge":
            newest = f"; its newest anchor is a {anchor.kind}" if isinstance(anchor, Anchor) else ""
            raise NotFound(f"{where} has no merge to undo{newest}")
        base = anchor.base
        if count := sum(entry.type in _SPOKEN_TYPES for entry in path):
            raise UsageError(
                f"{format_count(count, 'entry')} of the conversation came after the merge: to "
                f"continue before it, `tape fork {tape.id[:SHORT]}@{base.entry[:SHORT]} --switch`"
            )
        if base.tape is not None:
            raise UsageError("this merge begins the tape: it cannot be undone here")
        to = read_head_at(tape.phases, branch, base.phase, base.offset, base.entry)
        writer.rewind(to, "undo")
    other = anchor.merged
    name = f"of {other.branch!r} " if other is not None else ""
    text = f"{where}: the merge {name}is undone; {where}@{{1}} is the branch with it"
    return MergeOutcome(tape.id, branch, to.entry, text)
