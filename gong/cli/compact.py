"""`gong compact`: replace older messages by a summary, or undo that with --undo."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import click

from tape.cli.out import as_json, format_examples, print_json, print_lines
from tape.render import SHORT

from ..agent import events
from ..agent.compaction import CompactionRequest
from .branch import model_option, open_existing_session, print_warning, store_option

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ..agent.session import Session


@click.command(
    epilog=format_examples(
        "gong compact",
        "gong compact 3f2a --focus 'the failing test'",
        "gong compact 3f2a:main --undo",
    )
)
@click.argument("ref", required=False, default="", metavar="[REF]")
@click.option("--focus", default="", metavar="TEXT", help="What the summary should focus on.")
@click.option("--hard", is_flag=True, help="Keep no recent messages besides the summary.")
@click.option("--undo", is_flag=True, help="Undo the newest compaction or handoff.")
@click.option("--leave", is_flag=True, help="With --undo: even if messages were added after it.")
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
    """Replace the older messages of a branch by a summary.

    The messages stay on the tape: `tape cat` shows them, the model finds them with tape_search,
    and --undo brings them back.
    """
    if undo and (focus or hard or model):
        raise click.UsageError("--undo cannot be combined with --focus, --hard or -m")
    if leave and not undo:
        raise click.UsageError("--leave needs --undo")
    if undo:
        asyncio.run(_undo_compaction(ref, store, leave=leave, as_json=as_json))
    else:
        wish = CompactionRequest("user", focus, hard=hard)
        asyncio.run(_run_compact(ref, wish, model, store, as_json=as_json))


async def _run_compact(
    ref: str, wish: CompactionRequest, model: str | None, store: str | None, *, as_json: bool
) -> None:
    async with open_existing_session(ref, model=model, store=store) as host:
        done = await compact_session(host.session, wish)
        recorder = host.session.recorder
        assert recorder is not None, "an existing branch was opened"
        if as_json:
            print_json(
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
        print_lines(
            [
                f"Compacted {done.covered} entries of {where}: summary by {done.by or 'rules'}.",
                f"The next request takes about {done.after:,} tokens instead of {done.before:,}"
                + (", which is not fewer." if done.after >= done.before else "."),
                f"Undo: gong compact {where} --undo",
            ]
        )


async def compact_session(session: Session, wish: CompactionRequest) -> events.CompactionEnd:
    """Compact, print warnings on standard error, and return how it ended."""
    told = await collect_events(session.compact(wish))
    return next(event for event in reversed(told) if isinstance(event, events.CompactionEnd))


async def collect_events(work: AsyncGenerator[events.Event, None]) -> list[events.Event]:
    """Run work to its end, print warnings on standard error, and return its events."""
    told: list[events.Event] = []
    async with aclosing(work) as stream:
        async for event in stream:
            told.append(event)
            if isinstance(event, events.Warn):
                print_warning(event.message)
    return told


async def _undo_compaction(ref: str, store: str | None, *, leave: bool, as_json: bool) -> None:
    async with open_existing_session(ref, model=None, store=store) as host:
        session = host.session
        anchor = session.undo(leave=leave)
        recorder = session.recorder
        assert recorder is not None, "an existing branch was opened"
        head = recorder.head().entry
        if as_json:
            told = {"tape": recorder.tape.id, "branch": recorder.branch, "head": head}
            print_json({**told, "undone": anchor.kind, "phase": anchor.phase})
            return
        where = f"{recorder.tape.id[:SHORT]}:{recorder.branch}"
        print_lines([f"Reset {where} to {head[:SHORT]}, before its {anchor.kind}."])
