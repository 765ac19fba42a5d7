"""What can be imported, told apart by its first line, and the file of an export read line by line.

An error names the line of the source it was found in.
"""

from __future__ import annotations

from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, BinaryIO, Literal

import msgspec
from msgspec import Struct

from ..disk import check_plain_name
from ..errors import Damaged, InvalidEntry, InvalidName, NewerFormat, OlderFormat, UsageError
from ..line import FORMAT
from ..tape import TapeInfo
from .building import require_valid_time
from .shapes import ARCHIVE_VERSION, ArchiveHeader, ArchiveTotals, BlobLine, EndLine, PhaseLine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .building import TapeBuilder

SourceForm = Literal["export", "entries", "given"]
"""A file of ours; the entry lines of one path; lines as `tape append` takes them."""
_CUT_SHORT = "the file was cut, get it whole again"
_NOTHING_IMPORTED = "nothing was imported"


@contextmanager
def add_error_line(number: int) -> Iterator[None]:
    """Say in an error which line of the source it was found in."""
    try:
        yield
    except InvalidEntry as error:
        raise InvalidEntry(f"line {number}: {error}; {_NOTHING_IMPORTED}") from error
    except (NewerFormat, OlderFormat) as error:
        raise type(error)(f"line {number}: {error}; {_NOTHING_IMPORTED}") from error
    except (Damaged, InvalidName, ValueError, RecursionError) as error:
        raise Damaged(f"line {number}: {error}; {_NOTHING_IMPORTED}") from error


def read_items(source: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield number and text of the lines that hold something, of an array with one a line too."""
    for number, line in enumerate(source, 1):
        text = line.strip()
        if text not in {b"", b"[", b"]", b"[]"}:
            yield number, text.removesuffix(b",")


def detect_form(source: BinaryIO) -> SourceForm:
    """Return what a file holds, and go back to its beginning; raise UsageError."""
    _, line = next(read_items(source), (0, b""))
    source.seek(0)
    if not line:
        raise UsageError("there is nothing to import: it holds no line")
    if line.startswith(b'{"export":'):
        return "export"
    if line.startswith(b'{"id":"'):
        return "entries"
    try:
        names = set(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
    except (ValueError, RecursionError):
        names = set()
    if "type" in names:
        return "given"
    raise UsageError(
        "this cannot be imported: give a file of `tape export`, the lines of `tape log --json`, or "
        'lines {"type":…,"data":{…}}'
    )


def read_archive_header(source: BinaryIO) -> tuple[ArchiveHeader, TapeInfo]:
    """Return the first line of an export and the tape.json in it, and go back to the beginning."""
    line = source.readline()
    source.seek(0)
    with add_error_line(1):
        if not line.endswith(b"\n"):
            raise Damaged(_CUT_SHORT)
        _refuse_newer_format(line)
        header = msgspec.json.decode(line, type=ArchiveHeader)
        if check_plain_name(header.folder).startswith("."):
            raise Damaged(f"{header.folder!r} is not the name of a tape's folder")
        info = msgspec.json.decode(header.tape, type=TapeInfo)
        require_valid_time(info.created)
        return header, info


class _TapeFormat(Struct):
    format: int


class _ArchiveVersions(Struct):
    export: int
    tape: _TapeFormat


def _refuse_newer_format(line: bytes) -> None:
    versions = msgspec.json.decode(line, type=_ArchiveVersions)
    for what, version, known in (
        ("an export", versions.export, ARCHIVE_VERSION),
        ("a tape", versions.tape.format, FORMAT),
    ):
        if version > known:
            raise NewerFormat(
                f"{what} of format {version}, this program reads up to {known}: update it"
            )


def read_archive(source: BinaryIO, header: ArchiveHeader, building: TapeBuilder) -> None:
    """Read a file of `outgoing.export`; raise Damaged, NewerFormat or OlderFormat."""
    building.write_info(bytes(header.tape))
    hashed, number, end = sha256(), 0, None
    for number, line in enumerate(source, 1):
        with add_error_line(number):
            if end is not None:
                raise Damaged("it stands behind the end")
            if not line.endswith(b"\n"):
                raise Damaged(_CUT_SHORT)
            if line.startswith(b'{"end":'):
                end = msgspec.json.decode(line, type=EndLine).end
                _check_totals(end, building, hashed.hexdigest())
            elif number > 1:
                _read_archive_line(line, number, building)
            hashed.update(line)
    if end is None:
        raise Damaged(
            f"line {number} is the last and no end line: {_CUT_SHORT}; {_NOTHING_IMPORTED}"
        )


def _check_totals(end: ArchiveTotals, building: TapeBuilder, digest: str) -> None:
    phases, blobs = len(building.phases), len(building.blobs)
    if end != ArchiveTotals(building.entries, phases, blobs, building.refs, digest):
        raise Damaged("lines before the end were changed, added or left out")


def _read_archive_line(line: bytes, number: int, building: TapeBuilder) -> None:
    if line.startswith(b'{"id":'):
        building.add_entry(line[:-1])
    elif line.startswith(b'{"h":'):
        building.add_ref(line, number)
    elif line.startswith(b'{"phase":'):
        building.begin_phase(msgspec.json.decode(line, type=PhaseLine).phase, number + 1)
    elif line.startswith(b'{"blob":'):
        blob = msgspec.json.decode(line, type=BlobLine)
        building.add_blob(blob.blob, blob.data)
    else:
        raise Damaged("no line that an export has")
