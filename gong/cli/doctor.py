"""`gong doctor`: whether all that a session needs is there, and what to do where it is not.

Nothing is sent or changed.
"""

from __future__ import annotations

import asyncio
import locale
import os
import platform
import shutil
import sqlite3
import sys
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import click
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tape.cli.output import as_json, format_examples, print_json
from tape.cli.terminal import format_table, get_columns, print_lines
from tape.errors import TapeError
from tape.formats.registry import FORMATS
from tape.remote.opening import open_store
from tape.text import format_count

from .. import __version__, config
from ..assembly.opening import find_session, read_session
from ..credentials import Credentials
from ..errors import ConfigurationError, GongError
from ..llm.cloud_logins import describe_login
from ..llm.model_names import ModelNames
from ..llm.models import load_presets
from ..llm.provider_factory import require_package
from ..private_files import locate_config_file
from ..project import locate_folder
from .options import load_settings, store_option
from .session import open_front_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..assembly.open_session import SessionPreview
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
def doctor(ref: str | None, store: str | None, as_json: bool) -> int:
    """Check what a session needs: settings, store, index, keys, programs, sandbox, network.

    Nothing is sent or changed. With REF, also check whether each provider would accept that
    history. Exit code 1 if a check fails.
    """
    checks = [*_run_checks(ref, store)]
    if as_json:
        print_json(checks)
    else:
        rows = [(check.state, check.name, check.about) for check in checks]
        print_lines(format_table(rows, headings=("STATE", "CHECK", "FOUND")))
    return _WRONG_EXIT if any(check.state == "wrong" for check in checks) else 0


def _run_checks(ref: str | None, store: str | None) -> Iterator[HealthCheck]:
    yield HealthCheck("gong", "ok", __version__)
    yield HealthCheck("python", "ok", f"{platform.python_version()} at {sys.executable}")
    yield HealthCheck("sqlite", "ok", sqlite3.sqlite_version)
    try:
        settings = load_settings(store=store)
    except GongError as error:
        yield HealthCheck("settings", "wrong", str(error))
        return
    yield from _check_places(
        locate_config_file(os.environ), config.locate_store(settings, os.environ)
    )
    yield _check_index(config.locate_store(settings, os.environ))
    if settings.model:
        try:
            name = ModelNames.from_settings(settings, os.environ).resolve_name(settings.model)
            yield HealthCheck("model", "ok", name)
        except ConfigurationError as error:
            yield HealthCheck("model", "wrong", str(error))
    yield from _check_keys(settings)
    yield _check_key_names(settings)
    for names, without in _WANTED_PROGRAMS:
        program = next(filter(None, map(shutil.which, names)), None)
        yield HealthCheck(names[0], "ok" if program else "note", program or f"not found: {without}")
    yield from _check_sandbox(settings)
    yield _check_terminal()
    yield from _check_network()
    if ref is not None:
        yield from _check_history(ref, settings)


def _check_sandbox(settings: Settings) -> Iterator[HealthCheck]:
    """Yield which kinds of sandbox work here, and what one of this folder would be."""
    from ..assembly.border import build_request  # for one check
    from ..env.sandbox.sandbox import SandboxUnavailable, find_kinds, open_sandbox

    border = settings.border
    kinds = find_kinds(os.environ)
    for kind in kinds:
        state: Literal["ok", "note"] = "ok" if kind.works else "note"
        weaker = ", weaker than bubblewrap" if kind.works and kind.kind == "landlock" else ""
        yield HealthCheck(kind.kind, state, f"{kind.about}{weaker}")
    if not kinds:
        yield HealthCheck("sandbox", "note", "none for this system")
        return
    chosen = "" if border.mode == "off" else f"{border.mode}, "
    mode = border.mode if border.mode != "off" else "read-only"
    try:
        chosen_settings = replace(settings, sandbox=replace(border, mode=mode))
        sandbox = open_sandbox(build_request(chosen_settings, locate_folder(), os.environ))
    except GongError as error:
        stops = border.fail_if_unavailable or not isinstance(error, SandboxUnavailable)
        stops = stops and border.mode != "off"
        yield HealthCheck("sandbox", "wrong" if stops else "note", str(error))
        return
    remarks = "".join(f"; {remark}" for remark in sandbox.protection.remarks)
    about = f"{chosen or 'off; --sandbox would use '}{sandbox.kind}; limits: {sandbox.limits}"
    sandbox.close()
    yield HealthCheck("sandbox", "ok", f"{about}{remarks}")


def _check_index(home: Path) -> HealthCheck:
    """Return whether the index of a store can be used; it is read, and brought up to date."""
    if not home.exists():
        return HealthCheck("index", "ok", "none yet")
    try:
        with open_store(home) as library:
            if library.index is None:
                return HealthCheck("index", "note", "off: lists and searches read every tape")
            count = len(library.index.folders(""))
    except (TapeError, OSError, sqlite3.Error) as error:
        return HealthCheck("index", "wrong", f"{error}: tape reindex builds it again")
    return HealthCheck("index", "ok", format_count(count, "tape"))


def _check_terminal() -> HealthCheck:
    """Return what kind of terminal this is, and what it lacks."""
    name = os.environ.get("TERM", "")
    if not sys.stdout.isatty():
        return HealthCheck("terminal", "ok", "none: output goes to a file or a pipe")
    description = f"{name or 'unknown'}, {get_columns()} columns"
    if name in {"", "dumb"}:
        return HealthCheck(
            "terminal", "note", f"{description}: set TERM, as in TERM=xterm-256color, for gong chat"
        )
    encoding = locale.getpreferredencoding(do_setlocale=False)
    if encoding.lower().replace("-", "") != "utf8":
        return HealthCheck(
            "terminal", "note", f"{description}, {encoding}: set LANG, as in LANG=C.UTF-8"
        )
    return HealthCheck("terminal", "ok", description)


_PROXY_VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
_PROXY_SCHEMES = {"http", "https", "socks5", "socks5h"}


def _check_network() -> Iterator[HealthCheck]:
    """Yield the settings of the network; no connection is made."""
    has_settings = False
    for name in (variable for known in _PROXY_VARIABLES for variable in (known, known.lower())):
        if not (value := os.environ.get(name)):
            continue
        has_settings = True
        try:
            parts = urlsplit(value if "://" in value else f"http://{value}")
            is_address = parts.scheme in _PROXY_SCHEMES and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if is_address:
            yield HealthCheck("proxy", "ok", f"{name}: {parts.hostname}")
        else:
            example = "http://proxy.example:8080"
            yield HealthCheck(
                "proxy", "wrong", f"{name} is not the address of a proxy, as {example}"
            )
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        if (path := os.environ.get(name)) and not os.path.exists(path):  # noqa: PTH110 (a text)
            has_settings = True
            yield HealthCheck("certificates", "wrong", f"{name} is {path}, which is not there")
    if not has_settings:
        yield HealthCheck("network", "ok", "direct: no proxy is set")


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
    has_keys = False
    for name, preset in load_presets(settings.providers, os.environ).items():
        login = describe_login(preset, os.environ)
        if not login and keys.find(preset.key_name, preset.keys) is None:
            continue
        if preset.later:
            yield HealthCheck(name, "note", f"there is a key, but {preset.unserved}")
            continue
        has_keys = True
        try:
            require_package(preset)
            yield HealthCheck(name, "ok", "there is a key")
        except ConfigurationError as error:
            yield HealthCheck(name, "wrong", f"there is a key, but {error}")
    if not has_keys:
        yield HealthCheck("keys", "note", "none: gong auth login PROVIDER, or use -m offline/rules")


def _check_key_names(settings: Settings) -> HealthCheck:
    """Check the table [keys], which only `gong chat` reads."""
    from ..repl.typing.keys import KeyMap  # for one check

    try:
        changed = KeyMap(settings.keys).changed
    except ConfigurationError as error:
        return HealthCheck("[keys]", "wrong", str(error))
    return HealthCheck("[keys]", "ok", ", ".join(sorted(changed)) or "no key is changed")


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
