"""Changes between two states of some files."""

from __future__ import annotations

from gong.checkpoints.file_changes import FileVersion, list_changes
from tape.model.entries import BlobRef

ONE, TWO = "1" * 64, "2" * 64


def version(digest, mode="100644", why=""):
    return FileVersion(mode, digest, 3, BlobRef(digest, 3) if digest else None, why)


def ops(before, after):
    return [(one.path, one.op, one.source) for one in list_changes(before, after)]


def test_each_kind_of_change_has_its_op():
    before = {"a": None, "b": version(ONE), "c": version(ONE), "d": version(ONE), "e": version(ONE)}
    after = {**before, "a": version(TWO), "b": None, "c": version(TWO), "d": version(ONE, "100755")}
    assert ops(before, after) == [
        ("a", "created", None),
        ("b", "deleted", None),
        ("c", "modified", None),
        ("d", "mode", None),
    ]


def test_a_rename_prefers_the_file_of_the_same_name_and_uses_each_once():
    before = {"x/n": version(ONE), "x/m": version(ONE), "y/n": None, "y/q": None, "z": None}
    after = {"x/n": None, "x/m": None, "y/n": version(ONE), "y/q": version(ONE), "z": version(ONE)}
    assert ops(before, after) == [
        ("y/n", "renamed", "x/n"),
        ("y/q", "renamed", "x/m"),
        ("z", "created", None),
    ]


def test_a_link_is_not_the_renamed_file_of_the_same_bytes():
    before, after = {"a": version(ONE), "b": None}, {"a": None, "b": version(ONE, "120777")}
    assert ops(before, after) == [("a", "deleted", None), ("b", "created", None)]


def test_bytes_that_are_not_known_are_never_the_same():
    large = version(None, why="too large")
    (change,) = list_changes({"a": large}, {"a": large._replace(size=9)})
    assert (change.op, change.before, change.after, change.why) == (
        *("modified", None, None, "too large"),
    )
