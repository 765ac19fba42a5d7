"""Blobs: hash every one, and look for those that entries name."""

from __future__ import annotations

import hashlib
import json
import os
import re
from typing import TYPE_CHECKING, Any

from .finding import FindingKind, build_damage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..disk import Folder
    from ..tape import Tape
    from .finding import Fault, Finding

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_MAX_DIGITS = 19  # most digits of a size that is parsed as a number


class BlobCheck:
    """Checks the blobs of one tape."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self.count = 0
        self._rotten: set[str] = set()

    def check_blobs(self) -> Iterator[Finding]:
        """Hash every blob; files whose name is not a hash are temporary, or foreign."""
        for shelf in self._open_shelves():
            with shelf:
                for name in filter(_DIGEST.match, shelf.names()):
                    yield from self._check_blob(shelf, name)

    def _open_shelves(self) -> Iterator[Folder]:
        try:
            blobs = self._tape.folder.sub("blobs")
        except (FileNotFoundError, NotADirectoryError):
            return
        with blobs:
            for name in blobs.names():
                try:
                    yield blobs.sub(name)
                except (FileNotFoundError, NotADirectoryError):
                    continue  # a foreign file, or a link, which is reported elsewhere

    def _check_blob(self, shelf: Folder, digest: str) -> Iterator[Finding]:
        file = f"blobs/{shelf.name}/{digest}"
        self.count += 1
        try:
            with os.fdopen(shelf.file(digest), "rb") as opened:
                true = hashlib.file_digest(opened, "sha256").hexdigest() == digest
        except OSError as error:
            yield build_damage(FindingKind.UNREADABLE, file, f"cannot be read: {error.strerror}")
            return
        if not true or shelf.name != digest[:2]:
            self._rotten.add(digest)
            yield build_damage(FindingKind.BLOB, file, "its bytes do not match its name")

    def find_wrong_blobs(self, data: bytes) -> list[Fault]:
        """Return the faults of the blobs that an entry's data names."""
        named: list[dict[str, Any]] = []

        def collect(value: dict[str, Any]) -> dict[str, Any]:
            if "$blob" in value:
                named.append(value)
            return value

        try:
            json.loads(data, object_hook=collect, parse_int=_parse_number)
        except (ValueError, RecursionError) as error:
            return [(FindingKind.DATA, f"its data is not JSON: {error}")]
        return [wrong for value in named for wrong in self._check_named_blob(value)]

    def _check_named_blob(self, named: dict[str, Any]) -> Iterator[Fault]:
        digest = named["$blob"]
        if not isinstance(digest, str) or not _DIGEST.match(digest):
            yield FindingKind.DATA, "it names a blob by a value that is not a hash"
        elif digest in self._rotten:
            yield FindingKind.BLOB_NAMED, f"it names the blob {digest}, which is damaged"
        elif (size := self._measure_blob(digest)) is None:
            yield FindingKind.BLOB_NAMED, f"it names the blob {digest}, which is missing"
        elif size != named.get("bytes"):
            yield FindingKind.BLOB_NAMED, f"it gives the blob {digest} a wrong size"

    def _measure_blob(self, digest: str) -> int | None:
        try:
            with self._tape.folder.sub("blobs") as blobs, blobs.sub(digest[:2]) as shelf:
                return os.stat(digest, dir_fd=shelf.fd, follow_symlinks=False).st_size
        except (FileNotFoundError, NotADirectoryError):
            return None


def _parse_number(digits: str) -> int | str:
    """Return the number, or the digits themselves if they are too many to parse."""
    return int(digits) if len(digits) <= _MAX_DIGITS else digits
