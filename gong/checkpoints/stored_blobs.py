"""The blobs that a session has stored for its files: each bytes once, many at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tape.errors import TapeError

from .file_changes import FileVersion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tape.model.entries import BlobRef
    from tape.store.blobs import Blobs

    from .disk_file import DiskFile

_FEW, _WRITERS = 4, 16
"""From so many blobs on, so many threads write: the disk syncs what they write together."""


class StoredBlobs:
    """The bytes that a session has stored in its tape, each once."""

    def __init__(self) -> None:
        self.blobs: Blobs | None = None
        self._refs: dict[str, BlobRef] = {}

    def store_files(
        self, files: Mapping[str, DiskFile | None], *, is_after: bool
    ) -> dict[str, FileVersion | None]:
        """Store the bytes of files, and return them with their references, by path.

        Raises WriteFailed before a call, which must not run then; after it, `why` says so.
        """
        new = {
            file.digest: file.data
            for file in files.values()
            if file and file.digest and file.data is not None and file.digest not in self._refs
        }
        failure = ""
        try:
            self._put_blobs(new)
        except TapeError as error:
            if not is_after:
                raise
            failure = f"its bytes could not be stored: {error}"
        versions: dict[str, FileVersion | None] = {}
        for path, file in files.items():
            if file is None:
                versions[path] = None
                continue
            ref = self._refs.get(file.digest or "")
            why = "" if ref else file.why or failure
            versions[path] = FileVersion(file.mode, file.digest, file.size, ref, why)
        return versions

    def _put_blobs(self, new: Mapping[str, bytes]) -> None:
        """Store blobs; several at once, so that the disk syncs them together."""
        blobs = self.blobs
        assert blobs is not None, "a call is recorded in a tape"
        if len(new) < _FEW:
            self._refs.update((digest, blobs.put(data)) for digest, data in new.items())
            return
        with ThreadPoolExecutor(_WRITERS) as pool:
            self._refs.update(zip(new, pool.map(blobs.put, new.values()), strict=True))
