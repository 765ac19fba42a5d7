"""How a store looks to `ls` and `cat`: folders of lines, and an index that can be made again."""

from __future__ import annotations

import json

from tape.index.library import list_tapes, open_store
from tape.model.entries import Anchor
from tests.tape import making


def test_a_store_is_folders_of_lines_and_an_index_that_can_be_made_again(tmp_path):
    """M205: a folder for each phase, which an anchor opens; nothing is packed or archived."""
    store = making.store_in(tmp_path / "store")
    with store.create(making.beginning("a session")) as tape, tape.writer() as writer:
        writer.append(making.say("one"))
        writer.anchor(Anchor(kind="compaction", summary="so far"))
        writer.append(making.say("two"))
    folder = making.folder_of(store, tape)
    lines = {
        file.parent.name: [json.loads(line) for line in file.read_text().splitlines()]
        for file in sorted(folder.glob("phases/*/entries.jsonl"))
    }
    assert {name: [line["type"] for line in found] for name, found in lines.items()} == {
        "0001-main-start": ["start", "user"],
        "0002-main-compaction": ["anchor", "user"],
    }
    assert lines["0002-main-compaction"][1]["data"] == {
        "content": [{"type": "text", "text": "two"}]
    }
    assert all(json.loads(line) for line in (folder / "refs.jsonl").read_text().splitlines())
    for _ in range(2):
        with open_store(store.path) as library:
            assert [row.id for row in list_tapes(library.store, library.index)] == [tape.id]
        (store.path / "index.db").unlink()
