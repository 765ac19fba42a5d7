"""Among very many tapes nobody compares all folders: the log of writers says what came and went."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import closing, contextmanager, suppress
from random import Random

import pytest

from tape.errors import UsageError
from tape.index import catch_up, reader
from tape.index.library import list_roots, list_tapes, open_store
from tape.index.reader import connect_index, is_caught_up
from tape.index.rebuild import rebuild_index
from tape.store.store import Beginning, Store
from tests.tape.index.test_projection import begin, held, listed, say, settle


@pytest.fixture
def library(tmp_path):
    with open_store(tmp_path / "home") as library:
        begin(library, title="one").close()
        settle(library)
        listed(library)
        yield library


def is_answered_at_once(library):
    with closing(connect_index(library.store.path, timeout=1)) as db:
        return is_caught_up(db, str(library.store.path))


def test_what_came_and_went_is_read_from_the_log(library):
    """The folder changed just now, so a list that had compared all would not be trusted yet."""
    with open_store(library.store.path) as other:
        begin(library, title="two").close()
        assert len(listed(other)) == 2
        assert is_answered_at_once(other)
        with begin(library, title="three") as tape, tape.writer() as writer:
            writer.append(say("hello"))
        assert is_answered_at_once(other)
        with library.store.open_folder(list_tapes(*library)[-1].folder) as tape:
            name = library.store.remove(tape)
        assert [row.title for row in listed(other)] == ["three", "two"]
        assert is_answered_at_once(other)
        library.store.restore(name)
        assert len(listed(other)) == 3
        assert is_answered_at_once(other)
        held(other)


def test_a_tape_that_cannot_be_read_when_it_comes_is_asked_for_again(library):
    with open_store(library.store.path) as other:
        with begin(library, title="two") as tape:
            journal = library.store.tapes / tape.folder.name / "refs.jsonl"
        kept = journal.read_bytes()
        journal.unlink()
        assert len(listed(other)) == 1
        assert not is_answered_at_once(other)
        journal.write_bytes(kept)
        assert len(listed(other)) == 2


def change(store, aside, random, step):
    """Let something come, go or move in `tapes/`, by a program with or without the index."""
    tapes, (name, *_) = store.tapes, random.sample(store.folders(), 1)
    trash, taken = store.trash(), sorted(aside.iterdir())
    match random.choice(("new", "bare", "rm", "restore", "copy", "rename", "take", "put")):
        case "new":
            store.create(Beginning("/src", "test/1", f"tape {step}")).close()
        case "bare":
            Store(store.path).create(Beginning("/src", "test/1", f"{step}")).close()
        case "rm" if len(store.folders()) > 1:
            with store.open_folder(name) as tape:
                store.remove(tape)
        case "restore" if trash:
            with suppress(UsageError):  # a copy of it is there
                store.restore(random.choice(trash).folder)
        case "copy":
            shutil.copytree(tapes / name, tapes / f"{name}.c{step}")
        case "rename":
            (tapes / name).rename(tapes / f"r{step}-{name[-8:]}")
        case "take" if len(store.folders()) > 1:
            (tapes / name).rename(aside / f"{step}")
        case "put" if taken:
            taken[0].rename(tapes / f"p{step}")


def test_changes_by_other_programs_among_ours_are_in_the_next_list(library):
    random, aside = Random(7), library.store.path / "aside"
    aside.mkdir()
    for step in range(40):
        change(library.store, aside, random, step)
        if random.random() < 0.7:
            listed(library)
    held(library)


def test_older_tapes_are_compared_in_slices(library, monkeypatch):
    monkeypatch.setattr(reader, "_ALWAYS_CHECKED", 1)
    monkeypatch.setattr(reader, "_SLICE_TAPES", 2)
    for title in ("two", "three", "four", "five"):
        begin(library, title=title).close()
    listed(library)
    bare = Store(library.store.path)
    for name in bare.folders():
        with bare.open_folder(name) as tape:
            tape.rename(f"{tape.refs().title}!")
    checked = library.store.path / reader.CHECK_NAME
    seen = []
    for _ in range(3):
        then = checked.stat().st_mtime - 61
        os.utime(checked, (then, then))
        seen.append(sum(row.title.endswith("!") for row in list_tapes(*library)))
    assert seen[0] < seen[1] <= seen[2] == 5
    listed(library)


def test_each_folder_that_tapes_work_in_is_listed_once(library):
    for cwd, project in (("/a", None), ("/a/b", "/a"), ("/c", "/c"), ("/a", None)):
        library.store.create(Beginning(cwd, "test/1", project=project)).close()
    assert list_roots(*library) == list_roots(library.store, None)
    assert {"/a", "/c"} <= {*list_roots(*library)}
    for root in ("/a", "/c", "/d"):
        found = list_tapes(*library, root=root)
        assert found == list_tapes(library.store, None, root=root)
        assert (len(found) == 3) == (root == "/a")


def test_a_child_is_found_by_the_index(library):
    with library.store.open_folder(library.store.folders()[0]) as parent:
        child = library.store.create(Beginning("/src", "test/1"), origin=(parent, parent.head()))
        child.close()
        with pytest.raises(UsageError, match="detach the tapes"):
            library.store.remove(parent)
        with library.store.open(child.id) as tape:
            library.store.remove(tape)
        library.store.remove(parent)
    assert listed(library) == []


def test_a_store_without_an_index_gets_one_in_one_pass(library, monkeypatch):
    monkeypatch.setattr(catch_up, "_MANY_TAPES", 2)
    for title in ("two", "three", "four"):
        begin(library, title=title).close()
    library.index.close()
    (library.store.path / "index.db").unlink()
    told = []

    @contextmanager
    def telling():
        yield lambda done, total: told.append((done, total))

    with open_store(library.store.path, telling=telling) as other:
        assert len(listed(other)) == 4
        assert told[:5] == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
        held(other)
    assert not (library.store.path / ".index").exists()


def test_a_stopped_rebuild_continues_with_the_tapes_that_are_missing(library):
    for title in ("two", "three", "four"):
        begin(library, title=title).close()
    first, *_ = library.store.folders()
    told = []

    def stop(done, total):
        told.append((done, total))
        if done == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        rebuild_index(library.store, stop)
    assert told[-1] == (2, 4)
    assert len(listed(library)) == 4  # the old index is as it was
    with library.store.open_folder(first) as tape:
        tape.rename("renamed meanwhile")
    told.clear()
    assert rebuild_index(library.store, lambda *now: told.append(now)) == 4
    assert told == [(0, 1), (1, 1)]
    assert "renamed meanwhile" in {row.title for row in listed(library)}
    held(library)
