"""Values by key: what a key may be, what a kill leaves, and writers at once."""

from __future__ import annotations

import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tape.errors import InvalidName, NotFound
from tape.store.key_values import KeyValues


@pytest.fixture
def values(tmp_path):
    return KeyValues(tmp_path / "state" / "values")


def test_a_value_is_set_read_listed_and_deleted(values):
    """M205: Get, Set, Delete, List(prefix), Exists; folders and index are tested beside this."""
    assert values.list() == []
    assert not values.exists("editor/theme")
    values.set("editor/theme", b"dark")
    values.set("editor/font", b"\x00\xff")
    values.set("seen", b"")
    values.set("editor/theme", b"light")
    assert values.get("editor/theme") == b"light"
    assert values.get("editor/font") == b"\x00\xff"
    assert values.exists("seen")
    assert values.list() == ["editor/font", "editor/theme", "seen"]
    assert values.list("editor/") == ["editor/font", "editor/theme"]
    values.delete("editor/font")
    assert values.list("editor/") == ["editor/theme"]


def test_a_key_without_a_value_is_not_found(values):
    for act in (values.get, values.delete):
        with pytest.raises(NotFound, match="no value has the key 'a b'"):
            act("a b")
    values.set("a b", b"x")
    values.delete("a b")
    with pytest.raises(NotFound):
        values.delete("a b")


def test_a_file_is_named_by_its_key_and_only_its_owner_reads_it(values):
    """M205"""
    values.set("editor/Theme", b"dark")
    file = values.folder / "editor%2F%54heme"
    assert file.read_bytes() == b"dark"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(values.folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("key", ["", "x" * 241, "é" * 41])
def test_a_key_without_a_file_name_is_refused(values, key):
    for act in (values.get, values.exists, values.delete, lambda key: values.set(key, b"x")):
        with pytest.raises(InvalidName, match="1 to 240 characters"):
            act(key)


@given(keys=st.dictionaries(st.text(min_size=1, max_size=20), st.binary(max_size=20), max_size=8))
def test_every_key_comes_back(tmp_path_factory, keys):
    values = KeyValues(tmp_path_factory.mktemp("values") / "made")
    for key, value in keys.items():
        values.set(key, value)
    assert values.list() == sorted(keys)
    assert {key: values.get(key) for key in keys} == keys
    names = [file.name for file in values.folder.iterdir()] if keys else []
    assert len({name.lower() for name in names}) == len(names)


@pytest.mark.parametrize("key", [".", "..", ".lock", "../up", "/etc/x", ".x.new", "a\0b"])
def test_no_key_leaves_the_folder_or_meets_another_file(values, key):
    values.set(key, b"x")
    values.set("x", b"y")
    assert values.get(key) == b"x"
    assert values.list() == sorted([key, "x"])
    assert [file.name for file in values.folder.parent.iterdir()] == [values.folder.name]


def test_a_link_in_place_of_a_value_is_refused(values, tmp_path):
    values.set("x", b"y")
    (tmp_path / "secret").write_bytes(b"secret")
    (values.folder / "y").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="symbolic"):
        values.get("y")


def test_concurrent_writers_lose_nothing(values):
    """M205"""

    def count(_):
        for _ in range(20):
            values.update("n", lambda old: b"%d" % (int(old or b"0") + 1))

    script = (
        "import sys; from pathlib import Path; from tape.store.key_values import KeyValues\n"
        "values = KeyValues(Path(sys.argv[1]))\n"
        "for _ in range(20): values.update('n', lambda old: b'%d' % (int(old or b'0') + 1))"
    )
    command = [sys.executable, "-c", script, str(values.folder)]
    others = [subprocess.Popen(command) for _ in range(2)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(count, range(3)))
    assert [other.wait() for other in others] == [0, 0]
    assert values.get("n") == b"100"


def test_reading_writes_nothing(values):
    values.folder.mkdir(parents=True)
    (values.folder / "x").write_bytes(b"y")
    values.folder.chmod(0o500)
    assert values.get("x") == b"y"
    assert values.list() == ["x"]


def test_what_a_killed_writer_left_is_not_a_value_and_does_not_block(values):
    """M205"""
    values.set("x", b"old")
    (values.folder / ".x.new").write_bytes(b"hal")
    assert values.list() == ["x"]
    assert values.get("x") == b"old"
    values.set("x", b"new")
    assert values.get("x") == b"new"
    assert sorted(file.name for file in values.folder.iterdir()) == [".lock", "x"]


def test_a_change_that_fails_leaves_the_value(values):
    values.set("x", b"old")
    with pytest.raises(ZeroDivisionError):
        values.update("x", lambda _: b"" * (1 // 0))
    assert values.get("x") == b"old"
