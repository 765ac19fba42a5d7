"""A session that repeats the history of another one is counted once, in any order."""

from __future__ import annotations

import copy
import itertools
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.model.entries import Assistant, Meta, User, join_texts
from tape.places.resolve import resolve_reference
from tape.sessions.batch import ImportMemory, import_files
from tape.sessions.sources import SessionFile
from tape.store.store import Beginning, Store
from tests.tape.formats.sessions.lines import ClaudeFile, CodexFile, call, text, write_lines

PARENT = "00000000-0000-4000-8000-000000000001"
FORK = "00000000-0000-4000-8000-000000000002"


def write_claude(*, is_named):
    """Return the lines of the parent, those it gets later, and those of the fork."""
    file = ClaudeFile(PARENT)
    file.say("u1", None, "one")
    file.answer("a1", "u1", text("looks"), call("t1"))
    file.result("r1", "a1", "t1", "a.py")
    file.answer("a2", "r1", text("ans one"))
    parent = [*file.lines]
    file.say("u2", "a2", "two")
    file.answer("a3", "u2", text("ans two"))
    fork = []
    for line in copy.deepcopy(parent):
        named = {"sessionId": PARENT, "messageUuid": line["uuid"]}
        fork.append(line | {"sessionId": FORK} | ({"forkedFrom": named} if is_named else {}))
    more = ClaudeFile(FORK)
    more._seconds = itertools.count(30)
    more.say("u9", "a2", "more")
    more.answer("a9", "u9", text("ans more"))
    return parent, file.lines[len(parent) :], [*fork, *more.lines]


def write_codex():
    file = CodexFile(PARENT)
    file.event("task_started", turn_id="1")
    file.message("user", "one")
    file.item(type="function_call", call_id="c1", name="shell", arguments="{}")
    file.item(type="function_call_output", call_id="c1", output="a.py")
    file.message("assistant", "ans one")
    file.tokens(100, 10, 110)
    parent = [*file.lines]
    file.message("user", "two")
    file.message("assistant", "ans two")
    file.tokens(200, 20, 330)
    fork = CodexFile(FORK, forked_from_id=PARENT)
    for line in parent:
        fork.add(line["type"], line["payload"])
    fork.message("user", "more")
    fork.message("assistant", "ans more")
    fork.tokens(300, 30, 660)
    return parent, file.lines[len(parent) :], fork.lines


def write_pi():
    def entry(number, role, words, after):
        told = {"role": role, "content": [{"type": "text", "text": words}]}
        time = f"2026-06-01T08:00:{number:02}.000Z"
        return {"type": "message", "id": f"e{number}", "parentId": after, "timestamp": time} | {
            "message": told | {"usage": {"input": 5, "output": 1, "totalTokens": 6}}
        }

    def head(session, **more):
        return {"type": "session", "version": 3, "id": session, "cwd": "/w"} | more

    shared = [entry(1, "user", "one", None), entry(2, "assistant", "ans one", "e1")]
    later = [entry(3, "user", "two", "e2"), entry(4, "assistant", "ans two", "e3")]
    own = [entry(8, "user", "more", "e2"), entry(9, "assistant", "ans more", "e8")]
    named = head(FORK, parentSession=f"/s/2026-06-01T08-00-00-000Z_{PARENT}.jsonl")
    return [head(PARENT), *shared], later, [named, *shared, *own]


WRITERS = {
    "claude": lambda: write_claude(is_named=True),
    "resumed claude": lambda: write_claude(is_named=False),
    "codex": write_codex,
    "pi": write_pi,
}


class Folder:
    """Files of sessions, and a store that they are imported into."""

    def __init__(self, path):
        self.path, self.store = path, Store(path / "store", durable=False)

    def write(self, name, lines):
        (self.path / f"{name}.jsonl").write_bytes(write_lines(*lines))

    def bring(self, *names):
        memory = ImportMemory(self.store)
        files = [SessionFile(self.path / f"{name}.jsonl") for name in names]
        done = [*import_files(self.store, files, Beginning("/here", "test/1"), memory)]
        memory.save()
        assert [one.error for one in done if one.error] == []
        return [tape for one in done for tape in one.tapes]

    def count_said(self):
        """Return the words of all prompts and answers of the store, sorted."""
        said = []
        for name in self.store.folders():
            with self.store.open_folder(name) as tape:
                assert [*verify(tape, Counts())] == []
                said += [
                    join_texts(entry.data.content)
                    for phase in tape.refs().phases()
                    for entry in read_phase(tape, phase)
                    if isinstance(entry.data, User | Assistant) and join_texts(entry.data.content)
                ]
        return sorted(said)

    def read(self, text):
        """Return what is said on the path to a REF."""
        hit = resolve_reference(self.store, None, text, "")
        with hit.tape as tape:
            said = [
                join_texts(one.data.content)
                for one in tape.entries(hit.head)
                if isinstance(one.data, User | Assistant)
            ]
        return [one for one in said if one not in {"", "looks"}]


def read_phase(tape, phase):
    with tape.phases.open(phase) as file:
        end = file.tail().end
    segments = tape.path(tape.head())
    whole = segments[0]._replace(phase=phase, start=0, end=end)
    return whole.entries(pytest.fail)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


@pytest.fixture(params=WRITERS)
def lines(request, folder):
    parent, later, fork = WRITERS[request.param]()
    folder.write(PARENT, parent)
    folder.write(FORK, fork)
    folder.tool = request.param.split()[-1]
    return parent, later, fork


def list_shared(folder):
    return ["looks"] * (folder.tool == "claude") + ["ans one", "one"]


@pytest.mark.parametrize("order", [(PARENT, FORK), (FORK, PARENT)])
@pytest.mark.parametrize("at_once", [True, False])
def test_the_shared_part_is_there_once(folder, lines, order, at_once):
    done = folder.bring(*order) if at_once else [*folder.bring(order[0]), *folder.bring(order[1])]
    assert len({one.id for one in done}) == 1
    assert folder.count_said() == sorted([*list_shared(folder), "ans more", "more"])
    assert folder.read(f"{folder.tool}:{PARENT}")[:2] == ["one", "ans one"]
    assert folder.read(f"{folder.tool}:{FORK}") == ["one", "ans one", "more", "ans more"]
    assert [one.added for one in folder.bring(*order)] == []
    (folder.store.path / "imported.json").unlink()
    assert [one.added for one in folder.bring(*order)] == [0, 0]


@pytest.mark.parametrize("order", [(PARENT, FORK), (FORK, PARENT)])
def test_both_grow(folder, lines, order):
    parent, later, fork = lines
    folder.write(FORK, fork[: -1 if folder.tool == "pi" else -2])
    folder.bring(*order)
    folder.write(PARENT, [*parent, *later])
    folder.write(FORK, fork)
    folder.bring(*order)
    words = [*list_shared(folder), "ans more", "ans two", "more", "two"]
    assert folder.count_said() == sorted(words)
    assert folder.read(f"{folder.tool}:{PARENT}") == ["one", "ans one", "two", "ans two"]
    assert folder.read(f"{folder.tool}:{FORK}") == ["one", "ans one", "more", "ans more"]


def test_a_fork_of_what_was_not_imported_of_its_parent_yet(folder, lines):
    parent, later, _ = lines
    folder.write(PARENT, parent[: -2 if folder.tool == "codex" else -1])
    folder.bring(PARENT)
    folder.bring(FORK)
    folder.write(PARENT, [*parent, *later])
    folder.bring(PARENT)
    words = [*list_shared(folder), "ans more", "ans two", "more", "two"]
    assert folder.count_said() == sorted(words)
    assert folder.read(f"{folder.tool}:{PARENT}") == ["one", "ans one", "two", "ans two"]


@pytest.mark.usefixtures("lines")
def test_the_parent_stays_where_it_was_and_the_fork_is_a_label(folder):
    (first,) = folder.bring(PARENT)
    (done,) = folder.bring(FORK)
    assert (done.id, done.session, done.branches) == (first.id, FORK, 2)
    assert done.left_out["copied"] >= 2
    with folder.store.open(first.id) as tape:
        assert tape.refs().current == "main"
        assert f"{folder.tool}-{FORK}" in tape.refs().labels


def test_without_the_parent_a_fork_is_independent(folder, lines):
    folder.bring(FORK)
    assert folder.count_said() == sorted([*list_shared(folder), "ans more", "more"])
    assert folder.read(f"{folder.tool}:{FORK}") == ["one", "ans one", "more", "ans more"]


def test_a_fork_that_goes_back_into_the_shared_part(folder):
    parent, _, fork = write_claude(is_named=True)
    folder.write(PARENT, parent)
    folder.write(FORK, fork)
    folder.bring(PARENT, FORK)
    more = ClaudeFile(FORK)
    more._seconds = itertools.count(50)
    more.say("u20", "u1", "instead")
    folder.write(FORK, [*fork, *more.lines])
    folder.bring(FORK)
    assert folder.read(f"claude:{FORK}") == ["one", "instead"]
    assert folder.read(f"claude:{PARENT}") == ["one", "ans one"]


def test_another_folder_is_noted_where_the_fork_begins(folder):
    parent, _, fork = write_codex()
    fork[0]["payload"]["cwd"] = "/src/other"
    folder.write(PARENT, parent)
    folder.write(FORK, fork)
    folder.bring(PARENT, FORK)
    fork.append(json.loads(json.dumps(fork[-3])) | {"timestamp": "2026-05-01T10:00:50.000Z"})
    folder.write(FORK, fork)
    folder.bring(FORK)
    hit = resolve_reference(folder.store, None, f"codex:{FORK}", "")
    with hit.tape as tape:
        entries = tape.entries(hit.head)
    assert [one.data.cwd for one in entries if isinstance(one.data, Meta)] == ["/src/other"]


def test_equal_words_alone_are_no_relation(folder):
    one, _, other = write_codex()
    del other[0]["payload"]["forked_from_id"]
    del other[1]
    folder.write(PARENT, one)
    folder.write(FORK, other)
    first, second = folder.bring(PARENT, FORK)
    assert first.id != second.id


class CountingStore(Store):
    """A store that counts how often each tape is opened, and each id read."""

    def __init__(self, path):
        super().__init__(path, durable=False)
        self.opened, self.ids_read = Counter(), Counter()

    def open_folder(self, name):
        self.opened[name] += 1
        return super().open_folder(name)

    def read_tape_id(self, name):
        self.ids_read[name] += 1
        return super().read_tape_id(name)


def test_each_tape_is_read_once_to_find_the_relatives_of_many(tmp_path):
    folder = Folder(tmp_path)
    folder.store = CountingStore(tmp_path / "store")
    names = [f"00000000-0000-4000-8000-{number:012}" for number in range(40)]
    for name in names:
        file = CodexFile(name)
        file.message("user", f"ask {name}")
        folder.write(name, file.lines)
    assert len(folder.bring(*names[:-1])) == 39
    opened, ids_read = folder.store.opened, folder.store.ids_read
    assert set(opened.values()) == {1, 2}  # for its title when it is there, and to find relatives
    assert not ids_read
    opened.clear()
    (done,) = folder.bring(names[-1])
    assert {*opened.values()} == {1}
    assert done.added == 3


def test_two_tapes_of_an_earlier_import_are_reported_and_can_be_united(folder, lines):
    """Earlier versions made a tape of each: of the two one says that it repeats the other."""
    parent, later, _ = lines
    (own,) = folder.bring(FORK)
    before = Folder(folder.path / "before")
    before.path.mkdir()
    before.write(PARENT, parent)
    (first,) = before.bring(PARENT)
    shutil.copytree(first.path, folder.store.tapes / Path(first.path).name)
    folder.write(PARENT, [*parent, *later])
    (folder.store.path / "imported.json").unlink()
    done = folder.bring(PARENT, FORK)
    assert {one.id for one in done} == {first.id, own.id}
    (double,) = (one for one in done if one.doubles)
    assert double.doubles == ({first.id, own.id} - {double.id}).pop()
    with folder.store.open(double.id) as tape:
        folder.store.remove(tape)
    (again,) = folder.bring(double.session)
    assert (again.id, again.doubles) == (double.doubles, None)
    words = [*list_shared(folder), "ans more", "ans two", "more", "two"]
    assert folder.count_said() == sorted(words)
