"""Payloads by content hash: `blobs/ab/abcdef…`, raw bytes, there before the entry that names them.

A string of more than 65 536 UTF-8 bytes leaves its entry for a blob; so does every picture and
file. The same bytes are stored once.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import file_digest, sha256
from typing import TYPE_CHECKING

import msgspec

from .blocks import BlobRef
from .damage import warn_of_damage
from .disk import sync, write_all
from .errors import NotFound
from .payload import missing_blob

if TYPE_CHECKING:
    from .disk import Folder

LIMIT = 65_536
"""Most UTF-8 bytes a string may have and still stand in its entry."""
HEAD = 2_000
"""Characters of a blob's beginning that stand in the entry."""

_ADVICE = "`tape fsck` explains it"
_HASH = re.compile(r"[0-9a-f]{64}\Z")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"(:?)', re.DOTALL)
NAMED = re.compile(rb'"\$blob":"([0-9a-f]{64})"')
"""Where a line, or what is left of one, names a blob."""


class Blobs:
    """The folder `blobs/` of one tape; `tape` is the tape's folder."""

    __slots__ = ("tape",)

    def __init__(self, tape: Folder) -> None:
        self.tape = tape

    def put(self, data: bytes, head: str = "") -> BlobRef:
        """Store bytes, synced, unless they are there, and return their reference.

        Damaged ones of the same name are replaced.
        """
        digest = sha256(data).hexdigest()
        with self.tape.make("blobs") as blobs:
            with blobs.make(digest[:2]) as shelf:
                if _wanted(shelf, digest) and _holds(shelf, digest, len(data)):
                    shelf.sync()  # who wrote it may have been killed before
                else:
                    self._write(shelf, digest, data)
            blobs.sync()
        return BlobRef(digest, len(data), head)

    def _write(self, shelf: Folder, digest: str, data: bytes) -> None:
        temporary = f".{digest}.{os.urandom(4).hex()}"
        fd = shelf.file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            write_all(fd, data)
            if shelf.durable:
                sync(fd)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=shelf.fd)
            raise
        finally:
            os.close(fd)
        os.rename(temporary, digest, src_dir_fd=shelf.fd, dst_dir_fd=shelf.fd)
        shelf.sync()

    def read(self, digest: str) -> bytes:
        """Return the bytes of a blob; raise NotFound when it is missing, or damaged, which is said.

        Bytes that do not match their name are nobody's content: they are treated as missing.
        """
        data = self._stored(digest)
        if sha256(data).hexdigest() != digest:
            text = f"blob {digest[:16]} skipped: its bytes do not match its name; {_ADVICE}"
            warn_of_damage(text)
            raise NotFound(text)
        return data

    def _stored(self, digest: str) -> bytes:
        if not _HASH.match(digest):
            raise NotFound(f"{digest!r} is not the name of a blob")
        try:
            with self.tape.sub("blobs") as blobs, blobs.sub(digest[:2]) as shelf:
                return shelf.read(digest)
        except FileNotFoundError as error:
            raise NotFound(f"blob {digest} is missing: {error.strerror}") from error
        except OSError as error:  # a link that is not followed, a disk that gives nothing back
            raise NotFound(f"blob {digest} cannot be read: {error.strerror}") from error

    def remove(self, digest: str) -> bool:
        """Delete a blob for good, with what a crash left of writing it; tell if it was there."""
        try:
            with self.tape.sub("blobs") as blobs, blobs.sub(digest[:2]) as shelf:
                copies = [n for n in shelf.names() if n == digest or n.startswith(f".{digest}.")]
                for name in copies:
                    os.unlink(name, dir_fd=shelf.fd)
                shelf.sync()
        except FileNotFoundError:
            return False
        return bool(copies)

    def retire(self, digest: str, before: int) -> bool:
        """Delete a blob that nobody stored since `before`, in ns; tell whether it went.

        It is put aside before its time is looked at: who stores it meanwhile finds it missing and
        writes it again, and who did so just before gets it back.
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
        """Return the text of a blob, or what stands for it when it is missing."""
        try:
            return self.read(ref.hash).decode("utf-8", "replace")
        except NotFound:
            return missing_blob(ref)

    def lift(self, data: bytes) -> bytes:
        """Return compact JSON with every string over the limit put into a blob."""
        if len(data) <= LIMIT:
            return data
        return _STRING.sub(self._lifted, data)

    def _lifted(self, found: re.Match[bytes]) -> bytes:
        token = found[0]
        if found[1] or len(token) <= LIMIT:  # keys are never replaced
            return token
        text: str = msgspec.json.decode(token)
        raw = text.encode()
        if len(raw) <= LIMIT:
            return token
        return msgspec.json.encode(self.put(raw, text[:HEAD]))


def _wanted(shelf: Folder, digest: str) -> bool:
    """Tell whether a blob is there, giving it a new time: no longer one that can be retired."""
    try:
        os.utime(digest, dir_fd=shelf.fd, follow_symlinks=False)
    except OSError:  # missing, or of a disk that cannot be written
        return shelf.has(digest)
    return True


def _holds(shelf: Folder, digest: str, size: int) -> bool:
    """Tell whether the bytes of a blob that is there match its name."""
    try:
        with os.fdopen(shelf.file(digest), "rb") as file:
            return os.fstat(file.fileno()).st_size == size and (
                file_digest(file, "sha256").hexdigest() == digest
            )
    except OSError:  # the disk does not give it back
        return False
