"""Requests that are cut at any moment: the next run completes what they began, on both sides."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress

import pytest

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.errors import RemoteUnavailable
from tape.remote.cursor import Cursor
from tape.remote.objects import decode_chunk
from tape.remote.publish import Publisher
from tape.remote.push import Pusher
from tape.remote.registry import open_remote
from tape.store.maintenance.upkeep import redact
from tests.tape import making
from tests.tape.remote.machines import Machine
from tests.tape.remote.proxy import CUTS, proxying_http, proxying_postgres
from tests.tape.remote.servers import KEYS, make_bucket

pytest.importorskip("obstore", reason="the extra `s3` is not installed")
pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")

SECRET = "the password is hunter2"


class Engine:
    """A server behind a proxy, and the addresses of one remote: through it, and past it."""

    def __init__(self, build_address, direct, proxy, faults):
        self._build, self._direct, self._proxy, self.faults = build_address, direct, proxy, faults

    def begin(self, objects):
        """Make a new remote with these objects."""
        self._place = os.urandom(6).hex()
        with self.open() as remote:
            remote.create_many([*objects.items()])

    def open(self, *, through=False):
        return open_remote(self._build(self._proxy if through else self._direct, self._place))

    def read_all(self):
        with self.open() as remote:
            return {item.key: remote.read(item.key) for item in remote.list("")}


@pytest.fixture
def s3(ministack, monkeypatch):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    make_bucket(ministack, "tapes")
    with proxying_http(ministack) as (proxy, faults):
        yield Engine(
            lambda endpoint, place: f"s3://tapes/{place}?endpoint={endpoint}&region=us-east-1",
            *(ministack, proxy, faults),
        )


@pytest.fixture
def postgresql(postgres):
    plain = "sslmode=disable&gssencmode=disable"
    with proxying_postgres(postgres) as (proxy, faults):
        yield Engine(
            lambda port, place: f"postgresql://tape@127.0.0.1:{port}/postgres?team={place}&{plain}",
            *(postgres, proxy, faults),
        )


@pytest.fixture(params=["s3", "postgresql"])
def engine(request):
    return request.getfixturevalue(request.param)


def unpack_all(objects):
    """Return the bytes of objects, those of chunks unpacked."""
    data = b""
    for key, text in objects.items():
        chunk = decode_chunk(key, text) if key.startswith("t/") else None
        data += text if chunk is None else chunk.data
    return data


def describe(store):
    """Return the lines and ends of every tape of a store, which has to verify."""
    tapes = {}
    for name in store.folders():
        with store.open_folder(name) as tape:
            assert [*verify(tape, Counts())] == []
            heads = {branch: tape.head(branch).entry for branch in tape.refs().branches}
            lines = {line[:48]: line for _, _, line in tape.phases.read_all_lines()}
            tapes[tape.id] = heads, tape.refs().title, lines
    return tapes


def push(machine):
    tapes = [machine.store.read_tape_id(name) for name in machine.store.folders()]
    with Cursor.open(machine.store.path, "team") as cursor:
        return [*Pusher(machine.store, machine.remote, cursor).push(tapes)]


def unpush(machine):
    with Cursor.open(machine.store.path, "team") as cursor:
        tape = machine.store.read_tape_id(machine.store.folders()[0])
        if tape not in cursor.read_gone():
            Pusher(machine.store, machine.remote, cursor).unpush(tape)


def write_more(machine):
    for name in machine.store.folders():
        with machine.store.open_folder(name) as tape:
            making.write(tape, "more", "z" * 70_000)


def redact_secret(machine):
    for name in machine.store.folders():
        with machine.store.open_folder(name) as tape:
            ids = [entry.id for entry in making.entries(tape) if SECRET in str(entry)]
            redact(tape, ids, "a password")


def publish(machine):
    """Write to every tape, and note what a barrier acknowledged."""
    machine.acknowledged = {}
    machine.store.projection = Publisher(machine.store, "team", lambda: machine.remote, None)
    try:
        for name in machine.store.folders():
            with machine.store.open_folder(name) as tape, tape.writer() as writer:
                for text in ("one", "z" * 70_000, "three"):
                    entry = writer.append(making.say(text))
                    writer.barrier()
                    machine.acknowledged.setdefault(tape.id, set()).add(entry.id)
    finally:
        machine.store.projection = None
    return []


def do_nothing(_):
    pass


STEPS = {
    "push": (write_more, push, True),
    "pull": (do_nothing, Machine.pull, False),
    "redact": (redact_secret, push, True),
    "unpush": (do_nothing, unpush, True),
    "publish": (do_nothing, publish, True),
}
"""What is done before, then through the proxy, and whether by the one who pushed at first."""


@pytest.fixture
def begun(tmp_path, engine):
    """Return two stores, one of which has pushed, the objects of their remote, and its engine."""
    engine.begin({})
    with engine.open() as remote:
        one, other = Machine(tmp_path / "one", remote), Machine(tmp_path / "other", remote)
        for number in range(2):
            with one.store.create(making.beginning(str(number))) as tape:
                making.write(tape, "hello", f"{SECRET} {number} {'x' * 70_000}")
        one.push()
        other.pull()
        with one.store.open(one.store.read_tape_id(one.store.folders()[0])) as tape:
            making.write(tape, "later")
        one.push()
    return engine.read_all()


def cut(engine, machine, work, number, how):
    """Do something while one request is cut; return how many there were."""
    with engine.open(through=True) as machine.remote:
        engine.faults.reset(number, how)
        with suppress(RemoteUnavailable):
            work(machine)
        return len(engine.faults.requests)


def check_all(engine, place, name, machine):
    """Repeat what was cut, let three stores come to the same, and check that nothing is missing."""
    before = describe(machine.store)
    with engine.open() as remote:
        machine.remote = remote
        if name == "publish":  # as if the machine were gone now
            witness = Machine(place / "witness", remote)
            assert [done.error for done in witness.pull() if done.error] == []
            there = describe(witness.store)
            for tape, ids in machine.acknowledged.items():
                assert ids <= {line[7:47].decode() for line in there[tape][2]}
        done = STEPS[name][1](machine)
        assert name == "unpush" or [one.error for one in done if one.error] == []
        one, other, third = (Machine(place / side, remote) for side in ("one", "other", "third"))
        for each in (one, other, one):
            push(each)
            each.pull()
        third.pull()
        chunks = [item for item in remote.list("t/") if item.size]
    if name == "unpush":
        assert len(chunks) == 2  # the other tape, and what says that this one is gone
        assert describe(other.store) == describe(third.store)
        assert len(third.store.folders()) == 1
        return
    state = describe(third.store)
    assert describe(one.store) == describe(other.store) == state
    for tape, (_, _, lines) in before.items():
        assert {*lines} <= {*state[tape][2]}
    if name == "redact":
        stored = b"".join(path.read_bytes() for path in place.rglob("*") if path.is_file())
        assert SECRET.encode() not in stored + unpack_all(engine.read_all())


@pytest.mark.slow
@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("name", STEPS)
def test_the_next_run_completes_what_a_cut_request_began(tmp_path, engine, begun, name, how):
    prepare, work, is_first = STEPS[name]
    is_cut, number = True, -1
    while is_cut:  # until there are no more requests than pass
        number += 1
        place = tmp_path / f"turn{number}"
        for side in ("one", "other"):
            shutil.copytree(tmp_path / side, place / side, copy_function=shutil.copy2)
        engine.begin(begun)
        machine = Machine(place / ("one" if is_first else "other"), None)
        prepare(machine)
        is_cut = cut(engine, machine, work, number, how) > number
        check_all(engine, place, name, machine)
        shutil.rmtree(place)
    assert number >= 3


@pytest.mark.parametrize("how", ["delay", "double"])
def test_a_delayed_or_repeated_request_changes_nothing(tmp_path, s3, how):
    s3.begin({})
    with s3.open(through=True) as remote:
        machine = Machine(tmp_path / "one", remote)
        with machine.store.create(making.beginning("a")) as tape:
            making.write(tape, "hello", "x" * 70_000)
        for number in range(3):
            with machine.store.open("") as tape:
                making.write(tape, "more")
            s3.faults.reset(number, how)
            assert [one.error for one in push(machine)] == [None]
        other = Machine(tmp_path / "other", remote)
        for number in range(4):
            s3.faults.reset(number, how)
            other.pull()
    assert describe(machine.store) == describe(other.store)
