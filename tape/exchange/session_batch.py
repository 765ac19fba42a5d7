"""Many sessions of other agents at once, and again and again: only files that changed are read.

What was imported from which file stands in `imported.json` beside the tapes; it may be deleted at
any time. A file is skipped if its size and its times are what they were and its tapes are there, or
if its bytes are the same; so a second import reads nothing, and adds nothing either way.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from ..errors import TapeError
from .session_import import import_session
from .session_sources import open_session_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ..store.store import Beginning, Store
    from .session_import import ImportedTape
    from .session_sources import SessionFile

MEMORY_NAME = "imported.json"


class FileStamp(NamedTuple):
    """What changes when a file is written."""

    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> FileStamp:
        """Return the stamp of a file, with its log of writes where it is a database."""
        found = [os.stat(path)]  # noqa: PTH116 (once for each file, each second)
        for suffix in ("-wal",):
            try:
                found.append(os.stat(f"{path}{suffix}"))  # noqa: PTH116
            except OSError:
                continue
        return cls(
            sum(one.st_size for one in found),
            max(one.st_mtime_ns for one in found),
            max(one.st_ctime_ns for one in found),
        )


class RememberedFile(Struct, array_like=True):
    """A file as it was when it was imported: its stamp, its digest, and its tapes."""

    stamp: FileStamp
    sha256: str
    tapes: list[str]


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

    def save(self) -> None:
        """Write the memory; a failure costs only time at the next import."""
        new = self.path.with_suffix(f".{os.getpid()}.new")
        try:
            new.write_bytes(msgspec.json.encode(self.files))
            new.replace(self.path)
        except OSError:
            new.unlink(missing_ok=True)


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
) -> Iterable[ImportedFile]:
    """Import the sessions of files and yield what happened to each; an error costs its file only.

    `tool` is the agent that the caller names. `wanted` says for a session's folder whether it is
    to be imported.
    """
    known = {store.read_tape_id(name) for name in store.folders()}
    for source in sources:
        try:
            stamp = FileStamp.of(source.path)
            before = memory.files.get(source.name)
            if before is not None and before.stamp == stamp and known.issuperset(before.tapes):
                continue
            if stamp.size == 0:  # a session that has just begun
                continue
            session, digest = open_session_file(source, tool)
            if not wanted(session.cwd):
                continue
            tapes = import_session(store, session, beginning, source.name, digest)
        except (TapeError, OSError) as error:
            yield ImportedFile(source, [], error)
            continue
        known.update(tape.id for tape in tapes)
        memory.files[source.name] = RememberedFile(stamp, digest, [tape.id for tape in tapes])
        yield ImportedFile(source, tapes)
