"""`gong context`: the next model call's request and context usage. Nothing is sent."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import click
from msgspec import Raw, Struct
from msgspec.structs import replace

from tape.cli.out import as_json, format_examples, print_json, print_lines

from .. import config
from ..agent.opening import choose_model, find_session, read_session
from ..agent.window import measure_request
from ..context.shares import measure_context_usage, render_context_usage
from .branch import model_option, open_front_end, store_option
from .chat import parse_tool_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tape.entries import Repair
    from tape.tape import Hit

    from ..agent.models import ModelFactory
    from ..agent.opening import FrontEnd
    from ..agent.outgoing import PreparedRequest
    from ..agent.parts import AgentModel


@click.command(epilog=format_examples("gong context", "gong context 3f2a -m openai/gpt-5 --json"))
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
    settings = config.load_settings(os.environ, {"store": store, "tools": parse_tool_names(tools)})
    with open_front_end(settings, model) as front:
        hit = find_session(front, ref)
        with hit.tape:
            asyncio.run(_print_context(front, hit, as_json=as_json))


async def _print_context(front: FrontEnd, hit: Hit, *, as_json: bool) -> None:
    reading = await read_session(front, hit)
    models = reading.models
    async with models.client:
        who = models.describe(choose_model(front, models, reading.past.path))
        made = reading.next_request(who)
        if as_json:
            print_json(_build_request_document(made, who, models))
        else:
            used = measure_context_usage(
                made.request, made.view, window=who.window, size=measure_request(made)
            )
            print_lines([f"{who.provider}/{who.id}", *render_context_usage(used).split("\n")])


class RepairStep(Struct, frozen=True, omit_defaults=True):
    """One repair: a placeholder result for a call, or an entry that is not sent."""

    kind: str
    call_id: str | None = None
    text: str | None = None
    entry: str | None = None


def _build_request_document(
    made: PreparedRequest, who: AgentModel, models: ModelFactory
) -> dict[str, object]:
    request = replace(made.request, provider=who.provider)
    return {
        "request": Raw(models.client.body(f"{who.provider}/{who.id}", request)),
        "tokens": measure_request(made).tokens,
        "repairs": [*_list_repairs(made.repair)],
    }


def _list_repairs(repair: Repair | None) -> Iterator[RepairStep]:
    if repair is None:
        return
    for one in repair.injected:
        yield RepairStep("injected", call_id=one.call_id, text=one.text)
    for entry in repair.dropped:
        yield RepairStep("dropped", entry=entry)
