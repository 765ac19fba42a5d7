"""A tape being put together from lines, in a folder that no reader looks at.

Names are checked before they become paths, and lines against their hashes as they come.
"""

from __future__ import annotations

import os
import re
from hashlib import sha256
from typing import TYPE_CHECKING, BinaryIO

import msgspec
from msgspec import Struct

from .. import disk
from ..blobs import Blobs
from ..entries import Anchor
from ..errors import Damaged
from ..line import decode_line, verify_line
from ..phase import ENTRIES, ORIGIN
from ..refs import JOURNAL_NAME, replay_journal
from ..summaries import ANCHOR_PAGE as ANCHOR_PAGE
from ..summaries import render_anchor_page
from ..tape import INFO_NAME
from ..verify import check_time

if TYPE_CHECKING:
    from ..disk import Folder
    from ..line import Header

_PHASE_NAME = re.compile(r"[0-9]{4,}-[a-z0-9][a-z0-9._-]{0,63}\Z")
_TAPE_FOLDERS = ("phases", "blobs", "locks", "quarantine")
_BUFFER_BYTES = 1 << 20


class _Timed(Struct):
    time: str


class TapeBuilder:
    """The folder of a tape that is not one yet. A context manager."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.entries = self.refs = 0
        self.phases: dict[str, int] = {}
        """Number of the line in the source that each phase's first entry is."""
        self.blobs: set[str] = set()
        self.lost: set[str] = set()
        """Digests of blobs that the source names and does not have."""
        self.first_ref = 0
        """Number of the line in the source that is the first of the journal."""
        self._blobs = Blobs(folder)
        self._file: BinaryIO | None = None
        self._begun = ""
        """The phase whose first entry comes next."""
        for name in _TAPE_FOLDERS:
            folder.make(name).close()

    def write_info(self, data: bytes) -> None:
        """Write tape.json."""
        self.folder.create(INFO_NAME, data + b"\n")

    def begin_phase(self, name: str, number: int) -> None:
        """Begin a phase whose first entry is line `number` of the source."""
        self.close()
        if not _PHASE_NAME.match(name) or ".." in name:
            raise Damaged(f"{name!r} is not the name of a phase")
        if self.refs:
            raise Damaged(f"phase {name} stands behind the journal")
        if name in self.phases:
            raise Damaged(f"phase {name} stands twice")
        self.phases[name] = number
        self._begun = name
        with self.folder.sub("phases") as phases, phases.make(name) as made:
            self._file = self._create_file(made, ENTRIES)

    def add_entry(self, raw: bytes) -> Header:
        """Write an entry line, without its newline, and return its header; raise as `verify`."""
        header = verify_line(raw)
        require_valid_time(header.time)
        if self._file is None or self.refs:
            raise Damaged("an entry stands here, outside of any phase")
        self._file.write(raw + b"\n")
        self.entries += 1
        if self._begun and header.type == Anchor.entry_type and self._begun != ORIGIN:
            self._write_summary_page(self._begun, raw)
        self._begun = ""
        return header

    def _write_summary_page(self, name: str, raw: bytes) -> None:
        """Write the summary that a phase begins with for people, as its writer did."""
        anchor = decode_line(raw)
        if isinstance(anchor.data, Anchor):
            with self.folder.sub("phases") as phases, phases.sub(name) as phase:
                phase.create(ANCHOR_PAGE, render_anchor_page(anchor.data, anchor.time))

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
        """Write a blob; None where the source has lost it."""
        if digest in self.blobs:
            raise Damaged(f"blob {digest} stands twice")
        if data is not None and sha256(data).hexdigest() != digest:
            raise Damaged(f"the bytes of blob {digest} do not match its name")
        self.blobs.add(digest)
        if data is None:
            self.lost.add(digest)
        else:
            self._blobs.put(data)

    def finish_writing(self) -> None:
        """Return when everything is on the medium."""
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
        """Let go of the file that is being written, once it is on the medium."""
        file, self._file = self._file, None
        if file is not None:
            with file:
                file.flush()
                if self.folder.durable:
                    disk.sync_file(file.fileno())


def require_valid_time(time: str) -> None:
    """Raise Damaged for a tape's time text that is no moment."""
    for _, message in check_time(time):
        raise Damaged(message)
