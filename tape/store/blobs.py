"""Payloads by content hash: `blobs/ab/abcdef…`, raw bytes, stored before the entry that names them.

A string of more than 65 536 UTF-8 bytes is stored as a blob, and so is every picture and file. The
same bytes are stored once.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import file_digest, sha256
from typing import TYPE_CHECKING

import msgspec

from ..damage import warn_of_damage
from ..errors import NotFound
from ..model.entries import BlobRef
from ..model.line import describe_missing_blob

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .disk import Folder

MAX_INLINE_BYTES = 65_536
"""Most UTF-8 bytes of a string that is stored in its entry."""
HEAD_CHARACTERS = 2_000
"""Characters of a blob's beginning that are stored in the entry."""

_ADVICE = "`tape fsck` explains it"
_HASH = r"[0-9a-f]{64}\Z"
_REFERENCE = rb'"\$blob":"([0-9a-f]{64})"'


def find_blob_hashes(line: bytes) -> list[bytes]:
    """Return the names of the blobs (64 hex digits) in a line, or in the rest of one."""
    hashes: list[bytes] = re.findall(_REFERENCE, line)
    return hashes


class Blobs:
    """The folder `blobs/` of one tape; `tape` is the tape's folder."""

    __slots__ = ("_shelves", "tape")

    def __init__(self, tape: Folder) -> None:
        self.tape = tape
        self._shelves: set[str] = set()
        """Folders in `blobs/` whose names were synced here; nobody removes such a folder."""

    def put(self, data: bytes, head: str = "") -> BlobRef:
        """Store bytes, synced, if they are not stored yet, and return their reference.

        A damaged blob of the same name is replaced.
        """
        digest = sha256(data).hexdigest()
        with self.tape.make("blobs") as blobs:
            with blobs.make(digest[:2]) as shelf:
                # Compared by its bytes, not only its name: a damaged blob gets replaced here.
                if not _is_stored(shelf, digest, len(data)):
                    shelf.write_whole(digest, data, f".{digest}.{os.urandom(4).hex()}")
                shelf.sync()  # also if it is stored: its writer may have been killed before
            if digest[:2] not in self._shelves:
                blobs.sync()
                if not self._shelves:  # the first one makes `blobs/`
                    self.tape.sync()
                self._shelves.add(digest[:2])
        return BlobRef(digest, len(data), head)

    def read(self, digest: str) -> bytes:
        """Return the bytes of a blob; raise NotFound if it is missing or damaged.

        A blob whose bytes do not match its name is treated as missing, with a DamageWarning.
        """
        if not re.match(_HASH, digest):
            raise NotFound(f"{digest!r} is not the name of a blob")
        changes = self.tape.follow()
        try:
            with self.tape.sub("blobs") as blobs, blobs.sub(digest[:2]) as shelf:
                data = shelf.read(digest)
        except FileNotFoundError as error:
            if self.tape.follow() != changes:  # the tape was archived or unpacked just now
                return self.read(digest)
            raise NotFound(f"blob {digest} is missing: {error.strerror}") from error
        except OSError as error:  # a link, which is not followed, or a read error
            raise NotFound(f"blob {digest} cannot be read: {error.strerror}") from error
        if sha256(data).hexdigest() != digest:
            text = f"blob {digest[:16]} skipped: its bytes do not match its name; {_ADVICE}"
            warn_of_damage(text)
            raise NotFound(text)
        return data

    def read_start(self, digest: str, size: int) -> bytes:
        """Return the first bytes of a blob, unchecked; none if it is missing."""
        with suppress(OSError), self.tape.sub("blobs") as blobs, blobs.sub(digest[:2]) as shelf:
            fd = shelf.file(digest)
            try:
                return os.pread(fd, size, 0)
            finally:
                os.close(fd)
        return b""

    def has(self, digest: str) -> bool:
        """Return whether a blob is stored; its bytes are not checked."""
        with suppress(OSError), self.tape.sub("blobs") as blobs, blobs.sub(digest[:2]) as shelf:
            return shelf.has(digest)
        return False

    def remove(self, digest: str) -> bool:
        """Delete a blob, with leftovers of writing it; return whether it existed."""
        try:
            with self.tape.sub("blobs") as blobs, blobs.sub(digest[:2]) as shelf:
                copies = [n for n in shelf.names() if n == digest or n.startswith(f".{digest}.")]
                for name in copies:
                    os.unlink(name, dir_fd=shelf.fd)
                shelf.sync()
        except FileNotFoundError:
            return False
        return bool(copies)

    def remove_if_older(self, digest: str, before: int) -> bool:
        """Delete a blob that was last stored before `before`, in ns; return whether it was deleted.

        It is renamed before its time is checked: a process that stores it meanwhile finds it
        missing and writes it again; if it was stored just before, it is renamed back.
        """
        aside = f".{digest}.{os.urandom(4).hex()}"
        try:
            with self.tape.sub("blobs") as blobs, blobs.sub(digest[:2]) as shelf:
                os.rename(digest, aside, src_dir_fd=shelf.fd, dst_dir_fd=shelf.fd)
                gone = os.stat(aside, dir_fd=shelf.fd).st_mtime_ns < before
                if gone:
                    os.unlink(aside, dir_fd=shelf.fd)
                else:
                    os.rename(aside, digest, src_dir_fd=shelf.fd, dst_dir_fd=shelf.fd)
                shelf.sync()
        except FileNotFoundError:
            return False
        return gone

    def text(self, ref: BlobRef) -> str:
        """Return the text of a blob, or a placeholder if it is missing."""
        try:
            return self.read(ref.hash).decode("utf-8", "replace")
        except NotFound:
            return describe_missing_blob(ref)

    def extract_long_strings(self, data: bytes) -> bytes:
        """Return compact JSON with every string over the limit replaced by a blob reference."""
        if len(data) <= MAX_INLINE_BYTES:
            return data
        parts, done = list[bytes](), 0
        for start, end in _find_long_strings(data):
            text: str = msgspec.json.decode(data[start:end])
            raw = text.encode()
            if len(raw) > MAX_INLINE_BYTES:
                ref = self.put(raw, text[:HEAD_CHARACTERS])
                parts += (data[done:start], msgspec.json.encode(ref))
                done = end
        return b"".join([*parts, data[done:]])


def _find_long_strings(data: bytes) -> Iterator[tuple[int, int]]:
    r"""Yield start and end of each string in compact JSON that may be over the limit; no keys.

    With escaped backslashes and quotes blotted out, each quote begins or ends a string:

        {"a":"x\"y"}     as stored
        {"a":"x..y"}     split at quotes: {, a, :, x..y, }; every other part is within a string
    """
    parts = data.replace(rb"\\", b"..").replace(rb"\"", b"..").split(b'"')
    start = 0
    for at, part in enumerate(parts):
        end = start + len(part)
        if at % 2 and len(part) > MAX_INLINE_BYTES - 2 and not parts[at + 1].startswith(b":"):
            yield start - 1, end + 1
        start = end + 1


def _is_stored(shelf: Folder, digest: str, size: int) -> bool:
    """Return whether a blob is there, whole; set its time to now, so that `gc` leaves it."""
    with suppress(OSError):  # missing, or on a read-only disk
        os.utime(digest, dir_fd=shelf.fd, follow_symlinks=False)
    try:
        with os.fdopen(shelf.file(digest), "rb") as file:
            return os.fstat(file.fileno()).st_size == size and (
                file_digest(file, "sha256").hexdigest() == digest
            )
    except OSError:  # missing, or the disk cannot read it
        return False
