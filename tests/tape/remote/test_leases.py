"""Who works on a branch of a tape that several machines have, and what the others do meanwhile."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier

import pytest

from tape.errors import Busy
from tape.remote.cursor import Cursor
from tape.remote.leases import LEASE_SECONDS, LeaseKeeper, find_leases, make_lease_key
from tape.remote.objects import decode_chunk
from tape.remote.publish import Publisher
from tape.remote.push import Pusher
from tape.remote.registry import open_remote
from tape.store.replica import Replica
from tests.tape import making
from tests.tape.remote.machines import Machine

TAPE = "7" * 32
DAY = 24 * 3600 * 1_000_000


ENGINES = pytest.mark.parametrize(
    "address",
    ["folder", "s3", "postgresql", pytest.param("git", marks=pytest.mark.slow)],
    indirect=True,
)


@ENGINES
def test_one_of_eight_that_race_holds_a_branch(address):
    """M213: who comes second learns who that is; a stale lease is beaten by one of them, too."""
    start = Barrier(8)
    later = [0]
    with ExitStack() as stack, ThreadPoolExecutor(8) as pool:
        remotes = [stack.enter_context(open_remote(address)) for _ in range(8)]
        for remote in remotes:
            remote.now = lambda now=remote.now: now() + later[0]
        for turn in range(3):
            keepers = [
                LeaseKeeper(remote, Replica(f"{turn}{number:07d}", f"m{number}"), "")
                for number, remote in enumerate(remotes)
            ]

            def ask(keeper):
                start.wait()
                return keeper.keep(TAPE, "main")

            found = [*pool.map(ask, keepers)]
            assert found.count(None) == 1
            winner = f"m{found.index(None)}"
            assert {lease.machine for lease in found if lease} == {winner}
            for keeper, lease in zip(keepers, found, strict=True):
                assert (keeper.keep(TAPE, "main") is None) == (lease is None)
            later[0] += (LEASE_SECONDS + 60) * 1_000_000


def build_keeper(remote, name):
    return LeaseKeeper(remote, Replica(f"{name:>8}".replace(" ", "0"), name), "Ada <ada@x.org>")


def test_a_lease_that_was_ended_is_free(remote):
    one, other = build_keeper(remote, "one"), build_keeper(remote, "other")
    assert one.keep(TAPE, "try_it") is None
    assert other.keep(TAPE, "try_it").holder == "Ada <ada@x.org> on one"
    assert other.keep(TAPE, "main") is None
    one.end(TAPE)
    assert other.keep(TAPE, "try_it") is None
    assert [*one.find_holders(TAPE)] == ["main", "try_it"]


def test_its_age_is_that_of_the_clock_of_the_remote(remote):
    one, other = build_keeper(remote, "one"), build_keeper(remote, "other")
    one.keep(TAPE, "main")
    remote.later = LEASE_SECONDS * 1_000_000 - 5_000_000
    assert other.keep(TAPE, "main") is not None
    remote.later = LEASE_SECONDS * 1_000_000 + 5_000_000
    assert other.keep(TAPE, "main") is None
    assert one.find_holders(TAPE)["main"].machine == "other"


def test_its_holder_takes_the_next_epoch_only_after_some_minutes(remote):
    uptime = [0.0]
    one = LeaseKeeper(remote, Replica("1" * 8, "one"), "", lambda: uptime[0])
    for minutes, epochs in ((0, 1), (4, 1), (6, 2), (8, 2), (60, 3)):
        uptime[0] = minutes * 60
        assert one.keep(TAPE, "main") is None
        assert len([*remote.list("lease/")]) == epochs


@pytest.mark.parametrize(
    "data", [b"{}", b"\0\xff", b'{"time":"then","replica":"x"}', b'{"time":1}', b"[" * 99_999]
)
def test_an_object_that_is_no_lease_is_ignored(remote, data):
    remote.create(make_lease_key(TAPE, "main", 7), data)
    for key in ("README", f"{TAPE}/main/9", f"{TAPE}/-/00000001", f"{TAPE}/a/b/00000001"):
        remote.create(f"lease/{key}", b"{}")
    assert build_keeper(remote, "one").keep(TAPE, "main") is None
    assert [(at.branch, at.epoch) for at in find_leases(remote)] == [("main", 8)]


def test_names_of_others_are_shown_on_one_line(remote):
    LeaseKeeper(remote, Replica("1" * 8, "a\n\x1b[31mb"), "x" * 999).keep(TAPE, "main")
    holder = build_keeper(remote, "one").find_holders(TAPE)["main"].holder
    assert holder.isprintable()
    assert len(holder) <= 120


def test_the_last_epoch_is_no_endless_wait(remote):
    remote.create(make_lease_key(TAPE, "main", 99_999_999), b"")
    assert build_keeper(remote, "one").keep(TAPE, "main") is None


@pytest.fixture
def at_work(two, remote):
    """Return a machine with a writer that publishes, the writer, and a machine that has it all."""
    one, other = two
    for machine in (one, other):
        find_person = str if machine is other else lambda: "Ada <ada@x.org>"
        machine.store.open_tapes_folder().close()
        machine.store.projection = Publisher(
            machine.store, "team", lambda: remote, None, find_person
        )
    with one.store.open("") as tape, tape.writer() as writer:
        writer.append(making.say("three"))
        writer.barrier()
        other.pull()
        yield one, writer, other
        one.store.projection = other.store.projection = None


def read_texts(machine, branch="main"):
    with machine.store.open("") as tape:
        return making.texts(tape, branch)


def settle(*machines):
    for machine in machines:
        machine.store.projection = None
    for machine in (*machines, *machines, *machines):
        machine.push()
        machine.pull()
    states = [machine.describe() for machine in machines]
    assert all(state == states[0] for state in states)


def test_who_opens_a_branch_that_another_holds_writes_beside_it(at_work):
    one, writer, other = at_work
    with other.store.open("") as tape:
        with pytest.raises(Busy, match=r"Ada <ada@x.org> on .* works on main: `tape fork`"):
            tape.writer("main")
        for number in range(2):  # a name that is taken gets a number
            with tape.writer() as second:
                assert (second.instead_of, second.holder[:3]) == ("main", "Ada")
                assert second.branch.startswith("main.")
                assert (".2" in second.branch) == (number == 1)
                second.append(making.say("beside"))
                second.barrier()
                writer.append(making.say("meanwhile"))
                writer.barrier()
                second.append(making.say("beside again"))
    writer.close()
    assert [at.lease for at in find_leases(other.remote) if at.branch == "main"] == [None]
    settle(one, other)
    assert read_texts(one)[-2:] == ["meanwhile"] * 2


def test_a_push_leaves_a_branch_alone_that_another_holds(at_work):
    """Its holder is not overtaken, and what was written offline is beside it."""
    one, writer, other = at_work
    other.store.projection = None
    for number in range(3):
        (mine,) = other.write(f"offline {number}")
        (done,) = other.push()
        (end,) = done.kept
        assert end.branch == "main"
        assert done.holders[0][1].startswith("Ada <ada@x.org> on ")
        writer.append(making.say(f"online {number}"))
        writer.barrier()
        with other.store.open("") as tape:
            assert tape.head(end.other).entry == mine.id
    writer.close()
    settle(one, other)
    assert read_texts(one)[-3:] == ["online 0", "online 1", "online 2"]


def test_a_branch_that_is_written_here_and_held_elsewhere_is_pushed_later(at_work):
    one, writer, other = at_work
    other.store.projection = None
    tape = other.store.open("")
    second = tape.writer()
    second.append(making.say("here"))
    second.barrier()
    with Cursor.open(other.store.path, "team") as cursor:
        (done,) = Pusher(other.store, other.remote, cursor).push([tape.id])
    assert "works on main, and so does a program here" in done.error
    second.close()
    (done,) = other.push()
    assert [end.branch for end in done.kept] == ["main"]
    writer.append(making.say("there"))
    writer.close()
    settle(one, other)


def test_a_holder_that_was_away_too_long_ends_beside_who_came_then(at_work, remote):
    one, writer, other = at_work
    remote.later = 20 * 60 * 1_000_000
    other.store.clock.now -= DAY
    with other.store.open("") as tape, tape.writer("main") as second:
        second.append(making.say("taken over"))
        second.barrier()
        writer.append(making.say("too late"))
        with pytest.raises(Exception, match="at team meanwhile"):
            writer.barrier()
    writer.close()
    settle(one, other)
    assert read_texts(one)[-1] == "taken over"
    with one.store.open("") as tape:
        ends = {making.texts(tape, branch)[-1] for branch in tape.refs().branches}
    assert ends == {"taken over", "too late"}


def test_a_store_that_was_cloned_before_a_kill_gets_the_last_barriers(at_work, remote, tmp_path):
    """The log names none of them: the lease says that there are more."""
    _, writer, other = at_work
    other.store.projection = None
    late = Machine(tmp_path / "late", remote)
    late.pull()
    for number in range(3):
        writer.append(making.say(f"more {number}"))
        writer.barrier()
    for machine in (late, other):
        machine.pull()
        assert read_texts(machine)[-1] == "more 2"
    writer.append(making.say("last"))
    writer.barrier()
    late.pull()
    assert read_texts(late)[-1] == "last"


def test_chunks_of_a_writer_name_who_works_there(at_work, remote):
    """In mode barrier as well."""
    chunks = [decode_chunk(item.key, remote.read(item.key)) for item in remote.list("t/")]
    assert {chunk.head.person for chunk in chunks} == {"Ada <ada@x.org>"}
