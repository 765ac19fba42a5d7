"""Merged chunks say what they said before, to whoever pulls, pushes or merges meanwhile."""

import random
from contextlib import suppress

import pytest

from tape.errors import Damaged, RemoteUnavailable
from tape.remote.merging import find_mergeable, merge_chunks
from tape.remote.objects import decode_chunk, make_chunk_key
from tape.store.maintenance.upkeep import redact
from tests.tape import making
from tests.tape.remote.machines import Machine
from tests.tape.unite.test_tapes import STEPS


def push_often(machine, count):
    for number in range(count):
        machine.write(f"number {number}")
        machine.push()


def get_tape(machine):
    (name,) = machine.store.folders()
    return machine.store.read_tape_id(name)


def list_sizes(remote):
    return [item.size for item in remote.list("t/")]


def test_many_chunks_become_one_and_a_clone_asks_for_three_objects(two, tmp_path, remote):
    one, _ = two
    one.push()
    push_often(one, 40)
    tape = get_tape(one)
    assert find_mergeable(remote, 41) == [tape]
    assert find_mergeable(remote, 42) == []
    assert merge_chunks(remote, tape) == 40
    assert [bool(size) for size in list_sizes(remote)] == [False] * 40 + [True]
    assert merge_chunks(remote, tape) == 0
    third = Machine(tmp_path / "third", remote)
    remote.requests.clear()
    third.pull()
    assert remote.requests == [
        ("list", "l"),  # leases and log
        ("list", "t/"),
        ("read", make_chunk_key(tape, 41)),
    ]
    assert third.describe() == one.describe()


@pytest.mark.parametrize("known", [1, 5, 20])
def test_who_has_some_of_the_chunks_gets_the_rest(two, remote, known):
    one, other = two
    one.push()
    push_often(one, known)
    other.pull()
    push_often(one, 3)
    merge_chunks(remote, get_tape(one))
    other.pull()
    assert one.describe() == other.describe()
    push_often(one, 2)
    other.pull()
    assert one.describe() == other.describe()


def test_who_pushes_without_knowing_of_merged_chunks_comes_second(two, remote):
    one, other = two
    one.push()
    other.pull()
    push_often(one, 12)
    merge_chunks(remote, get_tape(one))
    (mine,) = other.write("mine")
    (done,) = other.push()
    (end,) = done.kept
    with other.store.open("") as tape:
        assert tape.head(end.other).entry == mine.id
    one.pull()
    assert one.describe() == other.describe()


def test_a_merge_that_is_cut_off_is_repeated(two, tmp_path, remote, monkeypatch):
    one, other = two
    one.push()
    other.pull()
    push_often(one, 9)
    replace, left = type(remote).replace, [0]

    def replace_some(self, key, data):
        if left[0] == 0:
            raise RemoteUnavailable("the connection was cut")
        left[0] -= 1
        replace(self, key, data)

    monkeypatch.setattr(type(remote), "replace", replace_some)
    for number in range(10):
        left[0] = number
        with suppress(RemoteUnavailable):
            merge_chunks(remote, get_tape(one))
        third = Machine(tmp_path / f"third{number}", remote)
        third.pull()
        assert third.describe() == one.describe()
        one.write(f"after {number}")
        one.push()
    left[0] = 99
    merge_chunks(remote, get_tape(one))
    other.pull()
    assert one.describe() == other.describe()


def test_a_missing_chunk_stops_a_merge_before_it_changes_anything(two, remote):
    one, _ = two
    one.push()
    push_often(one, 4)
    tape = get_tape(one)
    remote.replace(make_chunk_key(tape, 3), b"")
    before = {item.key: remote.read(item.key) for item in remote.list("")}
    with pytest.raises(Damaged, match="00000003"):
        merge_chunks(remote, tape)
    assert {item.key: remote.read(item.key) for item in remote.list("")} == before


def test_redacted_data_is_in_no_merged_chunk(two, remote, tmp_path):
    one, _ = two
    (secret,) = one.write("the password is hunter2")
    one.push()
    push_often(one, 3)
    merge_chunks(remote, get_tape(one))
    with one.store.open("") as tape:
        redact(tape, [secret.id], "a password")
    one.push()
    merge_chunks(remote, get_tape(one))
    chunks = [decode_chunk(item.key, remote.read(item.key)) for item in remote.list("t/")]
    assert not any(chunk and b"hunter2" in chunk.data for chunk in chunks)
    third = Machine(tmp_path / "third", remote)
    third.pull()
    assert third.describe() == one.describe()


@pytest.mark.parametrize("seed", range(6))
def test_stores_come_to_the_same_while_chunks_are_merged(tmp_path, remote, seed, monkeypatch):
    monkeypatch.setattr("tape.remote.merging.MAX_MERGED_BYTES", 4_000)
    chance = random.Random(seed)
    machines = [Machine(tmp_path / name, remote) for name in ("one", "two", "three")]
    with machines[0].store.create(making.beginning("a session")) as tape:
        making.write(tape, "one", "two")
    machines[0].push()
    for machine in machines[1:]:
        machine.pull()
    for _ in range(40):
        machine = chance.choice(machines)
        match chance.randrange(5):
            case 0:
                machine.push()
            case 1:
                assert [done.error for done in machine.pull() if done.error] == []
            case 2:
                merge_chunks(remote, get_tape(machines[0]))
            case _:
                with machine.store.open("") as tape:
                    chance.choice(STEPS)(tape, chance)
    for machine in (*machines, *machines):
        machine.push()
        machine.pull()
    for machine in machines:
        machine.pull()
    states = [machine.describe() for machine in machines]
    assert states[0] == states[1] == states[2]
