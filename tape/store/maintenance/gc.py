"""Garbage collection: find files unreachable from entries and journal lines, and delete them.

Invariant: nothing is deleted on a guess. A tape that is damaged or being written is skipped, and so
is whatever was modified within the last hour: it may still be in use.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from ...check.finding import Counts
from ...check.verify import verify
from ...errors import Busy, NotFound, TapeError
from ...model.summary import ANCHOR_PAGE
from ..blobs import BLOB_REFERENCE
from ..disk import Folder
from ..leftovers import LEFTOVER_AGE, find_store_leftovers, find_tape_leftovers, open_blob_shelves
from ..locks import hold_lock, is_lock_held
from ..phase import ENTRIES, parse_phase_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..store import Store
    from ..tape import Tape

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_CHUNK = 1 << 20
_OVERLAP = 80  # bytes that the name of a blob can cover


class Garbage(Struct, frozen=True, gc=False):
    """An unreachable file or folder."""

    path: str
    """Path inside the store."""
    kind: Literal["blob", "phase", "leftover"]
    bytes: int


class SkippedTape(Struct, frozen=True, gc=False):
    """A tape in which nothing is deleted."""

    folder: str
    why: str


class GarbageSurvey(NamedTuple):
    """The garbage in a store."""

    garbage: tuple[Garbage, ...]
    kept: tuple[SkippedTape, ...]


def find_garbage(
    store: Store, tell: Callable[[int, int], None] = lambda _done, _total: None
) -> GarbageSurvey:
    """Return the garbage in every tape and beside them; writes nothing.

    A tape with garbage is verified completely. `tell` is called with done and total tapes.
    """
    garbage, kept = _find_store_garbage(store), []
    folders = store.folders()
    for done, folder in enumerate(folders):
        tell(done, len(folders))
        try:
            with store.open_folder(folder) as tape:
                found = list(_find_tape_garbage(store, tape))
                why = _find_obstacle(tape) if found else None
        except (TapeError, OSError) as error:
            found, why = [], f"cannot be read: {error}"
        if why is None:
            garbage += found
        else:
            kept.append(SkippedTape(folder, why))
    return GarbageSurvey(tuple(garbage), tuple(kept))


def _find_obstacle(tape: Tape) -> str | None:
    """Return why nothing may be deleted in a tape; None if it may."""
    with suppress(FileNotFoundError), tape.folder.sub("locks") as locks:
        for name in locks.names():
            if is_lock_held(tape.folder, name):
                return f"{name} is being written"
    for finding in verify(tape, Counts()):
        if finding.level != "note":
            return f"is damaged: {finding.file}: {finding.message}; see `tape fsck {tape.id[:8]}`"
    return None


def delete_garbage(store: Store, found: GarbageSurvey) -> GarbageSurvey:
    """Delete what a survey found if it is still garbage; return what was deleted.

    A tape that is being written by now is skipped. Raises WriteFailed, or OSError if something
    cannot be deleted; deletions before that are final.
    """
    wanted = set(found.garbage)
    gone, kept = [one for one in _find_store_garbage(store) if one in wanted], []
    if gone:
        with Folder.open(store.path, durable=store.durable) as home:
            for one in gone:
                _remove_path(home, one.path.split("/"))
    for folder in store.folders():
        inside = f"tapes/{folder}/"
        here = [one for one in found.garbage if one.path.startswith(inside)]
        try:
            gone += _delete_tape_garbage(store, folder, here) if here else []
        except (Busy, NotFound) as error:
            kept.append(SkippedTape(folder, str(error)))
    return GarbageSurvey(tuple(gone), tuple(kept))


def _delete_tape_garbage(store: Store, folder: str, wanted: list[Garbage]) -> list[Garbage]:
    """Delete what is still garbage, under all locks of the tape."""
    with (
        store.open_folder(folder) as tape,
        tape.hold_all_locks(),
        tape.folder.sub("locks") as locks,
        hold_lock(locks, "refs"),
    ):
        before = (store.clock() - LEFTOVER_AGE) * 1000
        gone = []
        for one in [one for one in _find_tape_garbage(store, tape) if one in wanted]:
            parts = one.path.split("/")[2:]
            if one.kind == "leftover":
                _remove_path(tape.folder, parts)
            elif one.kind == "phase":
                phases = tape.phases.folder
                with phases.sub(parts[-1]) as inside:
                    for file in (ANCHOR_PAGE, ENTRIES):
                        with suppress(FileNotFoundError):
                            os.unlink(file, dir_fd=inside.fd)
                os.rmdir(parts[-1], dir_fd=phases.fd)  # fails if anything else is in it
                phases.sync()
            elif not tape.blobs.remove_if_older(parts[-1], before):
                continue
            gone.append(one)
        return gone


def _remove_path(folder: Folder, parts: list[str]) -> None:
    """Remove a file or a folder at a path inside another."""
    name, *rest = parts
    if rest:
        with folder.sub(name) as inner:
            _remove_path(inner, rest)
    else:
        folder.remove(name)
        folder.sync()


def _find_tape_garbage(store: Store, tape: Tape) -> Iterator[Garbage]:
    """Yield the phases, blobs and unfinished files that nothing names.

    A phase holds at most its first entry, and is not the newest folder: its number would be used
    again.
    """
    place = f"tapes/{tape.folder.name}/"
    committed, names = tape.refs().phases(), tape.phases.names()
    newest = max(map(parse_phase_number, names), default=0)
    for name in names:
        if name not in committed and parse_phase_number(name) != newest:
            with tape.phases.folder.sub(name) as folder:
                is_begun_only = {ENTRIES, ANCHOR_PAGE}.issuperset(folder.names())
            if is_begun_only and len(tape.phases.read_first_lines(name)) <= 1:
                size = tape.phases.folder.measure_bytes(name)
                yield Garbage(f"{place}phases/{name}", "phase", size)
    yield from _find_blob_garbage(tape, place, (store.clock() - LEFTOVER_AGE) * 1000)
    for one in find_tape_leftovers(tape):
        yield Garbage(f"{place}{one.path}", "leftover", one.bytes)


def _find_blob_garbage(tape: Tape, place: str, before: int) -> Iterator[Garbage]:
    """Yield the blobs that no line and no quarantined file names, last stored before a time."""
    found: dict[str, int] = {}
    for shelf in open_blob_shelves(tape.folder):
        with shelf:
            for digest in filter(_DIGEST.match, shelf.names()):
                about = os.stat(digest, dir_fd=shelf.fd, follow_symlinks=False)
                if about.st_mtime_ns < before and shelf.name == digest[:2]:
                    found[digest] = about.st_size
    if found:
        for digest in _find_named_blobs(tape):
            found.pop(digest, None)
    for digest, size in found.items():
        yield Garbage(f"{place}blobs/{digest[:2]}/{digest}", "blob", size)


def _find_named_blobs(tape: Tape) -> Iterator[str]:
    """Yield the hashes of the blobs that lines, or torn tails in quarantine, name."""
    for _, _, line in tape.phases.read_all_lines():
        for digest in BLOB_REFERENCE.findall(line):
            yield digest.decode()
    with suppress(FileNotFoundError), tape.folder.sub("quarantine") as quarantine:
        for name in quarantine.names():
            with suppress(IsADirectoryError), os.fdopen(quarantine.file(name), "rb") as file:
                rest = b""
                while part := file.read(_CHUNK):
                    rest += part
                    for digest in BLOB_REFERENCE.findall(rest):
                        yield digest.decode()
                    rest = rest[-_OVERLAP:]


def _find_store_garbage(store: Store) -> list[Garbage]:
    """Return the leftovers in the store's own folders."""
    return [Garbage(one.path, "leftover", one.bytes) for one in find_store_leftovers(store)]
