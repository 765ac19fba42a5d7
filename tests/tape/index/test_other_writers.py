"""What was written without the index is in the answer to the next question, however it came."""

from __future__ import annotations

import os
import shutil

import pytest

from tape.index import reader
from tape.index.library import list_tapes, open_store, search_entries
from tape.index.reader import fetch_newest_tapes
from tape.store.store import Store
from tests.tape.index.test_projection import begin, held, listed, say, settle


@pytest.fixture
def library(tmp_path):
    with open_store(tmp_path / "home") as library:
        with begin(library, title="one", slug="one") as tape, tape.writer() as writer:
            writer.append(say("first"))
        begin(library, title="two").close()
        settle(library)
        listed(library)
        settle(library)
        listed(library)
        yield library


@pytest.fixture
def bare(library):
    """Return the same store for a program that does not know the index."""
    return Store(library.store.path)


def open_one(store):
    return store.open_folder(next(name for name in store.folders() if "-one-" in name))


def append(store, text="needle", branch=None):
    with open_one(store) as tape, tape.writer(branch) as writer:
        writer.append(say(text))


def fork(store):
    with open_one(store) as tape:
        tape.fork(tape.head(), "side")


def fork_and_append(store):
    fork(store)
    append(store, branch="side")


def rename(store):
    with open_one(store) as tape:
        tape.rename("needle")


def label(store):
    with open_one(store) as tape:
        tape.label("good", tape.head().entry)


def compact_and_append(store):
    with open_one(store) as tape, tape.writer() as writer:
        writer.rewind(tape.head())
        writer.append(say("needle"))


def copy_over(store):
    """Replace the files of a tape by longer ones, one by one, as rsync does."""
    with open_one(store) as tape:
        folder = store.tapes / tape.folder.name
    aside = store.path / "aside"
    shutil.copytree(folder, aside / "tapes" / folder.name)
    for name in ("store.json", "machine.json"):
        shutil.copy(store.path / name, aside)
    append(Store(aside))
    for file in (aside / "tapes" / folder.name).rglob("*.jsonl"):
        there = folder / file.relative_to(aside / "tapes" / folder.name)
        there.parent.mkdir(exist_ok=True)
        shutil.copy2(file, there.with_suffix(".part"))
        there.with_suffix(".part").rename(there)
    shutil.rmtree(aside)


CHANGES = [append, fork, fork_and_append, rename, label, compact_and_append, copy_over]


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
def test_a_change_without_the_index_is_seen(library, bare, change):
    home = os.fspath(library.store.path)
    before = fetch_newest_tapes(home, -1)
    change(bare)
    settle(library)
    fast = fetch_newest_tapes(home, -1)
    held(library)
    assert before is not None
    assert fast is None
    settle(library)
    listed(library)
    assert fetch_newest_tapes(home, -1) is not None


@pytest.mark.parametrize("change", CHANGES[:-1], ids=lambda one: one.__name__)
def test_a_change_beside_a_writer_with_the_index_is_seen(library, bare, change):
    with open_one(library.store) as tape, tape.writer(tape.fork(tape.head())) as writer:
        writer.append(say("before"))
        writer.barrier()
        change(bare)
        writer.append(say("after"))
    settle(library)
    held(library)


def test_of_many_tapes_the_old_ones_are_compared_once_a_minute(library, bare, monkeypatch):
    monkeypatch.setattr(reader, "_ALWAYS_CHECKED", 1)
    home = os.fspath(library.store.path)
    assert [row.title for row in listed(library)] == ["two", "one"]
    rename(bare)  # the older one
    assert [row.title for row in list_tapes(*library)] == ["two", "one"]
    checked = library.store.path / reader.CHECK_NAME
    then = checked.stat().st_mtime - 61
    os.utime(checked, (then, then))
    assert fetch_newest_tapes(home, -1) is None
    assert [row.title for row in listed(library)] == ["two", "needle"]
    rename(bare)
    os.utime(checked, (then + 1e6, then + 1e6))  # the clock was set back
    assert [row.title for row in listed(library)] == ["two", "needle"]
    checked.unlink()
    listed(library)


def test_a_writer_with_the_index_leaves_it_caught_up(library):
    append(library.store)
    fork_and_append(library.store)
    rename(library.store)
    append(library.store)
    assert fetch_newest_tapes(os.fspath(library.store.path), -1) is not None
    held(library)


def test_an_older_index_that_was_put_back_is_seen_through(library, bare):
    home = library.store.path
    library.index.close()
    kept = {file.name: file.read_bytes() for file in home.glob("index.*")}
    append(library.store)
    rename(bare)
    library.index.close()
    for file in home.glob("index.*"):
        file.unlink()
    for name, data in kept.items():
        (home / name).write_bytes(data)
    assert len(search_entries(*library, "needle")) == 1
    held(library)


def test_a_restored_folder_is_read_again(library, bare, tmp_path):
    with open_one(bare) as tape:
        folder = bare.tapes / tape.folder.name
    shutil.copytree(folder, tmp_path / "backup")
    append(library.store, "later")
    listed(library)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "backup", folder)
    then = folder.stat().st_mtime
    os.utime(bare.tapes, (then, then))
    assert search_entries(*library, "later") == []
    held(library)


def test_a_tape_without_its_journal_does_not_stop_the_others(library, bare):
    with open_one(bare) as tape:
        (bare.tapes / tape.folder.name / "refs.jsonl").unlink()
    assert "two" in [row.title for row in list_tapes(*library)]
