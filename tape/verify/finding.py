"""What verify says of a tape, one finding each."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from ..clock import is_moment

if TYPE_CHECKING:
    from collections.abc import Iterator

Level = Literal["note", "torn", "damage"]
"""Worth knowing; the end of a file that a crash left incomplete; what does not hold."""


_TIME = 40
"""Characters of a time that are shown: what is none may be of any length."""


class Kind(StrEnum):
    """What a finding is about: a closed set, for programs; its message is for people."""

    LINK = "link"
    """A symbolic link stands in the tape."""
    UNREADABLE = "unreadable"
    """A file, or the whole tape, cannot be opened or read."""
    INFO = "info"
    """tape.json and the start entry say different things, or there is not one start entry."""
    INFO_UNREADABLE = "info-unreadable"
    """tape.json is missing or cannot be read."""
    JOURNAL = "journal"
    """refs.jsonl is missing or cannot be read."""
    JOURNAL_LINE = "journal-line"
    """A line of refs.jsonl does not match its hash."""
    CURRENT = "current"
    """The current branch is not there."""
    HEAD = "head"
    """A branch stands, or stood, where no entry is."""
    LABEL = "label"
    """A label names an entry that is not there."""
    LINE = "line"
    """A line's bytes are not those its hashes vouch for."""
    DATA = "data"
    """A line's hashes hold, and its data is not what its type asks for."""
    TIME = "time"
    """A time that is no moment of the calendar, or so late that no entry can follow."""
    PLACE = "place"
    """A line's hashes hold, and it does not belong where it stands."""
    BASE = "base"
    """The entry a phase goes on from is not where it says."""
    EMPTY = "empty"
    """A phase that the journal names has no first entry."""
    OVERWRITTEN = "overwritten"
    """An entry's data is gone, and no redact entry names it."""
    REDACTION = "redaction"
    """A redaction was cut short."""
    BLOB = "blob"
    """A blob's bytes do not match its name."""
    BLOB_NAMED = "blob-named"
    """An entry names a blob that is missing, damaged or of another size."""
    UNNAMED = "unnamed"
    """A phase in use that the journal does not name."""
    UNCOMMITTED = "uncommitted"
    """A phase that was begun and never committed."""
    LEFTOVER = "leftover"
    """Something that a program left half made."""
    WRITING = "writing"
    """The end of a file is being written."""
    TORN = "torn"
    """The end of a file is incomplete."""
    UNRECORDED = "unrecorded"
    """A torn tail stands in quarantine, and no repair entry names it."""


Wrong = tuple[Kind, str]
"""What is wrong with a line, and the words for it."""


class Finding(Struct, frozen=True, gc=False):
    """One thing that does not hold, and where."""

    level: Level
    kind: Kind
    file: str
    """Path inside the tape."""
    line: int | None
    """Number of the line, from 1."""
    offset: int | None
    """Byte offset of the line."""
    message: str
    depends: tuple[str, ...]
    """Branches whose path leads over it."""


class Counts(Struct, gc=False):
    """How much was looked at."""

    entries: int = 0
    phases: int = 0
    blobs: int = 0


def damage(
    kind: Kind,
    file: str,
    message: str,
    *,
    line: int | None = None,
    offset: int | None = None,
    on: tuple[str, ...] = (),
) -> Finding:
    """Return a finding of damage that the branches `on` depend on."""
    return Finding("damage", kind, file, line, offset, message, on)


def odd_time(time: str) -> Iterator[Wrong]:
    """Yield what is wrong with a tape's time text, if anything is."""
    if not is_moment(time):
        yield Kind.TIME, f"its time {time[:_TIME]!r} is no moment before the year 9999"


def note(kind: Kind, file: str, message: str, *, offset: int | None = None) -> Finding:
    """Return a finding of what is worth knowing and harms nothing."""
    return Finding("note", kind, file, None, offset, message, ())
