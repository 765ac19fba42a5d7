"""Whatever was merged into whatever, nothing leaves the view, and undoing gives it back."""

import json
import re
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.cli.graph_view import EntryFilter, draw_tree
from tape.context.repair import IncrementalRepair, build_messages, repair
from tape.context.view import Target
from tape.formats.registry import FORMATS
from tape.history.graph import order_newest_first, read_graph, split_runs
from tape.history.merge_plan import build_merge_anchor, plan_merge
from tape.history.merge_summary import (
    collect_merge_facts,
    join_merge_summaries,
    read_view_summary,
    summarize_branch,
)
from tape.history.replay import replay_path
from tape.model.entries import Anchor, Summary, select_tool_calls
from tape.sessions.arrays import export_array
from tests.tape import making, reader
from tests.tape.making import BUDGET

PICK = st.integers(min_value=0, max_value=40)
STEPS = st.one_of(
    st.tuples(st.just("say"), PICK, PICK),
    st.tuples(st.just("call"), PICK, PICK),
    st.tuples(st.just("call"), PICK, PICK),
    st.tuples(st.just("fork"), PICK, PICK),
    st.tuples(st.just("fork"), PICK, PICK),
    st.tuples(st.just("compact"), PICK, PICK),
    st.tuples(st.just("merge"), PICK, PICK),
    st.tuples(st.just("merge"), PICK, PICK),
    st.tuples(st.just("merge and undo"), PICK, PICK),
)


class Tree:
    """A tape with branches that grow, part and are merged."""

    def __init__(self, home):
        self.store = making.store_in(home, iter(range(10**12, 10**13, 10)).__next__)
        self.tape = self.store.create(making.beginning("tree"))
        self.folder = making.folder_of(self.store, self.tape)
        self.calls = 0

    def branch(self, number):
        names = sorted(self.tape.refs().branches)
        return names[number % len(names)]

    def say(self, one, other):
        making.write(self.tape, f"words {one} {other}", branch=self.branch(one))

    def call(self, one, other):
        """Record an answer with two calls, and the results of none, one or both."""
        names = f"c_{self.calls}_0", f"c_{self.calls}_1"
        self.calls += 1
        with self.tape.writer(self.branch(one)) as writer:
            writer.append(making.answer(*names, text=f"calling {other}"))
            for name in names[: other % 3]:
                writer.append(making.result(name))

    def fork(self, one, other):
        head = self.tape.head(self.branch(one))
        back = other % (head.header.n + 1)
        self.tape.fork(self.tape.find_ancestor(head, back).head)

    def compact(self, one, other):
        branch = self.branch(one)
        kept = self.tape.newest(self.tape.head(branch), other % 3)
        with self.tape.writer(branch) as writer:
            summary = Summary(goal=f"goal {other}", requests=("first", "second"))
            writer.anchor(Anchor(kind="compaction", summary=summary, kept=kept))

    def seen(self, branch):
        return build_messages(self.tape, self.tape.head(branch), Target("", "", ""))

    def merge(self, one, other):
        """Merge a branch into another one, with a few of all entries as picks."""
        into = self.branch(one)
        ids = [line.entry["id"] for lines in reader.phases(self.folder).values() for line in lines]
        picks = [making.at(self.tape, ids[(other + at * 7) % len(ids)]) for at in range(other % 3)]
        before = self.seen(into)
        with self.tape.writer(into) as writer:
            head = self.tape.head(self.branch(other))
            plan = plan_merge(self.tape, self.tape.head(into), head, picks)
            if not plan.has_news:
                event("already there")
                return None
            facts, earlier = collect_merge_facts(plan), read_view_summary(self.tape, plan)
            summary = join_merge_summaries(earlier, summarize_branch(facts), plan, facts)
            entry = writer.anchor(build_merge_anchor(self.tape, plan, summary, reason="merged"))
        event("merged, with picks" if plan.picked else "merged")
        self.check_merge(into, entry, before, plan)
        return into, before, plan

    def check_merge(self, into, entry, before, plan):
        after = self.seen(into)
        was = [one.id for one in (*before.view.kept, *before.view.entries)]
        now = [one.id for one in after.view.kept]
        assert now[: len(was)] == was
        assert len(now) == len(set(now)) == len(was) + plan.picked
        assert not after.view.entries
        for line in (before.view.summary or "").split("\n"):
            assert line in after.view.summary
        gone = set(plan.picks) - set(now)  # its call is in view, with results of its own
        assert all(any(note.startswith(pick[:8]) for note in plan.notes) for pick in gone)
        _, entries = reader.view(self.folder, entry.id)
        assert [one["id"] for one in entries] == now
        assert plan_merge(self.tape, self.tape.head(into), plan.other).since == ()

    def merge_and_undo(self, one, other):
        merged = self.merge(one, other)
        if merged is not None:
            into, before, plan = merged
            with self.tape.writer(into) as writer:
                writer.rewind(plan.into, "undo")
            assert self.seen(into) == before
            assert len(self.tape.refs().branches[into]) > 1
            assert self.tape.head(into, moves_ago=1).phase.endswith("-merge")

    def check_graph(self):
        """Check that every run is drawn once, before what it was forked from and what it merged."""
        runs = split_runs(read_graph(self.tape))
        order = list(order_newest_first(runs))
        assert sorted(order) == list(range(len(runs)))
        row = {number: at for at, number in enumerate(order)}
        for number, run in enumerate(runs):
            assert all(
                row[number] < row[one] for one in (run.parent, run.merged) if one is not None
            )
        drawn = [
            one for one in draw_tree(self.tape, EntryFilter()) if re.search("[0-9a-f]{8}", one)
        ]
        assert len(drawn) == sum(map(len, reader.phases(self.folder).values()))
        assert not drawn[-1].startswith("|")

    def check(self):
        self.check_graph()
        assert reader.faults(self.folder) == []
        assert list(verify(self.tape, Counts())) == []
        for branch in self.tape.refs().branches:
            head = self.tape.head(branch)
            assert replay_path(self.tape, head).differences == ()
            seen = build_messages(self.tape, head, Target("", "", "")).view
            for name, form in FORMATS.items():
                check_repair(seen, Target("", form.api, ""))
                array = export_array(self.tape, head, name, redact=False, skipped=pytest.fail)
                assert form.check(json.loads(array.array)) == []


def check_repair(seen, target):
    """Check that each call has its result right after it, and that repairing again is the same."""
    found = repair(seen, target)
    messages = [*found.messages]
    while messages:
        message = messages.pop(0)
        assert message.role != "tool"
        for call in select_tool_calls(message.content):
            assert messages.pop(0).call_id == call.id
    again = IncrementalRepair(target, seen.summary)
    again.read((*seen.kept, *seen.entries))
    assert again.finish_repair() == found


@pytest.mark.slow
@settings(max_examples=60 * BUDGET, deadline=None)
@given(st.lists(STEPS, min_size=4, max_size=14))
def test_a_merge_adds_to_a_view_and_its_undo_takes_nothing_else(steps):
    home = Path(tempfile.mkdtemp())
    tree = Tree(home)
    try:
        with tree.tape:
            making.write(tree.tape, "first")
            tree.fork(0, 0)
            tree.call(0, 2)
            tree.call(1, 1)
            for what, one, other in steps:
                getattr(tree, what.replace(" ", "_"))(one, other)
            tree.check()
    finally:
        shutil.rmtree(home)
