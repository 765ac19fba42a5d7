"""After each test of the index: the reader of docs/format.md reads the tapes it left as we do."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.errors import TapeError
from tape.store.store import Store
from tests.tape.two_readers import compare_readers

MOST = 500_000
"""Bytes of a tape's phases that are read once more."""


@pytest.fixture(autouse=True)
def read_by_another_reader(tmp_path):
    """Compare both readers on every tape under the test's folder that holds."""
    yield
    for mark in tmp_path.rglob("store.json"):
        store = Store(mark.parent)
        names = []
        with suppress(TapeError):  # of a later format
            names = store.folders()
        for name in names:
            if is_whole(store, name):
                compare_readers(store, name)


def is_whole(store, name):
    """Return whether a tape, and what it was forked from, is undamaged and not too large."""
    try:
        with store.open_folder(name) as tape:
            size = sum(path.stat().st_size for path in (store.tapes / name).rglob("*.jsonl"))
            origin = tape.info.origin
            faults = [one for one in verify(tape, Counts()) if one.level != "note"]
            if size > MOST or faults:
                return False
            if origin is None or origin.tape is None or tape.phases.has_origin:
                return True
            return is_whole(store, store.open(origin.tape).folder.name)
    except (OSError, TapeError):
        return False
