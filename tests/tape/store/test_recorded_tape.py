"""The folder of a tape is found by its id, however it is called and whatever stands beside it."""

import pytest

from tape.store.maintenance.archive import pack_tape
from tape.store.recorded_tape import TapeFolders
from tape.store.store import Store
from tests.tape import making


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store", durable=False)
    for number in range(6):
        with store.create(making.beginning(f"n{number}")) as tape:
            making.write(tape, "hello")
    return store


def rename(store, names, new):
    """Give folders other names."""
    for name, other in zip(names, new, strict=False):
        (store.tapes / name).rename(store.tapes / other)


def test_each_is_found_under_any_name_and_in_either_form(store):
    names = store.folders()
    tapes = [store.read_tape_id(name) for name in names]
    with store.open_folder(names[4]) as tape:
        pack_tape(store, tape)
    with store.open_folder(names[5]) as tape:
        pack_tape(store, tape)
    new = ["mine", f"{names[1]}.2", "other-0123abcd", "a-1"]
    rename(store, names, new)
    (store.tapes / f"{names[5]}.tar.zst").rename(store.tapes / "packed.tar.zst")
    (store.tapes / f".new-{tapes[0]}.1").mkdir()
    expected = ["mine", f"{names[1]}.2", None, "a-1", names[4], "packed"]
    for _ in range(2):
        assert [TapeFolders(store).find(tape) for tape in tapes] == expected
        assert TapeFolders(store).find("f" * 32) is None
        for number in range(500):  # tapes of others, as their names say
            (store.tapes / f"2026-11-21-x-{number:08x}").mkdir(exist_ok=True)


def test_one_that_is_opened_is_the_one_that_was_asked_for(store):
    folders = TapeFolders(store)
    for name in store.folders():
        tape = store.read_tape_id(name)
        for _ in range(2):
            with folders.open(tape) as opened:
                assert opened.id == tape
            folders.add(name)
