"""`gong doctor`: check what a session needs, and whether providers accept a history."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from typing import TYPE_CHECKING, Literal

import click
import msgspec
from msgspec import Struct

from tape.cli.out import as_json, format_examples, format_table, print_json, print_lines
from tape.errors import TapeError
from tape.formats.arrays import FORMATS

from .. import __version__, config
from ..agent.opening import find_session, read_session
from ..credentials import Credentials
from ..errors import ConfigurationError, GongError
from ..llm.maker import require_package
from ..llm.names import ModelNames
from ..llm.presets import load_presets
from .branch import open_front_end, store_option

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..agent.opening import SessionPreview
    from ..config import Settings

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
def doctor(ref: str | None, store: str | None, as_json: bool) -> None:
    """Check what a session needs: settings, store, keys, programs. Nothing is sent or changed.

    With REF, also check whether each provider would accept that history. Exit code 1 if a check
    fails.
    """
    checks = [*_run_checks(ref, store)]
    if as_json:
        print_json(checks)
    else:
        print_lines(format_table([(one.state, one.name, one.about) for one in checks]))
    sys.exit(_WRONG_EXIT if any(one.state == "wrong" for one in checks) else 0)


def _run_checks(ref: str | None, store: str | None) -> Iterator[HealthCheck]:
    yield HealthCheck("gong", "ok", f"{__version__} with Python {platform.python_version()}")
    try:
        settings = config.load_settings(os.environ, {"store": store})
    except GongError as error:
        yield HealthCheck("settings", "wrong", str(error))
        return
    yield _check_settings(config.locate_config_file(os.environ))
    yield _check_store(config.locate_store(settings, os.environ))
    yield from _check_model(settings)
    yield from _check_keys(settings)
    yield from _check_programs()
    if ref is not None:
        yield from _check_history(ref, settings)


def _check_settings(file: Path) -> HealthCheck:
    if file.exists():
        return HealthCheck("settings", "ok", str(file))
    if "GONG_CONFIG_DIR" in os.environ:
        named = f"GONG_CONFIG_DIR is {file.parent}, which has no {file.name}"
        return HealthCheck("settings", "note", f"{named}: all settings have their defaults")
    return HealthCheck("settings", "ok", f"defaults: there is no {file}")


def _check_store(path: Path) -> HealthCheck:
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return HealthCheck("store", "wrong", f"{path} cannot be written")
    return HealthCheck(
        "store", "ok", f"{path}" if path.exists() else f"{path}, created on first use"
    )


def _check_model(settings: Settings) -> Iterator[HealthCheck]:
    if settings.model:
        try:
            yield HealthCheck(
                "model", "ok", ModelNames.from_settings(settings).resolve_name(settings.model)
            )
        except ConfigurationError as error:
            yield HealthCheck("model", "wrong", str(error))


def _check_keys(settings: Settings) -> Iterator[HealthCheck]:
    keys = Credentials(config.locate_config_file(os.environ).parent, os.environ)
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


def _check_programs() -> Iterator[HealthCheck]:
    for names, without in _WANTED_PROGRAMS:
        found = next(filter(None, map(shutil.which, names)), None)
        yield HealthCheck(names[0], "ok" if found else "note", found or f"not found: {without}")


def _check_history(ref: str, settings: Settings) -> Iterator[HealthCheck]:
    with open_front_end(settings) as front:
        hit = find_session(front, ref)
        with hit.tape:
            try:
                reading = asyncio.run(read_session(front, hit))
            except (GongError, TapeError) as error:
                yield HealthCheck("history", "wrong", str(error))
                return
            for form, name in _JUDGED_MODELS.items():
                yield _check_request(reading, form, name)


def _check_request(reading: SessionPreview, form: str, name: str) -> HealthCheck:
    """Check a history's request against the rules of a wire API."""
    about, models = f"history for {form}", reading.models
    try:
        made = reading.next_request(models.describe(name))
        body = msgspec.json.decode(models.client.body(name, made.request))
    except (GongError, TapeError) as error:
        return HealthCheck(about, "wrong", str(error))
    array = body[FORMATS[form].field]
    broken = FORMATS[form].check(array)
    if broken:
        return HealthCheck(about, "wrong", "; ".join(map(str, broken[:3])))
    mended = f", repaired: {made.repair.why}" if made.repair else ""
    return HealthCheck(about, "ok", f"{len(array)} elements{mended}")
