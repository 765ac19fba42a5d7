"""Writers whose barriers wait for a remote: what a barrier acknowledged is there."""

import shutil
from contextlib import suppress

import pytest

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.errors import Overtaken, RemoteUnavailable
from tape.remote.cursor import Cursor
from tape.remote.publish import Publisher
from tape.remote.push import Pusher
from tape.store.maintenance.upkeep import redact
from tests.tape import making
from tests.tape.remote.machines import Machine


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def published(tmp_path, remote, clock):
    """Return a machine whose writers publish."""
    machine = Machine(tmp_path / "one", remote)
    machine.store.open_tapes_folder().close()
    machine.store.projection = Publisher(machine.store, "team", lambda: remote, None, uptime=clock)
    return machine


@pytest.fixture
def other(tmp_path, remote):
    return Machine(tmp_path / "two", remote)


def begin(machine, *texts):
    with machine.store.create(making.beginning("a session")) as tape:
        making.write(tape, *texts)
        return tape.id


def read_texts(machine, branch=None):
    with machine.store.open("") as tape:
        assert [*verify(tape, Counts())] == []
        return making.texts(tape, branch)


def test_what_a_barrier_acknowledged_is_elsewhere(published, other, clock):
    begin(published, "one")
    with published.store.open("") as tape, tape.writer() as writer:
        for number in range(3):
            writer.append(making.say(f"more {number}"))
            writer.barrier()
            clock.now += 11
            other.pull()
            assert read_texts(other)[-1] == f"more {number}"


def test_a_machine_that_is_gone_after_a_barrier_left_all_of_it(published, other, remote):
    """SIGKILL, and nothing of the disk remains: the log does not name the newest chunks."""
    begin(published, "one")
    other.pull()
    tape = published.store.open("")
    writer = tape.writer()
    for number in range(5):
        writer.append(making.say(f"more {number}"))
        writer.barrier()
        other.pull()
        assert read_texts(other)[-1] == f"more {number}"
    writer.append(making.say("last"))
    writer.barrier()
    late = Machine(other.store.path.parent / "late", remote)
    for machine in (other, late):
        machine.pull()
        assert read_texts(machine)[-1] == "last"
    late.write("beside")
    late.push()  # the lease counts still
    other.pull()
    assert read_texts(other)[-1] == "last"
    remote.later += 16 * 60 * 1_000_000
    late.write("taken over")
    late.push()
    other.pull()
    assert read_texts(other)[-1] == "taken over"


def test_a_tape_that_was_ended_costs_a_pull_nothing(published, other, remote):
    begin(published, "one")
    other.pull()
    before = len(remote.requests)
    other.pull()
    assert [kind for kind, _ in remote.requests[before:]] == ["list"]


def test_a_barrier_costs_one_request(published, remote):
    begin(published, "one")
    with published.store.open("") as tape, tape.writer() as writer:
        for number in range(5):
            writer.append(making.say(f"more {number}"))
            before = len(remote.requests)
            writer.barrier()
            names = [key.partition("/")[0] for kind, key in remote.requests[before:]]
            # The first one takes the lease, and says in the log that more will come.
            assert names == (["lease", "t", "log"] if number == 0 else ["t"])


def test_a_large_result_is_there_before_its_entry(published, other, remote):
    begin(published, "x" * 100_000)
    keys = [key for kind, key in remote.requests if kind == "create"]
    assert keys[0].startswith("b/")
    other.pull()
    assert read_texts(other) == ["x" * 100_000]


def test_titles_labels_and_forks_are_published_too(published, other):
    begin(published, "one")
    with published.store.open("") as tape:
        tape.rename("Named")
        tape.label("here", tape.head().entry)
        tape.fork(tape.head(), "later")
    other.pull()
    assert other.describe() == published.describe()


def test_what_was_redacted_leaves_the_remote(published, remote):
    begin(published, "my secret word")
    with published.store.open("") as tape:
        entry = making.entries(tape)[-1].id
        redact(tape, [entry], "why")
    for path in remote.path.rglob("*"):
        assert not path.is_file() or b"secret word" not in path.read_bytes()
    fresh = Machine(published.store.path.parent / "three", remote)
    fresh.pull()
    assert entry in {line.id for line in _read_entries(fresh)}


def _read_entries(machine):
    with machine.store.open("") as tape:
        return making.entries(tape)


def test_a_remote_that_is_away_stops_the_writer_and_nothing_is_lost(published, other, remote):
    begin(published, "one")
    with published.store.open("") as tape:
        writer = tape.writer()
        writer.append(making.say("two"))
        remote.left = 0
        with pytest.raises(RemoteUnavailable) as caught:
            writer.barrier()
        assert caught.value.exit_code == 75
        remote.left = None
        writer.append(making.say("three"))
        writer.close()
    other.pull()
    assert read_texts(other) == read_texts(published) == ["one", "two", "three"]


def test_what_could_not_be_synced_is_not_published(published, remote):
    """A machine may lose it; and the writer says why it stops, not what follows from that."""
    identity = begin(published, "one")
    before = [*remote.list("")]
    with published.store.open(identity) as tape:
        writer = tape.writer()
        writer.append(making.say("two"))
        folder = making.folder_of(published.store, tape)
        with (folder / "phases" / tape.head().phase / "entries.jsonl").open("ab") as file:
            file.write(b"from somebody else")
        with pytest.raises(Overtaken):
            writer.barrier()
        assert [one.key for one in remote.list("t/")] == [
            one.key for one in before if one.key.startswith("t/")
        ]
    with published.store.open(identity) as tape:
        writer = tape.writer()
        writer.append(making.say("three"))
        shutil.rmtree(folder)
        with pytest.raises(Overtaken, match="was deleted or replaced"):
            writer.barrier()


def test_closing_without_the_remote_keeps_what_was_written(published, other, remote):
    begin(published, "one")
    with published.store.open("") as tape:
        writer = tape.writer()
        writer.append(making.say("two"))
        remote.left = 0
        with pytest.raises(RemoteUnavailable):
            writer.close()
        remote.left = None
    assert read_texts(published) == ["one", "two"]
    published.store.projection = None
    published.push()
    other.pull()
    assert read_texts(other) == ["one", "two"]


def move_main(machine):
    """Push an end of main as one whose program knows no leases does."""
    machine.pull()
    machine.write("from another program")
    with Cursor.open(machine.store.path, "team") as cursor:
        pusher = Pusher(machine.store, machine.remote, cursor)
        assert pusher._push_tape(machine.store.read_tape_id(machine.store.folders()[0])).chunks
        pusher._write_log()


def test_who_comes_second_is_overtaken_and_keeps_an_end_of_his_own(published, other):
    begin(published, "one")
    other.pull()
    other.write("theirs")
    with published.store.open("") as tape:
        writer = tape.writer()
        writer.append(making.say("first"))
        writer.barrier()
        other.push()  # pulls, and comes second itself: main stays here
        writer.append(making.say("second"))
        writer.barrier()  # it left main alone
        move_main(other)
        writer.append(making.say("mine"))
        with pytest.raises(Overtaken, match="continued tape"):
            writer.barrier()
        with pytest.raises(Exception, match="closed"):
            writer.append(making.say("never"))
        writer.close()
    published.store.projection = None
    published.push()
    other.pull()
    published.pull()
    assert published.describe() == other.describe()
    with published.store.open("") as tape:
        said = {text for branch in tape.refs().branches for text in making.texts(tape, branch)}
    assert said == {"one", "theirs", "first", "second", "from another program", "mine"}


def test_a_push_beside_the_writer_takes_no_number_from_it(published, other):
    begin(published, "one")
    with published.store.open("") as tape, tape.writer() as writer:
        writer.append(making.say("two"))
        writer.barrier()
        published.push()
        writer.append(making.say("three"))
    published.push()
    other.pull()
    assert read_texts(other) == ["one", "two", "three"]


@pytest.mark.parametrize("left", range(9))
def test_a_kill_at_any_request_is_healed_by_the_next_push(published, other, remote, left):
    """The connection breaks after so many requests, and the process ends there."""
    remote.left = left
    with suppress(RemoteUnavailable):
        for _ in range(9):
            begin(published, "y" * 50_000)
    assert remote.left == 0
    remote.left = None
    published.store.projection = None
    published.push()
    other.pull()
    here = {published.store.read_tape_id(name) for name in published.store.folders()}
    there = {other.store.read_tape_id(name) for name in other.store.folders()}
    assert here == there
