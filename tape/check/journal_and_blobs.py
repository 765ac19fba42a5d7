"""Checks of the journal and of the blobs.

The journal: every line, the head of every move, and which branches depend on a line. Blobs: the
hash of every one, and whether those that entries name are there.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from ..errors import TapeError
from ..model.line import JSON_ERRORS, describe_missing_blob
from ..store.path import read_base
from ..store.phase import ENTRIES
from ..store.refs import (
    JOURNAL_NAME,
    Refs,
    check_ref_name,
    find_head,
    read_head_at,
    read_union_phases,
)
from .finding import (
    FindingKind,
    build_damage,
    build_note,
    check_time,
    describe_tail,
    find_path_ends,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..model.entries import Place
    from ..store.disk import Folder
    from ..store.refs import Move
    from ..store.tape import Tape
    from .finding import Fault, Finding


class JournalCheck:
    """Checks refs.jsonl of one tape, and the phases it names."""

    def __init__(self, tape: Tape, names: Sequence[str]) -> None:
        self._tape, self._names = tape, names
        self.refs = Refs({}, {})
        self._bases: dict[str, Place] = {}

    def check_lines(self) -> Iterator[Finding]:
        """Check every line of the journal."""
        for name in self._names:
            # what cannot be read is reported when the phase's lines are
            with suppress(TapeError, OSError, ValueError):
                first = self._tape.phases.first(name, describe_missing_blob)
                if first and (base := read_base(first)) is not None:
                    self._bases[name] = base
        try:
            self.refs = self._tape.refs()
            data = self._tape.folder.read(JOURNAL_NAME)
        except (TapeError, OSError) as error:
            yield build_damage(FindingKind.JOURNAL, JOURNAL_NAME, f"cannot be read: {error}")
            return
        for bad in self.refs.damage:
            start = bad.offset or 0
            line = data.count(b"\n", 0, start) + 1
            message = "its hash does not match its bytes"
            yield build_damage(
                FindingKind.JOURNAL_LINE, JOURNAL_NAME, message, line=line, offset=start
            )
        yield from _check_journal_times(data)
        start = self.refs.size
        if self._tape.refs().size == start and start < len(data):
            line = data.count(b"\n", 0, start) + 1
            on = tuple(self.refs.branches)
            folder = self._tape.folder
            yield describe_tail(folder, JOURNAL_NAME, "refs", start, len(data), line, on)
        if self.refs.current not in self.refs.branches:
            message = f"the current branch {self.refs.current!r} does not exist"
            yield build_damage(FindingKind.CURRENT, JOURNAL_NAME, message)

    def check_moves(self, branches: Mapping[str, str]) -> Iterator[Finding]:
        """Check that every move points at an entry; `branches` maps each phase to its branch."""
        for branch, moves in self.refs.branches.items():
            for ago, move in enumerate(reversed(moves)):
                wrong = self._explain_wrong_move(move, ago, branches)
                if wrong:
                    where = f"branch {branch!r}" + (f" {ago} moves ago" if ago else "")
                    on = () if ago else (branch,)
                    yield build_damage(FindingKind.HEAD, JOURNAL_NAME, f"{where}: {wrong}", on=on)

    def _explain_wrong_move(self, move: Move, ago: int, branches: Mapping[str, str]) -> str:
        try:
            check_ref_name("branch", move.branch)
            if move.pin is not None:
                read_head_at(
                    self._tape.phases, move.branch, move.phase, move.pin.offset, move.pin.entry
                )
            elif ago == 0:
                find_head(self.refs, self._tape.phases, move.branch)
            elif not self._tape.phases.folder.has(move.phase):
                return f"its phase {move.phase!r} does not exist"
        except (TapeError, OSError) as error:
            return f"it has no head: {error}"
        if move.pin is None and branches.get(move.phase, move.branch) != move.branch:
            return f"{move.phase} is the phase of another branch, and no entry is pinned"
        return ""

    def find_uncommitted(self, sizes: Mapping[str, int]) -> Iterator[Finding]:
        """Yield findings for phases that no ref names; `sizes` is the number of lines in each."""
        if not self.list_named_phases().issuperset(self._names):
            with suppress(TapeError, OSError):  # a writer may have appended meanwhile
                self.refs = self._tape.refs()
        named, united = self.list_named_phases(), read_union_phases(self._tape.folder)
        for name in (name for name in self._names if name not in named):
            if name in united:
                message = "a union with another copy was interrupted: the next write completes it"
                yield build_note(FindingKind.UNCOMMITTED, f"phases/{name}", message)
            elif sizes[name] > 1:
                message = (
                    f"{sizes[name]} entries that {JOURNAL_NAME} does not name; readers ignore them"
                )
                yield build_damage(FindingKind.UNNAMED, f"phases/{name}/{ENTRIES}", message)
            else:
                message = "started but never committed: readers ignore it"
                yield build_note(FindingKind.UNCOMMITTED, f"phases/{name}", message)

    def list_named_phases(self) -> set[str]:
        """Return the phases that refs name."""
        return {move.phase for moves in self.refs.branches.values() for move in moves}

    def find_branches_over(self, phase: str, offset: int = 0) -> tuple[str, ...]:
        """Return the branches whose path includes the line at `offset` of a phase."""
        branches = []
        for branch, moves in self.refs.branches.items():
            pin = moves[-1].pin
            end = math.inf if pin is None else pin.offset + 1
            ends = find_path_ends(self._bases, self._tape.id, moves[-1].phase, end)
            if offset < ends.get(phase, 0):
                branches.append(branch)
        return tuple(branches)


class _TimedJournalLine(Struct):
    time: str


def _check_journal_times(data: bytes) -> Iterator[Finding]:
    """Yield a finding for each journal line with an invalid time; unreadable lines are skipped."""
    start = 0
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        with suppress(*JSON_ERRORS):
            for kind, message in check_time(msgspec.json.decode(line, type=_TimedJournalLine).time):
                yield build_damage(kind, JOURNAL_NAME, message, line=number, offset=start)
        start += len(line) + 1


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
        try:
            blobs = self._tape.folder.sub("blobs")
        except (FileNotFoundError, NotADirectoryError):
            return
        with blobs:
            for name in blobs.names():
                try:
                    shelf = blobs.sub(name)
                except (FileNotFoundError, NotADirectoryError):
                    continue  # a foreign file, or a link, which is reported elsewhere
                with shelf:
                    for digest in filter(_DIGEST.match, shelf.names()):
                        yield from self._check_blob(shelf, digest)

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

        def parse_number(digits: str) -> int | str:
            return int(digits) if len(digits) <= _MAX_DIGITS else digits

        try:
            json.loads(data, object_hook=collect, parse_int=parse_number)
        except (ValueError, RecursionError) as error:
            return [(FindingKind.DATA, f"its data is not JSON: {error}")]
        return [wrong for value in named for wrong in self._check_named_blob(value)]

    def _check_named_blob(self, named: dict[str, Any]) -> Iterator[Fault]:
        digest = named["$blob"]
        if not isinstance(digest, str) or not _DIGEST.match(digest):
            yield FindingKind.DATA, "it names a blob by a value that is not a hash"
        elif digest in self._rotten:
            yield FindingKind.BLOB_NAMED, f"it names the blob {digest}, which is damaged"
        else:
            try:
                with self._tape.folder.sub("blobs") as blobs, blobs.sub(digest[:2]) as shelf:
                    size = shelf.stat(digest).st_size
            except (FileNotFoundError, NotADirectoryError):
                yield FindingKind.BLOB_NAMED, f"it names the blob {digest}, which is missing"
            else:
                if size != named.get("bytes"):
                    yield FindingKind.BLOB_NAMED, f"it gives the blob {digest} a wrong size"
