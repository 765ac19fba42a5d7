"""What is redacted or taken back leaves the remote, and every store that pulls."""

import subprocess
from functools import partial

import pytest
from zstandard import FRAME_HEADER, ZstdDecompressor

from tape.errors import NotFound, RemoteUnavailable, UsageError
from tape.remote.cursor import Cursor
from tape.remote.objects import decode_chunk
from tape.remote.push import Pusher
from tape.remote.registry import find_catalogue, open_remote
from tape.store.maintenance.upkeep import redact
from tests.tape import making
from tests.tape.remote.machines import Machine

SECRET = "the password is hunter2"


def read_all(remote):
    """Return the bytes of every object, chunks unpacked."""
    data = b""
    for listed in remote.list(""):
        text = remote.read(listed.key)
        if listed.key.startswith("t/"):
            chunk = decode_chunk(listed.key, text)
            text = b"" if chunk is None else chunk.data
        data += text
    return data


def hide(machine, entry):
    with machine.store.open("") as tape:
        redact(tape, [entry], "a password")


@pytest.fixture
def shared(two):
    """Return two stores with one tape that holds a secret, also in a blob, and the entries."""
    one, other = two
    entries = one.write(SECRET, f"{SECRET} {'x' * 70_000}", "after")
    one.push()
    other.pull()
    return one, other, entries[:2]


def test_redacted_data_leaves_the_remote_and_who_pulls(shared, remote, tmp_path):
    one, other, entries = shared
    assert read_all(remote).count(SECRET.encode()) == 3  # the second has its start in the entry
    for entry in entries:
        hide(one, entry.id)
    one.push()
    assert SECRET.encode() not in read_all(remote)
    other.pull()
    third = Machine(tmp_path / "three", remote)
    third.pull()
    assert one.describe() == other.describe() == third.describe()
    for machine in (one, other, third):
        stored = b"".join(p.read_bytes() for p in machine.store.path.rglob("*") if p.is_file())
        assert SECRET.encode() not in stored
    assert sorted(one.key for one in remote.list("gone/entry/")) == sorted(
        f"gone/entry/{entry.id}" for entry in entries
    )


KEY = "sk-ant-api03-" + "A1b2C3d4" * 6


def read_everything(remote):
    """Return the bytes of every object, and of every row in PostgreSQL or object that git has."""
    data = read_all(remote)
    if (catalogue := find_catalogue(remote)) is not None:
        catalogue.update()
        names = remote.ask("SELECT table_name FROM information_schema.tables "
                           "WHERE table_schema = 'tape'")  # fmt: skip
        for (name,) in names:
            rows = remote.ask(f"SELECT t::text FROM tape.{name} t")
            data += b"".join(text.encode() for (text,) in rows)
        for (state,) in remote.ask("SELECT state FROM tape.tapes"):
            data += ZstdDecompressor().decompress(state)
    if remote.url.startswith("git+file://"):
        repository = remote.url.removeprefix("git+file://")
        run = partial(subprocess.run, cwd=repository, check=True, capture_output=True)
        listed = run(["git", "rev-list", "--objects", "--all"]).stdout.split(b"\n")[:-1]
        for name in (line.split()[0].decode() for line in listed):
            kind = run(["git", "cat-file", "-t", name]).stdout.strip().decode()
            text = run(["git", "cat-file", kind, name]).stdout
            is_packed = text.startswith(FRAME_HEADER)
            data += ZstdDecompressor().decompress(text) if is_packed else text
    return data


@pytest.mark.slow
@pytest.mark.parametrize("address", ["folder", "s3", "postgresql", "git"], indirect=True)
def test_a_secret_leaves_every_object_row_and_replica(tmp_path, address):
    """M213: a push names its entries and brings nothing; redacted, it is nowhere after a push."""
    with open_remote(address) as remote:
        one, other, third = (Machine(tmp_path / name, remote) for name in ("one", "other", "third"))
        with one.store.create(making.beginning("a session")) as tape:
            entries = making.write(tape, f"use {KEY}", f"{'x ' * 40_000} {KEY}", "after")
        (done,) = one.push()
        assert [secret.entry for secret in done.secrets] == [entry.id for entry in entries[:2]]
        assert [*remote.list("t/")] == [*remote.list("b/")] == []
        assert KEY.encode() not in read_everything(remote)
        one.push(raw=True)
        other.pull()
        assert read_everything(remote).count(KEY.encode()) >= 2
        with one.store.open("") as tape:
            redact(tape, [entry.id for entry in entries[:2]], "a key")
        (done,) = one.push()
        assert not done.secrets
        assert KEY.encode() not in read_everything(remote)
        for machine in (other, third):
            assert [done.error for done in machine.pull()] == [None]
        for machine in (one, other, third):
            stored = b"".join(p.read_bytes() for p in machine.store.path.rglob("*") if p.is_file())
            assert KEY.encode() not in stored
        assert one.describe() == other.describe() == third.describe()


@pytest.mark.parametrize("requests", range(1, 16, 2))
def test_an_erasure_that_is_cut_off_is_completed_by_the_next_push(shared, remote, requests):
    one, _, entries = shared
    for entry in entries:
        hide(one, entry.id)
    remote.left = requests
    try:
        one.push()
    except RemoteUnavailable:
        remote.left = None
        one.push()
    remote.left = None
    assert SECRET.encode() not in read_all(remote)


def test_nothing_is_erased_before_the_entry_that_says_so_is_there(shared, remote):
    """Its data would match no hash where it is pulled meanwhile."""
    one, other, entries = shared
    hide(one, entries[0].id)
    remote.left = 0
    with pytest.raises(RemoteUnavailable):
        one.push()
    remote.left = None
    with Cursor.open(one.store.path, "team") as cursor:
        assert cursor.list_erasures()
        assert [*Pusher(one.store, remote, cursor).push([])] == []
    assert SECRET.encode() in read_all(remote)
    assert [done.error for done in other.pull()] == []
    other.write("meanwhile")
    other.push()
    one.push()
    assert read_all(remote).count(SECRET.encode()) == 2
    other.pull()
    assert one.describe() == other.describe()


def test_who_comes_second_reads_why_the_chunk_before_was_blanked(shared, remote):
    one, other, _ = shared
    other.write("meanwhile")
    (entry,) = one.write("a new secret")
    one.push()
    hide(one, entry.id)
    one.push()
    (done,) = other.push()
    assert [end.branch for end in done.kept] == ["main"]
    one.pull()
    assert one.describe() == other.describe()


def unpush(machine, tape, why=""):
    with Cursor.open(machine.store.path, "team") as cursor:
        Pusher(machine.store, machine.remote, cursor).unpush(tape, why)


def test_a_tape_that_is_taken_back_goes_to_the_trash_of_who_pulls(shared, remote, tmp_path):
    one, other, _ = shared
    (tape,) = [one.store.read_tape_id(name) for name in one.store.folders()]
    unpush(one, tape, "by mistake")
    assert SECRET.encode() not in read_all(remote)
    assert len(one.store.folders()) == 1
    (done,) = other.pull()
    assert "by mistake" in done.error
    assert other.store.folders() == []
    assert [trashed.id for trashed in other.store.trash()] == [tape]
    third = Machine(tmp_path / "three", remote)
    assert [done.error for done in third.pull()] == [None]
    assert third.store.folders() == []


def test_a_tape_that_was_taken_back_is_not_pushed_again(shared, remote):
    one, other, _ = shared
    (tape,) = [one.store.read_tape_id(name) for name in one.store.folders()]
    other.write("meanwhile")
    unpush(one, tape)
    one.write("later")
    with Cursor.open(one.store.path, "team") as cursor:
        (done,) = Pusher(one.store, remote, cursor).push([tape])
    assert "taken from the remote" in done.error
    with Cursor.open(other.store.path, "team") as cursor:
        (done,) = Pusher(other.store, remote, cursor).push([tape])
    assert done.error
    assert SECRET.encode() not in read_all(remote)


def test_a_blob_that_another_tape_names_stays(shared, remote):
    one, _, _ = shared
    (tape,) = [one.store.read_tape_id(name) for name in one.store.folders()]
    with one.store.create(making.beginning("another")) as second:
        making.write(second, f"{SECRET} {'x' * 70_000}")
    one.push()
    unpush(one, tape)
    assert read_all(remote).count(SECRET.encode()) == 2


def test_only_a_tape_that_is_there_can_be_taken_back_and_once(two):
    one, _ = two
    (tape,) = [one.store.read_tape_id(name) for name in one.store.folders()]
    with pytest.raises(NotFound):
        unpush(one, tape)
    one.push()
    unpush(one, tape)
    with pytest.raises(UsageError, match="already"):
        unpush(one, tape)
