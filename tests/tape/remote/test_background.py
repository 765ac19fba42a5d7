"""Tapes that were pushed once follow by themselves, in a process of their own."""

import time

import pytest

from tape.remote.folder import FolderRemote
from tape.remote.objects import TAPES_PREFIX
from tests.e2e.conftest import Place


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path / "home")
    (tmp_path / "team").mkdir()
    place.run("tape", "remote", "add", "team", str(tmp_path / "team"))
    return place


def list_chunks(tmp_path):
    return [listed.key for listed in FolderRemote(tmp_path / "team").list(TAPES_PREFIX)]


def wait_for_chunks(tmp_path, count):
    while len(list_chunks(tmp_path)) < count:
        time.sleep(0.1)


def begin(place, title):
    return place.run("tape", "new", "--title", title).stdout.split()[0]


def test_what_is_written_to_a_pushed_tape_follows_by_itself(tmp_path, place):
    tape = begin(place, "one")
    place.run("tape", "push", tape, "--yes")
    place.run("tape", "append", tape, stdin='{"type":"note","data":{"text":"more"}}\n')
    wait_for_chunks(tmp_path, 2)
    place.run("tape", "rename", tape, "other")
    wait_for_chunks(tmp_path, 3)
    other = Place(tmp_path / "other")
    other.run("tape", "clone", str(tmp_path / "team"))
    assert [row["title"] for row in other.json("tape", "ls", "--all", "--json")] == ["other"]


def test_a_tape_that_was_never_pushed_stays(tmp_path, place):
    place.run("tape", "push", begin(place, "one"), "--yes")
    secret = begin(place, "two")
    place.run("tape", "append", secret, stdin='{"type":"note","data":{"text":"more"}}\n')
    place.run("tape", "push", secret, "--known")
    assert not [key for key in list_chunks(tmp_path) if secret[:8] in key]
