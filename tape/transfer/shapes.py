"""The lines of an export that are no entries: shapes, pure (`__init__` describes the file).

Entry lines and journal lines stand in it as they stand on disk, byte for byte.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

ARCHIVE_VERSION = 1
"""The version of the file that this code writes and reads."""

Digest = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class MaskingRecord(Struct, frozen=True):
    """What was masked: the id of the tape itself, and how many secrets in how many entries."""

    tape: str
    secrets: int
    entries: int


class ArchiveHeader(Struct, frozen=True, omit_defaults=True):
    """The first line: `tape` is tape.json as it stands."""

    export: int
    tape: Raw
    folder: str
    path: str | None = None
    """Id of the entry, where only the path to it was exported."""
    masked: MaskingRecord | None = None


class BlobLine(Struct, frozen=True):
    """One blob; `data` is its bytes in base64, null where the tape has lost it."""

    blob: Digest
    data: bytes | None


class PhaseLine(Struct, frozen=True):
    """The entry lines behind this one, up to the next line of another kind, are this phase's."""

    phase: str


class ArchiveTotals(Struct, frozen=True):
    """What stands before the last line; `sha256` of all those bytes, as hex digits."""

    entries: int
    phases: int
    blobs: int
    refs: int
    sha256: str


class EndLine(Struct, frozen=True):
    """The last line: a file without it was cut."""

    end: ArchiveTotals


def encode_archive_line(line: Struct) -> bytes:
    """Return a line with its newline."""
    return msgspec.json.encode(line) + b"\n"
