"""Many sessions of other agents at once, and again and again: only files that changed are read.

What was imported from which file is in `imported.json` beside the tapes; it may be deleted at
any time. A file is skipped if its size and its times are what they were and its tapes are there, or
if its bytes are the same; so a second import reads nothing, and adds nothing either way.

Hooks, `--watch` and a person may import the same session at once. Each holds a lock of the session
while it reads the file and writes the tape, so the second one finds what the first has written:

    hook        reads 1─2, writes 1─2
    --watch     waits               reads 1─2─3, finds 1─2, adds 3

Sessions without a tape of their own also wait for others of the same agent: one of them may have
the history that they begin with.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from ..errors import TapeError
from ..store.disk import Folder
from ..store.locks import hold_lock_in
from ..store.recorded_tape import TapeFolders
from .family import ImportedTapes
from .import_ import find_no_facts, import_session
from .sources import open_session_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from ..formats.sessions.steps import SourceSession
    from ..store.store import Beginning, Store
    from .import_ import FactFinder, ImportedTape
    from .sources import SessionFile

MEMORY_NAME = "imported.json"
_LOCK_DIGITS = 2
"""Digits of a tape's id that name the lock of its import: few files, and few that wait in vain."""


class FileStamp(NamedTuple):
    """What changes when a file is written."""

    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> FileStamp:
        """Return the stamp of a file, with its log of writes where it is a database."""
        stats = [os.stat(path)]  # noqa: PTH116 (once for each file, each second)
        if path.suffix == ".db":
            with suppress(OSError):
                stats.append(os.stat(f"{path}-wal"))  # noqa: PTH116
        return cls(
            sum(stat.st_size for stat in stats),
            max(stat.st_mtime_ns for stat in stats),
            max(stat.st_ctime_ns for stat in stats),
        )

    @classmethod
    def find(cls, path: Path) -> FileStamp | None:
        """Return the stamp of a file; None if it is gone."""
        try:
            return cls.of(path)
        except OSError:
            return None


class RememberedFile(Struct, array_like=True):
    """A file as it was when it was imported: its stamp, its digest, and its tapes."""

    stamp: FileStamp
    sha256: str
    tapes: list[str]
    version: str = ""
    """Of a session in a database: its version, as `SessionFile` has it."""

    def is_unchanged(self, source: SessionFile, stamp: FileStamp) -> bool:
        """Return whether a file, or a session in a database, is what it was."""
        return self.stamp == stamp or bool(self.version and self.version == source.version)


class ImportMemory:
    """Which files were imported; saved beside the tapes."""

    def __init__(self, store: Store) -> None:
        self.path = store.path / MEMORY_NAME
        self.files: dict[str, RememberedFile] = {}
        try:
            decoded = msgspec.json.decode(self.path.read_bytes(), type=dict[str, RememberedFile])
        except (OSError, msgspec.DecodeError):
            return
        self.files = decoded

    def remember(
        self, source: SessionFile, stamp: FileStamp, sha256: str, tapes: list[str]
    ) -> None:
        """Take note of a file that was imported."""
        self.files[source.name] = RememberedFile(stamp, sha256, tapes, source.version)

    def save(self) -> None:
        """Write the memory; a failure costs only time at the next import."""
        new = self.path.with_suffix(f".{os.getpid()}.new")
        try:
            new.write_bytes(msgspec.json.encode(self.files))
            new.replace(self.path)
        except OSError:
            new.unlink(missing_ok=True)


class OpenedSession(NamedTuple):
    """A session that is being imported, and its file as it was then."""

    session: SourceSession
    sha256: str
    stamp: FileStamp


@contextmanager
def open_locked_session(
    store: Store,
    source: SessionFile,
    tool: str | None = None,
    *,
    wait: float | None = None,
    folders: TapeFolders | None = None,
) -> Iterator[OpenedSession]:
    """Open the session in a file; nobody else imports it while the block runs.

    Waits for another import of it, `wait` seconds or as `limit_lock_wait` says, then raises Busy.
    `folders` is what is known of the store's tapes.
    Raises NotFound, UsageError and OSError as `open_session_file` does.
    """
    stamp = FileStamp.of(source.path)
    session, digest = open_session_file(source, tool)
    if not store.tapes.is_dir():
        store.open_tapes_folder().close()
    is_new = (folders or TapeFolders(store)).find(session.tape_id) is None
    with (
        Folder.open(store.path, durable=store.durable) as home,
        hold_lock_in(home, f"import-{session.tape_id[:_LOCK_DIGITS]}", wait=wait),
        hold_lock_in(home, f"import-{session.tool}", wait=wait) if is_new else nullcontext(),
    ):
        now = FileStamp.of(source.path)
        if now != stamp:  # it was written while another import was awaited
            stamp = now
            session, digest = open_session_file(source, tool)
        yield OpenedSession(session, digest, stamp)


class ImportedFile(NamedTuple):
    """What the import of one file did."""

    source: SessionFile
    tapes: list[ImportedTape]
    """Of a file that did not change: none."""
    error: TapeError | OSError | None = None


def import_files(
    store: Store,
    sources: Iterable[SessionFile],
    beginning: Beginning,
    memory: ImportMemory,
    *,
    tool: str | None = None,
    wanted: Callable[[str | None], bool] = lambda _: True,
    wait: float | None = None,
    find_facts: FactFinder = find_no_facts,
) -> Iterable[ImportedFile]:
    """Import the sessions of files and yield what happened to each; an error costs its file only.

    `tool` is the agent that the caller names. `wanted` says for a session's folder whether it is
    to be imported. `wait` is for how many seconds another import of the same session is awaited.
    `find_facts` is as in `import_session`.
    """
    known = {store.read_tape_id(name) for name in store.folders()}
    others = ImportedTapes(store)
    for source in sources:
        try:
            stamp = FileStamp.of(source.path)
            before = memory.files.get(source.name)
            is_known = before is not None and known.issuperset(before.tapes)
            if before is not None and is_known and before.is_unchanged(source, stamp):
                continue
            if stamp.size == 0:  # a session that has just begun
                continue
            with open_locked_session(store, source, tool, wait=wait, folders=others.folders) as (
                session,
                digest,
                stamp,
            ):
                if before is not None and is_known and before.sha256 == digest:
                    memory.remember(source, stamp, digest, before.tapes)
                    continue
                if not wanted(session.cwd):
                    continue
                tapes = import_session(
                    store, session, beginning, source.name, digest, others, find_facts
                )
        except (TapeError, OSError) as error:
            yield ImportedFile(source, [], error)
            continue
        known.update(tape.id for tape in tapes)
        memory.remember(source, stamp, digest, [tape.id for tape in tapes])
        yield ImportedFile(source, tapes)
