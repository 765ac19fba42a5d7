"""Pull: what a remote has of tapes comes to this store.

The push log says which chunks came since the last pull. What a tape's new chunks hold is laid out
beside the tapes as a copy of the tape as the remote has it, and united with the one here
(`unite`): lines are checked before they touch a tape, both ends of a branch that moved on both
sides are kept, and nothing is dropped. A tape whose chunks are damaged is left as it is and named,
and the others are pulled.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from ..errors import Damaged, RemoteUnavailable, TapeError
from ..store.blobs import Blobs, find_blob_hashes
from ..store.disk import Descriptor, write_bytes
from ..store.phase import ENTRIES, Phases
from ..store.recorded_tape import TapeFolders, create_scratch_folder
from ..store.refs import JOURNAL_NAME, decode_ref_line
from ..store.replica import Replica
from ..store.tape import INFO_NAME, Tape
from ..store.tape_folder import PackedFolder
from ..unite.stores import TapeOutcome, add_tape_copy
from .chunk_reader import read_chunks
from .cursor import GROWING_SECONDS, TapeCursor
from .leases import find_leases, read_leases
from .objects import (
    LOG_PREFIX,
    TAPES_PREFIX,
    decode_log,
    make_blob_key,
    make_chunk_key,
    make_log_key,
    parse_chunk_key,
    parse_log_key,
)
from .read_ahead import ReadAhead

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..store.disk import Folder
    from ..store.store import Store
    from .cursor import Cursor
    from .objects import Chunk
    from .remote import Listed, Remote

_SLICE = 32
"""Blobs that are read at once, and tapes of which the only new chunk is."""
_LOG_SLICE = 1_000
_LOG_AND_LEASES = "l"
"""What the keys of both begin with, and no others: one list for both."""


class NewChunks(NamedTuple):
    """What a remote has that is not here."""

    wanted: dict[str, int]
    """Tapes, and the number of the newest chunk of each."""
    log: int
    """The number of the newest line of the push log that was read."""


def find_new_chunks(remote: Remote, cursor: Cursor) -> NewChunks:
    """Return what a remote has that is not here: by the push log, or by its keys at first.

    Of tapes that are published as they are written, the chunks that no line names yet, too.
    """
    wanted, read = cursor.list_wanted(), cursor.read_log_number("read")
    if read:
        listed = [*remote.list(LOG_PREFIX, make_log_key(read))]
    else:
        listed = [*remote.list(_LOG_AND_LEASES)]
    numbers = [parse_log_key(item.key) for item in listed]
    new = [number for number in numbers if number is not None]
    growing: dict[str, bool] = {}
    if new and read == 0:  # all of it: a list of keys is shorter than the log
        growing |= dict.fromkeys(_list_leased(remote, listed), True)
        _note_listed(wanted, remote, TAPES_PREFIX)
    _note_logged(wanted, growing, remote, new if read else ())
    for tape, grows in growing.items():
        if not grows:  # one writer ended, and another one may go on
            growing[tape] = any(at.lease for at in find_leases(remote, tape))
    now = time.time()
    with cursor.transaction():
        for tape, grows in growing.items():
            cursor.save_growing(tape, grows=grows, now=now)
    for tape in cursor.list_growing(now):
        newest = max(cursor.read_tape(tape).seq, wanted.get(tape, 0))
        _note_listed(wanted, remote, f"{TAPES_PREFIX}{tape}/", make_chunk_key(tape, newest))
    return NewChunks(
        {tape: seq for tape, seq in wanted.items() if seq > cursor.read_tape(tape).seq},
        max(new, default=read),
    )


def _list_leased(remote: Remote, objects: Sequence[Listed]) -> list[str]:
    """Return the tapes that somebody worked on in the last day, as their leases say."""
    leases = [(at.tape, at.lease) for at in read_leases(remote, objects) if at.lease]
    now = remote.now() if leases else 0
    return [tape for tape, lease in leases if lease.measure_age(now) < GROWING_SECONDS]


def _note_listed(newest: dict[str, int], remote: Remote, prefix: str, after: str = "") -> None:
    """Note the newest chunk of each tape below a prefix."""
    for listed in remote.list(prefix, after):
        if entry := parse_chunk_key(listed.key):
            newest[entry.tape] = max(entry.seq, newest.get(entry.tape, 0))


def _note_logged(
    newest: dict[str, int], growing: dict[str, bool], remote: Remote, numbers: Sequence[int]
) -> None:
    """Note the chunks that lines of the push log name, and which tapes grow."""
    for number, data in _read_log(remote, numbers):
        try:
            entries = decode_log(make_log_key(number), data)
        except Damaged:  # what it named is there
            _note_listed(newest, remote, TAPES_PREFIX)
            continue
        for tape, seq, is_growing in entries:
            newest[tape] = max(seq, newest.get(tape, 0))
            if is_growing is not None:
                growing[tape] = is_growing


def _read_log(remote: Remote, numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    for start in range(0, len(numbers), _LOG_SLICE):
        part = numbers[start : start + _LOG_SLICE]
        for number, data in zip(part, remote.read_many([*map(make_log_key, part)]), strict=True):
            if data is not None:
                yield number, data


def pull_tapes(
    store: Store, remote: Remote, cursor: Cursor, prefixes: tuple[str, ...] | None = None
) -> Iterator[TapeOutcome]:
    """Bring what a remote has to this store, and yield what was done.

    All tapes, or those whose ids begin with one of `prefixes`. An error of one tape is part of its
    outcome; it is tried again by the next pull. RemoteUnavailable ends this one.
    """
    new = find_new_chunks(remote, cursor)
    with cursor.transaction():
        for tape, seq in new.wanted.items():
            cursor.want(tape, seq)
        cursor.save_log_number("read", new.log)
        cursor.save_log_number("end", max(new.log, cursor.read_log_number("end")))
    folders = TapeFolders(store)
    chosen = [
        (tape, seq)
        for tape, seq in sorted(new.wanted.items())
        if prefixes is None or tape.startswith(prefixes)
    ]
    for start in range(0, len(chosen), _SLICE):
        part = chosen[start : start + _SLICE]
        single = [entry for entry in part if entry[1] == cursor.read_tape(entry[0]).seq + 1]
        ahead = ReadAhead(remote, [make_chunk_key(*entry) for entry in single])
        for tape, seq in part:
            yield pull_tape(store, ahead, cursor, folders, tape, seq)


def pull_tape(
    store: Store, remote: Remote, cursor: Cursor, folders: TapeFolders, tape: str, seq: int
) -> TapeOutcome:
    """Bring the chunks of a tape up to number `seq` to this store."""
    known, name = cursor.read_tape(tape), folders.find(tape)
    try:
        outcome, now, pushers = _unite_chunks(store, remote, known, tape, name, seq)
    except _TapeGone as gone:
        return _remove_tape(store, cursor, tape, name, seq, str(gone))
    except RemoteUnavailable:
        raise
    except TapeError as error:
        return TapeOutcome(tape, name or tape, False, None, str(error))
    if outcome.error is None:
        with cursor.transaction():
            cursor.save_tape(tape, now)
            if store.replica() in pushers:  # a push of this store was interrupted
                cursor.save_unlogged(tape)
            if pushers - {store.replica()}:
                cursor.save_shared(tape)
    return outcome


class _TapeGone(TapeError):
    """A tape was taken from the remote; the text says why."""


def _remove_tape(
    store: Store, cursor: Cursor, tape: str, name: str | None, seq: int, why: str
) -> TapeOutcome:
    """Move a tape that was taken from the remote to the trash; nothing is deleted."""
    if name is not None:
        try:
            with store.open_folder(name) as here:
                store.remove(here)
        except TapeError as error:  # it is being written, or others were forked from it
            said = f"it was taken from the remote ({why}), and stays here: {error}"
            return TapeOutcome(tape, name, False, None, said)
    with cursor.transaction():
        cursor.save_gone(tape)
        cursor.save_tape(tape, TapeCursor(seq))
    said = f"it was taken from the remote ({why}): it is in the trash here"
    return TapeOutcome(tape, name or tape, False, None, said if name else None, is_trashed=True)


def _unite_chunks(
    store: Store, remote: Remote, known: TapeCursor, tape: str, name: str | None, seq: int
) -> tuple[TapeOutcome, TapeCursor, set[Replica | None]]:
    """Lay out the remote's copy of a tape and unite it.

    Returns what is known of the remote then, too, and who pushed the chunks.
    """
    if name is None and known.seq:
        known = TapeCursor()  # removed here since: all of it comes again
    with create_scratch_folder(store, tape) as (tapes, scratch), tapes.sub(scratch) as folder:
        with folder.make(tape) as copy:
            here = None if name is None else store.open_folder(name)
            try:
                layout = _Layout(copy, here, remote, known)
                for chunk in read_chunks(remote, tape, known.seq, seq):
                    if chunk.head.gone:
                        raise _TapeGone(chunk.head.gone)
                    layout.add_chunk(chunk)
                layout.complete()
            finally:
                if here is not None:
                    here.close()
            if layout.folder:
                copy.name = layout.folder
        with Tape(folder.sub(tape), store.open, clock=store.clock) as source:
            if source.id != tape:
                raise Damaged(f"chunks of tape {tape[:8]} hold tape {source.id[:8]}")
            source.folder.name = layout.folder or tape
            outcome = add_tape_copy(store, source, name, layout.pusher, keeps_theirs=True)
            return outcome, layout.known, layout.pushers


class _Layout:
    """A copy of a tape as the remote has it, being laid out in a folder.

    Files that the chunks do not change are links to those of the tape here.
    """

    def __init__(self, copy: Folder, here: Tape | None, remote: Remote, known: TapeCursor) -> None:
        self._copy, self._here, self._remote = copy, here, remote
        self._sizes = dict(known.sizes)
        self._journal = [*known.journal]
        self._lines: dict[str, bytes] = {}
        self._open: set[str] = set()
        self._blobs: set[str] = set()
        self._phases = copy.make("phases")
        self._seq = known.seq
        self.folder = ""
        """The name of the tape's folder where it was pushed."""
        self.pushers: set[Replica | None] = set()
        self.pusher: Replica | None = None
        """The copy of the store that pushed the newest chunk."""

    @property
    def known(self) -> TapeCursor:
        """What the remote has, after all chunks."""
        return TapeCursor(self._seq, self._sizes, tuple(self._journal))

    def add_chunk(self, chunk: Chunk) -> None:
        """Add what a chunk holds; raise Damaged where it does not continue what is there."""
        head = chunk.head
        for part, data in chunk.iter_parts():
            self._add_part(part.file, part.offset, data)
            self._blobs.update(digest.decode() for digest in find_blob_hashes(data))
        self._seq = head.seq
        if head.replica:
            self.pusher = Replica(head.replica, head.machine)
            self.pushers.add(self.pusher)
        self.folder = head.folder if _is_folder_name(head.folder) else self.folder

    def _add_part(self, path: str, offset: int, data: bytes) -> None:
        if path == JOURNAL_NAME:
            self._add_journal(data)
        elif path == INFO_NAME:
            if not self._copy.has(INFO_NAME):
                self._copy.create(INFO_NAME, data)
        else:
            _, phase, name = path.split("/")
            with self._phases.make(phase) as folder:
                if name == ENTRIES:
                    self._add_entries(folder, phase, offset, data)
                elif not folder.has(name):
                    folder.create(name, data)

    def _add_entries(self, folder: Folder, phase: str, offset: int, data: bytes) -> None:
        size = self._sizes.get(phase, 0)
        if offset > size:
            raise Damaged(f"{phase}: bytes {size} to {offset} are in no chunk", file=phase)
        data, offset = data[size - offset :], size  # a merged chunk repeats what is known
        if phase not in self._open:
            self._begin_file(folder, phase, size)
        with Descriptor(folder.file(ENTRIES, os.O_WRONLY | os.O_APPEND)) as file:
            write_bytes(file.fd, data)
        self._sizes[phase] = size + len(data)

    def _begin_file(self, folder: Folder, phase: str, size: int) -> None:
        """Create the entries of a phase with the first `size` bytes of what is here."""
        self._open.add(phase)
        with Descriptor(folder.file(ENTRIES, os.O_WRONLY | os.O_CREAT | os.O_EXCL)) as file:
            if not size:
                return
            if self._here is None:
                raise Damaged(f"{phase}: its first {size} bytes are not here", file=phase)
            with self._here.phases.open(phase) as ours:
                for _, run in ours.read_runs(0, size):
                    write_bytes(file.fd, run)
            if os.fstat(file.fd).st_size != size:
                raise Damaged(f"{phase}: its first {size} bytes are not here", file=phase)

    def _add_journal(self, data: bytes) -> None:
        for line in data.split(b"\n")[:-1]:
            parsed = decode_ref_line(line)
            if parsed is None:
                raise Damaged(f"{JOURNAL_NAME}: a line of a chunk does not match its hash")
            if parsed.h not in self._lines:
                self._lines[parsed.h] = line
                self._journal.append(parsed.h)

    def complete(self) -> None:
        """Add what the chunks do not hold because it is here: files, lines and blobs."""
        here = self._here
        if here is not None:
            self._add_phases_of(here)
            own = here.folder.read(JOURNAL_NAME).split(b"\n")[:-1]
            lines = {parsed.h: line for line in own if (parsed := decode_ref_line(line))}
            self._lines = {**lines, **self._lines}
            if not self._copy.has(INFO_NAME):
                self._copy.create(INFO_NAME, here.folder.read(INFO_NAME))
        missing = [h for h in self._journal if h not in self._lines]
        if missing or not self._copy.has(INFO_NAME):
            raise Damaged("what was pulled of this tape before is not here any more")
        text = b"".join(self._lines[h] + b"\n" for h in dict.fromkeys(self._journal))
        self._copy.create(JOURNAL_NAME, text)
        self._refuse_bad_ends()
        self._phases.close()
        self._fetch_blobs()

    def _refuse_bad_ends(self) -> None:
        """Raise Damaged where the last line of a phase does not verify: here it would be torn."""
        phases = Phases(self._phases)
        for phase in sorted(self._open):
            with phases.open(phase) as file:
                if file.tail().end != self._sizes[phase]:
                    raise Damaged(f"{phase}: its last line does not match its hash", file=phase)

    def _add_phases_of(self, here: Tape) -> None:
        """Add the phases that no chunk changes, as far as the remote has them."""
        for phase, size in self._sizes.items():
            if phase in self._open:
                continue
            with (
                self._phases.make(phase) as folder,
                here.phases.folder.sub(phase) as ours,
            ):
                if ours.stat(ENTRIES).st_size == size:
                    _link_file(ours, folder, ENTRIES)
                else:  # it was continued here
                    self._begin_file(folder, phase, size)

    def _fetch_blobs(self) -> None:
        """Fetch the blobs that new lines name and that are not here; missing ones stay missing."""
        here, blobs = self._here, Blobs(self._copy)
        digests = [d for d in sorted(self._blobs) if here is None or not here.blobs.has(d)]
        for start in range(0, len(digests), _SLICE):
            part = digests[start : start + _SLICE]
            for data in self._remote.read_many([*map(make_blob_key, part)]):
                if data:
                    blobs.put(data)


def _is_folder_name(name: str) -> bool:
    return bool(name) and "/" not in name and "\0" not in name and not name.startswith(".")


def _link_file(source: Folder, target: Folder, name: str) -> None:
    if isinstance(source, PackedFolder):  # that of an archived tape
        target.create(name, source.read(name))
        return
    try:
        os.link(name, name, src_dir_fd=source.fd, dst_dir_fd=target.fd, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:  # a file system without links
        target.create(name, source.read(name))
