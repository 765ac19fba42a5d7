"""The files of the working folder as they were seen last, and what is different now.

Every file that is recorded has a row: its signature, and where its bytes are. A file whose
signature is as before is not opened again.

    the file, when it is first seen       where its bytes are
    ------------------------------------  -------------------------------------------------
    clean in git                          in the object that git has of it
    any other, up to the limits           in a blob of the tape
    too large, not readable, over limits  nowhere, and the row says why
    gone since                            nowhere; the row stays, so that this can be recorded

A row is on the tape once an entry of the session tells of it, or its file is clean in git. The
state of a file before a call is therefore what its newest entry tells, else what git has, else
nothing. A file x, clean in git, from the start of a session; ! is a look at the folder:

    what happens          row of x             on the tape
    !  before call 1      the object in git    nothing: git has it
    call 1 writes "b"
    !  after call 1       blob of "b"          result 1: x was the object in git, is "b"
    a person writes "c"
    !  before call 2      blob of "c"          a checkpoint: x is "c"
    call 2 deletes x
    !  after call 2       no file              result 2: x was "c", is gone
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from .disk_file import DiskFile
from .file_changes import FileVersion
from .folder_listing import WantedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence

    from tape.files.changes import KnownVersion

    from ..config import CheckpointSettings
    from .disk_file import FileSignature
    from .folder_listing import Listing
    from .stored_blobs import StoredBlobs

_TICK_NS = 50_000_000
"""Times of files may be so much behind the clock."""
IGNORE_FILES = (".gitignore", ".git/info/exclude")


@dataclass(slots=True)
class FolderRow:
    """One file as it was seen last."""

    signature: FileSignature | None
    """None where there is no file."""
    version: FileVersion | None = None
    """What is known of its bytes; None where there is no file, or they are those of `oid`."""
    oid: str | None = None
    """The git object that has its bytes, where it is clean."""
    is_settled: bool = True


@dataclass(slots=True)
class RowChange:
    """A row that is not as before; None is a file that was not there, or not known."""

    old: FolderRow | None
    new: FolderRow


class FolderSource(Protocol):
    """A folder as it is: on this machine, or in another place."""

    def close(self) -> None:
        """Stop watching it."""

    def has_events(self) -> bool:
        """Return whether anything may have changed since it was listed; asking it is cheap."""

    def has_folder_of(self, path: str) -> bool:
        """Return whether the folder is watched that a file is in."""

    def list_files(self, max_files: int) -> Listing:
        """Return all files, and watch their folders where that is possible."""

    def find_changed_names(self, known: Container[str]) -> set[str] | None:
        """Return files that may have changed since, known and new; None where it may be any."""

    def read_clock(self) -> int:
        """Return the time by which its files are dated, in ns since 1970."""

    def is_settled(self, signature: FileSignature, now_ns: int) -> bool:
        """Return whether an equal signature later means equal bytes."""

    def stat_files(self, paths: Collection[str]) -> dict[str, FileSignature | None]:
        """Return the signatures of files, by path relative to the folder; None without one."""

    def read_files(
        self,
        paths: Mapping[str, FileSignature],
        refuse: Callable[[int], str],
        can_hash: Callable[[int], bool] | None,
    ) -> dict[str, DiskFile | None]:
        """Return files as they are now, as `read_disk_file` does."""

    def read_objects(self, files: Sequence[WantedFile]) -> dict[str, bytes]:
        """Return the bytes that git has of files, by path."""


_MAX_NAMES = 1000
"""If more names may have changed, all are listed: git compares many files faster."""


class ReadBudget:
    """How many bytes are stored, and hashed without being stored, for one call."""

    def __init__(self, settings: CheckpointSettings) -> None:
        self._max_file, self._total = settings.max_file_bytes, settings.max_total_bytes
        self._stored = self._hashed = 0

    def refuse(self, size: int) -> str:
        """Return why a file of that size is not stored; empty, and it is counted, where it is."""
        if size > self._max_file:
            return f"it is larger than {self._max_file} bytes"
        if self._stored + size > self._total:
            return f"{self._total} bytes are stored for this call already"
        self._stored += size
        return ""

    def can_hash(self, size: int) -> bool:
        """Return whether a file is hashed that is not stored, and count it."""
        if self._hashed + size > self._total:
            return False
        self._hashed += size
        return True


class FolderFiles:
    """The rows of one folder; `source` looks at it."""

    def __init__(
        self,
        source: FolderSource,
        folder: str,
        settings: CheckpointSettings,
        stored: StoredBlobs,
        recorded: Mapping[str, KnownVersion | None],
    ) -> None:
        """Take what the newest entries tell of files, by path."""
        self.folder = folder
        """Its real path."""
        self.rows: dict[str, FolderRow] = {}
        self._source, self._settings, self._stored = source, settings, stored
        self._doubtful: set[str] = set()
        self._unrecorded: set[str] = set()
        """Rows that no entry tells of, and git has not."""
        self._recorded = {
            path: version and (version.mode, version.digest) for path, version in recorded.items()
        }
        """Mode and digest that the newest entry tells of each file; None of one that is gone."""
        self._usual: tuple[str, ...] = ()
        self._limits: tuple[str, ...] = ()
        self._remarks: set[str] = set()
        """What was said of that already."""
        self._budget = ReadBudget(settings)
        self._since = 0
        """When the files were looked at last, in ns."""

    def is_quiet(self) -> bool:
        """Return whether nothing can have changed since the last look; asking it is cheap."""
        return not (self._find_unwatched() or self._unrecorded or self._source.has_events())

    def find_unrecorded(self) -> dict[str, FileVersion | None]:
        """Look at the folder before a call; return the files that no entry tells of, by path.

        A thread is of use only where it is not quiet.
        """
        if self.is_quiet():
            self._since = self._source.read_clock()
            return {}
        self._unrecorded.update(self._find_changed_rows(is_after=False))
        self._since = self._source.read_clock()
        rows = {path: self.rows[path] for path in sorted(self._unrecorded)}
        unrecorded = {
            path: row.version for path, row in rows.items() if not self._is_recorded(path, row)
        }
        self._unrecorded.clear()
        self._note_recorded(unrecorded)
        return unrecorded

    def find_changes(
        self,
    ) -> tuple[dict[str, FileVersion | None], dict[str, FileVersion | None]]:
        """Look at the folder after a call; return what differs, as it was and as it is, by path."""
        changes = self._find_changed_rows(is_after=True)
        gone = {change.old.signature for change in changes.values() if change.old}
        has_new_rules = any(
            change.old is not None and path.endswith(IGNORE_FILES)
            for path, change in changes.items()
        )
        before = self._find_versions_before(changes)
        after = {}
        for path, change in changes.items():
            signature = change.new.signature
            if change.old is None and signature is not None and signature not in gone:
                if signature[2] < self._since - _TICK_NS:
                    # It was there, ignored or beyond a limit, and came to be listed.
                    self._unrecorded.add(path)
                    del before[path]
                    continue
                if has_new_rules:
                    why = "it may have been there before, as a file that git ignored"
                    before[path] = FileVersion(None, None, 0, None, why)
            after[path] = change.new.version
        self._note_recorded(after)
        return before, after

    def note_file(self, path: str, file: DiskFile | None, version: FileVersion | None) -> None:
        """Note a file as an entry tells of it that a file tool has changed."""
        settled = file is None or file.is_settled
        signature = file.signature if file else None
        self.rows[path] = FolderRow(signature, version, is_settled=settled)
        self._doubtful.add(path)
        self._note_recorded({path: version})

    def take_remarks(self, *, has_files: bool) -> tuple[str, ...]:
        """Return what is not covered, each sentence once; the usual beside files only."""
        usual = self._usual if has_files else ()
        remarks = tuple(remark for remark in (*usual, *self._limits) if remark not in self._remarks)
        self._remarks.update(remarks)
        return remarks

    def _is_recorded(self, path: str, row: FolderRow) -> bool:
        """Return whether the newest entry about a file tells of it as it is now."""
        if path not in self._recorded:
            return False
        recorded, version = self._recorded[path], row.version
        if recorded is None or version is None:
            return recorded is None and version is None
        return recorded[1] is not None and recorded == (version.mode, version.digest)

    def _note_recorded(self, versions: Mapping[str, FileVersion | None]) -> None:
        signatures = {
            path: version and (version.mode, version.digest) for path, version in versions.items()
        }
        self._recorded.update(signatures)
        self._unrecorded.difference_update(versions)

    def close(self) -> None:
        """Stop watching the folder."""
        self._source.close()

    def _find_changed_rows(self, *, is_after: bool) -> dict[str, RowChange]:
        """Bring the rows up to date; return those that are not as before."""
        now = self._source.read_clock()
        self._budget = ReadBudget(self._settings)
        # No names: no watch, or it lost events. Then every file is compared.
        names = self._source.find_changed_names(self.rows)
        if names is None or len(names) > _MAX_NAMES:
            return self._find_all_changed_rows(now, is_after=is_after)
        names.update(self._find_unwatched())
        signatures = self._source.stat_files(names)
        linked = {
            signature[3] for signature in signatures.values() if signature and signature[5] > 1
        }
        # A write through one name of a file is an event for that name alone.
        if linked:
            same = (
                p for p, row in self.rows.items() if row.signature and row.signature[3] in linked
            )
            signatures |= self._source.stat_files([*same])
        return self._update_rows(signatures, {}, now, is_after=is_after)

    def _find_unwatched(self) -> set[str]:
        """Return the files whose changes nobody may tell of: they are looked at each time."""
        self._doubtful = {path for path in self._doubtful if self._is_doubtful(path)}
        return self._doubtful

    def _is_doubtful(self, path: str) -> bool:
        row = self.rows[path]
        # Not settled: written so lately that the next write may leave the same time.
        has_links = row.signature is not None and row.signature[5] > 1
        return not row.is_settled or has_links or not self._source.has_folder_of(path)

    def _find_all_changed_rows(self, now_ns: int, *, is_after: bool) -> dict[str, RowChange]:
        limit = self._settings.max_files
        listing = self._source.list_files(limit)
        new = [path for path in listing.others if path not in self.rows]
        room = max(limit - len(listing.others) + len(new), 0)
        self._usual, self._limits = listing.remarks, listing.limits
        if len(new) > room:
            left = f"Not recorded: {len(new) - room} of the files that are not in git."
            self._limits = (*self._limits, left)
        paths = dict.fromkeys((*self.rows, *listing.tracked, *new[:room]))
        signatures = self._source.stat_files(paths)
        changes = self._update_rows(signatures, listing.tracked, now_ns, is_after=is_after)
        self._doubtful = {path for path in self.rows if self._is_doubtful(path)}
        return changes

    def _update_rows(
        self,
        signatures: Mapping[str, FileSignature | None],
        tracked: Mapping[str, str | None],
        now_ns: int,
        *,
        is_after: bool,
    ) -> dict[str, RowChange]:
        """Compare rows with signatures that were read after `now_ns`, and read what differs."""
        unsure: dict[str, FileSignature | None] = {}
        for path, signature in signatures.items():
            row = self.rows.get(path)
            if row is not None and row.signature == signature and row.is_settled:
                continue
            if row is None and signature is None and path not in tracked:
                continue
            oid = tracked.get(path)
            is_new = row is None and not is_after and path not in self._recorded
            if is_new and oid and signature and self._source.is_settled(signature, now_ns):
                self.rows[path] = FolderRow(signature, oid=oid)  # git has just compared it
                continue
            unsure[path] = signature
        return self._read_rows(unsure, tracked, is_after=is_after)

    def _read_rows(
        self,
        paths: Mapping[str, FileSignature | None],
        tracked: Mapping[str, str | None],
        *,
        is_after: bool,
    ) -> dict[str, RowChange]:
        """Read the files that are there, and return the rows of those that are not as before."""
        files_read: dict[str, DiskFile | None] = {}
        clean: dict[str, str] = {}
        can_hash = self._budget.can_hash if is_after else None
        there = {path: signature for path, signature in paths.items() if signature is not None}
        files_now = self._source.read_files(there, self._budget.refuse, can_hash)
        for path in paths:
            old = self.rows.get(path)
            file = files_now.get(path)
            # Touched, or written with the same bytes: no change for a person, so none on the tape.
            if old is not None and _is_same(old, file):
                if file is not None:
                    old.signature, old.is_settled = file.signature, file.is_settled
                    self._doubtful.add(path)
                continue
            oid = tracked.get(path)
            # git has these bytes already: a blob of them would only cost space.
            if oid and file and path not in self._recorded and _has_git_digest(file, oid):
                clean[path] = oid
                if not is_after:
                    self.rows[path] = FolderRow(file.signature, None, oid, file.is_settled)
                    continue
            files_read[path] = file
        versions = self._stored.store_files(files_read, is_after=is_after)
        changes = {}
        for path, file in files_read.items():
            old = self.rows.get(path)
            signature = file.signature if file else None
            settled = file is None or file.is_settled
            new = FolderRow(signature, versions[path], clean.get(path), settled)
            self.rows[path] = new
            self._doubtful.add(path)
            changes[path] = RowChange(old, new)
        return changes

    def _find_versions_before(
        self, changes: Mapping[str, RowChange]
    ) -> dict[str, FileVersion | None]:
        """Return changed files as they were; the bytes of those clean in git are its own."""
        versions: dict[str, FileVersion | None] = {}
        files_by_path: dict[str, WantedFile] = {}
        for path, change in changes.items():
            old = change.old
            versions[path] = old.version if old is not None else None
            if old is not None and old.signature and old.version is None and old.oid:
                files_by_path[path] = WantedFile(old.oid, path, old.signature[0])
        files: dict[str, DiskFile | None] = {}
        for some in _split_by_size([*files_by_path.values()]):
            data = self._source.read_objects(some)
            for wanted_file in some:
                old = changes[wanted_file.path].old
                signature = old.signature if old else None
                if wanted_file.path not in data:
                    why = "git has no object with the bytes that it had"
                    files[wanted_file.path] = DiskFile(signature, why)
                    continue
                file = DiskFile.from_bytes(data[wanted_file.path], signature)
                why = self._budget.refuse(wanted_file.size)
                files[wanted_file.path] = file._replace(data=None, why=why) if why else file
        return {**versions, **self._stored.store_files(files, is_after=True)}


_MAX_BYTES = 32 << 20
"""Bytes of git's objects that are in memory at once, where no single one is larger."""


def _split_by_size(files: Sequence[WantedFile]) -> Iterator[list[WantedFile]]:
    some: list[WantedFile] = []
    size = 0
    for file in files:
        if some and size + file.size > _MAX_BYTES:
            yield some
            some, size = [], 0
        some.append(file)
        size += file.size
    if some:
        yield some


def _is_same(row: FolderRow, file: DiskFile | None) -> bool:
    """Return whether a file has the bytes and the mode of its row, as far as both are known."""
    if file is None or file.signature is None or row.signature is None:
        return file is None and row.signature is None
    if file.signature[4] != row.signature[4]:
        return False
    digest = row.version.digest if row.version else None
    if digest is not None:
        return file.digest == digest
    if row.version is not None:  # not read: only a file that was not written is the same
        return file.signature[:2] == row.signature[:2]
    return row.oid is not None and _has_git_digest(file, row.oid)


def _has_git_digest(file: DiskFile, oid: str) -> bool:
    """Return whether git stores the bytes of a file, unfiltered, under this name."""
    if file.data is None:
        return False
    header = b"blob %d\0" % len(file.data)
    algorithm = "sha1" if len(oid) == 40 else "sha256"  # noqa: PLR2004 (digits)
    return hashlib.new(algorithm, header + file.data, usedforsecurity=False).hexdigest() == oid
