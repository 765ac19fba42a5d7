"""`gong rpc`: sessions for other programs, as lines of JSON on standard input and output."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING

import click

from tape.cli.output import format_examples, print_json
from tape.remote.opening import open_store

from .. import __version__, config
from ..hosting.hub import SessionHub
from ..rpc.dispatch import answer_request
from ..rpc.methods import build_json_schema
from ..rpc.stdio import LineWriter, serve_lines
from .options import (
    answer_timeout_option,
    load_settings,
    model_option,
    print_warning,
    sandbox_option,
    store_option,
)

if TYPE_CHECKING:
    from ..config import SandboxMode


@click.command(
    epilog=format_examples(
        """echo '{"id":1,"method":"session/list"}' | gong rpc""",
        "gong rpc --schema",
    )
)
@store_option
@model_option
@sandbox_option
@answer_timeout_option
@click.option("--schema", is_flag=True, help="Print the JSON Schema of all lines, and end.")
def rpc(
    *,
    store: str | None,
    model: str | None,
    sandbox: SandboxMode | None,
    answer_timeout: float,
    schema: bool,
) -> None:
    """Run sessions for another program: a request on each line of standard input.

    A request is {id, method, params}; its answer {id, result} or {id, error {code, message}}.
    Lines without an id are events. Methods: initialize, session/new, session/load, session/list,
    prompt, steer, follow_up, approve, answer, set, cancel, close. Questions about calls are events
    `approval_request`, answered by `approve`. The end of the input ends the program when what was
    asked is answered.
    """
    if schema:
        print_json(build_json_schema())
        return
    settings = load_settings(store=store)
    with open_store(config.locate_store(settings, os.environ), person=settings.person) as library:
        writer = LineWriter()
        hub = SessionHub(
            library,
            lambda folder: load_settings(folder, store=store),
            os.environ,
            writer.write_event,
            program=f"gong/{__version__}",
            model=model,
            warn=print_warning,
            sandbox=sandbox,
            answer_seconds=answer_timeout or None,
        )
        asyncio.run(serve_lines(hub, writer, partial(answer_request, hub)))
