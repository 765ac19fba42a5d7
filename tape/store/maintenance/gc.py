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
from ..blobs import find_blob_hashes
from ..disk import Folder
from ..leftovers import LEFTOVER_AGE, find_store_leftovers, find_tape_leftovers, open_blob_shelves
from ..locks import hold_lock_in, is_lock_held, list_lock_names
from ..packed import PACKED_SUFFIX
from ..phase import ENTRIES, parse_phase_number
from ..refs import is_union_decided
from ..tape_folder import TapeFolder, is_archived

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

    What is in an archived tape stays. A tape with garbage is verified completely. `tell` is called
    with done and total tapes.
    """
    garbage, skipped = _find_store_garbage(store), []
    folders = store.folders()
    for done, folder in enumerate(folders):
        tell(done, len(folders))
        try:
            with store.open_folder(folder) as tape:
                if is_archived(tape.folder):
                    continue
                garbage += _find_archive_garbage(tape)
                findings = list(_find_tape_garbage(store, tape))
                why = _find_obstacle(tape) if findings else None
        except (TapeError, OSError) as error:
            findings, why = [], f"cannot be read: {error}"
        if why is None:
            garbage += findings
        else:
            skipped.append(SkippedTape(folder, why))
    return GarbageSurvey(tuple(garbage), tuple(skipped))


def _find_obstacle(tape: Tape) -> str | None:
    """Return why nothing may be deleted in a tape; None if it may."""
    for name in list_lock_names(tape.folder):
        if is_lock_held(tape.folder, name):
            return f"{name} is being written"
    for finding in verify(tape, Counts()):
        if finding.level != "note":
            return f"is damaged: {finding.file}: {finding.message}; see `tape fsck {tape.id[:8]}`"
    return None


def delete_garbage(
    store: Store,
    survey: GarbageSurvey,
    tell: Callable[[int, int], None] = lambda _done, _total: None,
) -> GarbageSurvey:
    """Delete what a survey found if it is still garbage; return what was deleted.

    A tape that is being written by now is skipped. `tell` is called with how much was deleted or
    skipped, and of how much. Raises WriteFailed, or OSError if something cannot be deleted;
    deletions before that are final.
    """
    expected = set(survey.garbage)
    by_folder: dict[str, list[Garbage]] = {}
    for garbage in survey.garbage:
        by_folder.setdefault("/".join(garbage.path.split("/")[:2]), []).append(garbage)
    gone, skipped = [garbage for garbage in _find_store_garbage(store) if garbage in expected], []
    if gone:
        with Folder.open(store.path, durable=store.durable) as home:
            for garbage in gone:
                _remove_path(home, garbage.path.split("/"))
    tapes = {folder: by_folder.pop(f"tapes/{folder}", []) for folder in store.folders()}
    archives = {folder: by_folder.pop(_build_archive_path(folder), []) for folder in tapes}
    for folder in filter(archives.get, archives):
        with store.open_folder(folder) as tape:
            gone += archives[folder] if _drop_archive(tape) else []
    done = sum(map(len, by_folder.values()))  # beside the tapes, and in those that are gone
    for folder, here in tapes.items():
        if not here:
            continue
        tell(done, len(survey.garbage))
        try:
            gone += _delete_tape_garbage(store, folder, here)
        except (Busy, NotFound) as error:
            skipped.append(SkippedTape(folder, str(error)))
        done += len(here)
    return GarbageSurvey(tuple(gone), tuple(skipped))


def _delete_tape_garbage(store: Store, folder: str, expected: list[Garbage]) -> list[Garbage]:
    """Delete what is still garbage, under all locks of the tape."""
    with (
        store.open_folder(folder) as tape,
        tape.hold_all_locks(),
        hold_lock_in(tape.folder, "refs"),
    ):
        before = (store.clock() - LEFTOVER_AGE) * 1000
        gone = []
        for garbage in [
            garbage for garbage in _find_tape_garbage(store, tape) if garbage in expected
        ]:
            parts = garbage.path.split("/")[2:]
            if garbage.kind == "leftover":
                _remove_path(tape.folder, parts)
            elif garbage.kind == "phase":
                phases = tape.phases.folder
                with phases.sub(parts[-1]) as inside:
                    for file in (ANCHOR_PAGE, ENTRIES):
                        with suppress(FileNotFoundError):
                            os.unlink(file, dir_fd=inside.fd)
                os.rmdir(parts[-1], dir_fd=phases.fd)  # fails if anything else is in it
                phases.sync()
            elif not tape.blobs.remove_if_older(parts[-1], before):
                continue
            gone.append(garbage)
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
    if is_union_decided(tape.folder):  # the next writer completes it
        return
    place = f"tapes/{tape.folder.name}/"
    committed, names = tape.refs().phases(), tape.phases.names()
    newest = max(map(parse_phase_number, names), default=0)
    for name in names:
        if name not in committed and parse_phase_number(name) != newest:
            with tape.phases.folder.sub(name) as folder:
                is_unfinished = {ENTRIES, ANCHOR_PAGE}.issuperset(folder.names())
            if is_unfinished and len(tape.phases.read_first_lines(name)) <= 1:
                size = tape.phases.folder.measure_bytes(name)
                yield Garbage(f"{place}phases/{name}", "phase", size)
    yield from _find_blob_garbage(tape, place, (store.clock() - LEFTOVER_AGE) * 1000)
    for leftover in find_tape_leftovers(tape):
        yield Garbage(f"{place}{leftover.path}", "leftover", leftover.bytes)


def _build_archive_path(folder: str) -> str:
    return f"tapes/{folder}{PACKED_SUFFIX}"


def _find_archive_garbage(tape: Tape) -> list[Garbage]:
    """Return the file beside a tape's folder that archiving or unpacking it left, if there is."""
    size = tape.folder.measure_leftover() if isinstance(tape.folder, TapeFolder) else None
    path = _build_archive_path(tape.folder.name)
    return [] if size is None else [Garbage(path, "leftover", size)]


def _drop_archive(tape: Tape) -> bool:
    return isinstance(tape.folder, TapeFolder) and tape.folder.drop_leftover()


def _find_blob_garbage(tape: Tape, place: str, before: int) -> Iterator[Garbage]:
    """Yield the blobs that no line and no quarantined file names, last stored before a time."""
    sizes: dict[str, int] = {}
    for shelf in open_blob_shelves(tape.folder):
        with shelf:
            for digest in filter(_DIGEST.match, shelf.names()):
                file_stat = shelf.stat(digest)
                if file_stat.st_mtime_ns < before and shelf.name == digest[:2]:
                    sizes[digest] = file_stat.st_size
    if sizes:
        for digest in _find_named_blobs(tape):
            sizes.pop(digest, None)
    for digest, size in sizes.items():
        yield Garbage(f"{place}blobs/{digest[:2]}/{digest}", "blob", size)


def _find_named_blobs(tape: Tape) -> Iterator[str]:
    """Yield the hashes of the blobs that lines, or torn tails in quarantine, name."""
    for _, _, line in tape.phases.read_all_lines():
        for digest in find_blob_hashes(line):
            yield digest.decode()
    with suppress(FileNotFoundError), tape.folder.sub("quarantine") as quarantine:
        for name in quarantine.names():
            with suppress(IsADirectoryError), os.fdopen(quarantine.file(name), "rb") as file:
                rest = b""
                while part := file.read(_CHUNK):
                    rest += part
                    for digest in find_blob_hashes(rest):
                        yield digest.decode()
                    rest = rest[-_OVERLAP:]


def _find_store_garbage(store: Store) -> list[Garbage]:
    """Return the leftovers in the store's own folders."""
    return [
        Garbage(leftover.path, "leftover", leftover.bytes)
        for leftover in find_store_leftovers(store)
    ]
