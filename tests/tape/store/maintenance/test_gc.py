"""Garbage: found without a trace, deleted only when it is garbage still, killed anywhere."""

from __future__ import annotations

import os

import pytest

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.model.entries import Note
from tape.store.blobs import Blobs
from tape.store.disk import Folder
from tape.store.locks import hold_lock
from tape.store.maintenance import gc
from tape.store.maintenance.gc import (
    Garbage,
    GarbageSurvey,
    SkippedTape,
    delete_garbage,
    find_garbage,
)
from tests.tape import making, reader

LATER = making.DAY + 2 * gc.LEFTOVER_AGE


@pytest.fixture
def old(store, tape, folder):
    """A store whose clock says two hours later than its files: an unnamed blob, a lost phase."""
    unnamed = tape.blobs.put(b"unnamed").hash
    named = tape.blobs.put(b"named", "n").hash
    with tape.writer() as writer:
        writer.append_data(
            "custom", b'{"file":{"$blob":"%b","bytes":5,"head":"n"}}' % named.encode()
        )
    for phase in ("0002-main", "0003-main"):
        with tape.phases.folder.make(phase) as made:
            made.create("entries.jsonl", b"")
    age(store.path)
    store.clock = lambda: LATER
    place = f"tapes/{folder.name}"
    return {
        Garbage(f"{place}/phases/0002-main", "phase", 0),
        Garbage(f"{place}/blobs/{unnamed[:2]}/{unnamed}", "blob", 7),
    }


def age(path):
    for one in [*path.rglob("*"), path]:
        os.utime(one, ns=(making.DAY * 1000, making.DAY * 1000))


def test_what_nothing_leads_to_is_found_without_a_trace(store, folder, old):
    before = reader.files(folder)
    assert (set(find_garbage(store).garbage), find_garbage(store).kept) == (old, ())
    assert reader.files(folder) == before


def test_it_goes_and_the_tape_holds(store, tape, folder, old):
    gone = delete_garbage(store, find_garbage(store))
    assert (set(gone.garbage), gone.kept) == (old, ())
    assert [finding for finding in verify(tape, Counts()) if finding.level != "note"] == []
    assert find_garbage(store) == GarbageSurvey((), ())
    assert delete_garbage(store, gone) == GarbageSurvey((), ())


def test_the_newest_number_is_not_given_again(store, tape, old):
    """0003-main is begun and uncommitted too, but it keeps its number taken."""
    delete_garbage(store, find_garbage(store))
    assert tape.phases.names() == ["0001-main-start", "0003-main"]
    tape.fork(tape.head(), "side")
    with tape.writer("side") as writer:
        writer.append(Note("x"))
    number, _, branch = tape.phases.names()[-1].partition("-")
    assert (int(number) > 3, branch) == (True, "side")


def test_what_an_entry_names_meanwhile_is_kept(store, tape, old):
    found = find_garbage(store)
    (blob,) = (one for one in found.garbage if one.kind == "blob")
    digest = blob.path.rpartition("/")[2].encode()
    with tape.writer() as writer:
        writer.append_data("custom", b'{"file":{"$blob":"%b","bytes":7,"head":""}}' % digest)
    assert [one.kind for one in delete_garbage(store, found).garbage] == ["phase"]
    assert tape.blobs.read(digest.decode()) == b"unnamed"


def test_what_is_stored_meanwhile_is_kept(store, tape, old):
    """A writer that found the blob there gave it a new time, and its entry may still come."""
    found = find_garbage(store)
    tape.blobs.put(b"unnamed")
    assert [one.kind for one in delete_garbage(store, found).garbage] == ["phase"]
    assert tape.blobs.remove_if_older("0" * 64, LATER * 1000) is False


def test_a_blob_that_is_stored_while_it_goes_is_written_again(store, tape, old):
    """The writer comes between putting aside and deleting: the real steps, in that order."""
    digest = tape.blobs.put(b"unnamed").hash
    shelf = Folder.open(store.tapes / tape.folder.name / "blobs" / digest[:2])
    aside = f".{digest}.00"
    os.rename(digest, aside, src_dir_fd=shelf.fd, dst_dir_fd=shelf.fd)
    Blobs(tape.folder).put(b"unnamed")
    os.unlink(aside, dir_fd=shelf.fd)
    shelf.close()
    assert tape.blobs.read(digest) == b"unnamed"


@pytest.mark.parametrize("lock", ["main", "refs", "main.2"])
def test_a_tape_with_a_lock_that_is_held_is_left_alone(store, tape, folder, old, lock):
    found = find_garbage(store)
    with tape.folder.make("locks") as locks, hold_lock(locks, lock):
        assert find_garbage(store) == GarbageSurvey(
            (), (SkippedTape(folder.name, f"{lock} is being written"),)
        )
        if lock != "refs":
            assert delete_garbage(store, found).garbage == ()
    assert set(find_garbage(store).garbage) == old


def test_damage_and_what_cannot_be_opened_is_left_alone(store, tape, folder, old):
    path = folder / "phases/0001-main-start/entries.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"head":"n"', b'"head":"m"'))
    (kept,) = find_garbage(store).kept
    assert kept.why.startswith("is damaged: phases/0001-main-start/entries.jsonl: ")
    (folder / "tape.json").unlink()
    (kept,) = find_garbage(store).kept
    assert kept.why.startswith("cannot be read: ")


def test_a_phase_with_more_than_its_first_entry_is_no_garbage(store, tape, folder, old):
    first = (folder / "phases/0001-main-start/entries.jsonl").read_bytes()
    (folder / "phases/0002-main/entries.jsonl").write_bytes(first)
    assert all(one.kind != "phase" for one in find_garbage(store).garbage)


def test_a_phase_with_something_else_in_it_is_no_garbage(store, folder, old):
    (folder / "phases/0002-main/notes.txt").write_text("mine")
    assert [one.kind for one in find_garbage(store).garbage] == ["blob"]


def test_a_killed_collection_is_completed_by_the_next(store, tape, folder, old):
    """Killed behind any step: what is left is garbage still, and the tape holds."""
    (folder / "phases/0002-main/entries.jsonl").unlink()
    digest = next(one.path for one in old if one.kind == "blob").rpartition("/")[2]
    shelf = folder / "blobs" / digest[:2]
    (shelf / digest).rename(shelf / f".{digest}.0011aabb")
    age(store.path)
    assert [finding for finding in verify(tape, Counts()) if finding.level != "note"] == []
    kinds = sorted(one.kind for one in delete_garbage(store, find_garbage(store)).garbage)
    assert kinds == ["leftover", "phase"]
    assert find_garbage(store) == GarbageSurvey((), ())
    assert list(shelf.iterdir()) == []


def test_leftovers_beside_the_tapes_go_when_nothing_in_them_was_touched(store, tape, old):
    new = store.tapes / ".new-01"
    (new / "phases").mkdir(parents=True)
    (new / "phases/x").write_bytes(b"12345")
    (store.path / ".store.0a").write_bytes(b"{}")
    (store.tapes / ".new-link").symlink_to(tape.folder.name)
    age(store.path)
    os.utime(new / "phases/x", ns=(LATER * 1000, LATER * 1000))
    beside = {one.path for one in find_garbage(store).garbage} - {one.path for one in old}
    assert beside == {".store.0a"}
    age(store.path)
    gone = {one.path: one.bytes for one in delete_garbage(store, find_garbage(store)).garbage}
    assert (gone["tapes/.new-01"], gone[".store.0a"]) == (5, 2)
    assert (store.tapes / ".new-link").is_symlink()
