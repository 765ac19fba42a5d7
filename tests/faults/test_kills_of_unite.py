"""Uniting two stores killed at random moments: nothing is lost or double.

`python tests/faults/test_kills_of_unite.py 1000` kills that many times.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.index.library import open_store
from tape.store.maintenance.archive import pack_tape
from tape.store.refs import is_union_decided
from tape.store.replica import MACHINE_NAME
from tape.store.store import Store
from tape.unite.stores import unite_stores
from tests.faults.kills import kill_at_random, kill_once, measure
from tests.tape import making
from tests.tape.making import BUDGET, SHARE
from tests.tape.unite.test_tapes import STEPS, Clock

pytestmark = pytest.mark.slow

KILLS = 100 * BUDGET // SHARE
ENOUGH = 3
Heads = dict[str, tuple[dict[str, str], dict[str, str], str | None, str]]


def build(top: Path, choose: random.Random, *, archived: bool) -> None:
    """Make two copies of a store, `here` and `there`, that grew apart by random steps."""
    here = Store(top / "here", clock=Clock())
    for words in ("first", "second"):
        with here.create(making.beginning(words)) as tape:
            making.write(tape, "one")
    shutil.copytree(here.path, top / "there")
    there = Store(top / "there", clock=Clock())
    for _ in range(80):
        store = choose.choice((here, there))
        with store.open_folder(choose.choice(store.folders())) as tape:
            choose.choice(STEPS)(tape, choose)
    for store, words in ((here, "here"), (there, "there")):
        with store.create(making.beginning(f"only {words}")) as tape:
            making.write(tape, "x" * 70_000, words)
    if archived:
        for store in (here, there):
            with store.open_folder(store.folders()[0]) as tape:
                pack_tape(store, tape)


def unite(here: Path, there: Path) -> None:
    with open_store(here) as (store, _):
        for outcome in unite_stores(store, Store(there)):
            assert outcome.error is None, outcome


def read_heads(home: Path) -> Heads:
    """Return branches, labels, title and current branch of each tape; all must verify."""
    heads: Heads = {}
    with open_store(home, index=False) as (store, _):
        for folder in store.folders():
            with store.open_folder(folder) as tape:
                assert tape.id not in heads, "double"
                findings = [one for one in verify(tape, Counts()) if one.level != "note"]
                assert findings == [], findings
                refs = tape.refs()
                ends = {name: tape.head(name).entry for name in refs.branches}
                heads[tape.id] = ends, refs.labels, refs.title, refs.current
    return heads


def read_lines(home: Path) -> Counter[tuple[str, bytes]]:
    """Return how often each entry is in each tape."""
    counted: Counter[tuple[str, bytes]] = Counter()
    with open_store(home, index=False) as (store, _):
        for folder in store.folders():
            with store.open_folder(folder) as tape:
                counted.update((tape.id, line[:48]) for _, _, line in tape.phases.read_all_lines())
    return counted


def kill_many(top: Path, count: int, seed: int, *, archived: bool) -> int:
    """Kill a union so often, each time in a new copy; return how often it was partly done."""
    choose = random.Random(seed)
    build(top, choose, archived=archived)
    # A copy of a store is another one, and names its ends otherwise: these two stay what they are.
    first, there = read_lines(top / "here"), top / "there"
    theirs = read_heads(there)
    copy_store(top / "here", top / "whole")
    whole = measure(partial(unite, top / "whole", there))
    goal, lines = read_heads(top / "whole"), read_lines(top / "whole")
    assert set(lines.values()) == {1}
    partly = 0
    for number in range(count):
        home = top / f"{number}"
        copy_store(top / "here", home)
        kill_at_random(partial(unite, home, there), whole, choose)
        now = read_lines(home)
        assert first <= now, "lost"
        assert now <= lines, "double"
        partly += read_heads(home) not in (goal, read_heads(top / "here"))
        unite(home, there)
        assert read_lines(home) == lines
        assert read_heads(home) == goal
        shutil.rmtree(home)
    assert read_heads(there) == theirs
    return partly


def copy_store(source: Path, target: Path) -> None:
    """Copy a store as the same copy of its tapes: with its name, which is that of a file."""
    shutil.copytree(source, target)
    text = (source / MACHINE_NAME).read_bytes()
    inode = (target / MACHINE_NAME).stat().st_ino
    before = (source / MACHINE_NAME).stat().st_ino
    (target / MACHINE_NAME).write_bytes(text.replace(b"%d" % before, b"%d" % inode))


@pytest.mark.parametrize("archived", [False, True], ids=["folders", "archives"])
def test_nothing_is_lost_or_double_and_the_next_run_completes_it(tmp_path, archived):
    """M213: two copies that grew apart by random steps, and kills within their union."""
    assert kill_many(tmp_path, KILLS // 2, 7 + archived, archived=archived) > KILLS // 20


def test_the_next_writer_completes_a_union_that_was_decided(tmp_path):
    """Killed between its phases and its journal lines, it is no damage and holds up nobody."""
    build(tmp_path, random.Random(3), archived=False)
    there = tmp_path / "there"
    copy_store(tmp_path / "here", tmp_path / "whole")
    calls, _ = measure(partial(unite, tmp_path / "whole", there))
    goal, found = read_heads(tmp_path / "whole"), 0
    for at in range(calls, 0, -1):
        home = tmp_path / f"{at}"
        copy_store(tmp_path / "here", home)
        kill_once(partial(unite, home, there), at=at)
        with open_store(home) as (store, _):
            names = [name for name in store.folders() if is_decided(store, name)]
            for name in names:
                read_heads(home)
                with store.open_folder(name) as tape:
                    tape.label("after", tape.head().entry)
                    assert not is_decided(store, name)
                    heads = {branch: tape.head(branch).entry for branch in tape.refs().branches}
                    assert heads == goal[tape.id][0]
        shutil.rmtree(home)
        found += len(names)
        if found > ENOUGH:
            return
    raise AssertionError(f"only {found}")


def is_decided(store: Store, name: str) -> bool:
    with store.open_folder(name) as tape:
        return is_union_decided(tape.folder)


def main() -> None:
    for archived in (False, True):
        with tempfile.TemporaryDirectory() as top:
            count = int(sys.argv[1]) // 2
            partly = kill_many(Path(top), count, int(time.time()), archived=archived)
            sys.stdout.write(f"archived {archived}: {count} kills, {partly} within the union\n")


if __name__ == "__main__":
    main()
