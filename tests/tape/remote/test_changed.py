"""`changed`: the tapes that a remote lacks something of, as each of them would be compared."""

import random

from tape.index.library import list_tapes, open_store
from tape.remote.changed import find_changed, read_stamps
from tape.remote.cursor import Cursor
from tape.remote.folder import FolderRemote
from tape.remote.push import Pusher
from tests.tape import making


def push(library, remote, cursor, tapes):
    stamps = read_stamps(library, tapes)
    return [*Pusher(library.store, remote, cursor, stamps=stamps).push(tapes)]


def test_what_was_written_since_the_last_push_is_new(tmp_path):
    (tmp_path / "remote").mkdir()
    remote, chance = FolderRemote(tmp_path / "remote"), random.Random(3)
    lacks = set()
    with open_store(tmp_path / "store") as library:
        library.store.durable = False
        library.store.open_tapes_folder().close()
        with Cursor.open(library.store.path, "team") as cursor:
            for number in range(60):
                row = chance.choice([*list_tapes(*library), None])
                if row is None or number < 5:
                    with library.store.create(making.beginning(f"n{number}")) as tape:
                        making.write(tape, "one")
                        lacks.add(tape.id)
                else:
                    with library.store.open(row.id) as tape:
                        making.write(tape, f"more {number}")
                    lacks.add(row.id)
                assert {*find_changed(library, cursor, group_rows=3)} == lacks
                if chance.random() < 0.5:
                    some = sorted(lacks)[: chance.randrange(len(lacks) + 1)]
                    push(library, remote, cursor, some)
                    lacks -= {*some}
                    assert {*find_changed(library, cursor, group_rows=3)} == lacks


def test_a_group_of_which_all_was_pushed_is_not_compared_again(tmp_path):
    (tmp_path / "remote").mkdir()
    remote = FolderRemote(tmp_path / "remote")
    with open_store(tmp_path / "store") as library:
        with library.store.create(making.beginning()) as tape:
            making.write(tape, "one")
        with Cursor.open(library.store.path, "team") as cursor:
            push(library, remote, cursor, [tape.id])
            assert find_changed(library, cursor) == {}
            (digest,) = cursor.read_digests().values()
            with library.store.open(tape.id) as again:
                making.write(again, "two")
            assert [*find_changed(library, cursor)] == [tape.id]
            assert cursor.read_digests() == {}
            push(library, remote, cursor, [tape.id])
            assert find_changed(library, cursor) == {}
            assert cursor.read_digests() != {0: digest}


def test_a_store_without_an_index_compares_all(tmp_path):
    with open_store(tmp_path / "store", index=False) as library:
        with library.store.create(making.beginning()) as tape:
            making.write(tape, "one")
            identity = tape.id
        with Cursor.open(library.store.path, "team") as cursor:
            assert find_changed(library, cursor) == {identity: None}
            assert [row.id for row in list_tapes(*library)] == [identity]
