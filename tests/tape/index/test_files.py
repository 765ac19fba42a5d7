"""Files of calls in the index: one row for each that a call changed, however it was read in."""

from __future__ import annotations

import pytest
from msgspec import Raw

from tape.index.library import open_store, query_index
from tape.index.rebuild import rebuild_index
from tape.index.stats import compute_statistics
from tape.model.entries import (
    Assistant,
    ChangedFile,
    Checkpoint,
    FileState,
    SavedFile,
    ToolCall,
    ToolResult,
)
from tape.store.maintenance.upkeep import redact
from tape.store.store import Beginning

ROWS = "SELECT f.call, f.path, f.op FROM files f JOIN entries e ON e.key = f.entry ORDER BY 1, 2, 3"


def asks(call, name, path):
    args = Raw(f'{{"path": "{path}", "content": "", "oldText": "x", "newText": "y"}}'.encode())
    return Assistant((ToolCall(id=call, name=name, args=args),), provider="p", model="m")


def changed(call, name, *files, is_error=False):
    return ToolResult(call, name, (), is_error, files=files)


def record(path, op="modified", source=None):
    return ChangedFile(path=path, op=op, source=source, before="0" * 64, after="1" * 64)


SAVED = SavedFile.from_skipped("0" * 64, 1, "too large")
PAYLOADS = (
    asks("c_1", "write", "a.txt"),
    changed("c_1", "write", record("a.txt")),
    asks("c_2", "read", "a.txt"),
    changed("c_2", "read"),
    asks("c_3", "edit", "/other/b.txt"),
    changed("c_3", "edit"),  # another program, which records nothing
    changed("c_4", "bash", record("d.txt", "renamed", "c.txt"), record("a.txt", "mode")),
    asks("c_5", "write", "never.txt"),
    Checkpoint((FileState("a.txt", SAVED, "100644", None, None),), why="restore", reason="undo"),
    Checkpoint((FileState("a.txt", SAVED, "100644"),), call_id="c_6"),
)
EXPECTED = [
    ("", "/src/a.txt", "restored"),
    ("c_1", "/src/a.txt", "modified"),
    ("c_2", "/src/a.txt", "read"),
    ("c_3", "/other/b.txt", "edit"),
    ("c_4", "/src/a.txt", "mode"),
    ("c_4", "/src/c.txt", "moved"),
    ("c_4", "/src/d.txt", "renamed"),
    ("c_5", "/src/never.txt", "write"),
]


@pytest.mark.parametrize("step", [1, 2, 3, len(PAYLOADS)])
def test_a_change_has_one_row_and_a_restore_too(tmp_path, step):
    with (
        open_store(tmp_path / "tapes") as library,
        library.store.create(Beginning("/src", "test/1")) as tape,
    ):
        for at in range(0, len(PAYLOADS), step):
            with tape.writer() as writer:
                for payload in PAYLOADS[at : at + step]:
                    writer.append(payload)
            query_index(*library, lambda db: db.execute(ROWS).fetchall())
        assert query_index(*library, lambda db: db.execute(ROWS).fetchall()) == EXPECTED
        (row,) = compute_statistics(*library)
        assert row.ran.files_changed == len({"a.txt", "d.txt"})
        rebuild_index(library.store)
        assert query_index(*library, lambda db: db.execute(ROWS).fetchall()) == EXPECTED


def test_what_was_asked_is_back_when_the_result_is_redacted(tmp_path):
    with (
        open_store(tmp_path / "tapes") as library,
        library.store.create(Beginning("/src", "test/1")) as tape,
    ):
        with tape.writer() as writer:
            entries = [writer.append(payload) for payload in PAYLOADS]
        query_index(*library, lambda db: db.execute(ROWS).fetchall())
        redact(tape, [entries[1].id, entries[8].id], "secret")
        rows = [("c_1", "/src/a.txt", "write"), *EXPECTED[2:]]
        assert query_index(*library, lambda db: db.execute(ROWS).fetchall()) == rows
