"""`tape unite`: whole stores that grew apart come together, and a kill in between loses nothing."""

import json
import random
import shutil
import signal
import subprocess
import sys

import pytest

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.store.maintenance import upkeep
from tape.store.store import Store
from tape.unite.stores import unite_stores
from tests.tape import making
from tests.tape.unite.test_tapes import (
    STEPS,
    Clock,
    append,
    compact,
    describe,
    switch,
    title,
    unlabel,
)


@pytest.fixture
def pair(store, tape, tmp_path):
    """Return a store with a tape, and a copy that has a tape of its own and a fork in a new one."""
    making.write(tape, "one")
    shutil.copytree(store.path, tmp_path / "copy")
    copy = Store(tmp_path / "copy", clock=Clock(), durable=False)
    with copy.create(making.beginning("only there")) as other:
        making.write(other, "x" * 70_000)
        with copy.create(making.beginning("child"), origin=(other, other.head())) as child:
            making.write(child, "three")
    with copy.open(tape.id) as theirs:
        making.write(theirs, "two", "three")
    return store, copy


def run_unite(store, *paths, expect=0):
    done = subprocess.run(
        [sys.executable, "-m", "tape", "--store", store.path, "unite", *paths, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == expect, done.stderr
    return json.loads(done.stdout) if done.stdout else done.stderr


def verify_store(store):
    done = subprocess.run(
        [sys.executable, "-m", "tape", "--store", store.path, "verify", "--all"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_every_tape_of_the_copy_comes_and_nothing_comes_twice(pair):
    here, there = pair
    before = {file: file.read_bytes() for file in there.path.rglob("*") if file.is_file()}
    first = run_unite(here, there.path)
    assert sorted((done["new"], done["entries"]) for done in first) == [
        (False, 3),
        (True, 2),
        (True, 2),
    ]
    assert {done["error"] for done in first} == {None}
    verify_store(here)
    assert {file: file.read_bytes() for file in before} == before
    again = run_unite(here, there.path)
    assert {(done["new"], done["entries"], done["moves"]) for done in again} == {(False, 0, 0)}


def test_one_tape_is_united_with_its_copy_in_any_folder(pair, tape, tmp_path):
    here, there = pair
    with there.open(tape.id) as theirs:
        shutil.copytree(there.tapes / theirs.folder.name, tmp_path / "elsewhere")
    (done,) = run_unite(here, tmp_path / "elsewhere")
    assert (done["tape"], done["entries"]) == (tape.id, 3)
    (other,) = (name for name in there.folders() if "only-there" in name)
    said = run_unite(here, here.tapes / tape.folder.name, there.tapes / other, expect=2)
    assert "holds no copy of tape" in said


def test_a_tape_in_the_trash_stays_there_and_is_named(pair, tape):
    here, there = pair
    here.remove(tape)
    outcomes = run_unite(here, there.path, expect=1)
    (error,) = (done["error"] for done in outcomes if done["tape"] == tape.id)
    assert f"`tape restore {tape.id[:8]}` brings it back" in error
    assert len(here.folders()) == 2


def test_a_damaged_tape_is_named_and_the_others_come(pair, tape):
    here, there = pair
    with there.open(tape.id) as theirs:
        for file in (there.tapes / theirs.folder.name).glob("phases/*-main/entries.jsonl"):
            file.write_bytes(file.read_bytes().replace(b'"two"', b'"tw0"'))
    outcomes = run_unite(here, there.path, expect=1)
    assert [done["tape"] for done in outcomes if done["error"]] == [tape.id]
    assert sum(done["new"] for done in outcomes) == 2
    verify_store(here)


@pytest.mark.parametrize("wrong", ["nowhere", "."])
def test_what_is_no_copy_is_refused(store, tape, tmp_path, wrong):
    assert "neither a store" in run_unite(store, tmp_path / wrong, expect=3)


def test_the_same_store_is_refused(store, tape):
    assert "give another copy" in run_unite(store, store.path, expect=2)


def test_phases_of_a_union_that_was_never_decided_are_left_out(pair, tape):
    here, there = pair
    aside = here.tapes / tape.folder.name / ".unite"
    (aside / "0009-main").mkdir(parents=True)
    (aside / "0009-main/entries.jsonl").write_bytes(b'{"half')
    assert {done["error"] for done in run_unite(here, there.path)} == {None}
    assert not aside.exists()
    verify_store(here)


def test_a_union_that_was_decided_is_completed_by_the_next_writer(pair, tape, tmp_path):
    """M213: killed between its phases and its journal lines, it is no damage."""
    here, there = pair
    shutil.copytree(here.path, tmp_path / "whole")
    run_unite(Store(tmp_path / "whole"), there.path)
    (whole,) = (tmp_path / "whole/tapes").glob(f"*{tape.id[:8]}")
    folder = here.tapes / tape.folder.name
    old = (folder / "refs.jsonl").read_bytes()
    lines = (whole / "refs.jsonl").read_bytes().removeprefix(old)
    (new,) = {path.name for path in (whole / "phases").iterdir()} - {
        path.name for path in (folder / "phases").iterdir()
    }
    (folder / ".unite").mkdir()
    (folder / ".unite/refs.jsonl").write_bytes(lines)
    shutil.copytree(whole / "phases" / new, folder / "phases" / new)  # moved already
    for path in (whole / "phases").glob("*/entries.jsonl"):
        shutil.copy(path, folder / "phases" / path.parent.name)
    with here.open_folder(folder.name) as ours:
        levels = {finding.level for finding in verify(ours, Counts())}
        assert levels == {"note"}
        ours.label("after", ours.head().entry)
        assert [*verify(ours, Counts())] == []
        assert ours.head().header.n == 4
    assert not (folder / ".unite").exists()
    assert (folder / "refs.jsonl").read_bytes().startswith(old + lines)


UNITE = """
import sys
from pathlib import Path
from tape.store.store import Store
from tape.unite.stores import unite_stores
print("ready", flush=True)
[*unite_stores(Store(Path(sys.argv[1])), Store(Path(sys.argv[2])))]
"""


@pytest.mark.slow
def test_a_kill_at_any_moment_loses_nothing_and_the_next_run_completes_it(tmp_path):
    """M213: two copies that grew apart by random steps, and kills within their union."""
    choose = random.Random(5)
    a = Store(tmp_path / "a", clock=Clock())
    with a.create(making.beginning()) as tape:
        making.write(tape, "one")
    shutil.copytree(a.path, tmp_path / "b")
    b = Store(tmp_path / "b", clock=Clock())
    for _ in range(60):
        with choose.choice((a, b)).open("") as tape:
            choose.choice(STEPS)(tape, choose)
    with b.open("") as tape:
        making.write(tape, *(f"{'x' * 70_000}{number}" for number in range(20)))
    mine = describe(a)[4]
    whole = None
    for number in range(40):
        here = tmp_path / f"here{number}"
        shutil.copytree(a.path, here)
        with subprocess.Popen(
            [sys.executable, "-c", UNITE, here, b.path], stdout=subprocess.PIPE
        ) as run:
            run.stdout.readline()
            try:
                run.wait(choose.random() * 0.4)
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
        united = Store(here)
        with united.open("") as tape:
            assert {*mine} <= {line[:48] for _, _, line in tape.phases.read_all_lines()}
        subprocess.run([sys.executable, "-c", UNITE, here, b.path], check=True, timeout=60)
        heads = describe(united)
        whole = whole or (heads[0].keys(), heads[4])
        assert heads[4] == whole[1]
        shutil.rmtree(here)


def add_tape(store, choose):
    with store.create(making.beginning(f"tape {choose.random()}")) as tape:
        making.write(tape, "begin")


def add_child(store, choose):
    with store.open_folder(choose.choice(store.folders())) as tape:
        if tape.info.origin:
            return
        head = making.at(tape, choose.choice(making.entries(tape)).id)
        with store.create(making.beginning("child"), origin=(tape, head)) as child:
            making.write(child, "more")


def change_tape(store, choose):
    with store.open_folder(choose.choice(store.folders())) as tape:
        choose.choice(CHILD_STEPS if tape.info.origin else STEPS)(tape, choose)


def detach_tape(store, choose):
    with store.open_folder(choose.choice(store.folders())) as tape:
        if tape.info.origin is not None and not tape.phases.has_origin:
            upkeep.detach(tape)


CHILD_STEPS = (append, compact, title, unlabel, switch)
"""Those that need no entry of the tape itself."""
STORE_STEPS = (*[change_tape] * 12, add_tape, add_child, detach_tape)


def stand_for(store, path):
    """Return a copy of a store that counts as the same copy of its tapes."""
    shutil.copytree(store.path, path)
    same = Store(path, clock=Clock(), durable=False)
    same._replica = store.replica()
    return same


def describe_store(store):
    """Return what two united stores must agree on: each tape's heads, names and entries, by id."""
    tapes = {}
    for name in store.folders():
        with store.open_folder(name) as tape:
            assert [*verify(tape, Counts())] == []
            refs = tape.refs()
            heads = {branch: tape.head(branch).entry for branch in refs.branches}
            lines = {line[:48]: line for _, _, line in tape.phases.read_all_lines()}
            tapes[tape.id] = (heads, refs.labels, refs.title, refs.current, lines)
    return tapes


@pytest.mark.parametrize("seed", range(making.BUDGET))
def test_stores_that_grew_apart_by_300_steps_unite_to_the_same(tmp_path, seed):
    """M213: tapes that come, fork, are detached, grow and lose data; then each takes all."""
    choose = random.Random(seed)
    a = Store(tmp_path / "a", clock=Clock(), durable=False)
    add_tape(a, choose)
    shutil.copytree(a.path, tmp_path / "b")
    b = Store(tmp_path / "b", clock=Clock(choose.randrange(-(10**9), 10**9)), durable=False)
    for _ in range(300):
        choose.choice(STORE_STEPS)(choose.choice((a, b)), choose)
    before = describe_store(a), describe_store(b)
    here, there = (stand_for(store, tmp_path / f"{store.path.name}-united") for store in (a, b))
    for target, source in ((here, b), (there, a)):
        outcomes = [*unite_stores(target, source)]
        assert [outcome.error for outcome in outcomes if outcome.error] == []
    united = describe_store(here)
    assert united == describe_store(there)
    for side in before:
        for identity, (_, _, _, _, lines) in side.items():
            assert {*lines} <= {*united[identity][4]}
    again = [outcome.union for outcome in unite_stores(here, b)]
    assert {(union.entries, union.moves) for union in again} == {(0, 0)}
