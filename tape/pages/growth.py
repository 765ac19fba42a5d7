"""What was written to a tape since a page was made of it: lines of an export, and what they say.

    position   how far the journal and each phase were read: `refs:210,0001-main:4711`
    watch      cheap, for each look: whether anything was written at all (`TapeWatch`)
    growth     the entries behind a position, with their blobs before them, and where branches end

Invariant: only whole lines that verify are given, and each at least once: a page that has read up
to a position and takes what grew has what it would have if it were made now.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..archive.contents import BLOB_IN_DATA, BlobLine, PhaseLine, encode_archive_line
from ..errors import Damaged, NotFound
from ..model.entries import Redact
from ..model.line import read_type, verify_line
from ..store.phase import ENTRIES
from ..store.refs import JOURNAL_NAME
from ..store.tape_folder import is_archived
from .page_view import PageView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..store.phase import PhaseFile
    from ..store.tape import Tape

_JOURNAL = "refs"
_PLACE = re.compile(rf"({_JOURNAL}|[0-9]{{4,}}-[a-z0-9._-]{{1,64}}):([0-9]{{1,15}})\Z")


class Growth(NamedTuple):
    """What was written behind a position."""

    lines: list[bytes]
    """Of an export, each with its newline: blobs, and entries after the blobs that they name."""
    view: PageView
    """What these lines say, and all branches and labels of the tape."""
    position: str
    """Where they end."""


def find_position(tape: Tape) -> str:
    """Return the position at the end of what is written now."""
    refs = tape.refs()
    ends = {_JOURNAL: refs.size}
    for name in sorted(refs.phases()):
        with tape.phases.open(name) as file:
            ends[name] = file.tail().end
    return _encode_position(ends)


def _encode_position(ends: dict[str, int]) -> str:
    return ",".join(f"{name}:{end}" for name, end in ends.items())


def _decode_position(text: str) -> dict[str, int] | None:
    """Return where each phase was read up to; None for what is no position."""
    places = [_PLACE.match(place) for place in text.split(",") if place]
    if None in places:
        return None
    return {place[1]: int(place[2]) for place in places if place}


def read_growth(tape: Tape, position: str) -> Growth | None:
    """Return what was written behind a position; None where the page has to be made again.

    That is so if the position is not one of this tape, or if what was there before was redacted.
    Raises Damaged, NotFound or OSError where the tape cannot be read.
    """
    ends = _decode_position(position)
    refs, view, lines = tape.refs(), PageView(), list[bytes]()
    if ends is None or ends.get(_JOURNAL, 0) > refs.size:
        return None
    ends[_JOURNAL] = refs.size
    for name in sorted(refs.phases()):
        with tape.phases.open(name) as file:
            start, size = ends.get(name, 0), file.size()
            if start > size:
                return None
            tail = file.tail()
            if tail.header is not None:
                view.note_end(name, tail.header.id)
            if start >= tail.end:
                continue
            view.add_line(encode_archive_line(PhaseLine(name)))
            for line in _read_checked_lines(file, start, tail.end):
                if start and read_type(line) == Redact.entry_type:
                    return None
                for digest in dict.fromkeys(BLOB_IN_DATA.findall(line)):
                    lines.append(_encode_blob(tape, digest.decode()))
                    view.add_line(lines[-1])
                lines.append(line + b"\n")
                view.add_line(lines[-1])
            ends[name] = tail.end
    for line in tape.folder.read(JOURNAL_NAME)[: refs.size].split(b"\n")[:-1]:
        with suppress(ValueError):  # a damaged line, which `refs` left out as well
            view.add_line(line)
    return Growth(lines, view, _encode_position(ends))


def _read_checked_lines(file: PhaseFile, start: int, end: int) -> Iterator[bytes]:
    for _, line in file.lines(start, end):
        with suppress(Damaged):
            verify_line(line)
            yield line


def _encode_blob(tape: Tape, digest: str) -> bytes:
    data: bytes | None = None
    with suppress(NotFound):
        data = tape.blobs.read(digest)
    return encode_archive_line(BlobLine(digest, data))


class TapeWatch:
    """Says whether a tape was written since the last look: a call of `stat` for each branch."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._files: tuple[str, ...] = ()
        self._seen: tuple[int, ...] = ()

    def has_changed(self) -> bool:
        """Return whether anything was written; True at the first look.

        Raises FileNotFoundError where the tape is gone.
        """
        seen = self._measure()
        if seen == self._seen:
            return False
        # Which phases grow is said by the journal: only the last one of each branch.
        refs = self._tape.refs()
        phases = {moves[-1].phase for moves in refs.branches.values() if moves[-1].pin is None}
        is_still = is_archived(self._tape.folder)
        self._files = () if is_still else tuple(f"{name}/{ENTRIES}" for name in sorted(phases))
        self._seen = self._measure()
        return True

    def _measure(self) -> tuple[int, ...]:
        folder, phases, sizes = self._tape.folder, self._tape.phases.folder, list[int]()
        if not is_archived(folder):
            sizes = [os.stat(name, dir_fd=phases.fd).st_size for name in self._files]
        return folder.follow(), folder.stat(JOURNAL_NAME).st_size, *sizes
