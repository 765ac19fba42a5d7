"""Open a store as those do who may write to it: what is written goes to its remote, if it says so.

Nothing of remotes is loaded for a store without one.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from ..clock import read_clock
from ..damage import warn_of_damage
from ..index import library
from ..index.projection import report_nothing
from ..store.store import generate_hex
from . import REGISTRY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..index.catch_up import Telling
    from ..index.library import Library
    from ..store.store import Store


def open_store(
    path: str | os.PathLike[str],
    *,
    clock: Callable[[], int] = read_clock,
    random: Callable[[int], str] = generate_hex,
    index: bool = True,
    telling: Telling = report_nothing,
    person: str | None = None,
) -> Library:
    """Return the store at `path`, a folder or an address, and its index, without reading either.

    As `index.library.open_store` does, and what is written goes to the default remote of the store
    as its mode says: each barrier waits until the remote has it (`publish`), or it is pushed in the
    background. Of a store that is elsewhere it is the copy here, which is pulled first; where that
    fails for a tape, a DamageWarning says so. `person` is who works here, or `off`; None asks
    $TAPE_PERSON, else git.
    """
    if "://" in os.fspath(path):
        from .local_copy import open_local_copy

        path = open_local_copy(os.fspath(path), os.environ, warn_of_damage, is_again=True)
    opened = library.open_store(path, clock=clock, random=random, index=index, telling=telling)
    if os.path.exists(os.path.join(path, REGISTRY_NAME)):
        _attach_remote(opened.store, person)
    return opened


def _find_person(person: str | None) -> str:
    """Return who works here, as chunks and leases name them: `Name <email>`, or ""."""
    from ..repository import find_work_facts  # asks git

    return find_work_facts(None, os.environ, person).person or ""


def _attach_remote(store: Store, person: str | None) -> None:
    from .registry import open_named, read_registry

    registry = read_registry(store.path)
    name = registry.find_default()
    known = None if name is None else registry.remotes[name]
    if name is None or known is None:
        return
    if known.mode == "barrier":
        from .publish import Publisher

        connect = partial(open_named, store.path, name, known)
        store.projection = Publisher(
            store, name, connect, store.projection, partial(_find_person, person)
        )
    elif known.mode == "async":
        from .background import BackgroundPusher

        connect = partial(open_named, store.path, name, known)
        store.projection = BackgroundPusher(store, name, connect, store.projection)
