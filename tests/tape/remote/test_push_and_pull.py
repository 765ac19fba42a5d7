"""Stores that push to one remote and pull from it come to hold the same, and nothing is lost."""

import random
import shutil

import pytest

from tape.errors import RemoteUnavailable
from tape.remote.cursor import REMOTES_NAME, Cursor
from tape.remote.objects import decode_chunk, encode_chunk, make_chunk_key, make_log_key
from tape.remote.push import Pusher
from tests.tape import making
from tests.tape.remote.machines import Machine
from tests.tape.unite.test_tapes import STEPS


def test_what_was_pushed_comes_whole_to_another_store(two):
    one, other = two
    one.push()
    (done,) = other.pull()
    assert done.is_new
    assert done.folder == one.store.folders()[0]
    assert other.describe() == one.describe()


def test_a_push_and_a_pull_with_nothing_new_ask_nothing_and_once(two, remote):
    one, other = two
    one.push()
    other.pull()
    remote.requests.clear()
    one.push()
    assert remote.requests == []
    assert other.pull() == []
    assert remote.requests == [("list", "log/")]


def test_one_request_a_tape_and_one_for_the_log(two, remote):
    one, _ = two
    for number in range(20):
        with one.store.create(making.beginning(str(number))) as tape:
            making.write(tape, "hello")
    one.push()
    assert len(remote.requests) == 22


def test_a_large_result_comes_with_its_tape(two):
    one, other = two
    one.write("x" * 70_000)
    one.push()
    other.pull()
    with other.store.open("") as tape:
        assert making.texts(tape)[-1] == "x" * 70_000


def test_a_session_that_is_continued_elsewhere_comes_back(two):
    one, other = two
    one.push()
    other.pull()
    other.write("three")
    other.push()
    one.pull()
    assert one.describe() == other.describe()
    with one.store.open("") as tape:
        assert making.texts(tape) == ["one", "two", "three"]


def test_who_pushes_second_ends_on_a_branch_of_its_own(two):
    one, other = two
    one.push()
    other.pull()
    (first,) = one.write("first")
    (second,) = other.write("second")
    one.push()
    (done,) = other.push()
    (end,) = done.kept
    assert end.branch == "main"
    assert end.other.startswith("main.")
    with other.store.open("") as tape:
        assert tape.head("main").entry == first.id
        assert tape.head(end.other).entry == second.id
    one.pull()
    assert one.describe() == other.describe()


def test_a_phase_that_was_continued_here_is_longer_than_the_remote_knows(two):
    """Who began the tape and pushes second writes in the phase that the remote has a part of."""
    one, other = two
    one.push()
    other.pull()
    other.write("theirs")
    other.push()
    one.write("ours")
    (outcome,) = one.push()
    assert [end.branch for end in outcome.kept] == ["main"]
    other.pull()
    assert one.describe() == other.describe()
    with one.store.open("") as tape:
        ends = {making.texts(tape, branch)[-1] for branch in tape.refs().branches}
    assert ends == {"ours", "theirs"}


def test_a_title_from_before_the_pull_does_not_beat_a_newer_one(two, tmp_path, remote):
    one, other = two
    one.push()
    other.pull()
    with other.store.open("") as tape:
        tape.rename("older")
    other.store.clock.now += 1_000_000
    one.store.clock.now += 2_000_000
    with one.store.open("") as tape:
        tape.rename("newer")
    one.push()
    other.push()
    one.pull()
    third = Machine(tmp_path / "three", remote)
    third.pull()
    assert [machine.describe()[2] for machine in (one, other, third)] == ["newer"] * 3
    assert third.describe() == one.describe()


@pytest.mark.parametrize("requests", range(8))
def test_the_next_push_completes_one_that_was_cut_off(two, remote, requests):
    one, other = two
    for number in range(3):
        with one.store.create(making.beginning(str(number))) as tape:
            making.write(tape, "y" * 70_000, "hello")
    remote.left = requests
    with pytest.raises(RemoteUnavailable):
        one.push()
    remote.left = None
    with one.store.open(one.store.read_tape_id(one.store.folders()[0])) as tape:
        making.write(tape, "meanwhile")
    one.push()
    assert {*other.store.folders()} == set()
    other.pull()
    assert other.store.folders() == one.store.folders()
    for name in one.store.folders():
        for file in ("refs.jsonl", "phases/0001-main-start/entries.jsonl"):
            mine, theirs = one.store.tapes / name / file, other.store.tapes / name / file
            assert mine.read_bytes() == theirs.read_bytes()


def test_a_push_ends_where_the_remote_is_away_at_its_first_question(two, remote):
    """It is no fault of the tape: all others would wait for an answer as well."""
    one, other = two
    one.push()
    other.pull()
    one.write("three")
    remote.left = 0
    with pytest.raises(RemoteUnavailable):
        one.push()
    remote.left = None
    one.push()
    other.pull()
    assert other.describe() == one.describe()


def test_a_pull_after_an_interrupted_push_leaves_its_chunk_in_the_log(two, remote):
    """The pull brings the chunk that no line names, so that nothing is left to push."""
    one, other = two
    one.push()
    other.pull()
    one.write("three")
    remote.left = 2  # a look at the leases, and the chunk
    with pytest.raises(RemoteUnavailable):
        one.push()
    remote.left = None
    (tape,) = [one.store.read_tape_id(name) for name in one.store.folders()]
    with Cursor.open(one.store.path, "team") as cursor:
        cursor.want(tape, 2)
    one.pull()
    one.push()
    assert remote.read(make_log_key(2)) == f'[["{tape}",2]]'.encode()
    other.pull()
    assert other.describe() == one.describe()


def test_a_lost_cursor_is_found_again(two, remote):
    one, other = two
    one.push()
    shutil.rmtree(one.store.path / REMOTES_NAME)
    one.write("three")
    one.push()
    other.pull()
    assert one.describe() == other.describe()
    assert [listed.key for listed in remote.list("t/")][-1].endswith("/00000002")


def test_a_damaged_chunk_is_named_and_the_other_tapes_come(two, remote):
    one, other = two
    with one.store.create(making.beginning("another")) as tape:
        making.write(tape, "hello")
    one.push()
    key = next(remote.list("t/")).key
    remote.replace(key, b"no chunk")
    outcomes = other.pull()
    assert sorted(bool(done.error) for done in outcomes) == [False, True]
    assert len(other.store.folders()) == 1
    assert [bool(done.error) for done in other.pull()] == [True]


def test_lines_that_do_not_verify_touch_no_tape(two, remote):
    one, other = two
    one.push()
    (listed,) = remote.list("t/")
    chunk = decode_chunk(listed.key, remote.read(listed.key))
    data = chunk.data.replace(b'"two"', b'"twO"')
    parts, start = [], 0
    for part in chunk.head.parts:
        parts.append(data[start : start + part.length])
        start += part.length
    remote.replace(listed.key, encode_chunk(chunk.head, parts))
    (done,) = other.pull()
    assert "does not match its hash" in done.error
    assert other.store.folders() == []


def test_a_secret_keeps_its_tape_here_and_its_entry_is_named(two, remote):
    one, _ = two
    (entry,) = one.write("the key is sk-ant-api03-" + "A1b2C3d4" * 6)
    (done,) = one.push()
    assert [secret.entry for secret in done.secrets] == [entry.id]
    assert [*remote.list("t/")] == []
    (done,) = one.push(raw=True)
    assert done.chunks == 1


def test_lines_that_replace_lost_ones_are_not_pushed(two, remote):
    """A disk lost what was pushed, and a session went on: no chunk begins within a line."""
    one, other = two
    one.push()
    with one.store.open("") as tape:
        path = making.folder_of(one.store, tape) / "phases" / tape.head().phase / "entries.jsonl"
        path.write_bytes(path.read_bytes().rpartition(b'{"id"')[0])
    one.write("instead", "and more")
    before = [*remote.list("")]
    with Cursor.open(one.store.path, "team") as cursor:
        (done,) = Pusher(one.store, remote, cursor).push(
            [one.store.read_tape_id(name) for name in one.store.folders()]
        )
    assert "`tape fork --new`, and then `tape detach`" in done.error
    assert [*remote.list("")] == before
    assert [done.error for done in other.pull()] == [None]


def test_a_tape_of_several_chunks_comes_whole(two, monkeypatch, remote):
    one, other = two
    monkeypatch.setattr("tape.remote.missing._CHUNK_BYTES", 2_000)
    one.write(*(f"{number} " + "z" * 500 for number in range(500)))
    (done,) = one.push()
    assert done.chunks > 1
    other.pull()
    assert one.describe() == other.describe()


def test_the_log_says_what_each_push_brought(two, remote):
    one, _ = two
    one.push()
    (tape,) = [one.store.read_tape_id(name) for name in one.store.folders()]
    assert remote.read(make_log_key(1)) == f'[["{tape}",1]]'.encode()
    assert remote.list(make_chunk_key(tape, 0))


@pytest.mark.parametrize("seed", range(10))
def test_three_stores_come_to_the_same_after_random_steps(tmp_path, remote, seed):
    chance = random.Random(seed)
    machines = [Machine(tmp_path / name, remote) for name in ("one", "two", "three")]
    with machines[0].store.create(making.beginning("a session")) as tape:
        making.write(tape, "one", "two")
    machines[0].push()
    for machine in machines[1:]:
        machine.pull()
    acknowledged = set()
    for _ in range(40):
        machine = chance.choice(machines)
        match chance.randrange(4):
            case 0:
                machine.push()
            case 1:
                assert [done.error for done in machine.pull() if done.error] == []
            case _:
                with machine.store.open("") as tape:
                    chance.choice(STEPS)(tape, chance)
        with machine.store.open("") as tape:
            acknowledged |= {line[:48] for _, _, line in tape.phases.read_all_lines()}
    for machine in (*machines, *machines):
        machine.push()
        machine.pull()
    for machine in machines:
        machine.pull()
    states = [machine.describe() for machine in machines]
    assert states[0] == states[1] == states[2]
    assert acknowledged <= {*states[0][4]}


def test_a_pull_ends_where_the_remote_is_away_and_continues_later(two, remote):
    one, other = two
    for number in range(3):
        with one.store.create(making.beginning(str(number))) as tape:
            making.write(tape, f"{number} {'x' * 70_000}")
    one.push()
    remote.left = 8
    with pytest.raises(RemoteUnavailable):
        other.pull()
    remote.left = None
    other.pull()
    assert other.store.folders() == one.store.folders()


def test_new_chunks_of_many_tapes_are_read_together(two, remote):
    one, other = two
    for number in range(40):
        with one.store.create(making.beginning(str(number))) as tape:
            making.write(tape, "hello")
    one.push()
    waits = []
    read_many, remote.read_many = (
        remote.read_many,
        lambda keys: waits.append(len(keys)) or read_many(keys),
    )
    other.pull()
    assert waits == [32, 9]
    assert other.store.folders() == one.store.folders()
