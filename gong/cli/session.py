"""Commands on an existing session: `gong compact` and `gong handoff`, and what `gong chat` shares.

`gong compact` replaces older messages by a summary, or undoes that with --undo. `gong handoff`
gives the state of a branch as an anchor for a model and a page for people. `continue_with_model`
makes the history of a session fit another model: in full, or from a handoff.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from tape.cli.files import require_writable, write_output
from tape.cli.output import as_json, format_examples, print_json
from tape.cli.terminal import print_lines
from tape.remote.opening import open_store
from tape.text import SHORT

from .. import __version__, config
from ..agent import events
from ..agent.compaction import CompactionRequest
from ..agent.context_window import measure_fill
from ..agent.events import CompactionEnd
from ..agent.front_end import FrontEnd
from ..agent.recorder import find_last_model, find_newest_anchor
from ..assembly.opening import find_session, open_session, resume_branch
from ..context.system import PromptOverride
from ..env.protocol import LOCAL
from ..project import locate_folder
from .options import load_settings, model_option, print_warning, store_option

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

    from ..agent.recorder import Recorder
    from ..assembly.open_session import OpenSession
    from ..config import Settings
    from ..llm.models import EffortChoice


@contextmanager
def open_front_end(
    settings: Settings,
    model: str | None = None,
    override: PromptOverride = PromptOverride(),
    effort: EffortChoice | None = None,
    *,
    folder: str | None = None,
    is_kept: bool = True,
    names_mode: bool = False,
    place: str | None = None,
) -> Iterator[FrontEnd]:
    """Hold the front end of the command line for a folder; `model` is the value of -m.

    `folder` is the current one if None. `is_kept` says whether the store is there afterwards,
    `names_mode` whether a flag named the permission mode, `place` where tools act.
    Raises FolderGone.
    """
    folder = folder or locate_folder()
    hooks: tuple[object, ...] = ()
    if settings.review.every > 0:
        from ..review.automatic import AutomaticReview  # only if it is asked for

        hooks = (AutomaticReview(settings, folder, os.environ),)
    with open_store(config.locate_store(settings, os.environ), person=settings.person) as library:
        program = f"gong/{__version__}"
        yield FrontEnd(
            library,
            settings,
            os.environ,
            folder,
            program,
            model,
            print_warning,
            hooks,
            override=override,
            effort=effort,
            is_kept=is_kept,
            names_mode=names_mode,
            place=place or LOCAL,
        )


@asynccontextmanager
async def open_existing_session(
    ref: str, *, model: str | None, store: str | None
) -> AsyncIterator[tuple[OpenSession, Recorder]]:
    """Hold the session of an existing branch, and the branch; its model need not have a key."""
    settings = load_settings(store=store)
    with open_front_end(settings, model) as front:
        recorder = resume_branch(front, find_session(front, ref), ref)
        host = await open_session(front, recorder, must_answer=False)
        for remark in recorder.skipped:
            print_warning(remark)
        recorder.skipped.clear()
        try:
            yield host, recorder
        finally:
            await host.close()


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

    async def run() -> None:
        async with open_existing_session(ref, model=model, store=store) as (host, recorder):
            where = f"{recorder.tape.id[:SHORT]}:{recorder.branch}"
            printed: dict[str, object] = {"tape": recorder.tape.id, "branch": recorder.branch}
            if undo:
                anchor, head = host.session.undo(leave=leave), recorder.head().entry
                printed |= {"head": head, "undone": anchor.kind, "phase": anchor.phase}
                lines = [f"Reset {where} to {head[:SHORT]}, before its {anchor.kind}."]
            else:
                request = CompactionRequest("user", focus, hard=hard)
                seen = await collect_events(host.session.compact(request))
                done = next(event for event in reversed(seen) if isinstance(event, CompactionEnd))
                printed |= {"entry": done.entry, "covered": done.covered}
                printed |= {"tokens": {"before": done.before, "after": done.after}, "by": done.by}
                lines = _describe_compaction(done, where)
        print_json(printed) if as_json else print_lines(lines)

    asyncio.run(run())


def _describe_compaction(done: CompactionEnd, where: str) -> list[str]:
    fewer = ", which is not fewer." if done.after >= done.before else "."
    return [
        f"Compacted {done.covered} entries of {where}: summary by {done.by or 'rules'}.",
        f"The next request takes about {done.after:,} tokens instead of {done.before:,}{fewer}",
        f"Undo: gong compact {where} --undo",
    ]


async def collect_events(work: AsyncGenerator[events.Event, None]) -> list[events.Event]:
    """Run work to its end, print warnings on standard error, and return its events."""
    seen: list[events.Event] = []
    async with aclosing(work) as stream:
        async for event in stream:
            seen.append(event)
            if isinstance(event, events.Warn):
                print_warning(event.message)
    return seen


@click.command(
    epilog=format_examples(
        "gong handoff --to openai/gpt-5",
        "gong handoff 3f2a --to sonnet -o HANDOFF.md",
    )
)
@click.argument("ref", required=False, default="", metavar="[REF]")
@click.option("--to", metavar="MODEL", required=True, help="provider/model that continues.")
@click.option(
    "-o", "--output", metavar="FILE", help="Write the page to this file instead of printing it."
)
@click.option("--force", is_flag=True, help="With -o: replace an existing file.")
@click.option("--focus", default="", metavar="TEXT", help="What the summary should focus on.")
@model_option
@store_option
@as_json
def handoff(
    ref: str,
    to: str,
    output: str | None,
    force: bool,
    focus: str,
    model: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Hand a session over to another model, or to a colleague.

    Sets an anchor (a summary that bounds what the model sees), from which gong chat -m MODEL
    continues, and prints a page of Markdown. If the summary is no shorter than the history, no
    anchor is set and the model gets the full history. -m is the model that writes the summary.
    gong compact --undo removes the anchor from the branch.
    """
    if output is not None:
        require_writable(Path(output), force=force)

    from ..agent.handoff import build_handoff_page  # only for a handoff

    async def run() -> None:
        async with open_existing_session(ref, model=model, store=store) as (host, recorder):
            target = host.models.names.resolve_name(to)
            is_anchored = await ensure_handoff(host, target, focus)
            cwd = host.session.setup.env.working_directory
            page = build_handoff_page(recorder, to_model=target, cwd=cwd)
            if output is not None:
                write_output(Path(output), page)
            where = f"{recorder.tape.id[:SHORT]}:{recorder.branch}"
            if as_json:
                place = {"tape": recorder.tape.id, "branch": recorder.branch, "to": target}
                entry = recorder.path[0].id if is_anchored else None
                print_json({**place, "entry": entry, "page": page})
            elif output is None:
                print_lines([page.rstrip("\n")])
            else:
                print_lines([f"{output}: continue with gong chat --session {where} -m {target}"])

    asyncio.run(run())


async def ensure_handoff(host: OpenSession, to: str, focus: str = "") -> bool:
    """Set a handoff anchor for a model and return whether the branch now has one.

    Warnings go to standard error. Raises NothingToCompact.
    """
    from ..agent.handoff import record_handoff  # only for a handoff

    seen = await collect_events(record_handoff(host.session, to, focus))
    recorder = host.session.recorder
    if any(isinstance(event, CompactionEnd) for event in seen):
        return True
    anchor = None if recorder is None else find_newest_anchor(recorder.path)
    return anchor is not None and anchor.kind == "handoff" and anchor.state.model == to


StartFrom = Literal["full", "handoff"]


async def continue_with_model(host: OpenSession, start: StartFrom | None) -> None:
    """Make the history fit the model, and report what the session continues from.

    `start` is the value of --from; without it the full history is used if it fits.
    Raises NothingToUndo if the full history is asked for and is behind an anchor that cannot
    be undone.
    """
    recorder = host.session.recorder
    assert recorder is not None, "an existing branch was opened"
    if start == "full" and find_newest_anchor(recorder.path) is not None:
        undone = host.session.undo()
        print_warning(f"{undone.kind} undone: {host.model_name} continues from the full history")
    before = find_last_model(recorder.path)
    if before is None or (start is None and before == host.model_name):
        return
    run = host.session.build_run_context()
    tokens, limit = measure_fill(run.prepare_next_call(), run.setup.compaction, run.window)
    if start == "handoff" or (start is None and limit is not None and tokens > limit):
        if start is None:
            print_warning(f"about {tokens:,} tokens do not fit {host.model_name} (limit {limit:,})")
        if await ensure_handoff(host, host.model_name):
            print_warning(
                f"{host.model_name} continues from a handoff; gong compact --undo undoes it"
            )
    elif before != host.model_name:
        anchor = find_newest_anchor(recorder.path)
        what = f"the {anchor.kind}" if anchor else "the full history"
        print_warning(
            f"switched from {before} to {host.model_name}; "
            f"continues from {what} (~{tokens:,} tokens)"
        )
