"""The findings of verify: what is damaged, torn or only worth a note, and where.

A torn tail is the bytes after the last whole line; while its lock is held they are being written.
"""

from __future__ import annotations

import math
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from ..clock import is_valid_timestamp
from ..store.locks import is_lock_held
from ..store.phase import ORIGIN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ..model.entries import Place
    from ..store.disk import Folder


Level = Literal["note", "torn", "damage"]
"""note: harmless information; torn: an incomplete end of a file, left by a crash; damage."""


_TIME_CHARACTERS = 40
"""Most characters shown of an invalid time, which may be of any length."""


class FindingKind(StrEnum):
    """What a finding is about: a closed set, for programs; its message is for people."""

    LINK = "link"
    """The tape contains a symbolic link."""
    UNREADABLE = "unreadable"
    """A file, or the whole tape, cannot be opened or read."""
    ARCHIVE = "archive"
    """The file of an archived tape is damaged."""
    INFO = "info"
    """tape.json and the start entry differ, or there is not exactly one start entry."""
    INFO_UNREADABLE = "info-unreadable"
    """tape.json is missing or cannot be read."""
    JOURNAL = "journal"
    """refs.jsonl is missing or cannot be read."""
    JOURNAL_LINE = "journal-line"
    """A line of refs.jsonl does not match its hash."""
    CURRENT = "current"
    """The current branch does not exist."""
    HEAD = "head"
    """A branch points, or pointed, at an entry that does not exist."""
    LABEL = "label"
    """A label names an entry that does not exist."""
    LINE = "line"
    """A line's bytes do not match its hashes."""
    DATA = "data"
    """A line's hashes match, but its data is invalid for its type."""
    TIME = "time"
    """A time that is not a valid date, or so late that no entry can follow."""
    PLACE = "place"
    """A line's hashes match, but it is in the wrong place."""
    BASE = "base"
    """The entry that a phase continues from is not where the phase says."""
    EMPTY = "empty"
    """A phase that the journal names has no first entry."""
    OVERWRITTEN = "overwritten"
    """An entry's data was overwritten, but no redact entry names it."""
    REDACTION = "redaction"
    """A redaction was interrupted."""
    BLOB = "blob"
    """A blob's bytes do not match its name."""
    BLOB_NAMED = "blob-named"
    """An entry names a blob that is missing, damaged or of another size."""
    UNNAMED = "unnamed"
    """A phase in use that the journal does not name."""
    UNCOMMITTED = "uncommitted"
    """A phase that was started but never committed."""
    LEFTOVER = "leftover"
    """A leftover of an interrupted write."""
    WRITING = "writing"
    """The end of a file is being written."""
    TORN = "torn"
    """The end of a file is incomplete."""
    UNRECORDED = "unrecorded"
    """A torn tail is in quarantine, but no repair entry names it."""


Fault = tuple[FindingKind, str]
"""A fault of a line: its kind and its message."""


class Finding(Struct, frozen=True, gc=False):
    """One fault or note, and its place."""

    level: Level
    kind: FindingKind
    file: str
    """Path inside the tape."""
    line: int | None
    """Line number, from 1."""
    offset: int | None
    """Byte offset of the line."""
    message: str
    depends: tuple[str, ...]
    """Branches whose path includes it."""


class Counts(Struct, gc=False):
    """How much was checked."""

    entries: int = 0
    phases: int = 0
    blobs: int = 0


def build_damage(
    kind: FindingKind,
    file: str,
    message: str,
    *,
    line: int | None = None,
    offset: int | None = None,
    on: tuple[str, ...] = (),
) -> Finding:
    """Return a finding of damage; the branches `on` depend on it."""
    return Finding("damage", kind, file, line, offset, message, on)


def check_time(time: str) -> Iterator[Fault]:
    """Yield the fault of a tape's time text, if it has one."""
    if not is_valid_timestamp(time):
        yield (
            FindingKind.TIME,
            f"its time {time[:_TIME_CHARACTERS]!r} is not a valid date before the year 9999",
        )


def build_note(kind: FindingKind, file: str, message: str, *, offset: int | None = None) -> Finding:
    """Return a finding that is harmless information."""
    return Finding("note", kind, file, None, offset, message, ())


_KEPT_NAME = re.compile(r"(.+?)\.[0-9]+(?:\.[0-9]+)*\Z")


def describe_tail(
    tape: Folder, file: str, lock: str, start: int, end: int, line: int, on: tuple[str, ...]
) -> Finding:
    """Return the finding about the bytes `start` to `end`: torn, unless `lock` is held."""
    if is_lock_held(tape, lock):
        message = f"{end - start} bytes of a line that is being written"
        return Finding("note", FindingKind.WRITING, file, line, start, message, ())
    message = f"{end - start} bytes of an incomplete line; the next append puts them in quarantine"
    return Finding("torn", FindingKind.TORN, file, line, start, message, on)


def find_unrecorded_tails(
    tape: Folder, branches: Mapping[str, str], recorded: Collection[str | None]
) -> Iterator[Finding]:
    """Yield findings for tails in quarantine without an entry; `branches` maps phase to branch."""
    for name in list_quarantine(tape):
        branch = branches.get(parse_kept_phase(name))
        if branch is None or name in recorded or is_lock_held(tape, branch):
            continue
        yield build_note(
            FindingKind.UNRECORDED, f"quarantine/{name}", "a torn tail that no repair entry names"
        )


def list_quarantine(tape: Folder) -> list[str]:
    """Return the file names in quarantine."""
    try:
        with tape.sub("quarantine") as quarantine:
            return quarantine.names()
    except (FileNotFoundError, NotADirectoryError):
        return []


def parse_kept_phase(file_name: str) -> str:
    """Return the phase whose tail has this name in quarantine; "" for other files."""
    named = _KEPT_NAME.match(file_name)
    return named[1] if named else ""


def find_path_ends(
    bases: Mapping[str, Place], tape: str, phase: str, end: float
) -> dict[str, float]:
    """Return the phases of the path that ends at a byte of `phase`, and where it leaves each.

    `bases` maps phase to base. A path that leaves the tape goes through its copied past, if there
    is one.
    """
    ends: dict[str, float] = {}
    while phase not in ends:
        ends[phase] = end
        base = bases.get(phase)
        if base is None:
            break
        is_own = base.tape in (None, tape)
        phase, end = (base.phase, base.offset + 1) if is_own else (ORIGIN, math.inf)
    return ends
