"""The tree of a tape against a model that only knows each entry's parent."""

import json
import re
import shutil
import tempfile
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from tape.cli.graph_view import EntryFilter, draw_tree
from tape.errors import UsageError
from tape.history.activity import (
    Exchange,
    FileUse,
    ModelUse,
    ToolUse,
    Utterance,
    summarize_activity,
)
from tape.history.graph import GraphLanes, order_newest_first, read_graph, split_runs
from tape.history.merge_base import find_merge_base, read_path_to
from tape.model.entries import (
    Anchor,
    Assistant,
    Context,
    Cost,
    Error,
    Meta,
    SideUsage,
    ToolCall,
    ToolResult,
    ToolStart,
    Usage,
)
from tape.store.maintenance.upkeep import detach
from tests.tape import making
from tests.tape.making import BUDGET

PICK = st.integers(0, 10**6)
DEED = st.tuples(
    st.sampled_from(["say", "say", "fork", "fork", "rewind", "anchor", "child", "detach"]),
    PICK,
    PICK,
    PICK,
)


class Forest:
    """A store that does what a list of deeds says."""

    def __init__(self, home, todo):
        ticks = iter(range(10**9))
        self.store = making.store_in(home, lambda: making.DAY + 1000 * next(ticks))
        self.tapes = [self.store.create(making.beginning("first"))]
        for what, *picks in todo:
            tape = self.tapes[picks[0] % len(self.tapes)]
            branch = sorted(tape.refs().branches)[picks[1] % len(tape.refs().branches)]
            getattr(self, what)(tape, branch, picks[2])

    def say(self, tape, branch, pick):
        making.write(tape, *["x"] * (1 + pick % 3), branch=branch)

    def place(self, tape, branch, pick):
        """Return a place of the tape itself on a branch."""
        head = tape.head(branch)
        for back in range(pick % 5, -1, -1):
            hit = tape.find_ancestor(head, back) if back <= head.header.n else None
            if hit is not None and hit.tape is tape:
                return hit.head
        raise AssertionError

    def fork(self, tape, branch, pick):
        tape.fork(self.place(tape, branch, pick))

    def rewind(self, tape, branch, pick):
        with tape.writer(branch) as writer:
            writer.rewind(self.place(tape, branch, pick), "rewind")

    def anchor(self, tape, branch, pick):
        with tape.writer(branch) as writer:
            writer.anchor(Anchor(kind="compaction", summary="s"))

    def child(self, tape, branch, pick):
        if len(self.tapes) < 4:
            origin = (tape, self.place(tape, branch, pick))
            self.tapes.append(self.store.create(making.beginning("child"), origin=origin))

    def detach(self, tape, branch, pick):
        if tape.info.origin is not None:
            try:
                detach(tape)
            except UsageError:  # it stands alone already
                return

    def close(self):
        for tape in self.tapes:
            tape.close()


@pytest.fixture
def forest(tmp_path):
    made = []

    def make(*todo):
        made.append(Forest(tmp_path / "store", todo))
        return made[-1]

    yield make
    for one in made:
        one.close()


def read_lines(folder):
    for file in sorted(folder.glob("phases/*/entries.jsonl")):
        for line in file.read_bytes().split(b"\n")[:-1]:
            yield file.parent.name, json.loads(line)


def parents(store):
    """Return the parent of every entry of a store."""
    folders = store.tapes.iterdir()
    return {one["id"]: one["parentId"] for f in folders for _, one in read_lines(f)}


def line_of(parent, entry):
    found = []
    while entry is not None:
        found.append(entry)
        entry = parent[entry]
    return found[::-1]


def committed(store, tape):
    """Return what stands on a tape, and before it in its origin."""
    named = tape.refs().phases()
    own = [e for p, e in read_lines(making.folder_of(store, tape)) if p in named]
    parent = parents(store)
    return {one for entry in own for one in line_of(parent, entry["id"])}


def ids(segments):
    return [json.loads(line)["id"] for one in segments for _, line in one.lines()]


FORESTS = st.lists(DEED, min_size=8, max_size=24)
SOME = settings(max_examples=60 * BUDGET, deadline=None)


@pytest.mark.slow
@SOME
@given(FORESTS, PICK)
def test_two_paths_part_where_the_model_says(todo, pick):
    home = Path(tempfile.mkdtemp())
    forest = Forest(home, todo)
    try:
        parent = parents(forest.store)
        heads = [(tape, tape.head(name)) for tape in forest.tapes for name in tape.refs().branches]
        for one, two in combinations(heads, 2):
            earlier = one[0].find_ancestor(one[1], pick % (one[1].header.n + 1))
            for a in (one, earlier):
                check_parting(parent, a, two)
    finally:
        forest.close()
        shutil.rmtree(home)


def check_parting(parent, one, two):
    parted = find_merge_base(read_path_to(*one), read_path_to(*two))
    a, b = (line_of(parent, head.entry) for _, head in (one, two))
    common = [x for x, y in zip(a, b, strict=False) if x == y]
    assert (parted.base and parted.base.entry) == (common[-1] if common else None)
    assert ids(parted.a) == a[len(common) :]
    assert ids(parted.b) == b[len(common) :]
    assert parted.broken == ()


ROW = re.compile(r"([ |/_*#o]*?)([0-9a-f]{8}) ")


def edges(rows):
    """Return child → parent as the lines of a drawing lead from one to the other."""
    marks = {at: ROW.match(row) for at, row in enumerate(rows)}
    names = {at: found[2] for at, found in marks.items() if found}
    lanes = [marks[at][1] if marks[at] else row for at, row in enumerate(rows)]
    return {
        name: names.get(_followed(lanes, at + 1, re.search(r"[*#o]", lanes[at]).start()))
        for at, name in names.items()
    }


def _followed(lanes, row, column):
    """Go down a line until the mark of an entry; return its row."""
    while row < len(lanes):
        line = lanes[row].ljust(column + 2)
        if column % 2 == 0:
            if line[column] in "*#o":
                return row
            if line[column] != "|":
                column -= 1
                assert line[column] == "/", lanes
                while column >= 2 and line[column - 2] == "_":
                    column -= 2
        elif column >= 2 and line[column - 2] == "/":
            column -= 2
        else:
            column -= 1
            continue
        row += 1
    return None


@SOME
@given(FORESTS)
def test_a_drawing_shows_every_committed_entry_once_and_leads_to_its_parent(todo):
    home = Path(tempfile.mkdtemp())
    forest = Forest(home, todo)
    try:
        parent = parents(forest.store)
        for tape in forest.tapes:
            rows = list(draw_tree(tape, EntryFilter()))
            listed = [found[2] for row in rows if (found := ROW.match(row))]
            there = committed(forest.store, tape)
            assert sorted(listed) == sorted(one[:8] for one in there)
            wanted = {one[:8]: (parent[one] or "")[:8] or None for one in there}
            assert edges(rows) == wanted
            undone = {f[2] for row in rows if (f := ROW.match(row)) and "o" in f[1]}
            heads = [tape.head(branch).entry for branch in tape.refs().branches]
            reached = {one for head in heads for one in line_of(parent, head)}
            assert undone == {one[:8] for one in there - reached}
    finally:
        forest.close()
        shutil.rmtree(home)


class TestLanes:
    def drawn(self, *todo):
        lanes, rows = GraphLanes(), []
        for stretch, parent in todo:
            column = lanes.begin(stretch)
            rows.append(lanes.draw_row(column, "*"))
            rows += lanes.end(column, parent)
        return ["".join(cell.char for cell in row).rstrip() for row in rows]

    def test_join_a_neighbour_in_one_row(self):
        assert self.drawn((1, 0), (2, 0), (0, None)) == ["*", "| *", "|/", "*"]

    def test_cross_the_lanes_between(self):
        assert self.drawn((1, 0), (2, 9), (3, 8), (4, 0)) == [
            *("*", "| *", "| | *", "| | | *", "| |_|/", "|/| |")
        ]

    def test_move_over_when_one_ends(self):
        assert self.drawn((1, None), (2, 0)) == ["*", "*"]
        assert self.drawn((1, 7), (2, 8), (7, None)) == ["*", "| *", "* |", " /"]
        assert self.drawn((1, 0), (2, 5), (3, 6), (5, 0)) == [
            *("*", "| *", "| | *", "| * |", "|/ /")
        ]


class TestAShape:
    def test_costs_the_phases_and_not_the_entries(self, tape, folder):
        """The lines between the first and the last of a phase are not looked at."""
        making.write(tape, *["x" * 9000] * 9)
        head = tape.head()
        file = folder / "phases/0001-main-start/entries.jsonl"
        lines = file.read_bytes().split(b"\n")
        lines[2:-2] = [b"?" * len(line) for line in lines[2:-2]]
        file.write_bytes(b"\n".join(lines))
        (node,) = read_graph(tape).nodes.values()
        assert (node.first.n, node.last.n, node.end) == (0, 9, head.end)

    def test_leaves_out_a_phase_that_no_branch_names(self, tape, folder):
        making.write(tape, "one")
        shutil.copytree(folder / "phases/0001-main-start", folder / "phases/0002-main")
        assert [key.phase for key in read_graph(tape).nodes] == ["0001-main-start"]

    def test_names_a_damaged_phase_and_continues(self, tape, folder):
        one, two = making.write(tape, "one", "two")
        for name, base in (("good", one), ("bad", two)):
            tape.fork(making.at(tape, base.id), name)
            making.write(tape, name, branch=name)
        (folder / "phases/0003-bad/entries.jsonl").write_bytes(b"?\n")
        tree = read_graph(tape)
        assert [key.phase for key in tree.nodes] == ["0001-main-start", "0002-good"]
        assert [head.branch for head in tree.heads] == ["main", "good"]
        assert [text.partition(":")[0] for text in tree.damage] == ["0003-bad", "branch bad"]

    def test_draws_what_grows_from_a_phase_that_is_gone(self, tape, folder, capsys):
        (one,) = making.write(tape, "one")
        tape.fork(making.at(tape, one.id), "b")
        making.write(tape, "two", branch="b")
        shutil.rmtree(folder / "phases/0001-main-start")
        assert len(list(draw_tree(tape, EntryFilter()))) == 2
        assert "its base cannot be read" in capsys.readouterr().err

    def test_says_when_the_origin_is_gone(self, store, tape, capsys):
        (one,) = making.write(tape, "one")
        with store.create(making.beginning("b"), origin=(tape, making.at(tape, one.id))) as child:
            shutil.rmtree(making.folder_of(store, tape))
        with store.open(child.id) as alone:
            assert len(list(draw_tree(alone, EntryFilter()))) == 1
        assert "cannot be read" in capsys.readouterr().err

    def test_yields_what_grows_before_what_it_grows_from(self, forest):
        made = forest(("say", 0, 0, 2), ("fork", 0, 0, 1), ("say", 0, 0, 2), ("say", 0, 1, 2))
        found = split_runs(read_graph(made.tapes[0]))
        order = list(order_newest_first(found))
        assert sorted(order) == list(range(len(found)))
        for at, number in enumerate(order):
            assert found[number].parent not in order[:at]


class TestAParting:
    def test_from_the_past_a_detached_tape_copied_is_found_by_ids(self, forest):
        made = forest(*[("say", 0, 0, 2)], ("child", 0, 0, 0), ("say", 1, 0, 0), ("say", 0, 0, 0))
        parent, child = made.tapes
        before = find_merge_base(
            read_path_to(child, child.head()), read_path_to(parent, parent.head())
        )
        detach(child)
        after = find_merge_base(
            read_path_to(child, child.head()), read_path_to(parent, parent.head())
        )
        assert after.base.entry == before.base.entry
        assert [ids(after.a), ids(after.b)] == [ids(before.a), ids(before.b)]
        assert after.base.phase == "0000-origin"

    def test_of_tapes_that_share_nothing_has_no_base(self, store, tape):
        with store.create(making.beginning("other")) as other:
            parted = find_merge_base(
                read_path_to(tape, tape.head()), read_path_to(other, other.head())
            )
        assert (parted.base, parted.broken) == (None, ())
        assert ids(parted.a) == [tape.head().entry]

    def test_of_a_path_whose_beginning_is_damaged_is_still_found(self, tape, folder):
        one, _ = making.write(tape, "one", "two")
        tape.fork(making.at(tape, one.id), "b")
        making.write(tape, "three", branch="b")
        base = making.at(tape, tape.head("b").entry)
        tape.fork(base, "c")
        making.write(tape, "four", branch="c")
        (folder / "phases/0001-main-start/entries.jsonl").unlink()
        b, c = (read_path_to(tape, tape.head(name)) for name in "bc")
        assert b.broken == c.broken == "phase 0001-main-start does not exist"
        parted = find_merge_base(b, c)
        assert parted.base == base._replace(branch="b")
        assert (len(ids(parted.a)), len(ids(parted.b))) == (0, 2)

    def test_of_unknown_size_says_why(self, tape, folder):
        one, _ = making.write(tape, "one", "two")
        for name in "bc":
            tape.fork(making.at(tape, one.id), name)
            making.write(tape, "three", branch=name)
        (folder / "phases/0001-main-start/entries.jsonl").unlink()
        parted = find_merge_base(*(read_path_to(tape, tape.head(name)) for name in "bc"))
        assert parted.base is None
        assert parted.broken == ("phase 0001-main-start does not exist",) * 2


def call(identity, name, path):
    return ToolCall(id=identity, name=name, args=arguments(path))


def arguments(path):
    """Return what an edit and a write both can be told."""
    return Raw(b'{"path":"%b","content":"x","oldText":"x","newText":"y"}' % path.encode())


class TestDeeds:
    def test_of_nothing_are_none(self):
        done = summarize_activity([])
        assert (done.entries, done.began, done.exchanges, done.cost) == (0, None, (), None)

    def test_tell_what_was_asked_and_answered(self, tape):
        with tape.writer() as writer:
            asked = writer.append(making.say("Do\n\nit  now"))
            writer.append(making.answer("c_1", text="I begin."))
            writer.append(making.result("c_1"))
            steered = writer.append(Context("user", "steering", making.say("Faster").content))
            writer.append(Context("user", "document", making.say("AGENTS.md").content))
            last = writer.append(making.answer(text="Done. " * 90))
        done = summarize_activity(making.entries(tape))
        assert done.exchanges[0].prompt == Utterance(asked.id, asked.time, "Do it now")
        assert done.exchanges[0].answer.text == "I begin."
        assert done.exchanges[1].prompt.entry == steered.id
        assert done.exchanges[1].answer == Utterance(last.id, last.time, ("Done. " * 90)[:200])
        assert (done.entries, done.ended) == (7, last.time)

    def test_count_tools_and_the_files_that_changed(self, tape):
        wish = (
            call("1", "edit", "a.py"),
            call("2", "edit", "./a.py"),
            call("3", "write", "b.py"),
            call("4", "write", "c.py"),
            call("5", "write", "d.py"),
            call("7", "read", "f.py"),
        )
        with tape.writer() as writer:
            writer.append(Assistant(wish))
            writer.append(ToolStart("5", "write", arguments("/tmp/e.py")))
            for identity in "1257":
                writer.append(ToolResult(identity, "x", (), is_error=False))
            writer.append(ToolResult("3", "write", (), is_error=True))
            writer.append(ToolResult("9", "bash", ()))
            writer.append(Meta(cwd="/moved"))
            writer.append(Assistant((call("6", "write", "b.py"),)))
            writer.append(ToolResult("6", "write", ()))
            writer.append(Error("Aborted", "x"))
        done = summarize_activity(making.entries(tape))
        assert done.tools == (
            ToolUse("write", 4, 1, 1),
            ToolUse("edit", 2, 0, 0),
            ToolUse("bash", 1, 0, 0),
            ToolUse("read", 1, 0, 0),
        )
        assert done.files == (
            FileUse("/moved/b.py", {"write": 1}),
            FileUse("/src/a.py", {"edit": 2}),
            FileUse("/tmp/e.py", {"write": 1}),
        )
        assert (done.errors, done.anchors) == (1, 0)

    def test_sum_up_models_and_leave_an_unknown_cost_unknown(self, tape):
        def said(model, cost):
            price = None if cost is None else Cost("USD", cost)
            return Assistant((), "p", model=model, usage=Usage(1, 2, total=3), cost=price)

        with tape.writer() as writer:
            for model, cost in (("a", 0.5), ("b", None), ("a", None)):
                writer.append(said(model, cost))
            writer.append(SideUsage("summary", "p", "b", Usage(1, 0, total=1)))
        done = summarize_activity(making.entries(tape))
        assert done.models == (
            ModelUse("p/a", 2, Usage(2, 4, total=6), Cost("USD", 0.5)),
            ModelUse("p/b", 2, Usage(2, 2, total=4), None),
        )
        assert (done.usage.total, done.cost) == (10, Cost("USD", 0.5))

    def test_begin_in_the_folder_they_are_given(self, tape):
        with tape.writer() as writer:
            writer.append(Assistant((call("1", "write", "../b.py"),)))
            writer.append(ToolResult("1", "write", ()))
        found = summarize_activity(making.entries(tape)[1:], "/work/here")
        assert found.files == (FileUse("/work/b.py", {"write": 1}),)
        assert found.exchanges == ()

    def test_answer_calls_that_were_made_before(self, tape):
        with tape.writer() as writer:
            calls = [call(one, "write", f"{one}.py") for one in "123"]
            writer.append(Assistant(tuple(calls)))
            writer.append(ToolResult("1", "write", ()))
            writer.append(ToolStart("2", "write", arguments("other.py")))
            first = writer.append(ToolResult("2", "write", ()))
        entries = making.entries(tape)
        done = summarize_activity([first], "/src", entries[1:-1])
        assert done.tools == (ToolUse("write", 1, 0, 0),)
        assert done.files == (FileUse("/src/other.py", {"write": 1}),)

    def test_an_answer_without_a_prompt_is_kept(self, tape):
        with tape.writer() as writer:
            entry = writer.append(making.answer(text="Hello"))
        assert summarize_activity([entry]).exchanges == (
            Exchange(None, Utterance(entry.id, entry.time, "Hello")),
        )
