"""What a redaction leaves in the file of the index: scrubbed in slices, under nobody's lock."""

from __future__ import annotations

from msgspec import Raw
from msgspec.json import encode

from tape.index.database import is_scrub_wanted, request_scrub, scrub_index
from tape.index.library import list_tapes, open_store, search_entries
from tape.index.reader import INDEX_NAME, connect_index
from tape.model.entries import TODOS_KIND, Custom, Redact, Text, User
from tape.store.maintenance.upkeep import redact
from tape.store.redaction import MARK_NAME, RedactionMark
from tests.tape import making

SECRET = "zanzibar" * 4


def read_index(home):
    return b"".join(path.read_bytes() for path in home.glob(f"{INDEX_NAME}*"))


def make_tape(home, entries=300):
    """Make an indexed tape whose first prompt is a secret; return the ids of tape and prompt."""
    with open_store(home) as library, library.store.create(making.beginning()) as tape:
        with tape.writer() as writer:
            secret = writer.append(User((Text(f"the key is {SECRET}"),))).id
            for number in range(entries):
                writer.append(User((Text(f"prompt {number} about subject{number}"),)))
                if number % 50 == 0:
                    writer.barrier()
        assert search_entries(*library, SECRET)
        return tape.id, secret


def test_the_writer_after_a_killed_redaction_scrubs_once_its_lock_is_free(tmp_path):
    home = tmp_path / "store"
    identity, secret = make_tape(home)
    with open_store(home) as library, library.store.open(identity) as tape:
        with tape.writer() as writer:
            writer.append(Redact((secret,), "a secret"))
        RedactionMark.place_mark(tape.folder).close()  # as after a kill: nothing is overwritten
    with (
        open_store(home) as library,
        library.store.open(identity) as tape,
        tape.writer() as writer,
    ):
        assert not tape.folder.has(MARK_NAME)
        assert not search_entries(*library, SECRET)
        with connect_index(home, timeout=5) as db:
            assert is_scrub_wanted(db)
        writer.append(User((Text("after"),)))
    assert SECRET.encode() not in read_index(home)
    with connect_index(home, timeout=5) as db:
        assert not is_scrub_wanted(db)
        assert db.execute("SELECT count(*) FROM removed").fetchone() == (0,)


def test_a_redaction_leaves_nothing_in_the_file(tmp_path):
    home = tmp_path / "store"
    identity, secret = make_tape(home)
    with open_store(home) as library, library.store.open(identity) as tape:
        assert SECRET.encode() in read_index(home)
        redact(tape, [secret], "a secret")
        assert not search_entries(*library, SECRET)
        assert len(search_entries(*library, "subject7")) == 1
    assert SECRET.encode() not in read_index(home)


def test_todos_that_are_redacted_go_from_the_list_of_tapes(tmp_path):
    home = tmp_path / "store"
    with open_store(home) as library, library.store.create(making.beginning()) as tape:
        lists = [encode([{"content": text}]) for text in ("plan", SECRET)]
        with tape.writer() as writer:
            entries = [writer.append(Custom(TODOS_KIND, Raw(todos))).id for todos in lists]
        assert [row.todos for row in list_tapes(*library)] == [lists[1].decode()]
        redact(tape, [entries[1]], "a secret")
        assert [row.todos for row in list_tapes(*library)] == [lists[0].decode()]
    assert SECRET.encode() not in read_index(home)


def test_each_slice_is_a_transaction_of_its_own(tmp_path):
    home = tmp_path / "store"
    make_tape(home)
    done: list[str] = []
    with connect_index(home, timeout=5) as db:
        request_scrub(db)
        db.set_trace_callback(done.append)
        scrub_index(db)
        db.set_trace_callback(None)
    assert not [one for one in done if "'optimize'" in one]
    ours = [
        one.split()[0] for one in done if one.startswith(("BEGIN", "COMMIT")) or "'merge'" in one
    ]
    slices = [ours[at - 1 : at + 2] for at, one in enumerate(ours) if one == "INSERT"]
    assert len(slices) >= 2
    assert all(one == ["BEGIN", "INSERT", "COMMIT"] for one in slices)
