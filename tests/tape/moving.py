"""Exports and imports of small tapes, and what has to be the same on both sides."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from tape.archive.export import export_tape
from tape.archive.import_ import import_file
from tape.check.finding import Counts
from tape.check.verify import verify
from tape.store.store import Beginning
from tests.tape import making, reader

if TYPE_CHECKING:
    from pathlib import Path

    from tape.store.recorded_tape import ImportReport
    from tape.store.refs import Head
    from tape.store.store import Store
    from tape.store.tape import Tape

HERE = Beginning("/there", "test/2")


def exported(tape: Tape, head: Head | None = None, *, redact: bool = False) -> bytes:
    """Return the file of an export."""
    parts: list[bytes] = []
    export_tape(tape, parts.append, head=head, redact=redact)
    return b"".join(parts)


def imported(store: Store, data: bytes) -> ImportReport:
    """Import a file."""
    return import_file(store, io.BytesIO(data), HERE)


def other(tmp_path: Path, name: str = "other") -> Store:
    """Return another store."""
    return making.store_in(tmp_path / name)


def history(folder: Path) -> dict[str, bytes]:
    """Return what a copy has to have: tape.json, phases, the journal and blobs."""
    files = reader.files(folder)
    return {name: data for name, data in files.items() if not name.startswith("quarantine/")}


def names(folder: Path) -> list[str]:
    """Return what a folder holds."""
    return sorted(path.name for path in folder.iterdir())


def folder_of(store: Store, identity: str) -> Path:
    """Return the folder of a tape."""
    (found,) = store.path.glob(f"tapes/*-{identity[:8]}")
    return found


def whole(store: Store, identity: str) -> None:
    """Check a tape by both readers."""
    assert reader.faults(folder_of(store, identity)) == []
    with store.open(identity) as tape:
        assert [one for one in verify(tape, Counts()) if one.level != "note"] == []
