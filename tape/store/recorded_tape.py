"""A tape with a given id in a store: recorded once, whole or not at all.

It is made under a name that readers ignore, `.new-…`, and renamed when it is complete. What a
killed process leaves there is listed by `store.leftovers`.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ..errors import Busy, NotFound, TapeError, WriteFailed
from .packed import PACKED_SUFFIX
from .store import Store
from .tape_folder import get_tape_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .disk import Folder
    from .store import Beginning
    from .tape import Tape
    from .writer import Writer


_NAME_TAKEN = frozenset({errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR})


class ImportReport(Struct, frozen=True):
    """The result of an import."""

    id: str
    path: str
    """The tape's folder."""
    added: int
    """Number of entries added to the store: all of them, or 0."""
    entries: int
    """Number of entries in the file."""
    lost: int
    """Number of blobs that entries name but the file does not contain."""


class ImportTarget(NamedTuple):
    """The tape to create."""

    id: str
    folder: str
    is_path: bool
    """It has one path only, so the entry that names a redacted one may not be part of it."""


class RecordedTape(NamedTuple):
    """A tape's folder, and whether it was not there before."""

    path: str
    is_new: bool


@contextmanager
def create_scratch_folder(store: Store, identity: str) -> Iterator[tuple[Folder, str]]:
    """Yield `tapes/` and an unused name in it; at the end anything of that name is removed."""
    with store.open_tapes_folder() as tapes:
        name = f".new-{identity}.{store.random(4)}"
        with store.note_change(tapes):
            tapes.make(name).close()
        try:
            yield tapes, name
        finally:
            with suppress(FileNotFoundError), tapes.sub(name) as left:
                for inner in left.names():
                    shutil.rmtree(inner, ignore_errors=True, dir_fd=left.fd)
                    with suppress(OSError):
                        os.unlink(inner, dir_fd=left.fd)
                with store.note_change(tapes), suppress(OSError):
                    os.rmdir(name, dir_fd=tapes.fd)


_USUAL_FOLDER = re.compile(r"-(?P<id>[0-9a-f]{8})(\.[0-9]+)?\Z")
"""The end of the name that a tape's folder is given: the beginning of its id."""
_USUAL_NAMES = rf"[^/]*-[0-9a-f]{{8}}(?:{re.escape(PACKED_SUFFIX)})?/"
_MAX_SINGLES = 4
_PACKED_END = PACKED_SUFFIX[-4:]
_HEX = "0123456789abcdef"
_MAX_END = 20
"""Characters at the end of a name where that may stand."""


class TapeFolders:
    """The folders of a store's tapes, by the ends of their names: each name is looked at once.

    The store is listed where no known folder is the one, so tapes of other processes are found too.
    A folder is opened only if its name ends like the id begins, or if somebody has renamed it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.names: set[str] = set()
        """All folders that may hold a tape, at the last listing."""
        self._by_end: dict[str, tuple[str, ...]] = {}
        """The first 8 digits of an id → folders; "" → those that have other names."""
        self._singles = _MAX_SINGLES
        """How many tapes are still looked for without sorting all names first."""

    def add(self, name: str) -> None:
        """Take note of a folder that is likely to be asked for."""
        end = _read_end(name)
        self._by_end[end] = (*self._by_end.get(end, ()), name)
        self.names.add(name)

    def find(self, identity: str) -> str | None:
        """Return the folder of the tape with this id, or with one that begins so.

        Eight digits or more; None if the store has none.
        """
        name = self._find_known(identity)
        if name is None and self._singles:
            self._singles -= 1
            return self._choose(self._find_likely(identity[:8]), identity)
        if name is None:
            self.look()
            name = self._find_known(identity)
        return name

    def open(self, identity: str) -> Tape:
        """Open the tape with this id; raise NotFound if the store has none.

        Where its name says which folder that is, that one is opened once.
        """
        likely = self._by_end.get(identity[:8], ())
        if len(likely) == 1 and not self._by_end.get(""):
            with suppress(TapeError):
                tape = self._store.open_folder(likely[0])
                if tape.id == identity:
                    return tape
                tape.close()
        name = self.find(identity)
        if name is None:
            raise NotFound(f"tape {identity[:8]} is not here any more")
        return self._store.open_folder(name)

    def _find_known(self, identity: str) -> str | None:
        likely = {*self._by_end.get(identity[:8], ()), *self._by_end.get("", ())}
        return self._choose(likely, identity)

    def _find_likely(self, end: str) -> Iterator[str]:
        """Yield the folders that may hold a tape whose id begins so, of very many."""
        names = "/".join([*self._list_files(), ""])
        if end not in names:
            names = re.sub(_USUAL_NAMES, "", names)
        for file in filter(None, names.split("/")):
            name = get_tape_name(file) if file[-4:] == _PACKED_END else file
            if name[0] != "." and (end in name or name[-9:-8] != "-" or name[-8:].strip(_HEX)):
                yield name

    def _choose(self, names: Iterable[str], identity: str) -> str | None:
        for name in sorted(names):
            if _read_end(name) not in ("", identity[:8]):
                continue
            if (self._store.read_tape_id(name) or "").startswith(identity):
                return name
        return None

    def look(self) -> None:
        """List the store again."""
        now = self._list_names()
        by_end = self._by_end
        for name in self.names - now:
            end = _read_end(name)
            by_end[end] = tuple(other for other in by_end[end] if other != name)
        for name in now - self.names:
            if name[:1] == ".":  # one that is not complete yet
                now.remove(name)
                continue
            end = name[-8:] if name[-9:-8] == "-" and not name[-8:].strip(_HEX) else _read_end(name)
            by_end[end] = (*by_end[end], name) if end in by_end else (name,)
        self.names = now

    def _list_names(self) -> set[str]:
        names = self._list_files()
        return {get_tape_name(name) if name[-4:] == _PACKED_END else name for name in names}

    def _list_files(self) -> list[str]:
        self._store.check()
        try:
            return os.listdir(self._store.tapes)  # noqa: PTH208 (thousands, for each tape)
        except FileNotFoundError:
            return []


def _read_end(name: str) -> str:
    """Return the digits at the end of a folder's name; "" where somebody has renamed it."""
    usual = _USUAL_FOLDER.search(name, max(len(name) - _MAX_END, 0))
    return usual["id"] if usual else ""


def find_existing_folder(store: Store, identity: str) -> str | None:
    """Return the folder of the tape with this id; None if the store has none."""
    return TapeFolders(store).find(identity)


def place_tape(store: Store, tapes: Folder, source: Folder, name: str, target: ImportTarget) -> str:
    """Rename the built tape into the store, and return its folder's name."""
    free, k = target.folder, 2
    while True:
        try:
            if tapes.has(free + PACKED_SUFFIX):  # an archived tape has that name
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), free)
            with store.note_change(tapes, target.id, free, comes=True):
                os.rename(name, free, src_dir_fd=source.fd, dst_dir_fd=tapes.fd)
        except OSError as error:
            if error.errno not in _NAME_TAKEN:
                raise WriteFailed(f"{free} cannot be created: {error.strerror}") from error
        else:
            tapes.sync()
            return free
        if store.read_tape_id(free) == target.id:
            raise Busy(f"tape {target.id[:8]} was imported by another process just now")
        free, k = f"{target.folder}.{k}", k + 1


def record_tape(
    store: Store, identity: str, beginning: Beginning, fill: Callable[[Tape, Writer], None]
) -> RecordedTape:
    """Create the tape with this id, filled by `fill`, unless the store has it."""
    folder = find_existing_folder(store, identity)
    is_new = folder is None
    if folder is None:
        folder = record_new_tape(store, identity, beginning, fill)
    return RecordedTape(str(store.tapes.absolute() / folder), is_new)


def record_new_tape(
    store: Store, identity: str, beginning: Beginning, fill: Callable[[Tape, Writer], None]
) -> str:
    """Create the tape with an id that the store does not have, and return its folder.

    It is recorded in a store inside the new folder, as any tape is, and moved: what a crash leaves
    of it is removed, so it is synced once, when it is whole. Raises Busy if another process has
    just recorded a tape of this id.
    """
    with create_scratch_folder(store, identity) as (tapes, name):
        inner = Store(
            store.tapes / name,
            clock=store.clock,
            random=lambda _: identity,
            durable=False,
            anonymous=True,
        )
        with inner.create(beginning) as tape, tape.writer() as writer:
            fill(tape, writer)
            built = tape.folder.name
        with tapes.sub(name) as scratch, scratch.sub("tapes") as tapes_inside:
            with tapes_inside.sub(built) as whole:
                whole.sync_tree()
            target = ImportTarget(identity, built, is_path=False)
            return place_tape(store, tapes, tapes_inside, built, target)
