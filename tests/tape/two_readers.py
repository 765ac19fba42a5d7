"""The reader of docs/format.md beside ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.tape.format_reader import read_tape

if TYPE_CHECKING:
    from tape.store.store import Store


def compare_readers(store: Store, name: str) -> None:
    """Fail unless both readers say the same of the tape in a folder."""
    read = read_tape(store.tapes / name)
    with store.open_folder(name) as tape:
        refs = tape.refs()
        assert (read.id, read.current, read.title) == (tape.id, refs.current, refs.title)
        labels = {label: entry for label, entry in read.labels.items() if entry}
        assert labels == {label: entry for label, entry in refs.labels.items() if entry}
        assert set(read.heads) == set(refs.branches)
        for branch, head in read.heads.items():
            path = [entry.id for entry in tape.entries(tape.head(branch))]
            assert read.list_path(head) == path
