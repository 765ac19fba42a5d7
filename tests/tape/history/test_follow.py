"""Following a branch: each entry it gains once, in order, whenever somebody looks."""

import os
import shutil
import tempfile
import tracemalloc
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tape.clock import format_timestamp, parse_timestamp
from tape.errors import Damaged, NewerFormat, NotFound
from tape.history.follow import Gained, Moved, follow
from tape.model.entries import Anchor, Note, Place
from tape.model.line import decode_line, encode_line, encode_payload
from tape.store.refs import encode_ref_line as encode_ref
from tests.tape import making, reader
from tests.tape.making import BUDGET

NOWHERE = Place(phase="", offset=0, entry="")
ANCHOR = Anchor(phase="", branch="", base=NOWHERE, kind="compaction", summary="what was")


@pytest.fixture
def follower(tape):
    with follow(tape) as follower:
        yield follower


def told(follower):
    """Return what a poll yields: words and types of entries, and where the branch went."""
    return [tell(found) for found in follower.poll()]


def tell(found):
    if isinstance(found, Moved):
        return ("to", found.head.entry, found.why)
    entry = found.entry()
    return entry.data.content[0].text if entry.type == "user" else entry.type


def entries_file(folder, phase="0001-main-start"):
    return folder / "phases" / phase / "entries.jsonl"


def add(file, data):
    with file.open("ab") as opened:
        opened.write(data)


def next_line(tape, text):
    """Return the line that would come next on the current branch, with its newline."""
    head = tape.head().header
    time = format_timestamp(parse_timestamp(head.time) + 1)
    return encode_line("note", head.id, head.n + 1, time, encode_payload(Note(text)))[1]


def test_what_a_branch_gains_comes_once_and_in_order(tape, follower):
    assert told(follower) == []
    making.write(tape, "one", "two")
    assert told(follower) == ["one", "two"]
    assert told(follower) == []
    making.write(tape, "three")
    assert told(follower) == ["three"]


def test_an_entry_comes_with_its_line_and_its_place(tape, follower):
    (written,) = making.write(tape, "one")
    (gained,) = follower.poll()
    assert isinstance(gained, Gained)
    assert gained.entry() == written == decode_line(gained.line)
    assert gained.head.place == tape.head().place
    assert [hit.head.entry for hit in tape.find_entry(gained.head.entry)] == [written.id]


def test_the_text_of_a_blob_is_whole(tape, follower):
    making.write(tape, "long " * 20_000)
    assert told(follower) == ["long " * 20_000]


def test_it_begins_at_the_head_of_the_branch(tape):
    making.write(tape, "one", "two")
    with follow(tape, "main") as follower:
        assert follower.head.place == tape.head().place
        making.write(tape, "three")
        assert told(follower) == ["three"]


def test_it_continues_after_any_entry_of_the_branch(tape):
    start = tape.head().place
    making.write(tape, "one")
    one = tape.head().place
    with tape.writer() as writer:
        writer.anchor(ANCHOR)
        writer.append(making.say("two"))
    with follow(tape, after=start) as follower:
        assert told(follower) == ["one", "anchor", "two"]
    with follow(tape, after=one) as follower:
        assert told(follower) == ["anchor", "two"]
    with follow(tape, after=tape.head().place) as follower:
        assert told(follower) == []


def test_it_continues_after_the_entry_a_branch_was_pinned_at(tape):
    making.write(tape, "one", "two")
    tape.fork(tape.find_ancestor(tape.head(), 1).head, "b")
    pinned = tape.head("b").place
    making.write(tape, "mine", branch="b")
    with follow(tape, "b", pinned) as follower:
        assert told(follower) == ["branch", "mine"]


def test_an_entry_that_was_never_a_head_of_the_branch_is_refused(tape):
    start = tape.head().place
    making.write(tape, "one")
    tape.fork(tape.head(), "b")
    with pytest.raises(NotFound, match="branch 'b' was never at entry"):
        follow(tape, "b", start)
    with pytest.raises(Damaged):
        follow(tape, "main", Place(phase=start.phase, offset=0, entry="0" * 40))
    with pytest.raises(NotFound, match="no branch 'c'"):
        follow(tape, "c")


def test_a_line_that_is_being_written_is_not_there_yet(tape, folder, follower):
    line = next_line(tape, "one")
    for byte in range(len(line) - 1):
        add(entries_file(folder), line[byte : byte + 1])
        assert told(follower) == []
    add(entries_file(folder), b"\n")
    assert told(follower) == ["note"]


def test_a_torn_tail_never_comes_and_what_replaces_it_does(tape, folder, follower):
    making.write(tape, "one")
    add(entries_file(folder), next_line(tape, "torn")[:-9])
    assert told(follower) == ["one"]
    making.write(tape, "two")
    assert told(follower) == ["repair", "two"]


def test_a_torn_tail_replaced_by_a_line_as_long_is_seen(tape, folder, follower):
    line = next_line(tape, "one")
    add(entries_file(folder), b"x" * len(line))
    assert told(follower) == []
    os.truncate(entries_file(folder), tape.head().end)
    add(entries_file(folder), line)
    assert told(follower) == ["note"]


def test_a_whole_line_that_does_not_verify_counts_as_torn(tape, folder, follower):
    add(entries_file(folder), next_line(tape, "one").replace(b"one", b"two"))
    assert told(follower) == []
    making.write(tape, "three")
    assert told(follower) == ["repair", "three"]


def test_a_damaged_line_before_a_good_one_is_reported_and_left_out(tape, folder):
    said = []
    with follow(tape, skipped=said.append) as follower:
        size = entries_file(folder).stat().st_size
        making.write(tape, "one", "two", "three")
        data = entries_file(folder).read_bytes()
        entries_file(folder).write_bytes(data.replace(b'"one"', b'"ONE"'))
        assert told(follower) == ["two", "three"]
        assert told(follower) == []
    assert said == [
        f"0001-main-start: line at byte {size} skipped: its data does not match its hash"
    ]


@pytest.mark.parametrize(
    ("order", "left", "why"),
    [
        ([0, 1, 3], ["one", "two", "four"], "does not follow from the one before it"),
        ([1, 2], ["two", "three"], "does not follow from the one before it"),
        ([0, 1, 1, 2, 3], ["one", "two", "three", "four"], "repeated or out of order"),
        ([0, 2, 1, 3], ["one", "three", "four"], "repeated or out of order"),
    ],
)
def test_lines_that_are_missing_repeated_or_swapped_are_reported(tape, folder, order, left, why):
    said = []
    with follow(tape, skipped=said.append) as follower:
        before = entries_file(folder).read_bytes()
        making.write(tape, "one", "two", "three", "four")
        lines = entries_file(folder).read_bytes()[len(before) :].splitlines(keepends=True)
        entries_file(folder).write_bytes(before + b"".join(lines[at] for at in order))
        assert told(follower) == left
        assert why in "\n".join(said)


def test_a_newer_line_is_refused(tape, folder, follower):
    body = next_line(tape, "one")[49:].replace(b'"v":1', b'"v":9', 1)
    identity = sha256(body[: body.index(b',"data":')]).hexdigest()[:40].encode()
    add(entries_file(folder), b'{"id":"%b",%b' % (identity, body))
    for _ in range(2):
        with pytest.raises(NewerFormat, match="0001-main-start: written in format 9"):
            told(follower)


def test_a_file_that_lost_whole_lines_is_damage(tape, folder, follower):
    making.write(tape, "one")
    assert told(follower) == ["one"]
    os.truncate(entries_file(folder), 100)
    with pytest.raises(Damaged, match="whole lines were removed"):
        told(follower)


def test_a_phase_is_read_to_its_end_before_the_next(tape, follower):
    with tape.writer() as writer:
        writer.append(making.say("one"))
        writer.anchor(ANCHOR)
        writer.append(making.say("two"))
        writer.anchor(ANCHOR)
        writer.append(making.say("three"))
    assert told(follower) == ["one", "anchor", "two", "anchor", "three"]


def test_a_rewind_is_reported_once_and_its_followers_come_after_it(tape, follower):
    one, *_ = making.write(tape, "one", "two", "three")
    back = making.at(tape, one.id)
    with tape.writer() as writer:
        writer.rewind(back, "undo")
    assert told(follower) == ["one", "two", "three", ("to", one.id, "undo")]
    assert told(follower) == []
    making.write(tape, "four")
    assert told(follower) == ["branch", "four"]


def test_it_continues_after_an_entry_the_branch_was_rewound_to(tape):
    one, *_ = making.write(tape, "one", "two")
    with tape.writer() as writer:
        writer.rewind(making.at(tape, one.id), "undo")
        writer.append(making.say("three"))
    whole = ["two", ("to", one.id, "undo"), "branch", "three"]
    for entry, left in ((one, whole), (making.entries(tape)[-1], [])):
        with follow(tape, after=making.at(tape, entry.id).place) as follower:
            assert told(follower) == left


def test_what_was_undone_before_anybody_looked_comes_too(tape, follower):
    one, *_ = making.write(tape, "one", "two")
    for text in ("three", "four"):
        with tape.writer() as writer:
            writer.rewind(making.at(tape, one.id), "undo")
            writer.append(making.say(text))
    went = ("to", one.id, "undo")
    assert told(follower) == ["one", "two", went, "branch", "three", went, "branch", "four"]


def test_undoing_an_undo_doubles_nothing(tape, follower):
    one, two = making.write(tape, "one", "two")
    with tape.writer() as writer:
        writer.rewind(making.at(tape, one.id), "undo")
        writer.rewind(making.at(tape, two.id), "undo")
        writer.append(making.say("three"))
    assert told(follower) == [
        *("one", "two", ("to", one.id, "undo"), ("to", two.id, "undo")),
        *("branch", "three"),
    ]


def test_a_phase_whose_base_is_earlier_says_so_itself(tape, folder, follower):
    """As another program may write it: a phase at an earlier entry, without a pin before it."""
    one, _ = making.write(tape, "one", "two")
    with tape.writer() as writer:
        writer.rewind(making.at(tape, one.id), "undo")
        writer.append(making.say("three"))
    journal = folder / "refs.jsonl"
    lines = journal.read_bytes().split(b"\n")
    journal.write_bytes(b"\n".join(line for line in lines if b'"undo"' not in line))
    assert told(follower) == ["one", "two", ("to", one.id, "go-on"), "branch", "three"]


def test_a_phase_that_is_named_again_is_not_read_again(tape, folder, follower):
    one, two = making.write(tape, "one", "two")
    named = {"branch": "main", "phase": "0001-main-start", "pin": None, "why": "go-on"}
    again = encode_ref({**named, "time": format_timestamp(making.DAY)})
    assert told(follower) == ["one", "two"]
    add(folder / "refs.jsonl", again)
    assert told(follower) == []
    with tape.writer() as writer:
        writer.rewind(making.at(tape, one.id), "undo")
    assert told(follower) == [("to", one.id, "undo")]
    add(folder / "refs.jsonl", again)
    making.write(tape, "three")
    assert told(follower) == [("to", two.id, "go-on"), "three"]


def test_another_branch_is_not_this_one(tape):
    making.write(tape, "one")
    tape.fork(tape.head(), "b")
    with follow(tape, "main") as ours, follow(tape, "b") as theirs:
        making.write(tape, "two", branch="main")
        assert told(theirs) == []
        making.write(tape, "mine", branch="b")
        tape.fork(tape.head("b"), "c", switch=True)
        assert (told(ours), told(theirs)) == (["two"], ["branch", "mine"])


def test_it_stays_on_its_branch_when_another_becomes_current(tape, follower):
    tape.fork(tape.head(), "b", switch=True)
    making.write(tape, "mine")
    making.write(tape, "one", branch="main")
    assert told(follower) == ["one"]


def test_a_branch_that_goes_to_another_says_where(tape):
    making.write(tape, "one")
    tape.fork(tape.head(), "b")
    with follow(tape, "b") as follower:
        (two,) = making.write(tape, "two")
        with tape.writer("b") as writer:
            writer.rewind(making.at(tape, two.id))
        assert told(follower) == [("to", two.id, "rewind")]
        making.write(tape, "three", branch="b")
        assert told(follower) == ["branch", "three"]


def test_a_phase_that_no_journal_line_names_is_not_there(tape, folder, follower):
    making.write(tape, "one")
    journal = folder / "refs.jsonl"
    before = journal.read_bytes()
    with tape.writer() as writer:
        writer.anchor(ANCHOR)
    named = journal.read_bytes()
    journal.write_bytes(named[:-1])
    assert told(follower) == ["one"]
    journal.write_bytes(before)
    assert told(follower) == []
    journal.write_bytes(named)
    assert told(follower) == ["anchor"]


def test_the_folder_may_be_renamed(tape, folder, follower):
    making.write(tape, "one")
    assert told(follower) == ["one"]
    with tape.writer() as writer:
        folder.rename(folder.with_name("elsewhere"))
        writer.append(making.say("two"))
        writer.anchor(ANCHOR)
        assert told(follower) == ["two", "anchor"]


def test_a_missing_base_is_damage_and_hides_nothing_before_it(tape, folder, follower):
    making.write(tape, "one")
    with tape.writer() as writer:
        writer.anchor(ANCHOR)
    entries_file(folder, "0002-main-compaction").write_bytes(b"")
    poll = follower.poll()
    assert tell(next(poll)) == "one"
    for found in (poll, follower.poll()):
        with pytest.raises(Damaged, match="0002-main-compaction: it has no first entry"):
            next(found)


def test_a_poll_that_is_dropped_half_way_loses_nothing(tape, follower):
    one, *_ = making.write(tape, "one", "two")
    with tape.writer() as writer:
        writer.rewind(making.at(tape, one.id), "undo")
        writer.append(making.say("three"))
    whole = ["one", "two", ("to", one.id, "undo"), "branch", "three"]
    assert [tell(next(follower.poll())) for _ in whole] == whole


def test_live_waits_longer_while_nothing_comes(tape, follower):
    naps = []

    def sleep(seconds):
        naps.append(round(seconds, 3))
        if len(naps) in (1, 7):
            making.write(tape, f"after {len(naps)}")

    assert [tell(found) for found in islice(follower.live(sleep), 2)] == ["after 1", "after 7"]
    assert naps == [0.075, 0.05, 0.075, 0.113, 0.169, 0.25, 0.25]


@pytest.mark.slow
def test_memory_does_not_grow_with_what_is_read(tape):
    start = tape.head().place
    with tape.writer() as writer:
        for _ in range(4000):
            writer.append(making.say("x" * 2000))
    with follow(tape, after=start) as follower:
        tracemalloc.start()
        count = sum(1 for _ in follower.poll())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert count == 4000
    assert peak < 1_000_000


@contextmanager
def fresh():
    """Hold a tape of its own in a folder that goes away."""
    home = Path(tempfile.mkdtemp())
    store = making.store_in(home)
    with store.create(making.beginning()) as tape:
        yield tape, making.folder_of(store, tape)
    shutil.rmtree(home)


@settings(max_examples=60 * BUDGET, deadline=None)
@given(
    words=st.lists(st.text(max_size=60), min_size=1, max_size=6),
    cuts=st.lists(st.integers(0, 3000), max_size=12),
    begun=st.integers(0, 3),
)
def test_a_file_cut_anywhere_gives_exactly_its_whole_lines(words, cuts, begun):
    with fresh() as (tape, folder):
        start = tape.head()
        making.write(tape, *words)
        file = entries_file(folder)
        data = file.read_bytes()
        os.truncate(file, start.end)
        ends = [at + 1 for at in range(start.end, len(data)) if data[at : at + 1] == b"\n"]
        seen, written = [], start.end
        with follow(tape) as follower:
            for cut in sorted({min(start.end + cut, len(data)) for cut in cuts} | {len(data)}):
                add(file, data[written:cut])
                written = cut
                seen += [found.head.end for found in follower.poll()]
                assert seen == [end for end in ends if end <= cut]
        with follow(tape, after=start.place) as late:
            found = list(late.poll())
        assert [one.line for one in found] == data[start.end :].split(b"\n")[:-1]


STEPS = st.sampled_from(["say", "say two", "undo", "anchor", "crash", "fork", "elsewhere"])


def act(tape, folder, step):
    """Do to `main` what a step says."""
    head = tape.head("main")
    match step:
        case "crash":
            if not head.pinned:
                add(entries_file(folder, head.phase), b'{"id":"0123')
        case "fork":
            tape.fork(head, switch=True)
        case "elsewhere":
            making.write(tape, "not ours")
        case _:
            with tape.writer("main") as writer:
                write(tape, writer, step)


def write(tape, writer, step):
    match step:
        case "undo":
            back = min(2, writer.head.header.n)
            writer.rewind(tape.find_ancestor(writer.head, back).head, "undo")
        case "anchor":
            writer.anchor(ANCHOR)
        case _:
            for text in step.split():
                writer.append(making.say(text))


@settings(max_examples=60 * BUDGET, deadline=None)
@given(st.lists(st.tuples(STEPS, st.booleans(), st.booleans()), min_size=1, max_size=14))
def test_what_comes_does_not_depend_on_when_one_looks(steps):
    with fresh() as (tape, folder), follow(tape, "main") as often, follow(tape, "main") as seldom:
        tape.fork(tape.head(), "other", switch=True)
        start = tape.head("main").place
        seen = {often: [], seldom: []}
        for step, looks, wholly in steps:
            act(tape, folder, step)
            for follower in [often, seldom] if looks else [often]:
                seen[follower] += follower.poll() if wholly else islice(follower.poll(), 1)
        with follow(tape, "main", start) as late:
            whole = list(late.poll())
        for follower, found in seen.items():
            assert same(found + list(follower.poll())) == same(whole)
        _, *lines = (
            line.raw
            for lines in reader.phases(folder).values()
            for line in lines
            if lines[0].entry["data"]["branch"] == "main"
        )
        assert [one.line for one in whole if isinstance(one, Gained)] == lines


def same(found):
    """Return what two followers must agree on."""
    return [(type(one), one.head.entry, getattr(one, "line", "")) for one in found]
