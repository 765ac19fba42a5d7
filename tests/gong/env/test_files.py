import os
import stat

import pytest

from gong.env.files import list_entries, read_regular_file, write_file_atomically
from gong.env.protocol import DirEntry


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_gets_the_mode_the_umask_leaves(tmp_path):
    (tmp_path / "usual").touch()
    write_file_atomically(str(tmp_path / "deep/er/new"), b"x")
    assert (tmp_path / "deep/er/new").read_bytes() == b"x"
    assert mode(tmp_path / "deep/er/new") == mode(tmp_path / "usual")


def test_an_existing_file_keeps_its_mode(tmp_path):
    script = tmp_path / "run.sh"
    script.write_bytes(b"old")
    script.chmod(0o751)
    write_file_atomically(str(script), b"new")
    assert (script.read_bytes(), mode(script)) == (b"new", 0o751)


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real/file")
    write_file_atomically(str(tmp_path / "link"), b"one")
    write_file_atomically(str(tmp_path / "link"), b"two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real/file").read_bytes() == b"two"


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    target = tmp_path / "file"
    target.write_bytes(b"old")
    with pytest.raises(TypeError):
        write_file_atomically(str(target), "no bytes")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"old"}


def test_a_folder_is_neither_read_nor_replaced(tmp_path):
    with pytest.raises(IsADirectoryError):
        read_regular_file(str(tmp_path))
    with pytest.raises(IsADirectoryError):
        write_file_atomically(str(tmp_path), b"x")


def test_a_pipe_or_device_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="Not a regular file"):
        read_regular_file(str(tmp_path / "pipe"))
    with pytest.raises(OSError, match="No such device"):
        write_file_atomically(str(tmp_path / "pipe"), b"x")
    with pytest.raises(OSError, match="Not a regular file"):
        read_regular_file("/dev/zero")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_folder_lists_by_name_without_dangling_links(tmp_path):
    (tmp_path / "sub/deeper").mkdir(parents=True)
    (tmp_path / "sub/b").write_bytes(b"12")
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "linked").symlink_to("sub")
    assert list(list_entries(str(tmp_path), 1)) == [
        DirEntry("a", False, 1),
        DirEntry("linked", True, None),
        DirEntry("sub", True, None),
    ]
    assert list(list_entries(str(tmp_path / "sub"), 1)) == [
        DirEntry("b", False, 2),
        DirEntry("deeper", True, None),
    ]


def test_depth_goes_into_folders_but_not_through_links(tmp_path):
    (tmp_path / "sub/deeper/deepest").mkdir(parents=True)
    (tmp_path / "loop").symlink_to(".")
    names = [entry.name for entry in list_entries(str(tmp_path), 2)]
    assert names == ["loop", "sub", "sub/deeper"]
