"""Phase folders: each is a plain log of entry lines, read forward or backwards; and torn tails.

A phase is one run of a branch: `0003-try-redis/entries.jsonl`, number, branch, and what began it
where that was no fork (`0002-main-compaction`). Each line's parent is the line before it, and only
a file's end may be torn, by a crash in the middle of a write. `PhaseFile.tail` looks for the end of
the good part from behind:

| the last whole line | answer |
|---|---|
| both hashes match | the good part ends after it |
| only its id matches, and a redact entry names it | the same: half redacted, not torn |
| of a later format | NewerFormat: nobody may cut it off |
| anything else | it is torn, and so is what follows: look at the line before it |
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Self

from ..errors import Damaged, NewerFormat, NotFound
from ..model.entries import Redact
from ..model.line import (
    Entry,
    Header,
    decode_line,
    describe_missing_blob,
    read_header,
    read_type,
    verify_line,
)
from .disk import Descriptor, sync_file
from .tape_folder import PackedFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from ..model.entries import BlobRef
    from .disk import Folder
    from .packed import PackedTape

ENTRIES = "entries.jsonl"
ORIGIN = "0000-origin"
"""The copy of the shared path in a detached tape: not one of its own phases, but read like one."""
_FIRST = 1 << 12
_CHUNK = 1 << 16
_RUN = 1 << 17  # small enough for the processor's cache while it is decoded
_NAME = r"([0-9]{4,})-([a-z0-9][a-z0-9._-]{0,47}?)(?:-(start|compaction|handoff|merge))?\Z"


class Tail(NamedTuple):
    """The end of the good part of a phase: after its last line that verifies."""

    end: int
    """Offset after that line's newline."""
    offset: int
    """Offset of its first byte; −1 if there is no such line."""
    header: Header | None
    size: int
    """Size of the file: the bytes from `end` on are torn."""


class PhaseFile(Descriptor):
    """The entry file of one phase, open for reading.

    `redacted` returns the ids that redact entries of the tape name; it is called only for a last
    line whose data does not match its hash.
    """

    __slots__ = ("_redacted", "name")

    def __init__(
        self, fd: int, name: str, redacted: Callable[[], AbstractSet[str]] = frozenset
    ) -> None:
        super().__init__(fd)
        self.name, self._redacted = name, redacted

    def size(self) -> int:
        """Return the file's current size in bytes."""
        return os.fstat(self.fd).st_size

    def _read_part(self, count: int, start: int) -> bytes:
        """Return at most `count` bytes from `start` on; none behind the end."""
        return os.pread(self.fd, count, start)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to, not including, `end`."""
        parts = []
        while start < end and (part := self._read_part(end - start, start)):
            parts.append(part)
            start += len(part)
        return b"".join(parts)

    def read_runs(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, bytes) of the lines between two offsets, many whole ones at a time."""
        step = _RUN  # doubled while one line is longer than that
        while start < end:
            data = self.read(start, min(start + step, end))
            if not data:
                return
            cut = len(data) if start + len(data) >= end else data.rfind(b"\n") + 1
            # No newline in a whole run: one line is longer than it, so the next run is larger.
            if cut == 0 and len(data) < step:  # the file was truncated
                cut = len(data)
            if cut:
                yield start, data[:cut]
            start, step = start + cut, _RUN if cut else 2 * step

    def lines(self, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, line without newline) of the whole lines between two offsets."""
        rest, offset, step = b"", start, 0
        while end is None or start < end:
            step = _choose_read_size(step, rest)
            part = self._read_part(step if end is None else min(step, end - start), start)
            if not part:
                return
            start += len(part)
            whole = BytesIO(rest + part if rest else part).readlines()  # faster than splitting
            rest = b"" if whole[-1].endswith(b"\n") else whole.pop()
            for line in whole:
                yield offset, line[:-1]
                offset += len(line)

    def read_lines_back(self, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, line) backwards from `end`, which is 0 or follows a newline."""
        rest, start, step = b"", max(end - 1, 0), 0  # without the last newline
        while start > 0:
            step = _choose_read_size(step, rest)
            begin = max(start - step, 0)
            data, start = self.read(begin, start) + rest, begin
            stop = len(data)
            while (cut := data.rfind(b"\n", 0, stop)) >= 0:
                yield start + cut + 1, data[cut + 1 : stop]
                stop = cut
            rest = data[:stop]
        if end > 0:
            yield 0, rest

    def line_at(self, offset: int) -> bytes:
        """Return the whole line that begins at `offset`; raise Damaged if there is none."""
        if 0 <= offset < self.size():
            for _, line in self.lines(offset):
                return line
        raise Damaged(f"{self.name}: no whole line at byte {offset}", file=self.name, offset=offset)

    def tail(self) -> Tail:
        """Return the end of the last line that verifies; raise NewerFormat for a later format."""
        size = self.size()
        for offset, line in self.read_lines_back(self._find_last_newline(size)):
            try:
                return Tail(offset + len(line) + 1, offset, verify_line(line), size)
            except NewerFormat as error:  # a later program may read it, so it is not torn
                raise NewerFormat(f"{self.name}: {error}") from error
            except Damaged:
                # Taken for torn, a line whose redaction was interrupted would be cut off, and all
                # entries after it with it.
                with suppress(Damaged):
                    header = read_header(line)
                    if header.id in self._redacted():
                        return Tail(offset + len(line) + 1, offset, header, size)
        return Tail(0, -1, None, size)

    def read_redacted_ids(self) -> AbstractSet[str]:
        """Return the ids that the redact entries in this file name."""
        payloads = filter(None, (_decode_redact_line(line) for _, line in self.lines()))
        return {target for data in payloads for target in data.targets}

    def _find_last_newline(self, size: int) -> int:
        end, step = size, 0
        while end > 0:
            step = _choose_read_size(step, b"")
            start = max(end - step, 0)
            cut = self.read(start, end).rfind(b"\n")
            if cut >= 0:
                return start + cut + 1
            end = start
        return 0


class PackedPhaseFile(PhaseFile):
    """The entry file of one phase of an archived tape: it stays as it is."""

    __slots__ = ("_packed", "_path")

    def __init__(
        self,
        packed: PackedTape,
        path: str,
        name: str,
        redacted: Callable[[], AbstractSet[str]] = frozenset,
    ) -> None:
        super().__init__(packed.fd, name, redacted)
        self._packed: PackedTape | None = packed.share()
        self._path = path
        self.size()  # raises where there is no such file

    def size(self) -> int:
        """Return the file's size in bytes."""
        return 0 if self._packed is None else self._packed.stat(self._path).st_size

    def _read_part(self, count: int, start: int) -> bytes:
        return b"" if self._packed is None else self._packed.read(self._path, start, count)

    def close(self) -> None:
        """Close the file; closing twice is allowed."""
        packed, self._packed, self.fd = self._packed, None, -1
        if packed is not None:
            packed.close()


def _decode_redact_line(line: bytes) -> Redact | None:
    """Return the payload of a redact entry whose hashes hold; None for all others."""
    if read_type(line) != Redact.entry_type:
        return None
    try:
        verify_line(line)
        data = decode_line(line).data
    except Damaged:
        return None
    return data if isinstance(data, Redact) else None


def _choose_read_size(last: int, rest: bytes) -> int:
    """Return how many bytes to read next: few at first, as one line may suffice, then more.

    At least as many as are left over, so that a long line is not copied repeatedly.
    """
    return max(min(4 * last, _CHUNK), _FIRST, len(rest))


def _sort_phases(names: list[str], known: AbstractSet[str] = frozenset()) -> list[str]:
    """Return the names of phases in order of their numbers, but for a copied past and `known`."""
    left = [name for name in names if name not in known and name != ORIGIN]
    return sorted((name for name in left if re.match(_NAME, name)), key=order_phases)


class Phases:
    """The folder `phases/` of one tape.

    With `tape`, the folder that it is in, it is the one of the form that the tape has now;
    `changes` is what `tape.follow` returned before it was opened.
    """

    __slots__ = ("_changes", "_folder", "_tape")

    def __init__(self, folder: Folder, tape: Folder | None = None, changes: int = 0) -> None:
        self._folder, self._tape, self._changes = folder, tape, changes

    @classmethod
    def open_in(cls, tape: Folder) -> Self:
        """Open the phases of a tape by its folder; raise FileNotFoundError."""
        changes = tape.follow()  # first: it may take on its other form before the next line
        return cls(tape.sub("phases"), tape, changes)

    @property
    def folder(self) -> Folder:
        """The open folder."""
        while self._tape is not None and self._is_left():
            changes = self._tape.follow()
            self._folder.close()
            self._folder, self._changes = self._tape.sub("phases"), changes
        return self._folder

    def _is_left(self) -> bool:
        """Return whether the tape has taken on its other form since the folder was opened."""
        return self._tape is not None and self._tape.follow() != self._changes

    def close(self) -> None:
        """Close the folder."""
        self._folder.close()

    def names(self, known: AbstractSet[str] = frozenset()) -> list[str]:
        """Return the phase folders in order of their numbers, without a copied past.

        Names in `known` are left out.
        """
        return _sort_phases(self._list_names(), known)

    def _list_names(self) -> list[str]:
        names = self.folder.names()
        while self._is_left():  # it was being deleted
            names = self.folder.names()
        return names

    @property
    def has_origin(self) -> bool:
        """Return whether this tape has a copy of the path it was forked from."""
        return self.folder.has(ORIGIN) or (self._is_left() and self.folder.has(ORIGIN))

    def list_with_origin(self) -> list[str]:
        """Return the phase folders, oldest first, with a copied past before them."""
        names = self._list_names()
        return [*([ORIGIN] if ORIGIN in names else ()), *_sort_phases(names)]

    def open(self, name: str) -> PhaseFile:
        """Open the entries of a phase for reading; raise NotFound if it is missing."""
        if not re.match(_NAME, name):
            raise Damaged(f"{name!r} is not the name of a phase")
        while True:
            try:
                with self.folder.sub(name) as folder:
                    if isinstance(folder, PackedFolder):
                        path = folder.get_path(ENTRIES)
                        return PackedPhaseFile(folder.packed, path, name, self.read_redacted_ids)
                    return PhaseFile(folder.file(ENTRIES), name, self.read_redacted_ids)
            except (FileNotFoundError, NotADirectoryError) as error:
                if not self._is_left():
                    raise NotFound(f"phase {name} does not exist") from error

    def sync(self, name: str) -> None:
        """Sync the entries of a phase: whoever wrote them may have been killed before its sync."""
        if self._folder.durable:
            with self.open(name) as file:  # that of an archived tape was synced
                sync_file(file.fd)

    def read_first_lines(self, name: str) -> list[bytes]:
        """Return at most two lines of a phase; none if its creation was interrupted."""
        try:
            with self.open(name) as file:
                return [line for _, line in islice(file.lines(), 2)]
        except NotFound:
            return []

    def read_all_lines(self) -> Iterator[tuple[str, int, bytes]]:
        """Yield phase, offset and line of all stored entries, committed or not."""
        for name in self.list_with_origin():
            with suppress(NotFound), self.open(name) as file:  # a folder without its file
                for offset, line in file.lines():
                    yield name, offset, line

    def iter_redact_payloads(self) -> Iterator[tuple[str, int, Redact]]:
        """Yield every redact entry whose hashes hold, its phase and offset; reads every line."""
        for name, offset, line in self.read_all_lines():
            data = _decode_redact_line(line)
            if data is not None:
                yield name, offset, data

    def read_redacted_ids(self, sizes: Mapping[str, int] | None = None) -> AbstractSet[str]:
        """Return the ids that the redact entries of this tape name; reads every line.

        With `sizes` only those that begin before these ends of phases.
        """
        return {
            target
            for name, offset, data in self.iter_redact_payloads()
            if sizes is None or offset < sizes.get(name, 0)
            for target in data.targets
        }

    def read_replica(self, name: str) -> str | None:
        """Return the copy of the store that writes a phase; None if its first entry says none."""
        try:
            first = self.first(name, describe_missing_blob)
        except (Damaged, NotFound):  # a folder that a killed program left without one
            return None
        replica = getattr(first and first.data, "replica", None)
        return replica if isinstance(replica, str) else None

    def first(self, name: str, expand: Callable[[BlobRef], str]) -> Entry | None:
        """Return the first entry of a phase, None if it has none yet; raise Damaged."""
        with self.open(name) as file:
            for offset, line in file.lines():
                try:
                    verify_line(line)
                except Damaged as error:
                    raise Damaged(
                        f"{name}: the first entry is damaged: {error}; `tape fsck` explains it",
                        file=name,
                        offset=offset,
                    ) from error
                return decode_line(line, expand)
        return None


def is_phase_name(name: str) -> bool:
    """Return whether a name is that of a phase folder, a copied past too."""
    return re.match(_NAME, name) is not None


def parse_phase_number(name: str) -> int:
    """Return the number a phase folder's name begins with."""
    return int(name.partition("-")[0])


def order_phases(name: str) -> tuple[int, str]:
    """Return what to sort phases by: machines may have given one number to two (tape.md §4)."""
    return parse_phase_number(name), name


def choose_phase_name(names: list[str], branch: str, began: str = "", step: int = 1) -> str:
    """Return the name of a new phase: the last number of `names` plus `step`, branch, and cause."""
    highest = parse_phase_number(names[-1]) if names else 0
    return f"{highest + step:04d}-{branch}{'-' + began if began else ''}"
