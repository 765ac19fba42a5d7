"""An archived tape: its folder as one file, `FOLDER.tar.zst` in `tapes/`, read without unpacking.

The file is a tar archive of the folder, cut into pieces of 4 MiB, each a frame of Zstandard, so
that `tar --zstd -xf` unpacks it, and a reader decompresses only the frames it needs:

    frame, frame, …       the tar archive; each frame with its length and checksum
    skippable frame       8 bytes 5E 2A 4D 18 and its length, which other programs leave out:
      the index           a frame of JSON: {"format":1,"frames":[…],"files":[…],"folders":[…]}
      trailer, 28 bytes   16 bytes of the SHA-256 of the index, its length in 4, "TAPETZST"

All lengths are little-endian. What the index says is in `PackedIndex`. Locks are not in the file.
"""

from __future__ import annotations

import errno
import os
import re
import struct
from bisect import bisect_right
from contextlib import suppress
from hashlib import sha256
from stat import S_IFDIR, S_IFREG, S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Self

import msgspec
from msgspec import Struct

from ..errors import Damaged, InvalidName, NewerFormat, UsageError
from .disk import Descriptor, Folder, check_plain_name, sync_file, write_bytes
from .locks import LOCKS_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKED_SUFFIX = ".tar.zst"
"""The end of the name of an archived tape's file; before it stands that of the folder."""
_FORMAT = 1
_FRAME_BYTES = 1 << 22
_CACHED_FRAMES = 4
_LEVEL, _SMALL_LEVEL = 9, 19
_SMALL_BYTES = 1 << 18
"""Most bytes of a frame that is compressed as well as can be, which is slow."""
_BLOCK = 512
_COPY = 1 << 20
_SKIPPABLE = struct.Struct("<II")
_SKIPPABLE_MAGIC = 0x184D2A5E
_TRAILER = struct.Struct("<16sI8s")
_TRAILER_MAGIC = b"TAPETZST"
_MAX_INDEX = 1 << 30


class DamagedArchive(Damaged, OSError):
    """A part of an archived tape that cannot be read, as of a file on a disk that fails."""

    def __init__(self, message: str, *, file: str = "", offset: int | None = None) -> None:
        OSError.__init__(self, errno.EIO, message)
        self.file, self.offset = file, offset

    def __str__(self) -> str:
        return str(self.strerror)


class PackedFrame(Struct, frozen=True, array_like=True, gc=False):
    """One frame."""

    packed: int
    """Bytes in the file."""
    bytes: int
    """Bytes of the tar archive."""
    digest: str
    """The first 32 hex digits of the SHA-256 of the bytes in the file."""


class PackedMember(Struct, frozen=True, array_like=True, gc=False):
    """One file: its path in the tape's folder, offset of its bytes in the tar archive, length."""

    path: str
    offset: int
    bytes: int


class PackedIndex(Struct, frozen=True):
    """What the index of an archived tape says."""

    format: int
    frames: tuple[PackedFrame, ...]
    """In order; those of the tar archive follow one another without a gap."""
    files: tuple[PackedMember, ...]
    folders: tuple[str, ...] = ()
    """Paths of the folders with nothing in them."""


class _FrameWriter:
    """Writes a stream of bytes as frames."""

    def __init__(self, fd: int) -> None:
        self._fd, self._rest = fd, bytearray()
        self.frames: list[PackedFrame] = []
        self.size = 0
        """Bytes written so far, before compression."""

    def write(self, data: bytes) -> None:
        self._rest += data
        self.size += len(data)
        while len(self._rest) >= _FRAME_BYTES:
            self._write_frame(bytes(self._rest[:_FRAME_BYTES]))
            del self._rest[:_FRAME_BYTES]

    def finish(self) -> None:
        if self._rest:
            self._write_frame(bytes(self._rest))
            self._rest.clear()

    def _write_frame(self, data: bytes) -> None:
        packed = _pack_bytes(data)
        write_bytes(self._fd, packed)
        self.frames.append(PackedFrame(len(packed), len(data), _compute_digest(packed)))


def _pack_bytes(data: bytes) -> bytes:
    from zstandard import ZstdCompressor  # whoever archives nothing needs none

    level = _SMALL_LEVEL if len(data) <= _SMALL_BYTES else _LEVEL
    return ZstdCompressor(level=level, write_checksum=True).compress(data)


def _compute_digest(packed: bytes) -> str:
    return sha256(packed).hexdigest()[:32]


def pack_folder(tape: Folder, fd: int) -> None:
    """Write the archive of a tape's folder to the open file `fd`, and sync it.

    Raises UsageError for what cannot be part of one, such as a symbolic link, WriteFailed.
    """
    writer = _FrameWriter(fd)
    files, folders = list[PackedMember](), list[str]()
    for path, file_stat, folder in _walk_tape(tape):
        if S_ISDIR(file_stat.st_mode):
            with folder.sub(path.rpartition("/")[2]) as inner:
                if not inner.names():  # tar makes those of files
                    folders.append(path)
                    writer.write(_build_tar_header(f"{tape.name}/{path}/", file_stat))
            continue
        writer.write(_build_tar_header(f"{tape.name}/{path}", file_stat))
        files.append(PackedMember(path, writer.size, file_stat.st_size))
        with Descriptor(folder.file(path.rpartition("/")[2])) as file:
            left = file_stat.st_size
            while left and (part := os.read(file.fd, min(left, _COPY))):
                writer.write(part)
                left -= len(part)
        writer.write(bytes(left + -file_stat.st_size % _BLOCK))
    writer.write(bytes(2 * _BLOCK))
    writer.finish()
    index = PackedIndex(_FORMAT, tuple(writer.frames), tuple(files), tuple(folders))
    data = _pack_bytes(msgspec.json.encode(index))
    trailer = _TRAILER.pack(sha256(data).digest()[:16], len(data), _TRAILER_MAGIC)
    head = _SKIPPABLE.pack(_SKIPPABLE_MAGIC, len(data) + len(trailer))
    write_bytes(fd, head + data + trailer)
    if tape.durable:
        sync_file(fd)


def _walk_tape(folder: Folder, prefix: str = "") -> Iterator[tuple[str, os.stat_result, Folder]]:
    """Yield path and stat result of all that is in a tape, and the folder it is in; no locks.

    What a reader needs first comes first: files before folders, and blobs behind phases.
    """
    stats = {name: folder.stat(name) for name in folder.names()}
    order = {"tape.json": 0, "refs.jsonl": 1, "phases": 2}
    for name in sorted(stats, key=lambda name: (order.get(name, 3), S_ISDIR(stats[name].st_mode))):
        path = prefix + name
        if path == LOCKS_NAME:
            continue
        try:
            path.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"{path!r} is no text, and cannot be archived: move it away"
            ) from error
        if S_ISDIR(stats[name].st_mode):
            yield path, stats[name], folder
            with folder.sub(name) as inner:
                yield from _walk_tape(inner, f"{path}/")
        elif S_ISREG(stats[name].st_mode):
            yield path, stats[name], folder
        else:
            raise UsageError(f"{path} is not a file: move it away to archive the tape")


def _build_tar_header(path: str, file_stat: os.stat_result) -> bytes:
    from tarfile import DIRTYPE, PAX_FORMAT, TarInfo  # slow to load

    info = TarInfo(path)
    info.mtime = int(file_stat.st_mtime)
    if S_ISDIR(file_stat.st_mode):
        info.type, info.mode = DIRTYPE, 0o700
    else:
        info.size, info.mode = file_stat.st_size, 0o600
    return info.tobuf(PAX_FORMAT, "utf-8", "strict")


class PackedTape(Descriptor):
    """The open file of an archived tape; it is read as it was, also after it was deleted."""

    __slots__ = ("_cache", "_files", "_folders", "_starts", "_users", "index", "name")

    def __init__(self, fd: int, name: str, index: PackedIndex) -> None:
        super().__init__(fd)
        self.name = name
        """The name of the tape's folder."""
        self.index = index
        self._users = 1
        self._files = {member.path: member for member in index.files}
        self._folders: dict[str, set[str]] = {"": set(), **{path: set() for path in index.folders}}
        for path in (*index.folders, *self._files):
            parent = path
            while parent:
                parent, _, inner = parent.rpartition("/")
                self._folders.setdefault(parent, set()).add(inner)
        self._starts = [(0, 0)]
        """Of each frame, and at the end: where it begins in the tar archive, and in the file."""
        for frame in index.frames:
            plain, packed = self._starts[-1]
            self._starts.append((plain + frame.bytes, packed + frame.packed))
        self._cache: dict[int, bytes] = {}

    @classmethod
    def open(cls, tapes: Folder, name: str) -> Self:
        """Open the archived tape that has the folder name `name`.

        Raises FileNotFoundError if there is none, NewerFormat, and Damaged if its index is.
        """
        return cls.open_file(tapes, check_plain_name(name) + PACKED_SUFFIX, name)

    @classmethod
    def open_file(cls, tapes: Folder, file: str, name: str) -> Self:
        """Open the file `file` as the archived tape `name`; raise as `open` does."""
        fd = tapes.file(file)
        try:
            return cls(fd, name, _read_index(fd, file))
        except BaseException:
            os.close(fd)
            raise

    def share(self) -> Self:
        """Return this file for one more user: it is closed when all have closed it."""
        self._users += 1
        return self

    def close(self) -> None:
        """Close it for one user."""
        self._users -= 1
        if self._users == 0:
            super().close()

    @property
    def file(self) -> str:
        """The name of the file."""
        return self.name + PACKED_SUFFIX

    def is_deleted(self) -> bool:
        """Return whether the file has no name any more: its tape was unpacked, or deleted."""
        return os.fstat(self.fd).st_nlink == 0

    def list_names(self, folder: str) -> set[str] | None:
        """Return the names in a folder of the tape; None if there is no such folder."""
        return self._folders.get(folder)

    def get_member(self, path: str) -> PackedMember | None:
        """Return the file at a path; None if there is none."""
        return self._files.get(path)

    def stat(self, path: str) -> os.stat_result:
        """Return mode, size and time as of a file or folder at this path: it is not on the disk.

        The time is that of the archive. Raises FileNotFoundError.
        """
        member, file_stat = self._files.get(path), os.fstat(self.fd)
        if member is None and path not in self._folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        mode = S_IFDIR | 0o700 if member is None else S_IFREG | 0o600
        size = 0 if member is None else member.bytes
        fields = (mode, 0, 0, 1, file_stat.st_uid, file_stat.st_gid, size)
        times = int(file_stat.st_atime), int(file_stat.st_mtime), int(file_stat.st_ctime)
        return os.stat_result(
            (*fields, *times),
            {
                "st_atime_ns": file_stat.st_atime_ns,
                "st_mtime_ns": file_stat.st_mtime_ns,
                "st_ctime_ns": file_stat.st_ctime_ns,
            },
        )

    def read(self, path: str, start: int = 0, count: int | None = None) -> bytes:
        """Return bytes of a file; raise FileNotFoundError, or DamagedArchive."""
        member = self._files.get(path)
        if member is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        end = member.bytes if count is None else min(start + count, member.bytes)
        parts, at = [], member.offset + start
        while at < member.offset + end:
            frame = bisect_right(self._starts, at, key=lambda start: start[0]) - 1
            begin = at - self._starts[frame][0]
            part = self.read_frame(frame)[begin : begin + member.offset + end - at]
            parts.append(part)
            at += len(part)
        return b"".join(parts)

    def read_frame(self, number: int) -> bytes:
        """Return the bytes of a frame, decompressed; raise DamagedArchive."""
        known = self._cache.pop(number, None)
        data = self._decompress(number) if known is None else known
        self._cache[number] = data  # the last one used is the last one to go
        while len(self._cache) > _CACHED_FRAMES:
            del self._cache[next(iter(self._cache))]
        return data

    def _decompress(self, number: int) -> bytes:
        from zstandard import ZstdDecompressor, ZstdError  # who reads a folder needs none

        frame, (_, at) = self.index.frames[number], self._starts[number]
        data = os.pread(self.fd, frame.packed, at)
        with suppress(ZstdError):
            plain = ZstdDecompressor().decompress(data, max_output_size=frame.bytes)
            if len(plain) == frame.bytes:
                return plain
        raise self._build_error(number)

    def _build_error(self, number: int) -> DamagedArchive:
        at = self._starts[number][1]
        message = f"{self.file}: the frame at byte {at} is damaged"
        return DamagedArchive(message, file=self.file, offset=at)

    def find_damaged_frames(self) -> Iterator[tuple[DamagedArchive, tuple[str, ...]]]:
        """Yield an error for each frame that does not match its hash, and the files in it."""
        for number, frame in enumerate(self.index.frames):
            start, at = self._starts[number]
            data = os.pread(self.fd, frame.packed, at)
            if _compute_digest(data) != frame.digest:
                end = start + frame.bytes
                files = tuple(
                    member.path
                    for member in self.index.files
                    if member.offset < end and member.offset + member.bytes > start
                )
                yield self._build_error(number), files

    def unpack_to(self, folder: Folder) -> None:
        """Write all that is in the archive into an empty folder, synced.

        Raises DamagedArchive before it writes anything, WriteFailed.
        """
        for error, _ in self.find_damaged_frames():
            raise error
        for path in sorted(filter(None, self._folders)):
            _make_below(folder, path.split("/"))
        for member in self.index.files:
            *parents, name = member.path.split("/")
            with _open_below(folder, parents) as inner, _create_file(inner, name) as file:
                for start in range(0, member.bytes, _COPY):
                    write_bytes(file.fd, self.read(member.path, start, _COPY))
        folder.sync_tree()

    def is_copy_of(self, folder: Folder) -> bool:
        """Return whether a folder holds the same files and folders, locks left out."""
        files, folders = dict[str, int](), set[str]()
        for path, file_stat, _ in _walk_tape(folder):
            if S_ISDIR(file_stat.st_mode):
                folders.add(path)
            else:
                files[path] = file_stat.st_size
        same = {member.path: member.bytes for member in self.index.files} == files
        return same and {"", *folders} == self._folders.keys() and self.is_prefix_of(folder)

    def is_prefix_of(self, folder: Folder) -> bool:
        """Return whether each file of the archive is one of the folder, or the beginning of one."""
        for member in self.index.files:
            *parents, name = member.path.split("/")
            try:
                with _open_below(folder, parents) as inner, Descriptor(inner.file(name)) as file:
                    for start in range(0, member.bytes, _COPY):
                        part = self.read(member.path, start, _COPY)
                        if os.pread(file.fd, len(part), start) != part:
                            return False
            except (FileNotFoundError, NotADirectoryError):
                return False
        return True


def _read_index(fd: int, file: str) -> PackedIndex:
    """Return the index at the end of an open file; raise Damaged, or NewerFormat."""
    try:
        data, end = _read_index_bytes(fd)
        version = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get("format")
        if version is not None and int(bytes(version)) > _FORMAT:
            raise NewerFormat(
                f"{file} is an archived tape of format {int(bytes(version))}, this program reads "
                f"up to {_FORMAT}: update it"
            )
        index = msgspec.json.decode(data, type=PackedIndex)
        _check_index(index, end)
    except (ValueError, struct.error, msgspec.MsgspecError, InvalidName) as error:
        raise Damaged(f"{file} cannot be read: {error}", file=file) from error
    return index


def _read_index_bytes(fd: int) -> tuple[bytes, int]:
    """Return the index, and where the frames before it end; raise ValueError, struct.error."""
    from zstandard import ZstdDecompressor, ZstdError  # who reads a folder needs none

    size = os.fstat(fd).st_size
    end = os.pread(fd, _TRAILER.size, max(size - _TRAILER.size, 0))
    digest, length, magic = _TRAILER.unpack(end)
    start = size - _TRAILER.size - length
    if magic != _TRAILER_MAGIC or start < _SKIPPABLE.size:
        raise ValueError("its end is missing or damaged")
    head = os.pread(fd, _SKIPPABLE.size, start - _SKIPPABLE.size)
    data = os.pread(fd, length, start)
    is_framed = head == _SKIPPABLE.pack(_SKIPPABLE_MAGIC, length + _TRAILER.size)
    if not is_framed or sha256(data).digest()[:16] != digest:
        raise ValueError("its index does not match its hash")
    with suppress(ZstdError):
        plain = ZstdDecompressor().decompress(data, max_output_size=_MAX_INDEX)
        return plain, start - _SKIPPABLE.size
    raise ValueError("its index cannot be decompressed")


def _check_index(index: PackedIndex, end: int) -> None:
    """Raise ValueError or InvalidName unless the frames end at `end` and all paths are inside."""
    if sum(frame.packed for frame in index.frames) != end:
        raise ValueError("its frames are not as long as its index says")
    whole = sum(frame.bytes for frame in index.frames)
    paths = [*index.folders, *(member.path for member in index.files)]
    above = set[str]()
    for path in paths:
        for name in path.split("/"):
            check_plain_name(name)
        above.update(path[: match.start()] for match in re.finditer("/", path))
    if len({*paths}) != len(paths) or not above.isdisjoint(paths):
        raise ValueError("it names a path twice")
    if any(not 0 <= file.offset <= file.offset + file.bytes <= whole for file in index.files):
        raise ValueError("a file in it reaches beyond its end")


def _open_below(folder: Folder, names: list[str]) -> Folder:
    """Open the folder at a path below another one."""
    inner = Folder(os.dup(folder.fd), folder.name, durable=folder.durable)
    for name in names:
        with inner:
            inner = inner.sub(name)
    return inner


def _make_below(folder: Folder, names: list[str]) -> None:
    with _open_below(folder, names[:-1]) as parent:
        parent.make(names[-1]).close()


def _create_file(folder: Folder, name: str) -> Descriptor:
    return Descriptor(folder.file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL))


def open_unnamed_file(data: bytes) -> int:
    """Return the descriptor of a file without a name that holds these bytes, at its beginning."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("tape", os.MFD_CLOEXEC)
    else:
        import tempfile  # slow to load, and for systems that are not Linux

        fd, path = tempfile.mkstemp()
        os.unlink(path)  # noqa: PTH108 (a name that nobody else needs)
    write_bytes(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
