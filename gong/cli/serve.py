"""`gong serve`: sessions for other programs over HTTP, on this machine."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from tape.cli.output import format_examples
from tape.cli.terminal import print_lines
from tape.remote.opening import open_store
from tape.serve.access import LOCAL_NAMES

from .. import __version__, config
from ..errors import ConfigurationError
from ..hosting.hub import SessionHub
from ..rpc.dispatch import answer_request
from ..rpc.http import EventLog, serve_http
from .options import (
    answer_timeout_option,
    load_settings,
    model_option,
    print_warning,
    sandbox_option,
    store_option,
)

if TYPE_CHECKING:
    from tape.index.library import Library

    from ..config import SandboxMode


@click.command(epilog=format_examples("gong serve --port 0"))
@store_option
@model_option
@sandbox_option
@answer_timeout_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0 chooses a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--allow-remote", is_flag=True, help="Allow a --host that other machines reach.")
def serve(
    *,
    store: str | None,
    model: str | None,
    sandbox: SandboxMode | None,
    answer_timeout: float,
    port: int,
    host: str,
    allow_remote: bool,
) -> None:
    """Run sessions for other programs over HTTP: the methods of `gong rpc`, events as a stream.

    Prints the address and a token, which every request has to carry: POST /rpc takes a request of
    `gong rpc` and returns its answer, GET /events streams the events of all sessions, or of
    ?session=ID, and GET /schema is the JSON Schema. Ends with Ctrl+C.
    """
    if host not in LOCAL_NAMES and not allow_remote:
        raise ConfigurationError(
            f"--host {host} is reached by other machines, and whoever has the token runs commands"
            " here: add --allow-remote if that is meant"
        )
    settings = load_settings(store=store)
    with open_store(config.locate_store(settings, os.environ), person=settings.person) as library:
        asyncio.run(_serve_library(library, store, model, sandbox, (host, port), answer_timeout))


async def _serve_library(
    library: Library,
    store: str | None,
    model: str | None,
    sandbox: SandboxMode | None,
    where: tuple[str, int],
    answer_timeout: float,
) -> None:
    log = EventLog()
    hub = SessionHub(
        library,
        lambda folder: load_settings(folder, store=store),
        os.environ,
        log.add,
        program=f"gong/{__version__}",
        model=model,
        warn=print_warning,
        sandbox=sandbox,
        answer_seconds=answer_timeout or None,
    )
    await serve_http(hub, partial(answer_request, hub), log, where, _print_address)


def _print_address(address: str, token: str) -> None:
    print_lines([f"address: {address}", f"token: {token}"])
    sys.stdout.flush()
