"""Where the user's own files are, and how those that only they read are written.

Those are keys, and the decisions about projects. A file is replaced as a whole: written under a
temporary name, synced, renamed.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import asynccontextmanager
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

_LOCK_PAUSE = 0.02
"""Seconds between two tries to get a lock."""


def locate_config_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's config.toml, which need not exist."""
    if folder := environ.get("GONG_CONFIG_DIR"):
        return Path(folder) / "config.toml"
    base = environ.get("XDG_CONFIG_HOME") or locate_home(environ) / ".config"
    return Path(base) / "gong" / "config.toml"


def locate_home(environ: Mapping[str, str]) -> Path:
    """Return the user's home folder."""
    return Path(environ["HOME"]) if environ.get("HOME") else Path.home()


def locate_state_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of what gong remembers beside the tapes, which need not exist."""
    if base := environ.get("XDG_STATE_HOME"):
        return Path(base) / "gong"
    return locate_home(environ) / ".local/state/gong"


def locate_cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of what can be fetched again, which need not exist."""
    base = environ.get("XDG_CACHE_HOME") or locate_home(environ) / ".cache"
    return Path(base) / "gong"


def write_private_file(file: Path, data: bytes) -> None:
    """Replace a file durably; it and its temporary name are 0600 from the start.

    Raises OSError; the file is then as it was.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{token_hex(4)}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


@asynccontextmanager
async def hold_private_lock(file: Path) -> AsyncIterator[None]:
    """Hold the lock of a file against all programs of the user, and wait for it.

    Where no lock can be had, as in a folder that cannot be written, it goes without.
    """
    import asyncio  # only where something is waited for

    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(file.with_name(f"{file.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        yield
        return
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await asyncio.sleep(_LOCK_PAUSE)
            except OSError:
                break
            else:
                break
        yield
    finally:
        os.close(lock)
