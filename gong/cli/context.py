"""`gong context`: the next request and context usage. Nothing is sent or changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click
from msgspec import Raw, Struct
from msgspec.structs import replace

from tape.cli.output import as_json, format_examples, print_json
from tape.cli.terminal import print_lines
from tape.context.view import view

from ..assembly.opening import choose_model, find_session, load_tool_sources, read_session
from ..context.usage_report import measure_context_usage, render_context_usage
from .options import (
    add_prompt_options,
    effort_option,
    load_settings,
    model_option,
    parse_tool_names,
    read_prompt_override,
    store_option,
    tools_option,
)
from .session import open_front_end

if TYPE_CHECKING:
    from tape.store.tape import Hit

    from ..agent.front_end import FrontEnd
    from ..llm.models import EffortChoice


@click.command(epilog=format_examples("gong context", "gong context 3f2a -m openai/gpt-5 --json"))
@click.argument("ref", required=False, default="", metavar="[REF]")
@model_option
@effort_option
@tools_option
@add_prompt_options
@store_option
@as_json
def context(  # noqa: PLR0917 (click passes them by name)
    ref: str,
    model: str | None,
    effort: EffortChoice | None,
    tools: str | None,
    base: str | None,
    base_file: str | None,
    appended: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Show how the context window is used; with --json the exact request of the next call.

    --json prints {request, tokens, repairs}; request is the body that would be sent from this
    folder. No API key is needed. MCP servers are started for their tools, and ended.
    """
    settings = load_settings(store=store, tools=parse_tool_names(tools))
    override = read_prompt_override(base, base_file, appended)
    with open_front_end(settings, model, override, effort) as front:
        hit = find_session(front, ref)
        with hit.tape:
            asyncio.run(_print_context(front, hit, as_json=as_json))


class RepairStep(Struct, frozen=True, omit_defaults=True):
    """One repair: a placeholder result for a call, or an entry that is not sent."""

    kind: str
    call_id: str | None = None
    text: str | None = None
    entry: str | None = None


async def _print_context(front: FrontEnd, hit: Hit, *, as_json: bool) -> None:
    past = await read_session(front, hit)
    models = past.models
    async with models.client:
        model = models.describe(choose_model(front, models, past.history.path))
        sources = load_tool_sources(front)
        try:
            tools, remarks = await past.collect_tools(model, sources)
        finally:
            for source in sources:
                await source.close()
        for remark in remarks:
            front.warn(remark)
        prepared = past.next_request(model, tools)
        size, repair = prepared.measure(), prepared.repair
        if not as_json:
            used = measure_context_usage(
                prepared.request,
                view(*past.history),
                window=model.window,
                size=size,
                instructions=model.instructions.files,
            )
            print_lines([model.name, *render_context_usage(used).split("\n")])
            print_lines(model.instructions.remarks)
            return
        injected = repair.injected if repair else ()
        dropped = repair.dropped if repair else ()
        request = replace(prepared.request, provider=model.provider)
        print_json(
            {
                "request": Raw(models.client.body(model.name, request)),
                "tokens": size.tokens,
                "repairs": [
                    *(RepairStep("injected", repair.call_id, repair.text) for repair in injected),
                    *(RepairStep("dropped", entry=entry) for entry in dropped),
                ],
            }
        )
