"""Lines of files whose changes were recorded belong to who brought them, commands included."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tape.blame.history import blame_file
from tape.errors import NotFound
from tape.model.entries import Checkpoint, FileState, Meta, SavedFile
from tape.store.store import Beginning
from tests.tape import making
from tests.tape.changing import Session

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["edit", "edit", "command", "hand", "rename", "move", "mode", "undo"]),
        st.integers(0, 9),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=12,
)


class World:
    """A folder, the tape that records it, and who brought in each line of its one file."""

    def __init__(self, folder):
        ticks = count(making.DAY, 1_000_000)
        self.store = making.store_in(folder / "store", lambda: next(ticks))
        self.folder = folder / "work"
        self.folder.mkdir()
        self.cwd, self.path = self.folder, None
        self.lines: list[tuple[str, str | None]] = []
        self.numbers, self.past = count(), []

    @property
    def data(self):
        return "".join(f"{line}\n" for line, _ in self.lines).encode()

    def name(self, path):
        inside = path.is_relative_to(self.cwd)
        return str(path.relative_to(self.cwd) if inside else path)

    def grow(self, at, gone, new, owner):
        at = min(at, len(self.lines))
        fresh = [(f"line {next(self.numbers)}", owner) for _ in range(new)]
        self.lines[at : at + gone] = fresh

    def step(self, run, kind, at, gone, new):
        before, old, owner = self.data, self.path, f"c{run.calls}"
        if kind == "move":
            self.cwd = self.folder / f"sub{at}"
            self.cwd.mkdir(exist_ok=True)
            run.writer.append(Meta(cwd=str(self.cwd)))
            return
        if self.path is None and kind not in ("edit", "command"):
            return
        self.past.append(list(self.lines))
        if kind == "hand":
            self.grow(at, gone, new, None)
            self.path.write_bytes(self.data)
            return
        if kind == "undo":
            self.lines = self.past[at % len(self.past)]
            saved = [SavedFile.from_blob(run.tape.blobs.put(one)) for one in (before, self.data)]
            state = FileState(self.name(old), saved[0], "100644", saved[1], "100644")
            run.writer.append(Checkpoint((state,), "restore"))
            self.path.write_bytes(self.data)
            return
        if kind == "rename":
            self.path = self.folder / f"name{at}.txt"
            if self.path == old:
                return
            old.unlink()
        else:
            self.path = self.path or self.folder / "first.txt"
            self.grow(at, gone, 0 if kind == "mode" else new + (old is None), owner)
        self.path.write_bytes(self.data)
        if old is not None and self.path == old and before == self.data and kind != "mode":
            return
        source = self.name(old) if old is not None and self.path != old else None
        changed = run.change(
            self.name(self.path), None if old is None else before, self.data, source=source
        )
        name, args = "bash", {"command": "make"}
        if kind == "edit":
            name, args = "edit", {"path": changed.path, "old_text": "no matter", "new_text": "x"}
        saved = FileState(self.name(old), SavedFile.from_blob(changed.before_blob)) if old else None
        if saved:
            run.writer.append(Checkpoint((saved,), call_id=f"c_00000000_{run.calls + 1}"))
        run.run(name, args, changed, said=owner)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return iter(lambda: tmp_path_factory.mktemp("blamed"), None)


@given(STEPS)
def test_each_line_is_theirs_who_brought_it(places, steps):
    world = World(next(places))
    begin = Beginning(str(world.folder), "test/1")
    with world.store.create(begin) as tape, tape.writer() as writer:
        run = Session(tape, writer)
        owners = {}
        for step in steps:
            world.step(run, *step)
        for entry in making.entries(tape):
            if entry.type == "assistant":
                owners[entry.id] = entry.data.content[0].text
    if world.path is None:
        return
    try:
        found = blame_file(world.store, None, world.path)
    except NotFound:
        assert not any(owner for _, owner in world.lines)
        return
    assert found.lines == [line for line, _ in world.lines]
    told = [
        owners[one.by.entry] if one.by else None
        for one in found.ranges
        for _ in range(one.last - one.first + 1)
    ]
    assert told == [owner for _, owner in world.lines]
    assert all(one.doubt is None for one in found.ranges)


def test_a_command_is_named_by_its_tool(tmp_path):
    world = World(tmp_path)
    begin = Beginning(str(world.folder), "test/1")
    with world.store.create(begin) as tape, tape.writer() as writer:
        run = Session(tape, writer)
        writer.append(making.say("Format it"))
        world.step(run, "command", 0, 0, 1)
        world.step(run, "edit", 0, 0, 0)
        world.step(run, "edit", 0, 1, 1)
    found = blame_file(world.store, None, world.path)
    told = [(one.first, one.by.op, one.by.prompt) for one in found.ranges]
    assert told == [(1, "edit", "Format it"), (2, "bash", "Format it")]


def test_without_bytes_the_call_tells(tmp_path):
    world = World(tmp_path)
    file = world.folder / "a.txt"
    file.write_text("one\n")
    begin = Beginning(str(world.folder), "test/1")
    with world.store.create(begin) as tape, tape.writer() as writer:
        run = Session(tape, writer)
        changed = run.change("a.txt", None, b"one\n")
        run.run("write", {"path": "a.txt", "content": "one\n"}, changed)
        tape.blobs.remove(changed.after)
    (one,) = blame_file(world.store, None, file).ranges
    assert (one.by.op, one.first, one.last) == ("write", 1, 1)


def test_failed_calls_count_where_they_changed_something(tmp_path):
    world = World(tmp_path)
    file = world.folder / "a.txt"
    file.write_text("one\n")
    begin = Beginning(str(world.folder), "test/1")
    with world.store.create(begin) as tape, tape.writer() as writer:
        run = Session(tape, writer)
        changed = run.change("a.txt", None, b"one\n")
        run.run("bash", {"command": "make"}, changed, is_error=True)
    (one,) = blame_file(world.store, None, file).ranges
    assert one.by.op == "bash"
