"""What is different in a folder since it was looked at last, with a watch and without one."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from gong.checkpoints.folder_files import FolderFiles
from gong.checkpoints.folder_watch import FolderWatch
from gong.checkpoints.local_folder import LocalFolder
from gong.checkpoints.stored_blobs import StoredBlobs
from gong.config import CheckpointSettings
from gong.env.local import LocalEnvironment
from tape.store.blobs import Blobs
from tape.store.disk import Folder


class Place:
    """A folder that is recorded, and the shell in it."""

    def __init__(self, top, *, git=True, **limits):
        self.folder = top / "work"
        self.folder.mkdir()
        blobs = top / "blobs"
        blobs.mkdir()
        self.stored = StoredBlobs()
        self.stored.blobs = Blobs(Folder.open(blobs))
        if git:
            self.run("git init -q -b main")
        environ = {"PATH": os.environ["PATH"], "HOME": str(top)}
        env = LocalEnvironment(str(self.folder), environ)
        settings = CheckpointSettings(**limits)
        self.files = FolderFiles(
            LocalFolder(env, str(self.folder), []), str(self.folder), settings, self.stored, {}
        )

    def run(self, command):
        subprocess.run(["bash", "-c", command], cwd=self.folder, check=True, capture_output=True)

    def commit(self):
        self.run("git add -A; git -c user.name=a -c user.email=a@b commit -qm x")

    def look(self):
        return sorted(self.files.find_unrecorded())

    def changes(self, command):
        self.files.find_unrecorded()
        self.run(command)
        before, after = self.files.find_changes()
        return sorted(path for path in after if before[path] != after[path])


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    (place.folder / "a.txt").write_text("one\n")
    (place.folder / "sub").mkdir()
    (place.folder / "sub/b.txt").write_text("two\n")
    place.commit()
    yield place
    place.files.close()


def test_clean_files_are_not_listed_and_dirty_ones_once(place):
    (place.folder / "a.txt").write_text("dirty\n")
    (place.folder / "new.txt").write_text("new\n")
    assert place.look() == ["a.txt", "new.txt"]
    assert place.look() == []
    (place.folder / "a.txt").write_text("by a person\n")
    assert place.look() == ["a.txt"]


def test_a_file_that_came_to_be_clean_is_listed_when_a_record_tells_otherwise(place):
    (place.folder / "a.txt").write_text("dirty\n")
    assert place.look() == ["a.txt"]
    place.run("git checkout -q a.txt")
    assert place.look() == ["a.txt"]


def test_the_bytes_of_a_clean_file_come_from_git(place):
    place.look()
    place.run("rm -rf sub a.txt")
    before, after = place.files.find_changes()
    assert after == {"a.txt": None, "sub/b.txt": None}
    assert place.stored.blobs.read(before["a.txt"].blob.hash) == b"one\n"
    assert before["sub/b.txt"].mode == "100644"


def test_the_bytes_of_a_file_with_other_line_ends_come_from_git_too(place):
    (place.folder / ".gitattributes").write_text("*.crlf text eol=crlf\n")
    (place.folder / "w.crlf").write_bytes(b"a\r\nb\r\n")
    place.commit()
    place.run("rm w.crlf; git checkout -q w.crlf")
    time.sleep(0.1)  # a file that changed just now is read, not taken from git
    place.look()
    place.run("echo other > w.crlf")
    before, _ = place.files.find_changes()
    assert place.stored.blobs.read(before["w.crlf"].blob.hash) == b"a\r\nb\r\n"


def test_ignored_files_and_repositories_inside_are_left_out(place):
    (place.folder / ".gitignore").write_text("*.log\nbuild/\n")
    place.run("mkdir -p build inner; git -C inner init -q; touch x.log build/y inner/z")
    assert place.look() == [".gitignore"]
    assert place.changes("echo more > x.log; echo y > build/y; echo z > inner/z") == []
    assert place.changes("echo n > n.log; mkdir deep; echo n > deep/n.log") == []
    assert place.changes("echo n > deep/n.txt") == ["deep/n.txt"]


def test_a_file_that_is_no_longer_ignored_was_not_made_by_the_command(place):
    (place.folder / ".gitignore").write_text("*.env\n")
    (place.folder / "secret.env").write_text("keep me\n")
    time.sleep(0.1)
    assert place.changes("rm .gitignore") == [".gitignore"]
    assert place.look() == ["secret.env"]


def test_a_write_through_another_name_of_a_file_is_seen(place):
    time.sleep(0.1)
    assert place.changes("ln a.txt c.txt; echo more >> c.txt") == ["a.txt", "c.txt"]
    assert place.changes("echo again >> a.txt") == ["a.txt", "c.txt"]


def test_new_folders_and_files_in_them_are_seen_immediately(place):
    assert place.changes("mkdir -p x/y/z; echo 1 > x/y/z/f") == ["x/y/z/f"]
    assert place.changes("echo 2 > x/y/z/f") == ["x/y/z/f"]
    assert place.changes("mv x w") == ["w/y/z/f", "x/y/z/f"]
    assert place.changes("echo 3 > w/y/z/f") == ["w/y/z/f"]


def test_an_empty_folder_is_watched(place):
    place.run("mkdir -p empty/inner")
    place.look()
    assert place.changes("echo 1 > empty/inner/f") == ["empty/inner/f"]


def test_too_many_events_are_no_loss(place):
    place.look()
    for _ in range(10_000):  # more than the queue of the system takes
        os.utime(place.folder / "a.txt")
        os.utime(place.folder / "sub/b.txt")
    assert place.files._source.find_changed_names(place.files.rows) is None
    assert place.changes("echo more >> a.txt; rm sub/b.txt") == ["a.txt", "sub/b.txt"]


def test_limits_are_reported_and_what_is_beyond_them_is_not_guessed(tmp_path):
    place = Place(tmp_path, git=False, max_file_bytes=10, max_total_bytes=15, max_files=4)
    for name in ("a", "b", "c", "d", "e"):
        (place.folder / name).write_text(f"{name} 345678\n")
    (place.folder / "a").write_text("larger than ten bytes\n")
    found = place.files.find_unrecorded()
    assert len(found) == 4
    assert all(one.blob is not None or one.why for one in found.values())
    assert {one.why for one in found.values() if one.size > 10} <= {"it is larger than 10 bytes"}
    remarks = place.files.take_remarks(has_files=True)
    assert remarks == ("Not recorded: files after the first 4 of this folder.",)
    assert place.files.take_remarks(has_files=True) == ()


def test_without_git_heavy_folders_are_left_out_and_reported(tmp_path):
    place = Place(tmp_path, git=False)
    place.run("mkdir -p node_modules/x .venv; touch node_modules/x/f .venv/f a")
    assert place.look() == ["a"]
    remarks = place.files.take_remarks(has_files=True)
    assert remarks == ("Not recorded: what is in folders named .venv, node_modules.",)
    assert place.changes("touch node_modules/x/g; echo 1 > b") == ["b"]


def test_after_the_watch_was_closed_the_same_is_found(place, tmp_path):
    place.look()
    place.files.close()
    assert FolderWatch.open(str(tmp_path)) is not None
    assert place.changes("echo more >> a.txt; mkdir z; echo 1 > z/f") == ["a.txt", "z/f"]


def test_nothing_happened_is_one_question_to_the_system(place):
    time.sleep(0.1)
    place.look()
    place.changes("true")
    names = place.files._source.find_changed_names(place.files.rows)
    assert names == set()
    assert place.files._find_unwatched() == set()
