"""The newest tape of a folder without an index: the answer is the one that the index gives."""

from __future__ import annotations

import json
import os
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tape.clock import parse_timestamp
from tape.index.library import list_tapes, open_store
from tape.model.entries import Meta
from tape.places.newest import TooMuch, find_newest_tape
from tape.places.resolve import find_tape_here, resolve_reference
from tape.store.maintenance.archive import pack_tape
from tape.store.store import Beginning
from tests.tape import making

FOLDERS = ("/a", "/a/b", "/é", '/"', "/a b")
STEPS = st.sampled_from(["new", "say", "move", "fork"])
"""What happens, to which of the tapes there are, in which folder, and seconds since the last."""


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(STEPS, st.integers(0, 9), st.sampled_from(FOLDERS), st.integers(0, 99_999)),
        max_size=14,
    ),
    st.booleans(),
)
def test_the_files_tell_what_the_index_does(tmp_path_factory, steps, is_recent):
    now = [making.DAY - 400 * 86_400_000_000]
    store = making.store_in(tmp_path_factory.mktemp("store"), lambda: now[0])
    made = []
    for what, number, folder, later in steps:
        now[0] += later * 1_000_000
        if what == "new" or not made:
            root = folder if number % 2 else None
            made.append(store.create(Beginning(folder, "test/1", "some", project=root)).id)
            continue
        with store.open(made[number % len(made)]) as tape:
            if what == "fork":
                head = tape.head()
                base = tape.find_ancestor(head, min(number, head.header.n)).head
                tape.fork(base, switch=bool(number % 3))
            else:
                with tape.writer() as writer:
                    writer.append(Meta(cwd=folder) if what == "move" else making.say("more"))
    if is_recent:  # else all files changed just now, as after a copy of the store
        for file in store.tapes.glob("*/phases/*/entries.jsonl"):
            last = json.loads(file.read_bytes().splitlines()[-1])["time"]
            os.utime(file, ns=(parse_timestamp(last) * 1000,) * 2)
    for folder in (*FOLDERS, "/none"):
        for root in (None, "/a"):
            expected = list_tapes(store, None, cwd=folder, limit=1)
            if not expected and root:
                expected = list_tapes(store, None, project=root, limit=1)
            newest = find_newest_tape(store, folder, root)
            assert ([(newest.id, newest.folder)] if newest else []) == [
                (row.id, row.folder) for row in expected
            ]


def test_archived_and_damaged_tapes_and_unfinished_phases_stop_nothing(tmp_path):
    store = making.store_in(tmp_path / "store")
    for folder in ("/a", "/b", "/c"):
        with store.create(Beginning(folder, "test/1", folder[1:])) as tape:
            making.write(tape, "hello")
    a, b, c = (store.tapes / name for name in store.folders())
    (a / "phases/0009-main-left").mkdir()
    (b / "refs.jsonl").unlink()
    with store.open_folder(c.name) as tape:
        pack_tape(store, tape)
    places = [find_newest_tape(store, folder, None) for folder in ("/a", "/b", "/c")]
    assert [place and place.folder for place in places] == [a.name, None, c.name]
    with pytest.raises(TooMuch):
        find_newest_tape(store, "/a", None, max_bytes=100)


def test_who_continues_waits_for_no_index(tmp_path):
    """With many tapes that no index has, the newest of a folder is found, and none is indexed."""
    store = making.store_in(tmp_path / "store")
    for number in range(150):
        store.create(Beginning(f"/p{number % 50}", "test/1", str(number))).close()
    with open_store(store.path) as (indexed, index):
        hit = resolve_reference(indexed, index, "", "/p7")
        assert hit.tape.folder.name.endswith(f"-{hit.tape.id[:8]}")
        hit.tape.close()
        indexed_tapes = "SELECT count(*) FROM tapes"
        with sqlite3.connect(store.path / "index.db") as db:
            assert db.execute(indexed_tapes).fetchone() == (0,)
        assert find_tape_here(indexed, index, "/p7").id == hit.tape.id
        (row,) = list_tapes(indexed, index, cwd="/p7", limit=1)
        assert row.id == hit.tape.id
