"""Random histories, exported and imported: the same bytes, or the same words without secrets."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import rule

from tests.properties import test_histories as histories
from tests.tape import making, moving
from tests.tape.making import BUDGET

SECRET = "ghp_" + "a1" * 18


class RoundTrips(histories.Histories):
    """The store of the histories, and for each round trip another one."""

    @rule(pick=histories.PICK, other=histories.PICK)
    def copy(self, pick, other):
        """A tape as a whole is the same there; so is a path of it as far as it goes."""
        tape = self.any_tape(pick)
        data = moving.exported(tape)
        branch = self.any_branch(tape, other)
        path = [moving.exported(tape, tape.head(branch)), list(tape.lines(tape.head(branch)))]
        folder = making.folder_of(self.store, tape)
        self.into_another(tape.id, data, lambda copy: self.same(folder, copy))
        self.into_another(tape.id, path[0], lambda copy: self.ends(copy, tape.id, path[1]))
        assert moving.imported(self.store, data).added == 0
        assert moving.imported(self.store, path[0]).added == 0

    @rule(pick=histories.PICK, other=histories.PICK)
    def masked(self, pick, other):
        """A tape with a secret is another one that says the same but for the secret."""
        tape = self.any_tape(pick)
        branch = self.any_branch(tape, other)
        with tape.writer(branch) as writer:
            self.model[tape.id][branch].append(self.say(tape, writer, SECRET))
        said = {name: self.hidden(making.texts(tape, name)) for name in tape.refs().branches}
        data = moving.exported(tape, redact=True)
        assert SECRET.encode() not in data

        def check(folder):
            store = making.store_in(folder.parent.parent)
            with store.open_folder(folder.name) as copy:
                assert {name: making.texts(copy, name) for name in copy.refs().branches} == said
                assert copy.id != tape.id

        self.into_another(None, data, check)

    @staticmethod
    def hidden(texts):
        return ["[redacted:github]" if text == SECRET else text for text in texts]

    def into_another(self, identity, data, check):
        home = Path(tempfile.mkdtemp())
        try:
            store = making.store_in(home)
            done = moving.imported(store, data)
            assert identity in (None, done.id)
            moving.whole(store, done.id)
            assert moving.imported(store, data).added == 0
            check(Path(done.path))
        finally:
            shutil.rmtree(home)

    def same(self, before, after):
        """Compare what stands in both; a past that was copied, and its blobs, come on top."""
        old, new = moving.history(before), moving.history(after)
        gone = old.keys() - new.keys()
        assert all(name.startswith("blobs/") for name in gone), gone
        extra = new.keys() - old.keys()
        assert all(name.startswith(("blobs/", "phases/0000-origin/")) for name in extra), extra
        for name in old.keys() & new.keys():
            assert new[name].startswith(old[name]), name
            assert new[name] == old[name] or b'"redact"' in new[name][len(old[name]) :], name

    def ends(self, folder, identity, lines):
        store = making.store_in(folder.parent.parent)
        with store.open(identity) as copy:
            found = list(copy.lines(copy.head()))
        assert found[: len(lines)] == lines
        assert all(b'"type":"redact"' in line for line in found[len(lines) :])


RoundTrips.TestCase.settings = settings(
    max_examples=12 * BUDGET, stateful_step_count=12, deadline=None
)
TestRoundTrips = pytest.mark.slow(pytest.mark.slow(RoundTrips.TestCase))
