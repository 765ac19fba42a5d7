"""`gong handoff`: the state of a branch, as an anchor for a model and as a page for people."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from tape.cli.out import as_json, document, examples, say
from tape.render import SHORT

from ..agent.compaction import Wish
from ..agent.handing import handoff_page
from ..agent.record import newest_anchor
from ..errors import NothingToCompact
from .branch import model_option, opened, store_option, warn
from .compact import compacted
from .pages import demand_place, write_page

if TYPE_CHECKING:
    from ..agent.assembly import Host


@click.command(
    epilog=examples(
        "gong handoff --to openai/gpt-5",
        "gong handoff 3f2a --to sonnet -o HANDOFF.md",
    )
)
@click.argument("ref", required=False, default="", metavar="[REF]")
@click.option("--to", metavar="MODEL", required=True, help="provider/model that goes on.")
@click.option("-o", "--output", metavar="FILE", help="Write the page there instead of printing it.")
@click.option("--focus", default="", metavar="TEXT", help="What the summary should look at most.")
@model_option
@store_option
@as_json
def handoff(
    ref: str,
    to: str,
    output: str | None,
    focus: str,
    model: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Hand a session over to another model, or to a colleague.

    Its state becomes an anchor on the branch, from which gong chat -m MODEL goes on, and a page of
    Markdown. -m names who sums it up. gong compact --undo takes the anchor back.
    """
    if output is not None:
        demand_place(output)
    asyncio.run(_handoff(ref, to, output, focus, model, store, as_json=as_json))


async def _handoff(
    ref: str,
    to: str,
    output: str | None,
    focus: str,
    model: str | None,
    store: str | None,
    *,
    as_json: bool,
) -> None:
    async with opened(ref, model=model, store=store) as host:
        target = host.models.names.full(to)
        await hand_over(host, target, focus)
        recorder = host.session.recorder
        assert recorder is not None, "an existing branch was opened"
        page = handoff_page(recorder, to_model=target)
        if output is not None:
            write_page(output, page)
        where = f"{recorder.tape.id[:SHORT]}:{recorder.branch}"
        if as_json:
            told = {"tape": recorder.tape.id, "branch": recorder.branch, "to": target}
            document({**told, "entry": recorder.path[0].id, "page": page})
        elif output is None:
            say([page.rstrip("\n")])
        else:
            say([f"{output}: go on with gong chat --session {where} -m {target}"])


async def hand_over(host: Host, to: str, focus: str = "") -> None:
    """Set a handoff anchor for a model; one that stands there already is enough."""
    recorder = host.session.recorder
    assert recorder is not None, "an existing branch was opened"
    try:
        await compacted(host.session, Wish("handoff", focus, kind="handoff", hard=True, to=to))
    except NothingToCompact:
        anchor = newest_anchor(recorder.path)
        if anchor is None:
            raise
        if anchor.state.model != to:
            host.session.hand_on(anchor, to)
        warn(f"nothing was said since the {anchor.kind}, so it stands as it is")
