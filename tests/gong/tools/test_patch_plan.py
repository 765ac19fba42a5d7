import os

import pytest

from gong.env.protocol import FileUpdate
from gong.tools.patch.parse import parse_patch
from gong.tools.patch.plan import FileOperation, PatchFailures, PatchPlan, plan_patch


def planned(files, *lines):
    """Plan a patch of these lines over files by name; an OSError stands for itself."""

    def read(path):
        found = files.get(path)
        if isinstance(found, OSError):
            raise found
        return found

    return plan_patch(parse_patch("\n".join(("*** Begin Patch", *lines, "*** End Patch"))), read)


def test_every_operation_is_planned():
    """M081"""
    files = {"a": b"1\n", "b": b"2\n", "c": b"3\n", "old": b"o\n"}
    assert planned(
        files,
        *("*** Add File: new", "+n", "*** Add File: old", "+O", "*** Delete File: a"),
        *("*** Update File: b", "-2", "+two"),
        *("*** Update File: c", "*** Move to: sub/c", "-3", "+three"),
    ) == PatchPlan(
        operations=(
            FileOperation("add", "new", None, b"", b"n\n"),
            FileOperation("add", "old", None, b"o\n", b"O\n"),
            FileOperation("delete", "a", None, b"1\n", b""),
            FileOperation("update", "b", None, b"2\n", b"two\n"),
            FileOperation("move", "c", "sub/c", b"3\n", b"three\n"),
        ),
        changes=(
            FileUpdate("new", None, b"n\n"),
            FileUpdate("old", b"o\n", b"O\n"),
            FileUpdate("a", b"1\n", None),
            FileUpdate("b", b"2\n", b"two\n"),
            FileUpdate("c", b"3\n", None),
            FileUpdate("sub/c", None, b"three\n", "c"),
        ),
        notes=(),
    )


@pytest.mark.parametrize(
    ("lines", "changes"),
    [
        (
            ("*** Update File: a", "-1", "+2", "*** Update File: ./a", "-2", "+3"),
            (FileUpdate("a", b"1\n", b"3\n"),),
        ),
        (
            ("*** Add File: b", "+x", "*** Update File: b", "-x", "+y"),
            (FileUpdate("b", None, b"y\n"),),
        ),
        (("*** Delete File: a", "*** Add File: a", "+1"), ()),
        (("*** Add File: b", "+x", "*** Delete File: b"), ()),
        (
            ("*** Update File: a", "*** Move to: b", "*** Update File: b", "*** Move to: c"),
            (FileUpdate("a", b"1\n", None), FileUpdate("c", None, b"1\n", "a")),
        ),
        (
            ("*** Update File: a", "*** Move to: ./a", "-1", "+2"),
            (FileUpdate("a", b"1\n", b"2\n"),),
        ),
        (("*** Update File: a", " 1"), ()),
    ],
)
def test_a_hunk_sees_what_those_before_it_did(lines, changes):
    """M081"""
    assert planned({"a": b"1\n"}, *lines).changes == changes


def test_a_file_is_moved_over_another():
    assert planned({"a": b"1\n", "b": b"2\n"}, "*** Update File: a", "*** Move to: b").changes == (
        FileUpdate("a", b"1\n", None),
        FileUpdate("b", b"2\n", b"1\n", "a"),
    )


def test_everything_wrong_with_a_patch_is_reported_together():
    """M081"""
    files = {
        "closed": PermissionError(13, os.strerror(13)),
        "latin": b"caf\xe9\n",
        "image": b"\0\n",
        "wide": "a\n".encode("utf-16"),
        "text": b"a\n",
        "folder": IsADirectoryError(21, os.strerror(21)),
    }
    nothing = ("@@", "+x")
    assert planned(
        files,
        *("*** Delete File: no", "*** Update File: no", *nothing),
        *("*** Update File: closed", *nothing, "*** Delete File: folder"),
        *("*** Update File: latin", *nothing, "*** Update File: image", *nothing),
        *("*** Update File: wide", *nothing, "*** Add File: folder"),
        *("*** Update File: text", "-b", "*** Add File: fine", "+x"),
        *("*** Update File: no", "*** Move to: on"),
    ) == PatchFailures(
        (
            "Failed to delete file no: no such file",
            "Failed to read file to update no: no such file",
            "Failed to read file to update closed: permission denied",
            "Failed to delete file folder: is a directory",
            (
                "Failed to read file to update latin: it is not UTF-8 text."
                " Use edit, or a command, to change it."
            ),
            "Failed to read file to update image: it is a binary file. Use a command to change it.",
            "Failed to read file to update wide: it is a binary file. Use a command to change it.",
            "Failed to write file folder: is a directory",
            (
                "Failed to find expected lines in text:\nb\nNothing in the file is like them.\n"
                "Chunk 1 of 1, at line 21 of the patch."
            ),
            "Failed to read file to update no: no such file",
        )
    )


def test_any_file_may_be_moved_or_deleted_as_it_is():
    files = {"a": b"\0\xff", "b": b"\xff\0"}
    assert planned(files, "*** Update File: a", "*** Move to: c", "*** Delete File: b").changes == (
        FileUpdate("a", b"\0\xff", None),
        FileUpdate("c", None, b"\0\xff", "a"),
        FileUpdate("b", b"\xff\0", None),
    )
