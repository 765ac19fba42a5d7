"""Verifying a remote names what is wrong there, and completes what was interrupted."""

import pytest

from tape.remote.erasure import erase_redacted
from tape.remote.merging import merge_chunks
from tape.remote.objects import REMOTE_KEY, make_chunk_key, make_gone_key
from tape.remote.registry import begin_remote
from tape.remote.verification import count_objects, verify_remote
from tape.store.maintenance.upkeep import redact
from tape.store.store import Store
from tests.tape import making


@pytest.fixture
def pushed(two, remote):
    """Return a store whose tape of several chunks and a blob is at a remote, and the tape's id."""
    one, _ = two
    begin_remote(remote)
    one.push()
    for number in range(3):
        one.write(f"{number} {'x' * 70_000}")
        one.push()
    return one, one.store.read_tape_id(one.store.folders()[0])


@pytest.fixture
def find(remote, tmp_path):
    """Return what verifies the remote in an empty store each time."""
    count = iter(range(99))

    def verify_again():
        return [*verify_remote(remote, Store(tmp_path / f"empty{next(count)}", durable=False))]

    return verify_again


def test_nothing_is_wrong_with_a_remote_that_is_whole(pushed, remote, find):
    _, tape = pushed
    assert find() == []
    assert count_objects(remote)[:2] == (1, 4)
    merge_chunks(remote, tape)
    assert find() == []
    assert count_objects(remote)[:2] == (1, 1)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda tape: (make_chunk_key(tape, 2), b""), "the remote has no t/.*00000002"),
        (lambda tape: (make_chunk_key(tape, 2), b"no chunk"), "00000002"),
        (lambda _: (REMOTE_KEY, b"{}"), "remote.json"),
        (lambda _: (REMOTE_KEY, b'{"format":9,"id":"x"}'), "update it"),
    ],
)
def test_damage_is_named(pushed, remote, find, damage, message):
    _, tape = pushed
    remote.replace(*damage(tape))
    (finding,) = find()
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(finding.message)
    assert finding.repair is None


def test_a_missing_blob_is_named(pushed, remote, find):
    blob = next(remote.list("b/"))
    (remote.path / blob.key).unlink()
    (finding,) = find()
    assert "blob" in finding.message


def test_a_chunk_that_no_log_names_is_logged(two, remote, find):
    one, other = two
    begin_remote(remote)
    one.push()
    other.pull()
    one.write("more")
    create, remote.create = remote.create, lambda key, data: "log" in key or create(key, data)
    one.push()
    del remote.create
    other.pull()
    (finding,) = find()
    assert "no line of the push log names its chunk 2" in finding.message
    finding.repair()
    assert find() == []
    other.pull()
    assert one.describe() == other.describe()


def test_redacted_data_that_came_back_is_erased(pushed, remote, find):
    one, tape = pushed
    with one.store.open("") as opened:
        entry = making.entries(opened)[1]
    key = make_chunk_key(tape, 1)
    before = remote.read(key)
    with one.store.open("") as opened:
        redact(opened, [entry.id], "a reason")
    one.push()
    assert remote.read(key) != before
    remote.replace(key, before)  # as a store that had not heard of it
    erased = [finding for finding in find() if finding.repair]
    if erased:
        erased[0].repair()
    else:
        erase_redacted(remote, tape, [entry.id], {"why": ""})
    assert find() == []


def test_an_unpush_that_was_cut_off_is_named(pushed, remote, find):
    _, tape = pushed
    remote.create(make_gone_key("tape", tape), b"{}")
    (finding,) = find()
    assert f"`tape unpush {tape[:8]}` completes it" in finding.message
