"""What a command works on: the store and the tape named by argv, environment and current folder."""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..branches import head_of
from ..checked import ADVICE
from ..damage import warn_of_damage
from ..errors import NotFound, TapeError
from ..find import find
from ..index import left_out, open_store, rows
from ..locks import is_held
from ..reference import Reference, is_prefix, parse
from ..refs import REFS
from .out import progress, warn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..branches import Head
    from ..index import Library
    from ..tape import Hit, Tape
    from .group import Options


_LEFT_OUT = 5
"""How many skipped tapes are named one by one."""
DIGITS = 32
"""Digits of a tape's id."""


class Found(NamedTuple):
    """The tape and perhaps the entry that a REF names."""

    tape: Tape
    head: Head | None
    """The entry; None where the REF names a tape or a branch, whose head may be damaged."""
    branch: str | None
    """The branch the REF names."""


def home(options: Options) -> Path:
    """Return where the store is: --store, else $TAPE_HOME, else ~/.tape."""
    return options.store or Path(os.environ.get("TAPE_HOME") or Path.home() / ".tape")


def library(options: Options) -> Library:
    """Return the store and its index; a context manager."""
    return open_store(home(options), telling=partial(progress, "read tape"))


@contextmanager
def entry(options: Options, text: str) -> Iterator[Hit]:
    """Yield the entry that a REF names; for a tape or a branch, its head."""
    with library(options) as (store, index):
        hit = find(store, index, text, folder(is_needed=not parse(text).tape))
        with hit.tape:
            warn_of_refs(hit.tape)
            yield hit


@contextmanager
def found(options: Options, text: str, *, warns: bool = True) -> Iterator[Found]:
    """Yield the tape that a REF names, and the entry if it names one."""
    reference = parse(text)
    with library(options) as opened:
        hit = _named(opened, reference)
        if hit is None:
            tape, head = find(*opened, text, folder(is_needed=not reference.tape))
        else:
            tape, head = hit, None
        with tape:
            if warns:
                warn_of_refs(tape)
            yield Found(tape, head, reference.branch)


def warn_of_refs(tape: Tape) -> None:
    """Warn of journal lines and of ends of branches that readers skip."""
    refs = tape.refs()
    for damage in refs.damage:
        warn(f"{damage}; left out, `tape verify` says more")
    if not refs.damage and not is_held(tape.folder, "refs"):
        size = os.stat(REFS, dir_fd=tape.folder.fd, follow_symlinks=False).st_size - refs.size
        if size > 0 and tape.refs().size == refs.size:
            warn(f"{REFS}: the last {size} bytes skipped: incomplete or damaged; {ADVICE}")
    for branch in refs.branches:
        with suppress(TapeError):  # reported where the branch is used
            tape.tell_of_tail(head_of(refs, tape.phases, branch), warn_of_damage)


class Lacking(NamedTuple):
    """How many tapes a question about all tapes could not read."""

    tapes: int
    code: int
    """The exit code: 1 where the system refused to read a tape, 0 where only damaged ones are
    missing, or none."""


def warn_of_left_out(opened: Library) -> Lacking:
    """Warn of each tape that a question about all tapes leaves out, with the reason."""
    found = left_out(*opened)
    for one in found[:_LEFT_OUT]:
        warn(f"{one.folder} is left out: {one.why}")
    if len(found) > _LEFT_OUT:
        warn(f"{len(found) - _LEFT_OUT} more are left out; `tape verify --all` names them")
    return Lacking(len(found), int(any(one.is_unread for one in found)))


def _named(opened: Library, reference: Reference) -> Tape | None:
    """Return the tape a REF names even if its heads are damaged; None where `find` has to look."""
    (store, index), word = opened, reference.tape
    if reference[2:] != Reference()[2:]:
        return None
    if word is None:
        hits = [row.folder for row in rows(store, index, cwd=folder(), limit=1)]
    elif not word.startswith(".") and (store.tapes / word).is_dir():
        hits = [word]
    else:
        hits = _by_id(opened, word) if is_prefix(word) and len(word) <= DIGITS else []
    return store.open_folder(hits[0]) if len(hits) == 1 else None


def _by_id(opened: Library, prefix: str) -> list[str]:
    """Return the folders of the tapes whose id begins with `prefix`."""
    store, index = opened
    if index is not None:
        with suppress(OSError, sqlite3.Error):  # no index, or one behind: read the files
            return index.folders(prefix)
    return [name for name in store.folders() if store.id_of(name).startswith(prefix)]


def folder(*, is_needed: bool = True) -> str:
    """Return the current folder; raise NotFound if it was removed, or return "" if not needed."""
    try:
        return os.getcwd()  # noqa: PTH109 (a str is what a tape keeps)
    except FileNotFoundError as error:
        if not is_needed:
            return ""
        raise NotFound(
            "the current folder no longer exists: change to another one, or name a tape"
        ) from error
