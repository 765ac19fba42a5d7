"""Random histories against a model that is only lists of words, judged by the second reader."""

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tape.refs import Pin
from tests.tape import making, reader
from tests.tape.making import BUDGET

LONG = "x" * 70_000
WORDS = st.sampled_from(["a", "b\u2028", "", "LONG", "\ud800"])
PICK = st.integers(0, 10**6)


class Said(NamedTuple):
    """A prompt: which tape holds it, its entry, its words."""

    tape: str
    entry: str
    words: str


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

    def teardown(self):
        for tape in self.tapes.values():
            tape.close()
        shutil.rmtree(self.home)

    @initialize()
    def begin(self):
        self.adopt(self.store.create(making.beginning("first")), [])

    def adopt(self, tape, past):
        self.tapes[tape.id] = tape
        self.model[tape.id] = {"main": past}
        self.current[tape.id] = "main"

    def any_tape(self, pick):
        return self.tapes[sorted(self.tapes)[pick % len(self.tapes)]]

    def any_branch(self, tape, pick):
        return sorted(self.model[tape.id])[pick % len(self.model[tape.id])]

    def say(self, tape, writer, words):
        words = words.replace("LONG", LONG)
        entry = writer.append(making.say(words))
        return Said(tape.id, entry.id, words.replace("\ud800", "\ufffd"))

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
        own = [k for k, one in enumerate(said) if one.tape == tape.id]
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
        self.adopt(made, self.model[tape.id][branch][:size])

    @rule(pick=PICK, other=PICK, depth=PICK)
    def go_back(self, pick, other, depth):
        tape = self.any_tape(pick)
        branch = self.any_branch(tape, other)
        size, base = self.place(tape, branch, depth)
        with tape.journal.moving() as moves:
            moves.branch(branch, base.phase, Pin(base.offset, base.entry), "undo")
        del self.model[tape.id][branch][size:]

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
            said = self.model[tape.id].items()
            assert found == {branch: [one.words for one in path] for branch, path in said}
            assert refs.current == self.current[tape.id]

    @invariant()
    def the_second_reader_agrees_and_old_bytes_never_change(self):
        for tape in self.tapes.values():
            folder = making.folder_of(self.store, tape)
            assert reader.faults(folder) == []
            assert reader.heads(folder) == {b: tape.head(b).entry for b in tape.refs().branches}
            before, after = self.bytes.get(folder, {}), reader.files(folder)
            assert all(after[name].startswith(data) for name, data in before.items())
            self.bytes[folder] = after


Histories.TestCase.settings = settings(
    max_examples=40 * BUDGET, stateful_step_count=15, deadline=None
)
TestHistories = pytest.mark.slow(Histories.TestCase)
