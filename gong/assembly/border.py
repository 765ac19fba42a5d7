"""The sandbox that the settings of a session ask for; loaded only where they do.

Where none works, the session warns and runs without one, or stops (`fail_if_unavailable`).
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tape.remote import locate_copies

from ..env.sandbox.addresses import check_patterns
from ..env.sandbox.limits import UsageLimits, compute_defaults
from ..env.sandbox.sandbox import Sandbox, SandboxRequest, SandboxUnavailable, open_sandbox
from ..private_files import locate_config_file, locate_home, locate_state_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..config import SandboxSettings, Settings

_MEGABYTE = 1 << 20


def build_request(
    settings: Settings, folder: str, environ: Mapping[str, str], stores: Sequence[str] = ()
) -> SandboxRequest:
    """Return what the settings ask for in a folder; raises ConfigurationError for a wrong host."""
    border = settings.border
    home = str(locate_home(environ))
    domains, denied = check_patterns(border.domains), check_patterns(border.deny_domains)

    def expand(paths: Sequence[str]) -> tuple[str, ...]:
        expanded = (home + path[1:] if path[:2] in {"~", "~/"} else path for path in paths)
        return tuple(os.path.normpath(Path(folder) / path) for path in expanded)

    return SandboxRequest(
        folder=folder,
        environ=environ,
        writes=border.mode == "workspace-write",
        folders=expand((*settings.permissions.folders, *border.write)),
        own_folders=(
            str(locate_config_file(environ).parent),
            str(locate_state_folder(environ)),
            environ.get("TAPE_HOME") or f"{home}/.tape",
            locate_copies(environ),
            *stores,
        ),
        hidden=expand(border.hide),
        visible=expand(border.show),
        unix_sockets=border.unix_sockets,
        domains=domains,
        denied_domains=denied,
        limits=_choose_limits(border),
    )


def _choose_limits(border: SandboxSettings) -> UsageLimits:
    usual = compute_defaults()
    memory = usual.memory if border.memory_mb is None else border.memory_mb * _MEGABYTE
    processes = usual.processes if border.processes is None else border.processes
    return UsageLimits(
        memory or None,
        processes or None,
        border.cpu_seconds or None,
        border.file_mb * _MEGABYTE or None,
    )


def build_opener(settings: Settings, environ: Mapping[str, str]) -> Callable[[str], Sandbox | None]:
    """Return what opens a sandbox that only reads, for programs in a folder."""

    def open_reader(folder: str) -> Sandbox | None:
        request = replace(build_request(settings, folder, environ), writes=False)
        try:
            return open_sandbox(request)
        except SandboxUnavailable:
            if settings.border.fail_if_unavailable:
                raise
            return None

    return open_reader


def open_border(
    settings: Settings,
    folder: str,
    environ: Mapping[str, str],
    stores: Sequence[str],
    warn: Callable[[str], None],
) -> Sandbox | None:
    """Return the sandbox of a session; None where none works, with a warning.

    Raises ConfigurationError where the settings say so, and for a folder that cannot be in one.
    """
    request = build_request(settings, folder, environ, stores)
    try:
        sandbox = open_sandbox(request)
    except SandboxUnavailable as error:
        if settings.border.fail_if_unavailable:
            raise
        warn(f"{error}: commands run without one, and calls are asked about as without one")
        return None
    if sandbox.kind == "landlock":
        warn(
            "the sandbox is Landlock, which is weaker: it refuses writing outside of the folders"
            " and TCP, but hides no file and keeps git's hooks from nobody; calls are asked about"
            " as without one, and domains have no effect (gong doctor says why bubblewrap does not"
            " work)"
        )
    for remark in sandbox.protection.remarks:
        warn(f"sandbox: {remark}")
    return sandbox
