"""`remote_state`: a remote is named as behind when a push failed, or takes long."""

import time

from gong.context.remote_state import RemoteWatch, finish_pushes
from tape.remote.behind import note_failure, note_waiting
from tape.remote.cursor import Cursor
from tape.remote.registry import KnownRemote, Registry, write_registry
from tests.tape import making


def test_only_a_push_that_failed_or_takes_long_is_named(tmp_path):
    store = making.store_in(tmp_path)
    store.open_tapes_folder().close()
    now = [0.0]
    watch = RemoteWatch(store, monotonic=lambda: now[0])

    def look():
        now[0] += 60
        return watch.describe()

    assert look() == ""
    write_registry(store.path, Registry({"team": KnownRemote("file:///nowhere")}))
    assert look() == ""
    Cursor.open(store.path, "team").close()
    note_waiting(store.path, "team", "a" * 32)
    assert look() == ""
    note_waiting(store.path, "team", "b" * 32, time.time() - 60)
    assert look() == "team behind by 2 tapes"
    with Cursor.open(store.path, "team") as cursor:
        cursor.end_waiting("b" * 32, time.time())
    assert watch.describe() == "team behind by 2 tapes"  # until the next look
    assert look() == ""
    note_failure(store.path, "team", "no route")
    assert look() == "team behind by 1 tape"
    warned = []
    finish_pushes(store, warned.append, waits=True)
    assert warned == [
        "team behind by 1 tape (no route); what was written is here, `tape push` brings it there"
    ]


def test_one_that_is_pushed_to_by_hand_is_never_named(tmp_path):
    store = making.store_in(tmp_path)
    store.open_tapes_folder().close()
    write_registry(store.path, Registry({"team": KnownRemote("file:///nowhere", mode="manual")}))
    Cursor.open(store.path, "team").close()
    note_waiting(store.path, "team", "a" * 32, 0)
    assert RemoteWatch(store).describe() == ""
