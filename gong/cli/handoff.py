"""`gong handoff`: the state of a branch, as an anchor for a model and a page for people."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tape.cli.files import require_writable, write_output
from tape.cli.out import as_json, format_examples, print_json, print_lines
from tape.render import SHORT

from ..agent.events import CompactionEnd
from ..agent.handing import build_handoff_page, record_handoff
from ..agent.record import find_newest_anchor
from .branch import model_option, open_existing_session, store_option
from .compact import collect_events

if TYPE_CHECKING:
    from ..agent.opening import OpenSession


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
    asyncio.run(_run_handoff(ref, to, output, focus, model, store, as_json=as_json))


async def _run_handoff(
    ref: str,
    to: str,
    output: str | None,
    focus: str,
    model: str | None,
    store: str | None,
    *,
    as_json: bool,
) -> None:
    async with open_existing_session(ref, model=model, store=store) as host:
        target = host.models.names.resolve_name(to)
        is_anchored = await ensure_handoff(host, target, focus)
        recorder = host.session.recorder
        assert recorder is not None, "an existing branch was opened"
        cwd = host.session.setup.env.working_directory
        page = build_handoff_page(recorder, to_model=target, cwd=cwd)
        if output is not None:
            write_output(Path(output), page)
        where = f"{recorder.tape.id[:SHORT]}:{recorder.branch}"
        if as_json:
            told = {"tape": recorder.tape.id, "branch": recorder.branch, "to": target}
            print_json(
                {**told, "entry": recorder.path[0].id if is_anchored else None, "page": page}
            )
        elif output is None:
            print_lines([page.rstrip("\n")])
        else:
            print_lines([f"{output}: continue with gong chat --session {where} -m {target}"])


async def ensure_handoff(host: OpenSession, to: str, focus: str = "") -> bool:
    """Set a handoff anchor for a model and return whether the branch now has one.

    Warnings go to standard error. Raises NothingToCompact.
    """
    told = await collect_events(record_handoff(host.session, to, focus))
    recorder = host.session.recorder
    if any(isinstance(event, CompactionEnd) for event in told):
        return True
    anchor = None if recorder is None else find_newest_anchor(recorder.path)
    return anchor is not None and anchor.kind == "handoff" and anchor.state.model == to
