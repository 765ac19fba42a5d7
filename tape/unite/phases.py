"""The entries of another copy of a tape: phases that it has more of, and phases only it has.

A phase is written by one copy of a store (`store.replica`), so of two files of one phase one is the
beginning of the other, but for redacted data. What is missing here is appended, whole lines that
verify; a new phase is built in `.unite/` and moved when it is whole. Blobs come before the lines
that name them. Data that was redacted here is not brought back.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..errors import Damaged, NotFound, TapeError
from ..model.entries import Redact
from ..model.line import blank_redacted_data, read_id, read_parent_id, read_type
from ..model.summary import ANCHOR_PAGE
from ..store import disk
from ..store.blobs import find_blob_hashes
from ..store.path import LineChecker
from ..store.phase import ENTRIES, ORIGIN, PhaseFile
from ..store.refs import quarantine_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ..store.disk import Folder
    from ..store.tape import Tape

_RUN = 1 << 20
"""Bytes that are compared or written at once."""


class PhasePair(NamedTuple):
    """One phase in two copies of a tape; both ends are offsets after the last good line."""

    name: str
    here: int | None
    """None if it is not here."""
    there: int

    @property
    def shared(self) -> int:
        """The end of what both have."""
        return min(self.here or 0, self.there)


def pair_phases(here: Tape, there: Tape, ends: Mapping[str, int]) -> dict[str, PhasePair]:
    """Return the phases of `there` that its journal names, each with what is here of it.

    `ends` limits those that may be growing there. Raises TapeError where the copies hold different
    entries at one place: programs wrote them that named no copy of a store.
    """
    named = there.refs().phases()
    names = [name for name in there.phases.names() if name in named]
    if there.phases.has_origin:
        names.insert(0, ORIGIN)
    return {name: _pair_phase(here, there, name, ends.get(name)) for name in names}


def _pair_phase(here: Tape, there: Tape, name: str, limit: int | None) -> PhasePair:
    with there.phases.open(name) as theirs:
        end = theirs.tail().end if limit is None else limit
        try:
            ours = here.phases.open(name)
        except NotFound:
            return PhasePair(name, None, end)
        with ours:
            pair = PhasePair(name, ours.tail().end, end)
            _refuse_divergence(name, ours, theirs, pair.shared)
    return pair


def _refuse_divergence(name: str, ours: PhaseFile, theirs: PhaseFile, end: int) -> None:
    """Raise TapeError unless two files of a phase hold the same entries up to `end`."""
    if os.path.sameopenfile(ours.fd, theirs.fd):
        return
    start = 0
    while start < end and (run := ours.read(start, min(start + _RUN, end))):
        if run != theirs.read(start, start + len(run)):
            break
        start += len(run)
    if start >= end:
        return
    # Only data that one of them has redacted may differ: lines keep their length and their ids.
    for (offset, line), (_, other) in zip(ours.lines(), theirs.lines(), strict=False):
        if offset >= end:
            return
        if len(line) != len(other) or read_id(line) != read_id(other):
            raise TapeError(
                f"{name} was continued in both copies from byte {offset} on, by a program that "
                "named neither: the two cannot be one file; nothing was changed"
            )


class PhaseCopier:
    """Copies what is missing of the phases of another copy; used once."""

    def __init__(self, here: Tape, there: Tape, redacted: Collection[str]) -> None:
        self._here, self._there = here, there
        self._redacted = redacted
        """Ids that redact entries here name."""
        self._blobs: set[bytes] = set()
        self.entries = 0
        """Number of entries that were copied."""
        self.lost: set[str] = set()
        """Hashes of blobs that copied lines name and the other copy does not have."""
        self.redacts = False
        """Whether a copied entry redacts others."""

    def lengthen_phase(self, pair: PhasePair) -> None:
        """Append to a phase what the other copy has more of."""
        start = pair.here or 0
        with (
            self._here.phases.folder.sub(pair.name) as folder,
            PhaseFile(folder.file(ENTRIES, os.O_RDWR | os.O_APPEND), pair.name) as ours,
        ):
            if (size := ours.size()) > start:
                torn = ours.read(start, size)
                quarantine_bytes(self._here.folder, f"{pair.name}.{start}", torn)
                os.ftruncate(ours.fd, start)
            self._write_lines(ours.fd, pair)
            if folder.durable:
                disk.sync_file(ours.fd)

    def build_phase(self, aside: Folder, pair: PhasePair) -> None:
        """Copy a whole phase into a folder beside the phases."""
        with suppress(FileNotFoundError):  # left by an interrupted copy
            aside.remove(pair.name)
        with aside.make(pair.name) as folder:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL
            with disk.Descriptor(folder.file(ENTRIES, flags)) as file:
                self._write_lines(file.fd, pair)
                if folder.durable:
                    disk.sync_file(file.fd)
            with suppress(OSError), self._there.phases.folder.sub(pair.name) as theirs:
                folder.create(ANCHOR_PAGE, theirs.read(ANCHOR_PAGE))
            folder.sync()
        aside.sync()

    def _write_lines(self, fd: int, pair: PhasePair) -> None:
        waiting: list[bytes] = []
        size = 0
        for line in self._read_missing_lines(pair):
            self._copy_blobs(line)
            waiting.append(line + b"\n")
            size += len(line) + 1
            if size >= _RUN:
                disk.write_bytes(fd, b"".join(waiting))
                waiting, size = [], 0
        disk.write_bytes(fd, b"".join(waiting))

    def _read_missing_lines(self, pair: PhasePair) -> Iterator[bytes]:
        """Yield the lines that are missing here; raise Damaged for one that does not verify."""
        faults: list[str] = []
        check = LineChecker(pair.name, self._there.phases.read_redacted_ids, faults.append)
        with self._there.phases.open(pair.name) as theirs:
            start = pair.here or 0
            before = _read_last_id(theirs, start)
            for offset, line in theirs.lines(start, pair.there):
                checked = check.read(offset, line)
                if not faults and before is not None and read_parent_id(line) != before:
                    faults.append(f"{pair.name}: byte {offset} does not follow from what is here")
                if checked is None or faults:
                    raise Damaged(f"the other copy is damaged: {faults[0]}", file=pair.name)
                before = None
                self.entries += 1
                self.redacts |= read_type(checked) == Redact.entry_type
                yield blank_redacted_data(checked, self._redacted) if self._redacted else checked

    def _copy_blobs(self, line: bytes) -> None:
        for digest in {*find_blob_hashes(line)} - self._blobs:
            self._blobs.add(digest)
            if self._here.blobs.has(digest.decode()):
                continue
            try:
                self._here.blobs.put(self._there.blobs.read(digest.decode()))
            except NotFound:
                self.lost.add(digest.decode())


def _read_last_id(file: PhaseFile, end: int) -> str | None:
    """Return the id of the entry that ends at an offset; None at the beginning."""
    for _, line in file.read_lines_back(end):
        return read_id(line)
    return None
