"""`gong acp`: sessions for editors, by the Agent Client Protocol on standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import click

from tape.cli.output import format_examples
from tape.remote.opening import open_store

from .. import __version__, config
from ..credentials import Credentials
from ..errors import ConfigurationError, GongError
from ..hosting.hub import SessionHub
from ..llm.model_names import ModelNames
from .options import load_settings, model_option, print_warning, sandbox_option, store_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..acp.agent import AcpAgent
    from ..config import SandboxMode, Settings


@click.command(epilog=format_examples("gong acp --help"))
@store_option
@model_option
@sandbox_option
def acp(*, store: str | None, model: str | None, sandbox: SandboxMode | None) -> None:
    """Run as the agent of an editor: Agent Client Protocol 1 on standard input and output.

    Editors start it themselves; docs/acp.md says how to set up Zed, JetBrains and others.
    """
    try:
        from ..acp.agent import AcpAgent  # an extra
    except ImportError as error:
        raise ConfigurationError("gong acp needs `pip install 'gong[acp]'`") from error
    settings = load_settings(store=store)
    with open_store(config.locate_store(settings, os.environ), person=settings.person) as library:
        agent = AcpAgent(__version__, partial(list_offered_models, model, os.environ))
        agent.hub = SessionHub(
            library,
            lambda folder: load_settings(folder, store=store),
            os.environ,
            agent.take_event,
            program=f"gong/{__version__}",
            model=model,
            warn=print_warning,
            sandbox=sandbox,
        )
        asyncio.run(_serve_editor(agent))


def list_offered_models(model: str | None, environ: Mapping[str, str], folder: str) -> list[str]:
    """Return the models that a session in a folder can choose, as provider/model.

    They are the named ones (`model`, GONG_MODEL, the configuration), whether or not they can be
    called, and those of the providers that there is a key for.
    """
    files = {name: value for name, value in environ.items() if name != "GONG_MODEL"}
    settings = config.load_settings(environ, {}, folder)
    configured = config.load_settings(files, {}, folder).model
    names = ModelNames.from_settings(settings, environ)
    named = []
    for choice in (model, environ.get("GONG_MODEL"), configured):
        with suppress(GongError):  # a wrong name is told where it is used
            named += [names.resolve_name(choice)] if choice else []
    return [*dict.fromkeys((*named, *list_usable_models(settings, environ)))]


def list_usable_models(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    """Return the models, as provider/model, of the providers that there is a key for."""
    names, keys = ModelNames.from_settings(settings, environ), Credentials.from_environ(environ)
    usable = {
        provider
        for provider, preset in names.presets.items()
        if keys.has_key(preset.key_name, preset.keys)
    }
    return [model.id for model in names.catalogue.list_models() if model.provider in usable]


async def _serve_editor(agent: AcpAgent) -> None:
    """Serve until the input ends; what else is printed goes to standard error."""
    from ..acp.connection import serve_editor  # an extra

    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        await serve_editor(agent, output)
    finally:
        await agent.close()
