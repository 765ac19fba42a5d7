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

from tape.cli.out import as_json, document, examples, say, table
from tape.errors import TapeError
from tape.formats.arrays import FORMATS

from .. import __version__, config
from ..agent.opening import find_session, read_session
from ..credentials import Credentials
from ..errors import ConfigurationError, GongError
from ..llm.maker import demand_package
from ..llm.names import Names
from ..llm.presets import merged
from .branch import front_end, store_option

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..agent.opening import Reading
    from ..config import Settings

_PROGRAMS = (
    (("bash",), "without it the bash tool does not work"),
    (("git",), "without it the system prompt cannot describe the working copy"),
    (("rg",), "grep uses its own, slower search"),
    (("fd", "fdfind"), "find uses its own, slower search"),
)
_JUDGED = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "openai-chat": "openai-chat/gpt-4o",
    "openai-responses": "openai/gpt-5",
    "gemini": "google/gemini-3-pro-preview",
}
"""One model for each wire API, used to check a history; nothing is sent."""
_WRONG = 1


class Check(Struct, frozen=True):
    """The result of one check."""

    name: str
    state: Literal["ok", "note", "wrong"]
    about: str


@click.command(epilog=examples("gong doctor", "gong doctor 3f2a --json"))
@click.argument("ref", required=False, metavar="[REF]")
@store_option
@as_json
def doctor(ref: str | None, store: str | None, as_json: bool) -> None:
    """Check what a session needs: settings, store, keys, programs. Nothing is sent or changed.

    With REF, also check whether each provider would accept that history. Exit code 1 if a check
    fails.
    """
    checks = [*_checks(ref, store)]
    if as_json:
        document(checks)
    else:
        say(table([(one.state, one.name, one.about) for one in checks]))
    sys.exit(_WRONG if any(one.state == "wrong" for one in checks) else 0)


def _checks(ref: str | None, store: str | None) -> Iterator[Check]:
    yield Check("gong", "ok", f"{__version__} with Python {platform.python_version()}")
    try:
        settings = config.load(os.environ, {"store": store})
    except GongError as error:
        yield Check("settings", "wrong", str(error))
        return
    yield _settings(config.config_file(os.environ))
    yield _store(config.store_path(settings, os.environ))
    yield from _model(settings)
    yield from _keys(settings)
    yield from _programs()
    if ref is not None:
        yield from _history(ref, settings)


def _settings(file: Path) -> Check:
    if file.exists():
        return Check("settings", "ok", str(file))
    if "GONG_CONFIG_DIR" in os.environ:
        named = f"GONG_CONFIG_DIR is {file.parent}, which has no {file.name}"
        return Check("settings", "note", f"{named}: all settings have their defaults")
    return Check("settings", "ok", f"defaults: there is no {file}")


def _store(path: Path) -> Check:
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return Check("store", "wrong", f"{path} cannot be written")
    return Check("store", "ok", f"{path}" if path.exists() else f"{path}, created on first use")


def _model(settings: Settings) -> Iterator[Check]:
    if settings.model:
        try:
            yield Check("model", "ok", Names.of(settings).full(settings.model))
        except ConfigurationError as error:
            yield Check("model", "wrong", str(error))


def _keys(settings: Settings) -> Iterator[Check]:
    keys = Credentials(config.config_file(os.environ).parent, os.environ)
    found = False
    for name, preset in merged(settings.providers).items():
        if keys.find(preset.key_name, preset.keys) is None:
            continue
        if preset.later:
            yield Check(name, "note", f"there is a key, but {preset.unserved}")
            continue
        found = True
        try:
            demand_package(preset)
            yield Check(name, "ok", "there is a key")
        except ConfigurationError as error:
            yield Check(name, "wrong", f"there is a key, but {error}")
    if not found:
        yield Check("keys", "note", "none: gong auth login PROVIDER, or use -m offline/rules")


def _programs() -> Iterator[Check]:
    for names, without in _PROGRAMS:
        found = next(filter(None, map(shutil.which, names)), None)
        yield Check(names[0], "ok" if found else "note", found or f"not found: {without}")


def _history(ref: str, settings: Settings) -> Iterator[Check]:
    with front_end(settings) as front:
        hit = find_session(front, ref)
        with hit.tape:
            try:
                reading = asyncio.run(read_session(front, hit))
            except (GongError, TapeError) as error:
                yield Check("history", "wrong", str(error))
                return
            for form, name in _JUDGED.items():
                yield _judged(reading, form, name)


def _judged(reading: Reading, form: str, name: str) -> Check:
    """Check a history's request against the rules of a wire API."""
    about, models = f"history for {form}", reading.models
    try:
        made = reading.next_request(models.describe(name))
        body = msgspec.json.decode(models.client.body(name, made.request))
    except (GongError, TapeError) as error:
        return Check(about, "wrong", str(error))
    array = body[FORMATS[form].field]
    broken = FORMATS[form].check(array)
    if broken:
        return Check(about, "wrong", "; ".join(map(str, broken[:3])))
    mended = f", repaired: {made.repair.why}" if made.repair else ""
    return Check(about, "ok", f"{len(array)} elements{mended}")
