"""Random histories against a model that is only lists of words, judged by the second reader."""

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.context.repair import build_messages, repair
from tape.context.view import Target, view
from tape.errors import UsageError
from tape.model.entries import Anchor, KeptRange
from tape.store.maintenance.upkeep import detach, redact
from tape.store.refs import Pin
from tests.tape import making, reader
from tests.tape.making import BUDGET

pytestmark = pytest.mark.slow

LONG = "x" * 70_000
WORDS = st.sampled_from(["a", "b\u2028", "", "LONG", "\ud800"])
PICK = st.integers(0, 10**6)


class Said(NamedTuple):
    """A prompt: its entry, its words."""

    entry: str
    words: str


def without_data(files, entry):
    """Return the bytes of a tape's files as they are once an entry was redacted."""
    start = b'{"id":"%b"' % entry.encode()
    return {
        name: b"\n".join(_gone(line) if line.startswith(start) else line for line in lines)
        for name, lines in ((name, data.split(b"\n")) for name, data in files.items())
    }


def _gone(line):
    head, marker, data = line.partition(b',"data":')
    return head + marker + b"null".ljust(len(data) - 1) + b"}"


SOMEBODY = Target("https://one", "api", "model")


class Histories(RuleBasedStateMachine):
    """One store; `model` is tape → branch → the prompts on its path."""

    def __init__(self):
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        ticks = iter(range(10**9))
        # The clock goes back every seventh time.
        self.store = making.store_in(
            self.home, lambda: making.DAY + (tick := next(ticks)) - 20 * (tick % 7 == 0)
        )
        self.model: dict[str, dict[str, list[Said]]] = {}
        self.current: dict[str, str] = {}
        self.tapes = {}
        self.bytes: dict[Path, dict[str, bytes]] = {}
        self.origin: dict[str, str | None] = {}
        self.past: dict[str, list[Said]] = {}
        self.own: dict[str, set[str]] = {}
        self.redacted: set[tuple[str, str]] = set()

    def teardown(self):
        for tape in self.tapes.values():
            tape.close()
        shutil.rmtree(self.home)

    @initialize()
    def begin(self):
        self.adopt(self.store.create(making.beginning("first")), [], None)

    def adopt(self, tape, past, origin):
        self.tapes[tape.id] = tape
        self.origin[tape.id], self.past[tape.id], self.own[tape.id] = origin, list(past), set()
        self.model[tape.id] = {"main": past}
        self.current[tape.id] = "main"

    def any_tape(self, pick):
        return self.tapes[sorted(self.tapes)[pick % len(self.tapes)]]

    def any_branch(self, tape, pick):
        return sorted(self.model[tape.id])[pick % len(self.model[tape.id])]

    def say(self, tape, writer, words):
        words = words.replace("LONG", LONG)
        entry = writer.append(making.say(words))
        self.own[tape.id].add(entry.id)
        return Said(entry.id, words.replace("\ud800", "\ufffd"))

    def is_redacted(self, tape, entry):
        """Tell whether a prompt on a path of a tape has no data where that path reads it."""
        while entry not in self.own[tape]:
            tape = self.origin[tape]
        return (tape, entry) in self.redacted

    def words(self, tape, branch):
        said = self.model[tape][branch]
        return [one.words for one in said if not self.is_redacted(tape, one.entry)]

    @rule(pick=PICK, other=PICK, words=st.lists(WORDS, min_size=1, max_size=3))
    def append(self, pick, other, words):
        tape = self.any_tape(pick)
        branch = self.any_branch(tape, other)
        with tape.writer(branch) as writer:
            self.model[tape.id][branch] += [self.say(tape, writer, one) for one in words]

    @rule(pick=PICK, words=WORDS)
    def two_at_once(self, pick, words):
        tape = self.any_tape(pick)
        branches, current = self.model[tape.id], self.current[tape.id]
        with tape.writer() as first, tape.writer() as second:
            assert (first.branch, second.instead_of) == (current, current)
            branches[second.branch] = [*branches[current], self.say(tape, second, words)]
            branches[current].append(self.say(tape, first, words))
            branches[second.branch].append(self.say(tape, second, words))

    def place(self, tape, branch, pick):
        """Return how many prompts lie before a place of a branch in its own tape, and the place."""
        said = self.model[tape.id][branch]
        own = [k for k, one in enumerate(said) if one.entry in self.own[tape.id]]
        if not own:
            return len(said), tape.head(branch)
        k = own[pick % len(own)]
        return k + 1, making.at(tape, said[k].entry)

    @rule(pick=PICK, other=PICK, depth=PICK, switch=st.booleans())
    def fork(self, pick, other, depth, switch):
        tape = self.any_tape(pick)
        branch = self.any_branch(tape, other)
        size, base = self.place(tape, branch, depth)
        name = tape.fork(base, switch=switch)
        self.model[tape.id][name] = self.model[tape.id][branch][:size]
        if switch:
            self.current[tape.id] = name

    @precondition(lambda self: len(self.tapes) < 4)
    @rule(pick=PICK, other=PICK, depth=PICK)
    def fork_into_a_new_tape(self, pick, other, depth):
        tape = self.any_tape(pick)
        branch = self.any_branch(tape, other)
        size, base = self.place(tape, branch, depth)
        made = self.store.create(making.beginning("child"), origin=(tape, base))
        self.adopt(made, self.model[tape.id][branch][:size], tape.id)

    @rule(pick=PICK, other=PICK, depth=PICK)
    def go_back(self, pick, other, depth):
        tape = self.any_tape(pick)
        branch = self.any_branch(tape, other)
        size, base = self.place(tape, branch, depth)
        with tape.journal.open_moves() as moves:
            moves.branch(branch, base.phase, Pin(base.offset, base.entry), "undo")
        del self.model[tape.id][branch][size:]

    @rule(pick=PICK, other=PICK, depth=PICK, words=WORDS)
    def rewind_and_go_on(self, pick, other, depth, words):
        tape = self.any_tape(pick)
        branch = self.any_branch(tape, other)
        size, base = self.place(tape, branch, depth)
        with tape.writer(branch) as writer:
            writer.rewind(base, "rewind")
            del self.model[tape.id][branch][size:]
            self.model[tape.id][branch].append(self.say(tape, writer, words))

    def compact(self, tape, writer, branch):
        head = tape.head(branch)
        kept = KeptRange(head.phase, head.offset, 1, head.entry, head.entry)
        writer.anchor(Anchor(kind="compaction", summary="s", kept=(kept,)))

    @rule(pick=PICK, other=PICK)
    def anchor(self, pick, other):
        tape = self.any_tape(pick)
        branch = self.any_branch(tape, other)
        with tape.writer(branch) as writer:
            self.compact(tape, writer, branch)

    def seen(self, tape, branch):
        """Return the view of a branch, and check that what its anchor keeps is there."""
        path = tape.entries(tape.head(branch), to_anchor=True)
        anchors = [entry.data for entry in path if isinstance(entry.data, Anchor)]
        kept = tape.kept(anchors[-1]) if anchors else []
        assert [one.id for one in kept] == [run.first for a in anchors[-1:] for run in a.kept]
        return view(path, kept)

    @rule(pick=PICK, other=PICK)
    def compact_and_undo(self, pick, other):
        tape = self.any_tape(pick)
        branch = self.any_branch(tape, other)
        before, head = self.seen(tape, branch), tape.head(branch)
        with tape.writer(branch) as writer:
            self.compact(tape, writer, branch)
            assert self.seen(tape, branch) != before
            writer.rewind(head, "undo")
        assert self.seen(tape, branch) == before

    @precondition(lambda self: any(self.own.values()))
    @rule(pick=PICK, other=PICK)
    def redact(self, pick, other):
        own = [(tape, entry) for tape in sorted(self.own) for entry in sorted(self.own[tape])]
        tape, entry = self.tapes[own[pick % len(own)][0]], own[pick % len(own)][1]
        folder = making.folder_of(self.store, tape)
        before = without_data(self.bytes[folder], entry)
        done = redact(tape, [entry[: 8 + other % 30]], "why")
        assert done.targets == (entry,)
        assert bool(done.entry) == ((tape.id, entry) not in self.redacted)
        self.redacted.add((tape.id, entry))
        for digest in done.blobs:
            del before[f"blobs/{digest[:2]}/{digest}"]
        assert not {digest.encode() for digest in done.blobs} & {
            digest for data in before.values() for digest in data.split(b'"')
        }
        self.bytes[folder] = before

    @precondition(lambda self: any(self.origin.values()))
    @rule(pick=PICK)
    def detach(self, pick):
        children = sorted(tape for tape, origin in self.origin.items() if origin)
        tape = self.tapes[children[pick % len(children)]]
        past = {one.entry for one in self.past[tape.id]}
        before = [tape.entries(tape.head(branch)) for branch in tape.refs().branches]
        gone = {(tape.id, entry) for entry in past if self.is_redacted(tape.id, entry)}
        detach(tape)
        if not gone:
            branches = tape.refs().branches
            assert [tape.entries(tape.head(branch)) for branch in branches] == before
        self.redacted |= gone
        self.own[tape.id] |= past
        self.origin[tape.id] = None

    @rule(pick=PICK)
    def remove_and_restore(self, pick):
        tape = self.any_tape(pick)
        if tape.id in self.origin.values():
            with pytest.raises(UsageError):
                self.store.remove(tape)
            return
        name = self.store.remove(tape)
        assert [one.id for one in self.store.trash()] == [tape.id]
        for other in self.tapes.keys() - {tape.id}:
            with self.store.open(other) as alone:
                assert making.texts(alone, "main") == self.words(other, "main")
        assert self.store.restore(name) == name

    @rule(pick=PICK, other=PICK)
    def switch(self, pick, other):
        tape = self.any_tape(pick)
        self.current[tape.id] = self.any_branch(tape, other)
        tape.switch(self.current[tape.id])

    @rule(pick=PICK)
    def reopen(self, pick):
        tape = self.any_tape(pick)
        tape.close()
        self.tapes[tape.id] = self.store.open(tape.id)

    @rule(pick=PICK, other=PICK, tail=st.binary(min_size=1, max_size=30))
    def crash_while_appending(self, pick, other, tail):
        tape = self.any_tape(pick)
        head = tape.head(self.any_branch(tape, other))
        if head.pinned:
            return
        file = making.folder_of(self.store, tape) / "phases" / head.phase / "entries.jsonl"
        with file.open("ab") as opened:
            opened.write(tail)
        with tape.writer(head.branch) as writer:
            assert writer.torn is not None

    @invariant()
    def the_tapes_say_what_the_model_says(self):
        for tape in self.tapes.values():
            refs = tape.refs()
            found = {branch: making.texts(tape, branch) for branch in refs.branches}
            assert found == {branch: self.words(tape.id, branch) for branch in self.model[tape.id]}
            assert refs.current == self.current[tape.id]

    @invariant()
    def reading_run_by_run_gives_the_same_messages(self):
        for tape in self.tapes.values():
            for branch in tape.refs().branches:
                seen, repaired = build_messages(tape, tape.head(branch), SOMEBODY)
                path = tape.entries(tape.head(branch), to_anchor=True)
                anchors = [one.data for one in path if isinstance(one.data, Anchor)]
                assert seen == view(path, tape.kept(anchors[-1]) if anchors else ())
                assert repaired == repair(seen, SOMEBODY)

    @invariant()
    def the_second_reader_agrees_and_old_bytes_never_change(self):
        for tape in self.tapes.values():
            folder = making.folder_of(self.store, tape)
            assert reader.faults(folder) == []
            assert list(verify(tape, Counts())) == []
            assert reader.heads(folder) == {b: tape.head(b).entry for b in tape.refs().branches}
            before, after = self.bytes.get(folder, {}), reader.files(folder)
            assert all(after[name].startswith(data) for name, data in before.items())
            self.bytes[folder] = after


Histories.TestCase.settings = settings(
    max_examples=40 * BUDGET, stateful_step_count=15, deadline=None
)
TestHistories = pytest.mark.slow(Histories.TestCase)
