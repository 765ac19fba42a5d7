"""Building a tape from the lines of a file, in a folder that readers ignore.

Names are checked before they become paths, and lines against their hashes as they come. An error
names its line in the source. A file is recognized by its first line:

    {"export":…      an export: phases, journal and blobs as they were (`read_archive`)
    <!doctype html>  a page that holds an export (`open_page_archive`)
    {"id":"…         the entries of one path, as `tape log --json` prints them (`read_path_lines`)
    {"type":… }      lines as `tape append` takes them

Entries before the tape's own start entry are the past it was forked from. For a path the journal is
rebuilt from the entries, with their times, so that the same lines give the same tape.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from hashlib import sha256
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO, Literal, NamedTuple

import msgspec
from msgspec import Struct

from ..check.finding import check_time
from ..errors import Damaged, InvalidEntry, InvalidName, NewerFormat, OlderFormat, UsageError
from ..model.entries import Anchor, Branch, Start, User, join_texts
from ..model.line import FORMAT, Entry, decode_line, encode_id_prefix, read_header, verify_line
from ..model.summary import ANCHOR_PAGE, render_anchor_page
from ..store import disk
from ..store.blobs import Blobs
from ..store.disk import check_plain_name
from ..store.phase import ENTRIES, ORIGIN
from ..store.refs import JOURNAL_NAME, encode_ref_line, replay_journal
from ..store.tape import TapeInfo, make_tape_folder
from .contents import (
    ARCHIVE_VERSION,
    BLOB_IN_DATA,
    PAGE_ARCHIVE_END,
    PAGE_ARCHIVE_START,
    ArchiveHeader,
    ArchiveTotals,
    BlobLine,
    EndLine,
    PhaseLine,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..model.line import Header
    from ..store.disk import Folder


_PHASE_NAME = re.compile(r"[0-9]{4,}-[a-z0-9][a-z0-9._-]{0,63}\Z")
_BUFFER_BYTES = 1 << 20


class _Timed(Struct):
    time: str


class TapeBuilder:
    """The folder of an unfinished tape. A context manager."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.entries = self.refs = 0
        self.phases: dict[str, int] = {}
        """Line number in the source of each phase's first entry."""
        self.blobs: set[str] = set()
        self.lost: set[str] = set()
        """Digests of blobs that the source names but does not contain."""
        self.first_ref = 0
        """Line number in the source of the journal's first line."""
        self._blobs = Blobs(folder)
        self._file: BinaryIO | None = None
        self._new_phase = ""
        """The phase whose first entry comes next."""

    def write_info(self, data: bytes) -> None:
        """Write tape.json, and make the folders beside it: the first step."""
        make_tape_folder(self.folder, data)

    def begin_phase(self, name: str, number: int) -> None:
        """Start a phase whose first entry is line `number` of the source."""
        self.close()
        if not _PHASE_NAME.match(name) or ".." in name:
            raise Damaged(f"{name!r} is not the name of a phase")
        if self.refs:
            raise Damaged(f"phase {name} comes after the journal")
        if name in self.phases:
            raise Damaged(f"phase {name} is duplicated")
        self.phases[name] = number
        self._new_phase = name
        with self.folder.sub("phases") as phases, phases.make(name) as phase_folder:
            self._file = self._create_file(phase_folder, ENTRIES)

    def add_entry(self, raw: bytes) -> Header:
        """Write an entry line, without its newline, and return its header; raise as `verify`."""
        header = verify_line(raw)
        require_valid_time(header.time)
        if self._file is None or self.refs:
            raise Damaged("this entry is outside of any phase")
        self._file.write(raw + b"\n")
        self.entries += 1
        if self._new_phase and header.type == Anchor.entry_type and self._new_phase != ORIGIN:
            anchor = decode_line(raw)
            if isinstance(anchor.data, Anchor):  # the summary for people, as its writer did
                with self.folder.sub("phases") as phases, phases.sub(self._new_phase) as phase:
                    phase.create(ANCHOR_PAGE, render_anchor_page(anchor.data, anchor.time))
        self._new_phase = ""
        return header

    def add_ref(self, line: bytes, number: int) -> None:
        """Write a line of the journal, with its newline."""
        if replay_journal(line).size != len(line):
            raise Damaged(f"a line of {JOURNAL_NAME} that does not match its hash")
        require_valid_time(msgspec.json.decode(line, type=_Timed).time)
        if not self.refs:
            self.close()
            self.first_ref = number
            self._file = self._create_file(self.folder, JOURNAL_NAME)
        assert self._file is not None
        self._file.write(line)
        self.refs += 1

    def add_blob(self, digest: str, data: bytes | None) -> None:
        """Write a blob; None if it is missing in the source."""
        if digest in self.blobs:
            raise Damaged(f"blob {digest} is duplicated")
        if data is not None and sha256(data).hexdigest() != digest:
            raise Damaged(f"the bytes of blob {digest} do not match its name")
        self.blobs.add(digest)
        if data is None:
            self.lost.add(digest)
        else:
            self._blobs.put(data)

    def finish_writing(self) -> None:
        """Sync everything."""
        self.close()
        with self.folder.sub("phases") as phases:
            for name in self.phases:
                with phases.sub(name) as phase:
                    phase.sync()
            phases.sync()
        self.folder.sync()

    def _create_file(self, folder: Folder, name: str) -> BinaryIO:
        return os.fdopen(
            folder.file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb", _BUFFER_BYTES
        )

    def close(self) -> None:
        """Sync and close the file that is being written."""
        file, self._file = self._file, None
        if file is not None:
            with file:
                file.flush()
                if self.folder.durable:
                    disk.sync_file(file.fileno())


def require_valid_time(time: str) -> None:
    """Raise Damaged for an invalid time text."""
    for _, message in check_time(time):
        raise Damaged(message)


SourceForm = Literal["export", "page", "entries", "given"]
"""An export; a page that holds one; entry lines of a path; lines as `tape append` takes them."""
PAGE_START = b"<!doctype html>"
"""How a page begins, in upper or lower case."""
_CUT_SHORT = "the file was truncated, get a complete copy"
_TOTALS_DIFFER = "lines before the end were changed, added or removed"
_NOTHING_IMPORTED = "nothing was imported"


@contextmanager
def add_error_line(number: int) -> Iterator[None]:
    """Add the line number in the source to an error."""
    try:
        yield
    except InvalidEntry as error:
        raise InvalidEntry(f"line {number}: {error}; {_NOTHING_IMPORTED}") from error
    except (NewerFormat, OlderFormat) as error:
        raise type(error)(f"line {number}: {error}; {_NOTHING_IMPORTED}") from error
    except (Damaged, InvalidName, ValueError, RecursionError) as error:
        raise Damaged(f"line {number}: {error}; {_NOTHING_IMPORTED}") from error


def read_items(source: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield number and text of non-empty lines, also of an array with one element per line."""
    for number, line in enumerate(source, 1):
        text = line.strip()
        if text not in {b"", b"[", b"]", b"[]"}:
            yield number, text.removesuffix(b",")


def detect_form(source: BinaryIO) -> SourceForm:
    """Return the form of a file, and seek to its beginning; raise UsageError if unknown."""
    _, line = next(read_items(source), (0, b""))
    source.seek(0)
    if not line:
        raise UsageError("nothing to import: the file is empty")
    if line.startswith(b'{"export":'):
        return "export"
    if line.lower().startswith(PAGE_START):
        return "page"
    if line.startswith(encode_id_prefix("")):
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


@contextmanager
def open_page_archive(page: BinaryIO) -> Iterator[BinaryIO]:
    """Yield the file of `tape export` that a page holds, to be read; raise UsageError, Damaged."""
    with TemporaryFile() as lines:
        is_inside = is_whole = False
        for number, line in enumerate(page, 1):
            if not is_inside:
                is_inside = line.startswith(PAGE_ARCHIVE_START)
                continue
            if line.startswith(PAGE_ARCHIVE_END):
                is_whole = True
                break
            try:
                text = msgspec.json.decode(line.strip().removesuffix(b","), type=str)
            except msgspec.DecodeError as error:
                raise Damaged(f"line {number}: {error}; nothing was imported") from error
            lines.write(text.encode() + b"\n")
        if not is_inside:
            raise UsageError("this page holds no tape: give one of `tape export --to html`")
        if not is_whole:
            raise Damaged("the page ends within its tape; nothing was imported")
        lines.seek(0)
        yield lines


class _TapeFormat(Struct):
    format: int


class _ArchiveVersions(Struct):
    export: int
    tape: _TapeFormat


def read_archive_header(source: BinaryIO) -> tuple[ArchiveHeader, TapeInfo]:
    """Return the first line of an export and the tape.json in it, and seek to the beginning."""
    line = source.readline()
    source.seek(0)
    with add_error_line(1):
        if not line.endswith(b"\n"):
            raise Damaged(_CUT_SHORT)
        versions = msgspec.json.decode(line, type=_ArchiveVersions)
        for what, version, known in (
            ("an export", versions.export, ARCHIVE_VERSION),
            ("a tape", versions.tape.format, FORMAT),
        ):
            if version > known:
                raise NewerFormat(
                    f"{what} of format {version}, this program reads up to {known}: update it"
                )
        header = msgspec.json.decode(line, type=ArchiveHeader)
        if check_plain_name(header.folder).startswith("."):
            raise Damaged(f"{header.folder!r} is not the name of a tape's folder")
        info = msgspec.json.decode(header.tape, type=TapeInfo)
        require_valid_time(info.created)
        return header, info


def read_archive(source: BinaryIO, header: ArchiveHeader, building: TapeBuilder) -> None:
    """Read a file of `outgoing.export`; raise Damaged, NewerFormat or OlderFormat."""
    building.write_info(bytes(header.tape))
    hashed, number, end = sha256(), 0, None
    for number, line in enumerate(source, 1):
        with add_error_line(number):
            if end is not None:
                raise Damaged("it comes after the end line")
            if not line.endswith(b"\n"):
                raise Damaged(_CUT_SHORT)
            if line.startswith(b'{"end":'):
                end = msgspec.json.decode(line, type=EndLine).end
                read = (building.entries, len(building.phases), len(building.blobs), building.refs)
                if end != ArchiveTotals(*read, hashed.hexdigest()):
                    raise Damaged(_TOTALS_DIFFER)
            elif number > 1:
                _read_archive_line(line, number, building)
            hashed.update(line)
    if end is None:
        raise Damaged(
            f"line {number} is the last but not an end line: {_CUT_SHORT}; {_NOTHING_IMPORTED}"
        )


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
        raise Damaged("not a line of an export")


_PHASE_OPENERS = frozenset({"start", "branch", "anchor"})


class PathInfo(NamedTuple):
    """The facts about the tape of the lines."""

    info: TapeInfo
    past: int
    """Number of entries before its start entry."""
    prompt: str
    """The first prompt."""


def inspect_path(source: BinaryIO) -> PathInfo:
    """Check all lines, and seek to the beginning.

    Raises UsageError if they do not begin at the root, Damaged if one does not verify or does not
    follow the one before it.
    """
    info, past, prompt, before = None, 0, "", None
    for count, (number, raw) in enumerate(read_items(source)):
        with add_error_line(number):
            header = verify_line(raw)
            if before is None and header.n != 0:
                break
            if before is not None and header.parent_id != before:
                raise Damaged("its parent is not the entry before it: entries are missing")
            before = header.id
            if header.type == Start.entry_type:
                info, past = _build_info(decode_line(raw)), count
            elif header.type == User.entry_type and not prompt:
                payload = decode_line(raw).data
                prompt = join_texts(payload.content) if isinstance(payload, User) else ""
    source.seek(0)
    if info is None:
        raise UsageError(
            "these entries do not begin with the start of their tape: give the whole path, as "
            "`tape export` or `tape log --json` prints it"
        )
    return PathInfo(info, past, prompt)


def _build_info(entry: Entry) -> TapeInfo:
    """Return the tape.json that belongs to this start entry."""
    start = entry.data
    if not isinstance(start, Start):
        raise Damaged("a start entry that cannot be read")
    info = TapeInfo(FORMAT, start.tape, entry.time, start.program, start.origin)
    return msgspec.convert(msgspec.to_builtins(info), TapeInfo)


def read_path_lines(source: BinaryIO, path: PathInfo, building: TapeBuilder) -> None:
    """Write the lines into phases, then a journal whose head is the last entry."""
    building.write_info(msgspec.json.encode(path.info))
    moves: list[dict[str, object]] = []
    for count, (number, raw) in enumerate(read_items(source)):
        with add_error_line(number):
            if count == 0 and path.past:
                building.begin_phase(ORIGIN, number)
            if count >= path.past and read_header(raw).type in _PHASE_OPENERS:
                moves.append(_build_phase_move(decode_line(raw)))
                building.begin_phase(str(moves[-1]["phase"]), number)
            building.add_entry(raw)
            building.lost.update(digest.decode() for digest in BLOB_IN_DATA.findall(raw))
    last = moves[-1]
    for move in (*moves, {"current": last["branch"], "why": "import", "time": last["time"]}):
        building.add_ref(encode_ref_line(move), 0)


def _build_phase_move(entry: Entry) -> dict[str, object]:
    """Return the journal line of the phase that an entry begins."""
    data = entry.data
    if not isinstance(data, Start | Branch | Anchor):
        raise Damaged(f"a phase begins with {entry.type}, which cannot be read")
    common_fields = {"why": "import", "time": entry.time}
    return {"branch": data.branch, "phase": data.phase, "pin": None, **common_fields}
