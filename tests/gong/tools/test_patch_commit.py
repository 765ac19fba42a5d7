import errno
import os

import pytest

from gong.env.files import commit_changes
from gong.env.protocol import ChangeRefusal, FileUpdate


@pytest.fixture
def root(folder):
    """A folder with files that changes refer to."""
    (folder / "sub").mkdir()
    (folder / "a").write_bytes(b"a")
    (folder / "sub/b").write_bytes(b"b")
    (folder / "sub/b").chmod(0o751)
    os.utime(folder / "a", ns=(5, 5))
    return folder


def tree(folder):
    """Return every name with content, mode, inode and time, so that any touch shows."""
    return {
        str(path.relative_to(folder)): (
            path.read_bytes() if path.is_file() else None,
            path.lstat().st_mode,
            path.lstat().st_ino,
            path.lstat().st_mtime_ns if path.is_file() else None,
        )
        for path in folder.rglob("*")
    }


def change(root, path, before, after, like=None):
    return FileUpdate(f"{root}/{path}", before, after, like and f"{root}/{like}")


def test_all_changes_are_made(root):
    """M081"""
    changes = (
        change(root, "a", b"a", b"A"),
        change(root, "sub/b", b"b", None),
        change(root, "new/deep/b", None, b"B", like="sub/b"),
        change(root, "new/c", None, b""),
    )
    assert commit_changes(str(root), changes) is None
    files = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    assert files == {"a": b"A", "new/deep/b": b"B", "new/c": b""}
    assert (root / "new/deep/b").stat().st_mode & 0o777 == 0o751


def test_the_mode_of_a_file_stays(root):
    commit_changes(str(root), (change(root, "sub/b", b"b", b"B"),))
    assert (root / "sub/b").stat().st_mode & 0o777 == 0o751


@pytest.mark.parametrize(
    ("path", "before", "after", "code"),
    [
        ("a", b"other", b"x", errno.ESTALE),
        ("a", None, b"x", errno.ESTALE),
        ("a", b"other", None, errno.ESTALE),
        ("gone", b"x", b"y", errno.ENOENT),
        ("gone", b"x", None, errno.ENOENT),
        ("sub", None, b"x", errno.EISDIR),
        ("a/b", None, b"x", errno.ENOTDIR),
        ("x" * 300, None, b"x", errno.ENAMETOOLONG),
        ("pipe", None, b"x", errno.ESTALE),
        ("out/x", None, b"x", errno.ENOTDIR),
        ("link", b"secret", b"x", errno.ELOOP),
        ("link", b"secret", None, errno.ELOOP),
    ],
)
def test_one_change_that_cannot_be_takes_all_others_back(root, path, before, after, code):
    """M081: links that appear after the look at the paths lead nowhere."""
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (root / "out").symlink_to(outside)
    (root / "link").symlink_to(outside / "secret")
    os.mkfifo(root / "pipe")
    was, was_outside = tree(root), tree(outside)
    bad = change(root, path, before, after)
    good = (
        change(root, "sub/b", b"b", None),
        change(root, "new/deep/c", None, b"B", like="sub/b"),
        change(root, "new/d", None, b"D"),
    )
    for changes in ((bad, *good), (*good, bad), (*good[:1], bad, *good[1:])):
        refused = commit_changes(str(root), changes)
        assert (refused.error.errno, refused.path, refused.left) == (code, f"{root}/{path}", ())
        assert (tree(root), tree(outside)) == (was, was_outside)


def test_a_swap_that_fails_takes_the_swaps_before_it_back(root):
    """M081: a name cannot be a file and a folder, which only shows at the end."""
    was = tree(root)
    refused = commit_changes(
        str(root),
        (
            change(root, "a", b"a", b"A"),
            change(root, "sub/b", b"b", None),
            change(root, "new", None, b"1"),
            change(root, "x", None, b"file"),
            change(root, "x/y", None, b"in a folder"),
        ),
    )
    assert isinstance(refused, ChangeRefusal)
    assert (refused.path, refused.left) == (f"{root}/x", ())
    assert tree(root) == was


def test_a_file_closed_to_writing_is_left_alone(anyone):
    (anyone / "a").write_bytes(b"a")
    (anyone / "closed").write_bytes(b"c")
    (anyone / "closed").chmod(0o444)
    was = tree(anyone)
    changes = (change(anyone, "a", b"a", b"A"), change(anyone, "closed", b"c", b"C"))
    assert commit_changes(str(anyone), changes).error.errno == errno.EACCES
    assert tree(anyone) == was


def test_a_folder_closed_to_writing_is_left_alone(anyone):
    (anyone / "sub").mkdir()
    (anyone / "sub/b").write_bytes(b"b")
    (anyone / "a").write_bytes(b"a")
    (anyone / "sub").chmod(0o555)
    was = tree(anyone)
    for last in (change(anyone, "sub/b", b"b", None), change(anyone, "sub/c", None, b"c")):
        refused = commit_changes(str(anyone), (change(anyone, "a", b"a", b"A"), last))
        assert (refused.error.errno, refused.left) == (errno.EACCES, ())
        assert tree(anyone) == was
    (anyone / "sub").chmod(0o755)
