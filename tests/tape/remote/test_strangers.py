"""A remote in which others put what is none of ours, or damaged what is: all else still comes."""

import pytest

from tape.errors import Damaged, NotFound
from tape.remote.cursor import Cursor
from tape.remote.holds import read_holds
from tape.remote.merging import find_mergeable, merge_chunks
from tape.remote.objects import make_chunk_key, make_log_key
from tape.remote.push import Pusher
from tape.remote.verification import verify_remote
from tape.store.store import Store
from tests.tape import making
from tests.tape.remote.machines import Machine

TAPE = "f" * 32
GARBAGE = [b"", b"{}", b"[[]]", b"\0\xff" * 99, b'[["x",1]]', b'[["' + b"a" * 32 + b'",-1]]']


def litter(remote, tape):
    """Put objects of others everywhere."""
    for stem in ("t", "log", "lease", "hold", "gone", "gone/tape", "b", "probe"):
        remote.create(f"{stem}/readme.md", b"# hello")
        remote.create(f"{stem}/00", b"")
    for stem in (f"t/{tape}", f"lease/{tape}", f"hold/{tape}", f"t/{TAPE[:8]}", f"t/{tape}/sub"):
        remote.create(f"{stem}/zzz", b"?")
        remote.create(f"{stem}/0001.bak", b"?")
    remote.create("lost-and-found/1", b"?")


def get_tape(machine):
    (name,) = machine.store.folders()
    return machine.store.read_tape_id(name)


def test_foreign_objects_are_left_alone(two, remote, tmp_path):
    one, other = two
    one.push()
    tape = get_tape(one)
    litter(remote, tape)
    assert [done.error for done in other.pull()] == [None]
    for number in range(3):
        one.write(f"more {number}")
        one.push()
    assert find_mergeable(remote, 2) == [tape]
    assert merge_chunks(remote, tape) == 3
    other.pull()
    assert one.describe() == other.describe()
    late = Machine(tmp_path / "late", remote)
    late.pull()
    assert late.describe() == one.describe()
    with Cursor.open(one.store.path, "team") as cursor:
        pusher = Pusher(one.store, remote, cursor)
        pusher.hold(tape, "an audit")
        assert [*read_holds(remote)] == [*read_holds(remote, tape)] == [tape]
        pusher.hold(tape, held=False)
        assert read_holds(remote) == {}
        pusher.unpush(tape, "why")
    assert [bool(done.error) for done in other.pull()] == [True]
    assert other.store.folders() == []


def test_a_remote_of_foreign_objects_is_verified(two, remote, tmp_path):
    one, _ = two
    one.push()
    litter(remote, get_tape(one))
    empty = Store(tmp_path / "empty", durable=False)
    findings = [finding.message for finding in verify_remote(remote, empty)]
    assert [text for text in findings if "remote.json" not in text] == []


@pytest.mark.parametrize("data", GARBAGE)
def test_a_damaged_line_of_the_log_hides_nothing(two, remote, data):
    one, other = two
    one.push()
    other.pull()
    one.write("three")
    one.push()
    with one.store.create(making.beginning("another")) as tape:
        making.write(tape, "hello")
    one.push()
    remote.replace(make_log_key(2), data)
    assert [done.error for done in other.pull()] == [None, None]
    assert len(other.store.folders()) == 2
    assert other.pull() == []


@pytest.mark.parametrize("data", [b"no chunk", b"(\xb5/\xfd", b"x" * 5_000])
def test_a_damaged_chunk_stops_its_tape_alone(two, remote, data):
    """Also for who writes it next: that is named, and others are pushed."""
    one, other = two
    one.push()
    other.pull()
    tape = get_tape(one)
    remote.create(make_chunk_key(tape, 2), data)
    one.write("here")
    with one.store.create(making.beginning("another")) as second:
        making.write(second, "hello")
    with Cursor.open(one.store.path, "team") as cursor:
        tapes = [one.store.read_tape_id(name) for name in one.store.folders()]
        done = {out.tape: out for out in Pusher(one.store, remote, cursor).push(tapes)}
    assert make_chunk_key(tape, 2) in done[tape].error
    assert done[second.id].error is None
    assert [bool(out.error) for out in other.pull()] == [False]


def test_a_tape_that_is_taken_away_while_others_depend_on_it_stays_here(two, remote):
    """A fork in a tape of its own needs it; the other tapes are pulled."""
    one, other = two
    one.push()
    other.pull()
    tape = get_tape(one)
    with other.store.open(tape) as opened:
        other.store.create(making.beginning("child"), (opened, opened.head())).close()
    with one.store.create(making.beginning("another")) as second:
        making.write(second, "hello")
    one.push()
    with Cursor.open(one.store.path, "team") as cursor:
        Pusher(one.store, remote, cursor).unpush(tape, "why")
    done = {out.tape: out for out in other.pull()}
    assert "detach the tapes that were forked from it first" in done[tape].error
    assert done[second.id].is_new
    assert other.store.has(tape)


def test_a_tape_that_is_being_written_is_taken_away_later(two, remote):
    one, other = two
    one.push()
    other.pull()
    tape = get_tape(one)
    with Cursor.open(one.store.path, "team") as cursor:
        Pusher(one.store, remote, cursor).unpush(tape, "why")
    with other.store.open(tape) as opened, opened.writer() as writer:
        writer.append(making.say("meanwhile"))
        assert ["stays here" in done.error for done in other.pull()] == [True]
    assert [done.error is None for done in other.pull()] == [False]
    assert other.store.folders() == []


def test_a_tape_that_is_not_there_is_not_taken_away(two, remote):
    one, _ = two
    one.push()
    litter(remote, TAPE)
    with Cursor.open(one.store.path, "team") as cursor, pytest.raises(NotFound):
        Pusher(one.store, remote, cursor).unpush(TAPE)


def test_the_highest_numbers_of_others_are_named_and_cost_nothing(two, remote):
    one, other = two
    one.push()
    other.pull()
    tape = get_tape(one)
    remote.create(make_chunk_key(tape, 99_999_999), b"?")
    remote.create(make_log_key(2), b'[["%s",99999999]]' % tape.encode())
    (done,) = other.pull()
    assert make_chunk_key(tape, 99_999_999) in done.error
    remote.create(make_log_key(999_999_999_999), b"[]")
    one.write("three")
    with pytest.raises(Damaged, match="log/999999999999 is no line of ours"):
        one.push()


def test_a_damaged_line_of_the_log_is_repaired(two, remote, tmp_path):
    one, other = two
    one.push()
    remote.replace(make_log_key(1), b"[1]")
    found = [*verify_remote(remote, Store(tmp_path / "first", durable=False))]
    texts = [finding.message for finding in found if "remote.json" not in finding.message]
    assert len(texts) == 2
    for finding in found:
        if finding.repair is not None:
            finding.repair()
    found = verify_remote(remote, Store(tmp_path / "second", durable=False))
    assert [at.message for at in found if "remote.json" not in at.message] == []
    other.pull()
    assert other.describe() == one.describe()
