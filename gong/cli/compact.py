"""`gong compact`: a summary takes the place of older messages, and --undo takes it back."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import click

from tape.cli.out import as_json, document, examples, say
from tape.render import SHORT

from ..agent import events
from ..agent.compaction import Wish
from .branch import model_option, opened, store_option, warn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ..agent.session import Session


@click.command(
    epilog=examples(
        "gong compact",
        "gong compact 3f2a --focus 'the failing test'",
        "gong compact 3f2a:main --undo",
    )
)
@click.argument("ref", required=False, default="", metavar="[REF]")
@click.option("--focus", default="", metavar="TEXT", help="What the summary should look at most.")
@click.option("--hard", is_flag=True, help="Keep no recent messages beside the summary.")
@click.option("--undo", is_flag=True, help="Take the newest compaction or handoff back.")
@click.option("--leave", is_flag=True, help="With --undo: also when messages came after it.")
@model_option
@store_option
@as_json
def compact(
    ref: str,
    focus: str,
    hard: bool,
    undo: bool,
    leave: bool,
    model: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Put a summary in place of the older messages of a branch.

    They stay on the tape: `tape cat` shows them, the model finds them with tape_search, and --undo
    goes back with one line.
    """
    if undo and (focus or hard or model):
        raise click.UsageError("--undo goes back: --focus, --hard and -m say how to go on")
    if leave and not undo:
        raise click.UsageError("--leave says how far --undo may go")
    if undo:
        asyncio.run(_undo(ref, store, leave=leave, as_json=as_json))
    else:
        wish = Wish("user", focus, hard=hard)
        asyncio.run(_compact(ref, wish, model, store, as_json=as_json))


async def _compact(
    ref: str, wish: Wish, model: str | None, store: str | None, *, as_json: bool
) -> None:
    async with opened(ref, model=model, store=store) as host:
        done = await compacted(host.session, wish)
        recorder = host.session.recorder
        assert recorder is not None, "an existing branch was opened"
        if as_json:
            document(
                {
                    "tape": recorder.tape.id,
                    "branch": recorder.branch,
                    "entry": done.entry,
                    "covered": done.covered,
                    "tokens": {"before": done.before, "after": done.after},
                    "by": done.by,
                }
            )
            return
        where = f"{recorder.tape.id[:SHORT]}:{recorder.branch}"
        say(
            [
                f"{done.covered} entries of {where} are a summary by {done.by or 'rules'} now.",
                f"The next request takes about {done.after:,} tokens instead of {done.before:,}"
                + (", which is no less." if done.after >= done.before else "."),
                f"Back: gong compact {where} --undo",
            ]
        )


async def compacted(session: Session, wish: Wish) -> events.CompactionEnd:
    """Compact, say on standard error what people should know, and return how it ended."""
    told = await tell(session.compact(wish))
    return next(event for event in reversed(told) if isinstance(event, events.CompactionEnd))


async def tell(work: AsyncGenerator[events.Event, None]) -> list[events.Event]:
    """See work through, say on standard error what people should know, and return its events."""
    told: list[events.Event] = []
    async with aclosing(work) as stream:
        async for event in stream:
            told.append(event)
            if isinstance(event, events.Warn):
                warn(event.message)
    return told


async def _undo(ref: str, store: str | None, *, leave: bool, as_json: bool) -> None:
    async with opened(ref, model=None, store=store) as host:
        session = host.session
        anchor = session.undo(leave=leave)
        recorder = session.recorder
        assert recorder is not None, "an existing branch was opened"
        head = recorder.head().entry
        if as_json:
            told = {"tape": recorder.tape.id, "branch": recorder.branch, "head": head}
            document({**told, "undone": anchor.kind, "phase": anchor.phase})
            return
        where = f"{recorder.tape.id[:SHORT]}:{recorder.branch}"
        say([f"{where} stands at {head[:SHORT]} again, before its {anchor.kind}."])
