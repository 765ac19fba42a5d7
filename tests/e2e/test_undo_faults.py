"""`gong undo` on a full disk, and killed: what it did stays, and the same again completes it."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from tests.e2e.test_print import call

LARGE = "old line\n" * 45_000
LIMIT_KIB = 256


@pytest.fixture
def changed(place):
    """A session that replaced a large file and a small one, and made a third."""
    (place.folder / "large.txt").write_text(LARGE)
    (place.folder / "small.txt").write_text("old\n")
    command = "echo new > large.txt; echo new > small.txt; echo new > made.txt"
    model = place.script(call("bash", command=command), {"text": "done"})
    place.run("gong", "-p", "go", "-m", model)
    return place


def read_names(place):
    return sorted(one.name for one in place.folder.iterdir())


def assert_undone(place):
    assert (place.folder / "large.txt").read_text() == LARGE
    assert (place.folder / "small.txt").read_text() == "old\n"
    assert read_names(place) == ["large.txt", "small.txt"]
    assert "nothing to undo" in place.run("gong", "undo", "--yes", code=None).stderr


def test_undo_on_a_full_disk_restores_what_it_can_and_is_completed(changed):
    """Here a limit on the size of files stands for the disk: the large one does not fit."""
    line = f"ulimit -f {LIMIT_KIB}; exec {changed.bin}/gong undo --yes"
    done = subprocess.run(
        ["bash", "-c", line],
        check=False,
        cwd=changed.folder,
        env=changed.env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "large.txt was not restored: File too large" in done.stderr
    assert "undo is not complete: 2 files restored; the same again completes it" in done.stdout
    assert (changed.folder / "large.txt").read_text() == "new\n"
    assert (changed.folder / "small.txt").read_text() == "old\n"
    assert read_names(changed) == ["large.txt", "small.txt"]
    changed.run("gong", "undo", "--yes")
    assert_undone(changed)
    changed.run("tape", "verify")


def test_a_killed_undo_leaves_no_temporary_file(changed):
    """Killed once the first file is back; there are no names but the folder's own."""
    process = changed.start("gong", "undo", "--yes")
    try:
        while (changed.folder / "made.txt").exists() and process.poll() is None:
            assert set(read_names(changed)) <= {"large.txt", "small.txt", "made.txt"}
            time.sleep(0)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.communicate()
    assert set(read_names(changed)) <= {"large.txt", "small.txt"}
    changed.run("gong", "undo", "--yes", code=None)
    assert_undone(changed)
