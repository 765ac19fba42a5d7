"""A store that is elsewhere: `--store URL` works on a copy of it here.

The copy is a store like any other, below the folder for caches, and the URL is its one remote: of
mode `barrier`, so nothing counts that the remote does not have. It is pulled when it is opened, and
a program that stays may pull it again (`pull_copy`). The folder may be deleted at any time when no
writer is open.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import RemoteUnavailable
from ..index.library import open_store
from ..text import SHORT
from . import locate_copies
from .cursor import Cursor
from .pull import pull_tapes
from .registry import KnownRemote, add_remote, check_remote_url, open_named, read_registry

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from ..store.store import Store
    from ..unite.stores import TapeOutcome
    from .remote import Remote

_NAME = "origin"
_WAIT = 60.0
"""Seconds to wait for another process that pulls or pushes."""
_DIGITS = 16


def open_local_copy(
    url: str, environ: Mapping[str, str], warn: Callable[[str], None], *, is_again: bool = False
) -> str:
    """Return the folder of the copy of the store at `url`, up to date; make it where there is none.

    A process pulls it once, unless `is_again`. Where the remote does not answer, a copy that is
    there is used as it is, with a warning. Raises UsageError for an address that cannot be a store,
    RemoteUnavailable.
    """
    url = check_remote_url(url)
    home = Path(locate_copies(environ), sha256(url.encode()).hexdigest()[:_DIGITS])
    for remark in (_update_copy.__wrapped__ if is_again else _update_copy)(url, home):
        warn(remark)
    return str(home)


@cache
def _update_copy(url: str, home: Path) -> tuple[str, ...]:
    """Pull the copy in a folder, and return what is to be said of that."""
    with open_store(home) as (store, _):
        if _NAME not in read_registry(home).remotes:
            add_remote(store, _NAME, KnownRemote(url, raw=True, mode="barrier"))
        try:
            with open_copied_remote(home) as remote:
                outcomes = _pull_all(store, remote)
        except RemoteUnavailable as error:
            return (f"{error}; what is here is as of the last pull",)
    return tuple(
        f"{outcome.tape[:SHORT]}: {outcome.error}" for outcome in outcomes if outcome.error
    )


def open_copied_remote(home: str | os.PathLike[str]) -> Remote:
    """Return the remote of the copy in a folder; raise RemoteUnavailable."""
    return open_named(Path(home), _NAME, read_registry(Path(home)).remotes[_NAME])


def pull_copy(home: str | os.PathLike[str], remote: Remote) -> int:
    """Pull the copy in a folder, and return how many tapes could not be; raise RemoteUnavailable.

    Those that are in the trash here stay there and are none of them.
    """
    with open_store(home) as (store, _):
        outcomes = _pull_all(store, remote)
    return sum(outcome.error is not None and not outcome.is_trashed for outcome in outcomes)


def _pull_all(store: Store, remote: Remote) -> list[TapeOutcome]:
    with Cursor.open(store.path, _NAME, wait=_WAIT) as cursor:
        return [*pull_tapes(store, remote, cursor)]
