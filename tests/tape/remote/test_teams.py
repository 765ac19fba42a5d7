"""Many machines and one remote, for long: one wins each race, and all come to the same."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.errors import RemoteUnavailable
from tape.remote.cursor import Cursor
from tape.remote.merging import merge_chunks
from tape.remote.push import Pusher
from tape.remote.registry import open_remote
from tests.tape import making
from tests.tape.making import BUDGET
from tests.tape.remote.machines import CountedRemote, Machine
from tests.tape.remote.servers import KEYS, make_bucket
from tests.tape.unite.test_tapes import STEPS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

PUSHERS, ROUNDS = 16, int(os.environ.get("TAPE_ROUNDS", "10" if BUDGET == 1 else "300"))
DAY = 24 * 3600 * 1_000_000


@pytest.fixture
def address(request, tmp_path, monkeypatch):
    match request.param:
        case "folder":
            (tmp_path / "remote").mkdir()
            return (tmp_path / "remote").as_uri()
        case "s3":
            pytest.importorskip("obstore", reason="the extra `s3` is not installed")
            for name, value in KEYS.items():
                monkeypatch.setenv(name, value)
            endpoint = request.getfixturevalue("ministack")
            make_bucket(endpoint, "tapes")
            place = os.urandom(4).hex()
            return f"s3://tapes/{place}?endpoint={endpoint}&region=us-east-1"
        case "postgresql":
            pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
            port = request.getfixturevalue("postgres")
            return f"postgresql://tape@127.0.0.1:{port}/postgres?team={os.urandom(4).hex()}"


def push(machine, tapes):
    with Cursor.open(machine.store.path, "team") as cursor:
        return [*Pusher(machine.store, machine.remote, cursor).push(tapes)]


def describe(store):
    """Return lines, heads, title and labels of every tape; each verifies."""
    state = {}
    for name in store.folders():
        with store.open_folder(name) as tape:
            assert [*verify(tape, Counts())] == []
            refs = tape.refs()
            heads = {branch: tape.head(branch).entry for branch in refs.branches}
            lines = {line[:48]: line for _, _, line in tape.phases.read_all_lines()}
            state[tape.id] = heads, refs.title, refs.labels, refs.current, lines
    return state


@pytest.mark.parametrize("address", ["folder", "s3", "postgresql"], indirect=True)
def test_one_of_sixteen_pushers_wins_each_round(tmp_path, address):
    """The others end on branches of their own, and nothing is lost."""
    with ExitStack() as stack, ThreadPoolExecutor(PUSHERS) as pool:
        machines = [
            Machine(tmp_path / f"m{number}", stack.enter_context(open_remote(address)))
            for number in range(PUSHERS)
        ]
        for turn in range(ROUNDS):
            with machines[0].store.create(making.beginning(str(turn))) as tape:
                making.write(tape, "hello")
                identity = tape.id
            push(machines[0], [identity])
            [*pool.map(Machine.pull, machines[1:])]
            written = []
            for machine in machines:
                with machine.store.open(identity) as tape:
                    written += [entry.id for entry in making.write(tape, "mine")]
            outcomes = [done for (done,) in pool.map(push, machines, [[identity]] * PUSHERS)]
            assert [done.error for done in outcomes if done.error] == []
            winners = [number for number, done in enumerate(outcomes) if not done.kept]
            assert len(winners) == 1
            ends = {done.kept[0].other for done in outcomes if done.kept}
            assert all(end.startswith("main.") for end in ends)
            machines[0].pull()
            with machines[0].store.open(identity) as tape:
                assert tape.head("main").entry == written[winners[0]]
                heads = {tape.head(branch).entry for branch in tape.refs().branches}
                assert heads == {*written}
        for machine in machines:
            machine.pull()
        assert describe(machines[0].store) == describe(machines[-1].store)


def step(machine, chance, tapes):
    """Do something with a tape of a machine."""
    names = machine.store.folders()
    if not names or chance.random() < 0.02:
        with machine.store.create(making.beginning(f"n{chance.randrange(10**6)}")) as tape:
            making.write(tape, "one", "two")
            tapes.add(tape.id)
        return
    with machine.store.open_folder(chance.choice(names)) as tape:
        chance.choice(STEPS)(tape, chance)


def take_turn(machine, chance, tapes):
    """Push, pull, merge chunks, set the clock, or work."""
    match chance.randrange(12):
        case 0 | 1:
            here = [machine.store.read_tape_id(name) for name in machine.store.folders()]
            assert [done.error for done in push(machine, here) if done.error] == []
        case 2 | 3:
            assert [done.error for done in machine.pull() if done.error] == []
        case 4:
            machine.store.clock.now += chance.choice((-DAY, DAY))
        case 5 if tapes and chance.random() < 0.5:
            merge_chunks(machine.remote, chance.choice(sorted(tapes)))
        case _:
            step(machine, chance, tapes)


@pytest.mark.parametrize("seed", range(2 * BUDGET))
def test_three_machines_come_to_the_same_after_a_thousand_steps(tmp_path, seed):
    """They are cut off, their clocks are wrong by days, and chunks are merged meanwhile."""
    chance = random.Random(seed)
    (tmp_path / "remote").mkdir()
    remote = CountedRemote(tmp_path / "remote")
    machines = [Machine(tmp_path / name, remote) for name in ("one", "two", "three")]
    for machine in machines:
        machine.store.open_tapes_folder().close()
    tapes, acknowledged = set(), {}
    for _ in range(1_000):
        machine = chance.choice(machines)
        remote.left = chance.randrange(12) if chance.random() < 0.3 else None
        with suppress(RemoteUnavailable):
            take_turn(machine, chance, tapes)
        for name in machine.store.folders():
            with machine.store.open_folder(name) as tape:
                lines = {line[:48] for _, _, line in tape.phases.read_all_lines()}
                acknowledged.setdefault(tape.id, set()).update(lines)
    remote.left = None
    for machine in (*machines, *machines):
        push(machine, [machine.store.read_tape_id(name) for name in machine.store.folders()])
        machine.pull()
    for machine in machines:
        machine.pull()
    states = [describe(machine.store) for machine in machines]
    assert states[0] == states[1] == states[2]
    assert len(states[0]) == len(acknowledged) == len(tapes)
    for identity, lines in acknowledged.items():
        assert lines <= {*states[0][identity][4]}
