"""The folder of a tape in a store, in either form: a folder, or the one file of an archived tape.

Readers see the same names and bytes in both. The first write unpacks an archived tape, and a tape
that changes its form while it is open is followed into the other one. Which form counts:

    tapes/NAME/   tapes/NAME.tar.zst   the tape is
    yes           –                    the folder
    –             yes                  the file
    yes           yes                  the folder: a program was killed between the two

Each form appears whole, by a rename or a link, and is synced before the other one goes: so one of
them is always there, and a file beside a folder never has what the folder lacks. Who writes removes
it first.

Two processes, A and B, with a tape that is archived:

    A, B  take the flock of NAME.tar.zst before they change anything; B waits
    A     fills .new-NAME.…, syncs it, renames it to NAME, deletes NAME.tar.zst, lets go
    B     has the flock of a file without a name: opens NAME
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Self

import msgspec

from ..errors import Damaged, NotFound, TapeError, WriteFailed
from ..model.line import JSON_ERRORS
from .disk import Folder, check_plain_name, open_folder
from .locks import hold_flock
from .packed import PACKED_SUFFIX, PackedTape, open_unnamed_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from typing import Protocol

    class NoteChange(Protocol):
        """Lets others know of a change of the folder of tapes: see `Store.note_change`."""

        def __call__(
            self, tapes: Folder, tape: str = "", name: str = "", *, comes: bool = False
        ) -> AbstractContextManager[None]:
            """Note what the block changes."""


_INFO = "tape.json"
_PHASES = "phases"
_LOOKS = 3
"""How often both forms are looked for: it may change from one to the other in between."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_GONE = FileNotFoundError, NotADirectoryError


def is_archived(folder: Folder) -> bool:
    """Return whether a tape is one file now."""
    return isinstance(folder, TapeFolder) and folder.is_archived


def get_tape_name(name: str) -> str:
    """Return the folder name of a tape by the name of its folder, or of its file."""
    return name.removesuffix(PACKED_SUFFIX)


def list_tape_names(folder: str | os.PathLike[str]) -> dict[str, int]:
    """Return folder name → inode of the tapes in `tapes/` or `trash/`, in either form.

    Names that begin with a dot are unfinished, and left out. Raises FileNotFoundError.
    """
    folders, files = dict[str, int](), dict[str, int]()
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders[entry.name] = entry.inode()
            elif entry.name.endswith(PACKED_SUFFIX) and entry.is_file(follow_symlinks=False):
                files[get_tape_name(entry.name)] = entry.inode()
    return files | folders


def find_tape_entry(tapes: Folder, name: str) -> str:
    """Return the name that a tape has in an open folder of tapes, that of its folder or file."""
    is_packed = not tapes.has(name) and tapes.has(name + PACKED_SUFFIX)
    return name + PACKED_SUFFIX if is_packed else name


def choose_free_tape_name(tapes: Folder, name: str) -> str:
    """Return `name`, or the first of `name.2`, `name.3`, … that no tape in the folder has."""
    free, k = name, 2
    while tapes.has(free) or tapes.has(free + PACKED_SUFFIX):
        free, k = f"{name}.{k}", k + 1
    return free


def move_tape(source: Folder, name: str, to: Folder, new: str) -> None:
    """Move a tape, in its form, from one folder of tapes to another, and sync both."""
    entry = find_tape_entry(source, name)
    source.move(entry, to, new + entry.removeprefix(name))


class PackedFolder(Folder):
    """A folder inside of an archived tape, to read; it has no descriptor."""

    __slots__ = ("_path", "packed")

    def __init__(self, packed: PackedTape, path: str, *, durable: bool) -> None:
        super().__init__(-1, path.rpartition("/")[2], durable=durable)
        self.packed, self._path = packed, path

    def get_path(self, name: str) -> str:
        """Return the path in the tape of a name in this folder."""
        check_plain_name(name)
        return f"{self._path}/{name}" if self._path else name

    def sub(self, name: str) -> Folder:
        """Open the folder `name`; raise FileNotFoundError, or NotADirectoryError for a file."""
        path = self.get_path(name)
        if self.packed.list_names(path) is None:
            self.packed.stat(path)
            raise NotADirectoryError(20, os.strerror(20), path)
        return PackedFolder(self.packed, path, durable=self.durable)

    def file(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Return the descriptor of a copy of the file `name`; raise OSError for writing."""
        if flags & _WRITING:
            raise OSError(30, os.strerror(30), name)
        return open_unnamed_file(self.read(name))

    def read(self, name: str) -> bytes:
        """Return the bytes of the file `name`."""
        return self.packed.read(self.get_path(name))

    def names(self) -> list[str]:
        """Return the names in this folder, sorted."""
        return sorted(self.packed.list_names(self._path) or ())

    def has(self, name: str) -> bool:
        """Return whether this folder has an entry `name`."""
        check_plain_name(name)
        return name in (self.packed.list_names(self._path) or ())

    def stat(self, name: str) -> os.stat_result:
        """Return mode, size and time of an entry: see `PackedTape.stat`."""
        return self.packed.stat(self.get_path(name))

    def walk_stats(self, name: str) -> Iterator[os.stat_result]:
        """Yield the stat results of a file, or of a folder and its content."""
        path = self.get_path(name)
        yield self.packed.stat(path)
        for inner in self.packed.list_names(path) or ():
            yield from PackedFolder(self.packed, path, durable=self.durable).walk_stats(inner)

    def sync(self) -> None:
        """Do nothing: nothing is written here."""


class TapeFolder(Folder):
    """The open folder of a tape, in the form that it has; see the module.

    `fd` is that of the folder, or of the file of an archived tape: no path leads on from that.
    """

    __slots__ = ("_info", "_note", "_tapes", "_times", "packed")

    _info: bytes
    _note: NoteChange
    _tapes: str
    _times: int
    packed: PackedTape | None
    """The file, if it is archived."""

    @classmethod
    def open_in(
        cls, tapes: str, name: str, *, durable: bool = True, note: NoteChange | None = None
    ) -> Self:
        """Open the tape with this folder name in the folder at `tapes`.

        Raises FileNotFoundError or NotADirectoryError if there is none, Damaged or NewerFormat if
        its file cannot be read.
        """
        folder = cls(-1, name, durable=durable)
        folder._tapes, folder._info, folder._times = tapes, b"", 0
        folder._note = note or _note_nothing
        folder.fd, folder.packed = folder._find()
        return folder

    def _find(self) -> tuple[int, PackedTape | None]:
        """Open the form that is there; return its descriptor, and the file if that is it."""
        with suppress(*_GONE):  # most are folders, so that is looked for first
            return open_folder(f"{self._tapes}/{check_plain_name(self.name)}"), None
        with Folder.open(self._tapes, durable=self.durable) as tapes:
            for _ in range(_LOOKS - 1):
                with suppress(*_GONE):
                    return tapes.sub(self.name).fd, None
                with suppress(FileNotFoundError):
                    packed = PackedTape.open(tapes, self.name)
                    return packed.fd, packed
            return tapes.sub(self.name).fd, None

    @property
    def is_archived(self) -> bool:
        """Return whether it is one file now."""
        return self._get_inside() is not None

    def follow(self) -> int:
        """Open the other form if this one was left for it; return how often that happened."""
        if self._is_left():
            self._reopen()
        return self._times

    def _is_left(self) -> bool:
        if self.packed is not None:
            return self.packed.is_deleted()
        return self.fd >= 0 and not super().has(_PHASES)

    def _reopen(self) -> bool:
        """Open the form that is there now, if it is another one; return whether it was."""
        try:
            fd, packed = self._find()
        except (OSError, TapeError):
            return False
        other: Folder = Folder(fd, self.name, durable=self.durable)
        if packed is not None:
            other = PackedFolder(packed, "", durable=self.durable)
        is_other = not os.path.sameopenfile(fd, self.fd)
        with suppress(OSError):
            is_other = is_other and (not self._info or other.read(_INFO) == self._info)
        if not is_other:
            packed.close() if packed is not None else other.close()
            return False
        self.close()
        self.fd, self.packed = fd, packed
        self._times += 1
        return True

    def _get_inside(self) -> PackedFolder | None:
        """Return what is in the file, if the tape is archived now."""
        if self.packed is not None and self.packed.is_deleted():
            self._reopen()  # else it was deleted: what was opened can still be read
        if self.packed is None:
            return None
        return PackedFolder(self.packed, "", durable=self.durable)

    def sub(self, name: str) -> Folder:
        """Open the folder `name` in this one; links and paths are refused."""
        while (inside := self._get_inside()) is None:
            try:
                return super().sub(name)
            except _GONE:
                if not self._is_left() or not self._reopen():
                    raise
        return inside.sub(name)

    def file(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Open the file `name`, as `Folder.file` does; an archived tape is unpacked for writing."""
        if flags & _WRITING:
            self.require_folder()
        while (inside := self._get_inside()) is None:
            try:
                return super().file(name, flags)
            except FileNotFoundError:
                if not self._is_left() or not self._reopen():
                    raise
                if flags & _WRITING:
                    self.require_folder()
        return inside.file(name)

    def read(self, name: str) -> bytes:
        """Return the bytes of the file `name`."""
        inside = self._get_inside()
        data = super().read(name) if inside is None else inside.read(name)
        if name == _INFO and not self._info:
            self._info = data
        return data

    def names(self) -> list[str]:
        """Return the names in this folder, sorted."""
        while (inside := self._get_inside()) is None:
            names = super().names()
            if _PHASES in names or not self._reopen():
                return names
        return inside.names()

    def has(self, name: str) -> bool:
        """Return whether this folder has an entry `name`."""
        while (inside := self._get_inside()) is None:
            if super().has(name):
                return True
            if name == _PHASES or not self._is_left() or not self._reopen():
                return False
        return inside.has(name)

    def stat(self, name: str) -> os.stat_result:
        """Return the stat result of an entry of this folder; links are not followed."""
        while (inside := self._get_inside()) is None:
            try:
                return super().stat(name)
            except FileNotFoundError:
                if not self._is_left() or not self._reopen():
                    raise
        return inside.stat(name)

    def walk_stats(self, name: str) -> Iterator[os.stat_result]:
        """Yield the stat results of a file, or of a folder and its content; follow no links."""
        inside = self._get_inside()
        return super().walk_stats(name) if inside is None else inside.walk_stats(name)

    def make(self, name: str) -> Folder:
        """Create the folder `name` (0700) if it does not exist, and open it."""
        while True:
            self.require_folder()
            try:
                return super().make(name)
            except _GONE:
                if not self._is_left() or not self._reopen():
                    raise

    def create(self, name: str, data: bytes) -> None:
        """Create the file `name` with `data`, synced; raise FileExistsError if it exists."""
        self.require_folder()
        super().create(name, data)

    def write_whole(self, name: str, data: bytes, temporary: str) -> None:
        """Write the file `name` whole or not at all; see `Folder.write_whole`."""
        self.require_folder()
        super().write_whole(name, data, temporary)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its content; does not sync this folder."""
        self.require_folder()
        super().remove(name)

    def move(self, name: str, to: Folder, new: str) -> None:
        """Rename `name` into another folder, and sync both."""
        self.require_folder()
        super().move(name, to, new)

    def sync_tree(self) -> None:
        """Sync every file and every name below this folder to the medium, each once."""
        if self._get_inside() is None:
            super().sync_tree()

    def sync(self) -> None:
        """Sync the names in this folder to the medium."""
        if self._get_inside() is None:
            super().sync()

    def close(self) -> None:
        """Close it; closing twice is allowed."""
        packed, self.packed = self.packed, None
        if packed is not None:
            self.fd = -1
            packed.close()
        super().close()

    def require_folder(self) -> None:
        """Make it a folder that may be written: unpack the file, or remove what a crash left of it.

        Raises Damaged, and changes nothing, where the file is damaged; WriteFailed.
        """
        while self._get_inside() is not None:
            if not self.unpack():
                raise NotFound(f"the tape in {self.name} was removed meanwhile")
        if os.path.lexists(f"{self._tapes}/{self.name}{PACKED_SUFFIX}"):
            self.drop_leftover()

    def unpack(self) -> bool:
        """Make a folder of the file of an archived tape; return whether there is one now.

        False where the file was deleted meanwhile, and no folder came instead.
        """
        packed = self.packed
        if packed is None:
            return True
        with (
            Folder.open(self._tapes, durable=self.durable) as tapes,
            hold_flock(packed.fd, packed.file),
        ):
            if _is_at_name(tapes, packed) and not tapes.has(self.name):
                self._unpack_beside(tapes, packed)
        return self._reopen()

    def _unpack_beside(self, tapes: Folder, packed: PackedTape) -> None:
        new = f".new-{os.urandom(4).hex()}-{self.name}"[:200]
        with self._note(tapes):
            folder = tapes.make(new)
        try:
            with folder:
                packed.unpack_to(folder)
            try:
                with self._note(tapes, _read_id(packed), self.name, comes=True):
                    os.rename(new, self.name, src_dir_fd=tapes.fd, dst_dir_fd=tapes.fd)
            except OSError as error:
                raise WriteFailed(f"{self.name} cannot be created: {error.strerror}") from error
        except BaseException:
            with suppress(OSError), self._note(tapes):
                tapes.remove(new)
            raise
        tapes.sync()
        with self._note(tapes):
            os.unlink(packed.file, dir_fd=tapes.fd)
        tapes.sync()

    def drop_leftover(self) -> bool:
        """Remove the file beside the folder that a crash left; return whether it did.

        A file that holds anything the folder lacks stays.
        """
        with self._hold_leftover() as (tapes, packed):
            if packed is None:
                return False
            with self._note(tapes):
                os.unlink(packed.file, dir_fd=tapes.fd)
            tapes.sync()
            return True

    def measure_leftover(self) -> int | None:
        """Return the size of the file that `drop_leftover` would remove; None if there is none."""
        if not os.path.lexists(f"{self._tapes}/{self.name}{PACKED_SUFFIX}"):
            return None
        with self._hold_leftover() as (_, packed):
            return None if packed is None else os.fstat(packed.fd).st_size

    @contextmanager
    def _hold_leftover(self) -> Iterator[tuple[Folder, PackedTape | None]]:
        """Hold the file beside the folder, if it is a leftover; yield the folder of tapes too."""
        with ExitStack() as held:
            tapes = held.enter_context(Folder.open(self._tapes, durable=self.durable))
            leftover = None
            with suppress(FileNotFoundError, Damaged):
                packed = held.enter_context(PackedTape.open(tapes, self.name))
                held.enter_context(hold_flock(packed.fd, packed.file))
                is_here = self.packed is None and _is_at_name(tapes, packed)
                is_ours = os.path.samestat(tapes.stat(self.name), os.fstat(self.fd))
                if is_here and is_ours and packed.is_prefix_of(self):
                    leftover = packed
            yield tapes, leftover


def _is_at_name(tapes: Folder, packed: PackedTape) -> bool:
    """Return whether the open file is still the one of its name, and not deleted or moved."""
    try:
        return os.path.samestat(tapes.stat(packed.file), os.fstat(packed.fd))
    except FileNotFoundError:
        return False


def _read_id(packed: PackedTape) -> str:
    """Return the id of an archived tape, "" if it is unknown."""
    with suppress(TapeError, OSError, *JSON_ERRORS):
        identity = msgspec.json.decode(packed.read(_INFO), type=dict[str, object]).get("id")
        return identity if isinstance(identity, str) else ""
    return ""


def _note_nothing(
    tapes: Folder,  # noqa: ARG001 (as `Store.note_change`)
    tape: str = "",  # noqa: ARG001
    name: str = "",  # noqa: ARG001
    *,
    comes: bool = False,  # noqa: ARG001
) -> AbstractContextManager[None]:
    from contextlib import nullcontext

    return nullcontext()
