"""`gong merge`: bring a branch back as a summary that the model writes."""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import click

from tape.cli.merge import (
    MergeOutcome,
    add_merge_options,
    describe_done_merge,
    describe_nothing_new,
    find_picked_entry,
    find_target_branch,
    open_merged_entry,
    print_outcome,
    refuse_merge_into_itself,
)
from tape.cli.output import as_json, format_examples
from tape.history.merge_plan import plan_merge
from tape.remote.opening import open_store

from .. import config
from ..agent.merge import stream_merge
from .options import load_settings, model_option, print_warning, store_option
from .session import collect_events, open_existing_session

if TYPE_CHECKING:
    from tape.store.refs import Head

    from ..agent.merge import MergeResult


class _MergeQuestion(NamedTuple):
    """What is to be merged into which branch."""

    ref: str
    """The branch merged into: TAPE:BRANCH."""
    other: Head
    picks: tuple[Head, ...]


@click.command(
    epilog=format_examples(
        "gong merge 3f2a:try-redis",
        "gong merge 3f2a:try-redis --into main --pick :try-redis~1 -m offline/rules",
    )
)
@click.argument("ref", metavar="REF")
@add_merge_options
@model_option
@store_option
@as_json
def merge(
    ref: str,
    into: str | None,
    picks: tuple[str, ...],
    model: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Bring a branch back as a summary that says where it comes from.

    The same as `tape merge`, but the model writes the summary; if that fails, rules do. `tape merge
    --undo` undoes it.

    --json prints {tape, branch, entry}: the branch merged into, and the entry of the merge.
    """
    question = _find_question(ref, into, picks, store)
    if isinstance(question, MergeOutcome):
        print_outcome(question, as_json=as_json)
        return

    async def run() -> MergeOutcome:
        async with open_existing_session(question.ref, model=model, store=store) as (
            host,
            recorder,
        ):
            done: list[MergeResult] = []
            await collect_events(
                stream_merge(
                    host.session, question.other, question.picks, left=False, done=done.append
                )
            )
            (result,) = done
            return describe_done_merge(recorder.tape, result.plan, result.facts, result.anchor.id)

    print_outcome(asyncio.run(run()), as_json=as_json)


def _find_question(
    ref: str, into: str | None, picks: tuple[str, ...], store: str | None
) -> _MergeQuestion | MergeOutcome:
    """Return what to merge, or the answer where there is nothing new."""
    settings = load_settings(store=store)
    with (
        open_store(config.locate_store(settings, os.environ)) as library,
        ExitStack() as stack,
    ):
        hit = open_merged_entry(library, ref, stack)
        target = find_target_branch(hit.tape, into)
        heads = tuple(find_picked_entry(library, hit.tape, pick, stack) for pick in picks)
        refuse_merge_into_itself(hit, target)
        plan = plan_merge(hit.tape, hit.tape.head(target), hit.head, heads)
        for note in plan.notes:
            print_warning(f"--pick: {note}")
        if not plan.has_news:
            return describe_nothing_new(hit.tape, plan)
        return _MergeQuestion(f"{hit.tape.id}:{target}", hit.head, heads)
