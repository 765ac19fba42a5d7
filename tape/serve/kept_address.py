"""Where a store was served last: a page that is open continues when its server is started again.

    $XDG_STATE_HOME/tape/serve/DIGEST.json    {"token", "port"}, read by its owner only

Invariant: nobody else can read the file, at any moment.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_BYTES = 4096
_MIN_TOKEN = 40
_MAX_PORT = 65535


class KeptAddress(NamedTuple):
    """The token of a store's server, and the port that it had; 0 for none yet."""

    token: str
    port: int


def make_address() -> KeptAddress:
    """Return a token that nobody has seen."""
    return KeptAddress(secrets.token_urlsafe(32), 0)


def locate_address(home: str, environ: Mapping[str, str]) -> Path:
    """Return the file of the store at `home`."""
    states = environ.get("XDG_STATE_HOME", "")
    root = Path(states) if states else Path(environ.get("HOME", "/"), ".local/state")
    digest = sha256(os.fsencode(os.path.realpath(home))).hexdigest()[:16]
    return root / "tape" / "serve" / f"{digest}.json"


def read_address(file: Path) -> KeptAddress | None:
    """Return what is kept there; None where nothing is, or others could have written it."""
    with suppress(OSError, ValueError):
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            about = os.fstat(fd)
            if about.st_uid != os.getuid() or about.st_mode & 0o077:
                return None
            match json.loads(os.read(fd, _MAX_BYTES)):
                case {"token": str(token), "port": int(port)} if (
                    len(token) >= _MIN_TOKEN and token.isascii() and 0 <= port <= _MAX_PORT
                ):
                    return KeptAddress(token, port)
        finally:
            os.close(fd)
    return None


def keep_address(file: Path, address: KeptAddress) -> None:
    """Write what is kept there; raise OSError."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")
    with suppress(FileNotFoundError):
        part.unlink()
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w") as opened:
        opened.write(json.dumps(address._asdict()))
    part.replace(file)
