"""`gong context`: the next request and context usage; `gong doctor`: what a session needs.

Nothing is sent or changed.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
from typing import TYPE_CHECKING, Literal

import click
import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tape.cli.output import as_json, format_examples, print_json
from tape.cli.terminal import format_table, print_lines
from tape.context.view import view
from tape.errors import TapeError
from tape.formats.registry import FORMATS

from .. import __version__, config
from ..agent.opening import choose_model, find_session, read_session
from ..context.usage_report import measure_context_usage, render_context_usage
from ..credentials import Credentials
from ..errors import ConfigurationError, GongError
from ..llm.model_names import ModelNames
from ..llm.models import load_presets
from ..llm.provider_factory import require_package
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
    from collections.abc import Iterator
    from pathlib import Path

    from tape.store.tape import Hit

    from ..agent.opening import FrontEnd, SessionPreview
    from ..config import Settings
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
    folder. No API key is needed.
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
        prepared = past.next_request(model)
        size, repair = prepared.measure(), prepared.repair
        if not as_json:
            used = measure_context_usage(
                prepared.request,
                view(*past.history),
                window=model.window,
                size=size,
                instructions=model.instructions.files,
            )
            remarks = (*model.instructions.remarks, model.instructions.hint or "")
            print_lines([model.name, *render_context_usage(used).split("\n")])
            print_lines([remark for remark in remarks if remark])
            return
        injected = repair.injected if repair else ()
        dropped = repair.dropped if repair else ()
        request = replace(prepared.request, provider=model.provider)
        print_json(
            {
                "request": Raw(models.client.body(model.name, request)),
                "tokens": size.tokens,
                "repairs": [
                    *(RepairStep("injected", one.call_id, one.text) for one in injected),
                    *(RepairStep("dropped", entry=entry) for entry in dropped),
                ],
            }
        )


_WANTED_PROGRAMS = (
    (("bash",), "without it the bash tool does not work"),
    (("git",), "without it the system prompt cannot describe the working copy"),
    (("rg",), "grep uses its own, slower search"),
    (("fd", "fdfind"), "find uses its own, slower search"),
)
_JUDGED_MODELS = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "openai-chat": "openai-chat/gpt-4o",
    "openai-responses": "openai/gpt-5",
    "gemini": "google/gemini-3-pro-preview",
}
"""One model for each wire API, used to check a history; nothing is sent."""
_WRONG_EXIT = 1


class HealthCheck(Struct, frozen=True):
    """The result of one check."""

    name: str
    state: Literal["ok", "note", "wrong"]
    about: str


@click.command(epilog=format_examples("gong doctor", "gong doctor 3f2a --json"))
@click.argument("ref", required=False, metavar="[REF]")
@store_option
@as_json
def doctor(ref: str | None, store: str | None, as_json: bool) -> int:
    """Check what a session needs: settings, store, keys, programs. Nothing is sent or changed.

    With REF, also check whether each provider would accept that history. Exit code 1 if a check
    fails.
    """
    checks = [*_run_checks(ref, store)]
    if as_json:
        print_json(checks)
    else:
        print_lines(format_table([(one.state, one.name, one.about) for one in checks]))
    return _WRONG_EXIT if any(one.state == "wrong" for one in checks) else 0


def _run_checks(ref: str | None, store: str | None) -> Iterator[HealthCheck]:
    yield HealthCheck("gong", "ok", f"{__version__} with Python {platform.python_version()}")
    try:
        settings = load_settings(store=store)
    except GongError as error:
        yield HealthCheck("settings", "wrong", str(error))
        return
    yield from _check_places(
        config.locate_config_file(os.environ), config.locate_store(settings, os.environ)
    )
    if settings.model:
        try:
            name = ModelNames.from_settings(settings).resolve_name(settings.model)
            yield HealthCheck("model", "ok", name)
        except ConfigurationError as error:
            yield HealthCheck("model", "wrong", str(error))
    yield from _check_keys(settings)
    for names, without in _WANTED_PROGRAMS:
        found = next(filter(None, map(shutil.which, names)), None)
        yield HealthCheck(names[0], "ok" if found else "note", found or f"not found: {without}")
    if ref is not None:
        yield from _check_history(ref, settings)


def _check_places(file: Path, store: Path) -> Iterator[HealthCheck]:
    """Yield what there is of the settings file, and whether the store can be written."""
    if file.exists():
        yield HealthCheck("settings", "ok", str(file))
    elif "GONG_CONFIG_DIR" in os.environ:
        named = f"GONG_CONFIG_DIR is {file.parent}, which has no {file.name}"
        yield HealthCheck("settings", "note", f"{named}: all settings have their defaults")
    else:
        yield HealthCheck("settings", "ok", f"defaults: there is no {file}")
    there = store
    while not there.exists() and there != there.parent:
        there = there.parent
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        created = "" if store.exists() else ", created on first use"
        yield HealthCheck("store", "ok", f"{store}{created}")
    else:
        yield HealthCheck("store", "wrong", f"{store} cannot be written")


def _check_keys(settings: Settings) -> Iterator[HealthCheck]:
    keys = Credentials.from_environ(os.environ)
    found = False
    for name, preset in load_presets(settings.providers).items():
        if keys.find(preset.key_name, preset.keys) is None:
            continue
        if preset.later:
            yield HealthCheck(name, "note", f"there is a key, but {preset.unserved}")
            continue
        found = True
        try:
            require_package(preset)
            yield HealthCheck(name, "ok", "there is a key")
        except ConfigurationError as error:
            yield HealthCheck(name, "wrong", f"there is a key, but {error}")
    if not found:
        yield HealthCheck("keys", "note", "none: gong auth login PROVIDER, or use -m offline/rules")


def _check_history(ref: str, settings: Settings) -> Iterator[HealthCheck]:
    with open_front_end(settings) as front:
        hit = find_session(front, ref)
        with hit.tape:
            try:
                past = asyncio.run(read_session(front, hit))
            except (GongError, TapeError) as error:
                yield HealthCheck("history", "wrong", str(error))
                return
            for form, name in _JUDGED_MODELS.items():
                yield _check_request(past, form, name)


def _check_request(past: SessionPreview, form: str, name: str) -> HealthCheck:
    """Check a history's request against the rules of a wire API."""
    about, models = f"history for {form}", past.models
    try:
        prepared = past.next_request(models.describe(name))
        body = msgspec.json.decode(models.client.body(name, prepared.request))
    except (GongError, TapeError) as error:
        return HealthCheck(about, "wrong", str(error))
    array = body[FORMATS[form].field]
    broken = FORMATS[form].check(array)
    if broken:
        return HealthCheck(about, "wrong", "; ".join(map(str, broken[:3])))
    repaired = f", repaired: {prepared.repair.why}" if prepared.repair else ""
    return HealthCheck(about, "ok", f"{len(array)} elements{repaired}")
