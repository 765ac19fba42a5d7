"""The store: many tapes in one folder; create, open, list, remove and restore (tape.md §1).

A tape is built beside the others under a name that starts with a dot, and renamed when it is
complete: it exists whole or not at all. A removed tape is in the trash until that is emptied, on
request only; one that other tapes were forked from stays, unless they have a copy of its past.
"""

from __future__ import annotations

import errno
import os
import unicodedata
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from ..clock import choose_entry_time, format_timestamp, parse_timestamp, read_clock
from ..errors import Ambiguous, Damaged, NewerFormat, NotFound, TapeError, UsageError, WriteFailed
from ..model.entries import Git, ImportedSession, Place, Start
from ..model.line import FORMAT, JSON_ERRORS, encode_line, encode_payload
from ..text import replace_surrogates
from .disk import Folder, read_file
from .phase import ENTRIES, ORIGIN, choose_phase_name
from .refs import JOURNAL_NAME, MAIN_BRANCH, Head, encode_ref_line
from .tape import INFO_NAME, Tape, TapeInfo, make_tape_folder
from .tape_folder import (
    TapeFolder,
    choose_free_tape_name,
    find_tape_entry,
    get_tape_name,
    list_tape_names,
    move_tape,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from .replica import Replica
    from .writer import Projection


_DELETED_PREFIX = ".deleted-"


class Trashed(NamedTuple):
    """A tape in the trash."""

    folder: str
    """Name of its folder in `trash/`, also of an archived one."""
    id: str
    """Empty when tape.json cannot be read."""


class TapeIdentity(Struct):
    """The fields of tape.json in every format; `origin` names a tape, if it is an object."""

    id: str
    origin: Any = None


def read_tape_identity(path: Path) -> TapeIdentity:
    """Return what tape.json in a tape's folder says; an empty id where it cannot be read."""
    with (
        suppress(OSError, TapeError, *JSON_ERRORS),
        TapeFolder.open_in(os.fspath(path.parent), path.name) as folder,
    ):
        return msgspec.json.decode(folder.read(INFO_NAME), type=TapeIdentity)
    return TapeIdentity("")


def iter_tape_identities(folder: Path) -> Iterator[tuple[str, TapeIdentity]]:
    """Yield folder name and tape.json of every tape in `tapes/` or `trash/`."""
    with suppress(FileNotFoundError):
        for name in list_tape_names(folder):
            yield name, read_tape_identity(folder / name)


def generate_hex(count: int) -> str:
    """Return `count` random bytes as 2 × `count` hex digits."""
    return os.urandom(count).hex()


class Beginning(NamedTuple):
    """The facts a new tape starts with."""

    cwd: str
    """Absolute path of the folder the session works in."""
    program: str
    """Name and version of the recording program, such as gong/0.1.0."""
    title: str | None = None
    slug: str = ""
    """Text for the folder's name: the title or the first prompt."""
    project: str | None = None
    git: Git | None = None
    imported: ImportedSession | None = None
    repository: str | None = None
    """`host/owner/name`: see `repository`."""
    person: str | None = None
    """`Name <email>`."""
    machine: str | None = None
    """The machine it was begun on, where that is not the store's."""


class Store:
    """A folder of tapes at `home`; it need not exist yet, the first tape creates it."""

    def __init__(
        self,
        home: str | os.PathLike[str],
        *,
        clock: Callable[[], int] = read_clock,
        random: Callable[[int], str] = generate_hex,
        projection: Projection | None = None,
        durable: bool = True,
        anonymous: bool = False,
    ) -> None:
        self.home, self.clock, self.random = os.fspath(home), clock, random
        self.projection, self.durable = projection, durable
        self.anonymous = anonymous
        """Whether tapes are written that name no copy of the store: those that are imported."""
        self._replica: Replica | None = None

    def replica(self) -> Replica | None:
        """Return which copy of the store this is, as its writers record it; name it if need be.

        None for an anonymous one. Raises WriteFailed where the store cannot be written.
        """
        if self._replica is None and not self.anonymous:
            from .replica import name_replica, read_replica  # only writers need it

            self._replica = read_replica(self.home)
            if self._replica is None:
                with Folder.open(self.home, durable=self.durable) as home:
                    self._replica = name_replica(home, self.random)
        return self._replica

    @cached_property
    def path(self) -> Path:
        """The folder of the store."""
        from pathlib import Path  # whoever reads one tape needs none

        return Path(self.home)

    @property
    def tapes(self) -> Path:
        """The folder that holds the tapes."""
        return self.path / "tapes"

    def create(self, beginning: Beginning, origin: tuple[Tape, Head] | None = None) -> Tape:
        """Create a tape with its `start` entry; with `origin` it continues that entry's path."""
        identity = self.random(16)
        with self.open_tapes_folder() as tapes:
            with self.note_change(tapes):
                folder = tapes.make(f".new-{identity}")
            with folder:
                self._fill_folder(folder, identity, beginning, origin)
            name = (
                f"{format_timestamp(self.clock())[:10]}-{build_slug(beginning.slug)}-{identity[:8]}"
            )
            try:
                with self.note_change(tapes, identity, name, comes=True):
                    os.rename(f".new-{identity}", name, src_dir_fd=tapes.fd, dst_dir_fd=tapes.fd)
            except OSError as error:
                raise WriteFailed(f"{name} cannot be created: {error.strerror}") from error
            tapes.sync()
        return self.open_folder(name)

    @contextmanager
    def note_change(
        self, tapes: Folder, tape: str = "", name: str = "", *, comes: bool = False
    ) -> Iterator[None]:
        """Let the projection see what the block changes in `tapes/`: no more than the one rename.

        `tape` comes to the folder `name`, or goes from there; without it the folder is unfinished.
        """
        if self.projection is None:
            yield
        else:
            with self.projection.on_folder_change(tapes.fd, tape, name, comes=comes):
                yield

    def _fill_folder(
        self, folder: Folder, identity: str, beginning: Beginning, origin: tuple[Tape, Head] | None
    ) -> None:
        time = format_timestamp(self.clock())
        place = parent = None
        if origin is not None:
            tape, head = origin
            tape.phases.sync(head.phase)
            place = Place(tape=tape.id, phase=head.phase, offset=head.offset, entry=head.entry)
            parent = head.header
            later = choose_entry_time(parse_timestamp(parent.time), self.clock())
            time = format_timestamp(later)
        info = TapeInfo(FORMAT, identity, time, beginning.program, place)
        make_tape_folder(folder, msgspec.json.encode(info))
        phase = choose_phase_name([], MAIN_BRANCH, "start")
        replica = self.replica()
        start = Start(
            tape=identity,
            phase=phase,
            branch=MAIN_BRANCH,
            cwd=beginning.cwd,
            program=beginning.program,
            project=beginning.project,
            git=beginning.git,
            origin=place,
            imported=beginning.imported,
            repository=beginning.repository,
            person=beginning.person,
            machine=beginning.machine or (None if replica is None else replica.machine),
            replica=None if replica is None else replica.id,
        )
        _, line = encode_line(
            Start.entry_type,
            parent.id if parent else None,
            parent.n + 1 if parent else 0,
            time,
            encode_payload(start),
        )
        with folder.sub("phases") as phases, phases.make(phase) as first:
            first.create(ENTRIES, line)
            first.sync()
            phases.sync()
        moves: list[dict[str, object]] = [
            {"branch": MAIN_BRANCH, "phase": phase, "pin": None, "why": "start"},
            {"current": MAIN_BRANCH, "why": "start"},
        ]
        if beginning.title:
            moves.append({"title": replace_surrogates(beginning.title), "why": "start"})
        lines = (
            encode_ref_line({**move, "time": format_timestamp(self.clock())}) for move in moves
        )
        folder.create(JOURNAL_NAME, b"".join(lines))  # nobody else sees this folder yet
        folder.sync()

    def open_tapes_folder(self) -> Folder:
        """Return the open folder `tapes/`; create it, with the store, if it does not exist."""
        if not self.tapes.is_dir():
            new = [path for path in (self.path, *self.path.parents) if not path.exists()]
            try:
                self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
                with Folder.open(self.path, durable=self.durable) as home:
                    if not home.has("store.json"):  # written whole: two programs may get here
                        now = format_timestamp(self.clock())
                        text = msgspec.json.encode({"format": FORMAT, "created": now}) + b"\n"
                        home.write_whole("store.json", text, f".store.{self.random(4)}")
                    for path in (self.path, *new):
                        with Folder.open(path.parent, durable=self.durable) as parent:
                            parent.sync()
                    home.make("tapes").close()  # last: everything above is synced
            except OSError as error:
                raise WriteFailed(
                    f"the store {self.path} cannot be written: {error.strerror}"
                ) from error
        self.check()
        with Folder.open(self.path, durable=self.durable) as home:
            home.sync()  # its creator may have been killed before the sync
        return Folder.open(self.tapes, durable=self.durable)

    def check(self) -> None:
        """Raise NewerFormat for a store of a later format, Damaged if store.json is unreadable."""
        try:
            data = read_file(f"{self.home}/store.json")
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EISDIR):
                raise
            raise Damaged(f"{self.path}/store.json cannot be read: {error.strerror}") from error
        try:
            version = msgspec.json.decode(data, type=dict[str, object]).get("format")
        except JSON_ERRORS as error:
            raise Damaged(f"{self.path}/store.json cannot be read: {error}") from error
        if isinstance(version, int) and version > FORMAT:
            raise NewerFormat(
                f"{self.path} is a store of format {version}, this program reads up to {FORMAT}: "
                "update it"
            )

    def folders(self) -> list[str]:
        """Return the folder names of all tapes, sorted."""
        return sorted(self.inodes())

    def inodes(self) -> dict[str, int]:
        """Return folder name → inode of all tapes, without unfinished ones (`.new-…`).

        That of an archived tape is the inode of its file.
        """
        self.check()
        try:
            return list_tape_names(f"{self.home}/tapes")
        except FileNotFoundError:
            return {}

    def links(self) -> list[str]:
        """Return the names of symbolic links in `tapes/`; links are not followed."""
        try:
            with os.scandir(f"{self.home}/tapes") as entries:
                return sorted(e.name for e in entries if e.is_symlink() and e.name[0] != ".")
        except FileNotFoundError:
            return []

    def open_folder(self, name: str) -> Tape:
        """Open the tape in this folder; raise NotFound if there is none."""
        try:
            folder = self.open_tape_folder(name)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotFound(f"no tape in {name}") from error
        try:
            return Tape(
                folder,
                self.open,
                clock=self.clock,
                projection=self.projection,
                replica=self.replica,
            )
        except OSError as error:
            folder.close()
            what = f"{error.filename or INFO_NAME}: {error.strerror}"
            raise Damaged(f"{name} is not a complete tape: {what}") from error
        except TapeError:
            folder.close()
            raise

    def open_tape_folder(self, name: str) -> TapeFolder:
        """Open a folder of a tape, whatever is in it, in the form that it has.

        Raises FileNotFoundError or NotADirectoryError; Damaged or NewerFormat for an archived tape.
        """
        tapes = f"{self.home}/tapes"
        return TapeFolder.open_in(tapes, name, durable=self.durable, note=self.note_change)

    def open(self, prefix: str) -> Tape:
        """Open the tape whose id begins with `prefix`; raise NotFound or Ambiguous."""
        hits = [name for name in self.folders() if self.read_tape_id(name).startswith(prefix)]
        return self.open_folder(require_single_hit(prefix, "tape", hits))

    def read_tape_id(self, name: str) -> str:
        """Return the id of the tape in a folder, "" if it is unknown."""
        return read_tape_identity(self.tapes / name).id

    def remove(self, tape: Tape) -> str:
        """Move a tape to the trash and return its folder's name there; `restore` undoes it.

        Raises Busy while a branch is being written, UsageError while other tapes have it as origin.
        """
        with tape.hold_still(), Folder.open(self.path, durable=self.durable) as home:
            self._refuse_children({tape.id}, self.tapes)
            name = self._find_folder_of(tape)
            if name is None:
                raise NotFound(f"tape {tape.id[:8]} is no longer in {self.tapes}")
            with home.sub("tapes") as tapes, home.make("trash") as to:
                home.sync()
                free = choose_free_tape_name(to, name)
                with self.note_change(tapes, tape.id, name):
                    move_tape(tapes, name, to, free)
                return free

    def _find_folder_of(self, tape: Tape) -> str | None:
        """Return the name that the open folder of a tape has now: people may have renamed it."""
        opened = os.fstat(tape.folder.fd)
        with suppress(OSError):
            if os.path.samestat(opened, (self.tapes / tape.folder.name).lstat()):
                return tape.folder.name
        return next((name for name, at in self.inodes().items() if at == opened.st_ino), None)

    def _refuse_children(self, tapes: set[str], *folders: Path) -> None:
        """Raise UsageError if other tapes in these folders were forked from one of `tapes`."""
        children = sorted(
            name
            for folder in folders
            for name, identity in self._iter_possible_children(tapes, folder)
            if identity.id not in tapes
            and isinstance(identity.origin, dict)
            and identity.origin.get("tape") in tapes
            and not _has_copied_past(folder, name)
        )
        if children:
            raise UsageError(
                f"detach the tapes that were forked from it first: {', '.join(children)}"
            )

    def _iter_possible_children(
        self,
        tapes: AbstractSet[str],  # noqa: ARG002 (for a store that knows more)
        folder: Path,
    ) -> Iterator[tuple[str, TapeIdentity]]:
        """Yield folder name and tape.json of tapes in a folder, at least those forked from some."""
        yield from iter_tape_identities(folder)

    def has(self, tape: str) -> bool:
        """Return whether the store has the tape with this whole id."""
        return any(self.read_tape_id(folder) == tape for folder in self.folders())

    def trash(self) -> list[Trashed]:
        """Return the tapes in the trash, by folder name."""
        self.check()
        tapes = sorted(iter_tape_identities(self.path / "trash"))
        return [Trashed(name, identity.id) for name, identity in tapes]

    def restore(self, name: str) -> str:
        """Restore a tape, by folder name or id prefix, from the trash; return its folder's name.

        Raises NotFound or Ambiguous; UsageError if the store already has a tape of that id.
        """
        trashed = self._find_trashed(name)
        if self.has(trashed.id):
            raise UsageError(
                f"tape {trashed.id[:8]} is already in the store: remove that one first"
            )
        with (
            Folder.open(self.path, durable=self.durable) as home,
            home.sub("trash") as source,
            home.make("tapes") as tapes,
        ):
            name = choose_free_tape_name(tapes, trashed.folder)
            with self.note_change(tapes, trashed.id, name, comes=True):
                move_tape(source, trashed.folder, tapes, name)
            return name

    def _find_trashed(self, name: str) -> Trashed:
        by_name = {trashed.folder: trashed for trashed in self.trash()}
        name = get_tape_name(name)
        if name not in by_name:
            hits = [folder for folder, tape in by_name.items() if name and tape.id.startswith(name)]
            name = require_single_hit(name, "tape in the trash", hits)
        return by_name[name]

    def empty_trash(self, names: Sequence[str] | None = None) -> None:
        """Delete tapes in the trash, by folder name or id prefix; this cannot be undone.

        Without `names` everything in the trash is deleted, tapes or not. Raises NotFound or
        Ambiguous, and UsageError while other tapes, also in the trash, have one of them as origin;
        nothing is deleted then.
        """
        gone = self.trash() if names is None else [self._find_trashed(name) for name in names]
        self._refuse_children({trashed.id for trashed in gone}, self.tapes, self.path / "trash")
        with Folder.open(self.path, durable=self.durable) as home, home.make("trash") as folder:
            chosen = [find_tape_entry(folder, trashed.folder) for trashed in gone]
            for name in folder.names() if names is None else chosen:
                if not name.startswith(_DELETED_PREFIX):  # so that none is restored in part
                    folder.move(name, folder, _DELETED_PREFIX + name)
            for name in folder.names():
                if name.startswith(_DELETED_PREFIX):
                    folder.remove(name)  # a tape, or a file that a repair moved here
            folder.sync()


def _has_copied_past(folder: Path, name: str) -> bool:
    """Return whether a tape has a copy of the path it shares with its origin."""
    with (
        suppress(OSError, TapeError),
        TapeFolder.open_in(os.fspath(folder), name) as tape,
        tape.sub("phases") as phases,
    ):
        return phases.has(ORIGIN)
    return False


def require_single_hit(what: str, kind: str, hits: list[str]) -> str:
    """Return the one hit; raise NotFound or Ambiguous."""
    if not hits:
        raise NotFound(f"no {kind} {what!r}")
    if len(hits) > 1:
        raise Ambiguous(what, tuple(hits))
    return hits[0]


def build_slug(text: str) -> str:
    """Return text for a folder name: at most 60 bytes.

    It has letters and digits of any script, with the combining marks that are part of letters.
    """
    text = unicodedata.normalize("NFC", text.lower())
    letters = (c if c.isalnum() or unicodedata.category(c).startswith("M") else " " for c in text)
    cut = "-".join("".join(letters).split()).encode()[:60].decode(errors="ignore")
    return cut.strip("-") or "tape"
