"""What is no regular file is refused wherever files are opened, and nobody waits for it."""

import errno
import os
import re
import socket

import pytest

from tape.store.disk import Folder, open_file, read_file


def fifo(path):
    os.mkfifo(path)


def folder(path):
    path.mkdir()


def bound(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.fspath(path))


def device(path):
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        pytest.skip("this user may make no device")


KINDS = {fifo: "a FIFO", folder: "a folder", device: "a device"}


@pytest.mark.parametrize(("make", "kind"), KINDS.items())
def test_what_is_no_file_is_refused_and_named(tmp_path, make, kind):
    make(tmp_path / "it")
    with Folder.open(tmp_path) as opened:
        for read in (lambda: opened.read("it"), lambda: read_file(tmp_path / "it")):
            with pytest.raises(OSError, match=re.escape(f"it is {kind}, not a file")):
                read()


def test_a_socket_is_refused(tmp_path):
    bound(tmp_path / "it")
    with pytest.raises(OSError, match="it") as raised:
        open_file(tmp_path / "it")
    assert raised.value.errno == errno.ENXIO


def test_a_writer_of_a_fifo_waits_for_no_reader(tmp_path):
    fifo(tmp_path / "it")
    with Folder.open(tmp_path) as opened, pytest.raises(OSError, match="it"):
        opened.file("it", os.O_WRONLY | os.O_APPEND)


def test_a_link_to_a_file_is_followed_outside_a_tape_alone(tmp_path):
    (tmp_path / "file").write_bytes(b"words")
    (tmp_path / "link").symlink_to("file")
    assert read_file(tmp_path / "link") == b"words"
    with Folder.open(tmp_path) as opened, pytest.raises(OSError, match="link") as raised:
        opened.read("link")
    assert raised.value.errno == errno.ELOOP
