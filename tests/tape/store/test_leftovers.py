"""What a crash leaves half made is the same to verify, fsck and gc."""

import os

import pytest

from tape.check.finding import Counts, FindingKind
from tape.check.inspection import inspect_tape
from tape.check.verify import verify
from tape.store.maintenance.gc import delete_garbage, find_garbage
from tests.tape import making

DIGEST = "ab" * 32
INSIDE = [".new-origin/entries.jsonl", ".refs.new", ".tape.new", f"blobs/ab/.{DIGEST}.0a1b"]
BESIDE = [".store.0a1b", ".index/index.db", "tapes/.new-0a1b/tape.json", "tapes/.new-0a1b.7/refs"]


def half_made(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half")


def age(path, seconds):
    for one in (path, path.parent):
        os.utime(one, (seconds, seconds))


def listed(store, tape):
    """Return the paths that verify, fsck and gc call leftovers, inside the tape and beside."""
    place = f"tapes/{tape.folder.name}/"
    found = [one for one in verify(tape, Counts()) if one.kind is FindingKind.LEFTOVER]
    mended = inspect_tape(store, tape, ()).leftovers
    garbage = sorted(one.path for one in find_garbage(store).garbage)
    assert list(mended) == garbage
    assert sorted(f"{place}{one.file}" for one in found) == [
        path for path in garbage if path.startswith(place)
    ]
    return [path.removeprefix(place) for path in garbage]


@pytest.mark.parametrize("name", INSIDE + BESIDE)
def test_each_kind_is_named_by_all_and_deleted(store, tape, folder, name):
    path = (folder if name in INSIDE else store.path) / name
    half_made(path)
    age(path, making.DAY // 1_000_000 - 4000)
    (found,) = listed(store, tape)
    assert f"{name}/".startswith(f"{found}/")
    assert [
        one.path.endswith(found) for one in delete_garbage(store, find_garbage(store)).garbage
    ] == [True]
    assert listed(store, tape) == []
    assert not path.exists()


@pytest.mark.parametrize("name", INSIDE + BESIDE)
def test_a_file_in_the_making_is_no_leftover(store, tape, folder, name):
    path = (folder if name in INSIDE else store.path) / name
    half_made(path)
    age(path, making.DAY // 1_000_000 - 3000)
    assert listed(store, tape) == []
