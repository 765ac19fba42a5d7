"""With a frozen clock and random digits that repeat, two whole histories write the same bytes."""

import itertools

from freezegun import freeze_time

from tape.model.entries import Anchor
from tape.store.store import Beginning, Store
from tests.faults.histories import LONG, found
from tests.tape import making, reader


def history(path):
    """Write a history with everything in it; return what every tape of it holds."""
    store = Store(path, random=making.numbered())
    with store.create(Beginning("/src", "test/1", "Same", "Same")) as tape:
        with tape.writer() as writer:
            writer.append(making.say("one"))
            writer.append(making.say(LONG))
            with tape.writer() as beside:
                beside.append(making.say("busy"))
            writer.anchor(Anchor(kind="compaction", summary="so far"))
            writer.append(making.say("two"))
            writer.rewind(tape.find_ancestor(tape.head(), 2).head, "undo")
            writer.append(making.say("instead"))
        tape.fork(tape.find_ancestor(tape.head(), 1).head, "side", switch=True)
        making.write(tape, "aside")
        tape.label("good", tape.head().entry)
        with store.create(Beginning("/src", "test/1"), origin=(tape, tape.head())) as child:
            making.write(child, "of the child")
    for name in store.folders():
        assert found(store, name) == []
        assert reader.faults(store.tapes / name) == []
    tapes = {name: reader.files(store.tapes / name) for name in store.folders()}
    return {**tapes, "store.json": (path / "store.json").read_bytes()}


@freeze_time("2026-11-21 20:31:05.123456")
def test_two_histories_under_one_clock_are_byte_equal(tmp_path):
    one, two = history(tmp_path / "one"), history(tmp_path / "two")
    assert list(one) == list(two)
    for name, files in one.items():
        assert files == two[name]
    tape = next(files for name, files in one.items() if "same" in name)
    phases = [name.split("/")[1] for name in tape if name.endswith("/entries.jsonl")]
    assert phases == [
        "0001-main-start",
        "0002-main.2",
        "0003-main-compaction",
        "0004-main",
        "0005-side",
    ]
    assert b"2026-11-21T20:31:05.123456Z" in tape["tape.json"]


def test_a_clock_that_goes_back_never_goes_back_on_the_tape(tmp_path):
    ticks = itertools.chain(range(making.DAY, making.DAY - 40, -1), itertools.repeat(0))
    store = making.store_in(tmp_path, lambda: next(ticks))
    with store.create(making.beginning()) as tape:
        making.write(tape, *map(str, range(20)))
        tape.fork(tape.find_ancestor(tape.head(), 5).head, "side")
        making.write(tape, "aside", branch="side")
        times = [entry.time for entry in making.entries(tape, "side")]
        assert times == sorted(set(times))
        assert reader.faults(making.folder_of(store, tape)) == []
