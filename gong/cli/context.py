"""`gong context`: the next model call's request and context usage. Nothing is sent."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import click
from msgspec import Raw, Struct
from msgspec.structs import replace

from tape.cli.out import as_json, document, examples, say

from .. import config
from ..agent.opening import choose_model, find_session, read_session
from ..agent.window import measured
from ..context.shares import meter, text
from .branch import front_end, model_option, store_option
from .chat import tool_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tape.entries import Repair
    from tape.tape import Hit

    from ..agent.models import Models
    from ..agent.opening import FrontEnd
    from ..agent.outgoing import Outgoing
    from ..agent.parts import Model


@click.command(epilog=examples("gong context", "gong context 3f2a -m openai/gpt-5 --json"))
@click.argument("ref", required=False, default="", metavar="[REF]")
@model_option
@click.option("--tools", metavar="LIST", help="Tool names, a preset, or none.")
@store_option
@as_json
def context(
    ref: str, model: str | None, tools: str | None, store: str | None, as_json: bool
) -> None:
    """Show how the context window is used; with --json the exact request of the next call.

    --json prints {request, tokens, repairs}; request is the body that would be sent from this
    folder. No API key is needed.
    """
    settings = config.load(os.environ, {"store": store, "tools": tool_names(tools)})
    with front_end(settings, model) as front:
        hit = find_session(front, ref)
        with hit.tape:
            asyncio.run(_show(front, hit, as_json=as_json))


async def _show(front: FrontEnd, hit: Hit, *, as_json: bool) -> None:
    reading = await read_session(front, hit)
    models = reading.models
    async with models.client:
        who = models.describe(choose_model(front, models, reading.past.path))
        made = reading.next_request(who)
        if as_json:
            document(_document(made, who, models))
        else:
            used = meter(made.request, made.view, window=who.window, size=measured(made))
            say([f"{who.provider}/{who.id}", *text(used).split("\n")])


class Mended(Struct, frozen=True, omit_defaults=True):
    """One repair: a placeholder result for a call, or an entry that is not sent."""

    kind: str
    call_id: str | None = None
    text: str | None = None
    entry: str | None = None


def _document(made: Outgoing, who: Model, models: Models) -> dict[str, object]:
    request = replace(made.request, provider=who.provider)
    return {
        "request": Raw(models.client.body(f"{who.provider}/{who.id}", request)),
        "tokens": measured(made).tokens,
        "repairs": [*_mended(made.repair)],
    }


def _mended(repair: Repair | None) -> Iterator[Mended]:
    if repair is None:
        return
    for one in repair.injected:
        yield Mended("injected", call_id=one.call_id, text=one.text)
    for entry in repair.dropped:
        yield Mended("dropped", entry=entry)
