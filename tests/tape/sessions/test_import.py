"""Sessions of other agents become tapes, and the same tapes again when they have grown."""

from __future__ import annotations

import fcntl
import json
import os
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.formats.sessions.steps import NEWEST, ROOT, SourceSession, SourceStep
from tape.model.entries import Anchor, Assistant, Text, ToolResult, User, join_texts
from tape.sessions.import_ import import_session
from tape.sessions.sources import SessionFile, open_session_file
from tape.store.maintenance.upkeep import redact
from tape.store.store import Beginning, Store
from tests.tape.formats.sessions.lines import ClaudeFile, call, text

CORPUS = Path(__file__).parents[4] / "shared/corpus/sessions"
HERE = Beginning("/here", "test/1")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store", durable=False)


def make_session(*steps, **more):
    return SourceSession("claude", "test", "s-1", lambda _: iter(steps), **more)


def make_step(identity, parent, words=None):
    return SourceStep(identity, parent, 1_000_000, (User((Text(words or f"says {identity}"),)),))


def bring(store, session):
    done, *_ = import_session(store, session, HERE, "/file.jsonl", "0" * 64)
    with store.open(done.id) as tape:
        assert [*verify(tape, Counts())] == []
    return done


def read_branches(store, done):
    """Return the words of the prompts on each branch, and the current branch."""
    with store.open(done.id) as tape:
        found = {
            branch: [
                join_texts(entry.data.content)
                for entry in tape.entries(tape.head(branch))
                if isinstance(entry.data, User)
            ]
            for branch in tape.refs().branches
        }
        return found, tape.refs().current


@pytest.mark.skipif(hasattr(fcntl, "F_FULLFSYNC"), reason="files are synced by fcntl there")
def test_all_of_a_new_tape_is_synced_before_it_has_its_name(tmp_path, monkeypatch):
    """It is built without syncs, because a crash removes what has no name yet."""
    synced: set[int] = set()
    placed: list[set[int]] = []
    sync, sync_data, rename = os.fsync, os.fdatasync, os.rename

    def note_sync(call, fd):
        call(fd)
        synced.add(os.fstat(fd).st_ino)

    def note_rename(source, target, **folders):
        if not str(source).startswith(".new-"):
            placed.append(set(synced))
        rename(source, target, **folders)

    monkeypatch.setattr(os, "fsync", partial(note_sync, sync))
    monkeypatch.setattr(os, "fdatasync", partial(note_sync, sync_data))
    monkeypatch.setattr(os, "rename", note_rename)
    file = ClaudeFile()
    file.say("u1", None, "x" * 40_000)
    path = tmp_path / "session.jsonl"
    path.write_bytes(file.data)
    session, digest = open_session_file(SessionFile(path))
    (done,) = import_session(Store(tmp_path / "store"), session, HERE, str(path), digest)
    inodes = {one.stat().st_ino: one for one in [Path(done.path), *Path(done.path).rglob("*")]}
    assert [inodes[one] for one in inodes.keys() - placed[-1]] == []
    assert len(inodes) > 4


class TestGrowth:
    def test_the_same_session_again_adds_nothing(self, store):
        steps = make_step("1", ROOT), make_step("2", "1"), make_step("3", "1")
        first = bring(store, make_session(*steps))
        before = {path: path.read_bytes() for path in Path(first.path).rglob("*") if path.is_file()}
        again = bring(store, make_session(*steps))
        after = {path: path.read_bytes() for path in Path(first.path).rglob("*") if path.is_file()}
        assert (first.added, again.added) == (4, 0)
        assert after == before

    def test_what_is_new_is_added_to_the_same_branch(self, store):
        bring(store, make_session(make_step("1", ROOT), make_step("2", NEWEST)))
        steps = make_step("1", ROOT), make_step("2", NEWEST), make_step("3", NEWEST)
        done = bring(store, make_session(*steps))
        assert done.added == 1
        assert read_branches(store, done) == ({"main": ["says 1", "says 2", "says 3"]}, "main")

    def test_a_step_that_follows_an_earlier_one_begins_a_branch(self, store):
        bring(store, make_session(make_step("1", ROOT), make_step("2", "1")))
        done = bring(
            store, make_session(make_step("1", ROOT), make_step("2", "1"), make_step("3", "1"))
        )
        branches, current = read_branches(store, done)
        assert branches == {"main": ["says 1", "says 2"], "fork-1": ["says 1", "says 3"]}
        assert current == "fork-1"

    def test_two_equal_prompts_after_one_step_stay_two(self, store):
        steps = (
            *(make_step("1", ROOT), make_step("2", "1", "again"), make_step("a", "2")),
            *(make_step("3", "1", "again"), make_step("b", "3")),
        )
        first = bring(store, make_session(*steps))
        assert bring(store, make_session(*steps)).added == 0
        branches, _ = read_branches(store, first)
        assert [*branches.values()] == [
            ["says 1", "again", "says a"],
            ["says 1", "again", "says b"],
        ]

    def test_what_somebody_recorded_after_it_stays_theirs(self, store):
        done = bring(store, make_session(make_step("1", ROOT)))
        with store.open(done.id) as tape, tape.writer() as writer:
            writer.append(User((Text("mine"),)))
        done = bring(store, make_session(make_step("1", ROOT), make_step("2", "1")))
        branches, current = read_branches(store, done)
        assert branches == {"main": ["says 1", "mine"], "fork-1": ["says 1", "says 2"]}
        assert current == "fork-1"

    def test_a_branch_that_is_being_written_is_left_alone(self, store):
        done = bring(store, make_session(make_step("1", ROOT)))
        with store.open(done.id) as tape, tape.writer():
            again = bring(store, make_session(make_step("1", ROOT), make_step("2", "1")))
        branches, _ = read_branches(store, again)
        assert branches == {"main": ["says 1"], "fork-1": ["says 1", "says 2"]}

    def test_an_answer_that_had_not_ended_is_replaced_by_the_whole(self, store):
        part = Assistant((Text("one"),), response_id="m")
        whole = Assistant((Text("one"), Text("two")), response_id="m")
        prompt = make_step("1", ROOT)
        bring(store, make_session(prompt, SourceStep("2", "1", None, (part,))))
        done = bring(store, make_session(prompt, SourceStep("2", "1", None, (whole,))))
        with store.open(done.id) as tape:
            assert [*tape.refs().branches] == ["main"]
            answers = [
                join_texts(entry.data.content)
                for entry in tape.entries(tape.head())
                if isinstance(entry.data, Assistant)
            ]
        assert answers == ["onetwo"]

    def test_a_redacted_prompt_does_not_come_back(self, store):
        steps = make_step("1", ROOT, "my secret"), make_step("2", "1")
        done = bring(store, make_session(*steps))
        with store.open(done.id) as tape:
            entry = next(one for one in tape.entries(tape.head()) if one.type == "user")
            redact(tape, [entry.id], "a secret")
        assert bring(store, make_session(*steps)).added == 0
        assert b"my secret" not in b"".join(
            path.read_bytes() for path in Path(done.path).rglob("*") if path.is_file()
        )

    @given(cut=st.integers(0, 8), parents=st.lists(st.integers(0, 7), min_size=8, max_size=8))
    def test_any_tree_gives_the_same_paths_in_one_piece_and_in_two(
        self, tmp_path_factory, cut, parents
    ):
        steps = [
            make_step(str(n), str(min(parent, n - 1)) if n else ROOT)
            for n, parent in enumerate(parents)
        ]
        paths = []
        for pieces in ((steps,), (steps[:cut], steps)):
            store = Store(tmp_path_factory.mktemp("store"), durable=False)
            for piece in pieces:
                done = bring(store, make_session(*piece))
            branches, current = read_branches(store, done)
            paths.append(({tuple(path) for path in branches.values()}, branches[current]))
        assert paths[0][1] == paths[1][1]
        assert paths[0][0] <= paths[1][0]

    def test_it_says_where_it_comes_from(self, store):
        done = bring(store, make_session(make_step("1", ROOT), cwd="/src", title="A title"))
        assert (done.title, done.path.endswith(f"a-title-{done.id[:8]}")) == ("A title", True)
        with store.open(done.id) as tape:
            start = tape.entries(tape.head())[0].data
        assert start.cwd == "/src"
        assert (start.imported.tool, start.imported.session) == ("claude", "s-1")

    def test_an_anchor_keeps_what_the_step_says(self, store):
        anchor = Anchor(kind="compaction", summary="short")
        steps = (
            *(make_step("1", ROOT), make_step("2", "1"), make_step("3", "2")),
            SourceStep("4", "3", None, (anchor,), "3"),
            make_step("5", "4"),
        )
        done = bring(store, make_session(*steps))
        with store.open(done.id) as tape:
            made = next(
                one.data for one in tape.entries(tape.head()) if isinstance(one.data, Anchor)
            )
            kept = [join_texts(one.data.content) for one in tape.kept(made)]
        assert (made.summary, kept, made.covers.count) == ("short", ["says 3"], 3)
        assert bring(store, make_session(*steps)).added == 0


class TestClaudeFileThatGrows:
    def test_cut_after_every_line_it_gives_the_same_conversation(self, tmp_path, store):
        file = ClaudeFile()
        file.say("u1", None, "list files")
        file.answer("a1", "u1", {"type": "thinking", "thinking": "hm"}, message="m1")
        file.answer("a2", "a1", text("Listing."), message="m1")
        file.answer("a3", "a2", call("t1"), message="m1", stop="tool_use")
        file.result("r1", "a3", "t1", "a.py")
        file.answer("a4", "r1", text("One file."), message="m2", stop="end_turn")
        path = tmp_path / f"{file.session}.jsonl"
        lines = file.data.splitlines(keepends=True)
        for end in range(1, len(lines) + 1):
            path.write_bytes(b"".join(lines[:end]))
            session, digest = open_session_file(SessionFile(path))
            done, *_ = import_session(store, session, HERE, str(path), digest)
        with store.open(done.id) as tape:
            assert [*tape.refs().branches] == ["main"]
            types = [entry.type for entry in tape.entries(tape.head())]
        talk = [kind for kind in types if kind not in {"branch", "start"}]
        assert talk == ["user", "assistant", "tool.result", "assistant"]


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason="no corpus here")
class TestCorpus:
    def test_counts_are_those_of_an_independent_reading(self, store):
        for name, facts in json.loads((CORPUS / "claude_code/facts.json").read_text()).items():
            path = CORPUS / "claude_code" / name
            if path.exists() and not facts.get("note"):
                session, digest = open_session_file(SessionFile(path))
                found = import_session(store, session, HERE, name, digest)
                entries = [one for done in found for one in read_entries(store, done.id)]
                assert count_kinds(entries) == wanted_of_claude(facts), name
                assert found[0].damaged == len(facts["malformed_line_numbers"])
        for name, facts in json.loads((CORPUS / "codex/facts.json").read_text()).items():
            session, digest = open_session_file(SessionFile(CORPUS / "codex" / name))
            found = import_session(store, session, HERE, name, digest)
            entries = read_entries(store, found[0].id)
            calls = [
                block
                for one in entries
                if isinstance(one, Assistant)
                for block in one.content
                if type(block).__name__ == "ToolCall"
            ]
            assert len(calls) == facts["tool_calls"], name


def read_entries(store, identity):
    """Return the payload of every entry of a tape, on whatever branch."""
    with store.open(identity) as tape:
        found = {}
        for branch in tape.refs().branches:
            found |= {entry.id: entry.data for entry in tape.entries(tape.head(branch))}
        return [*found.values()]


def count_kinds(entries):
    answers = [one for one in entries if isinstance(one, Assistant)]
    kinds = [type(block).__name__ for one in answers for block in one.content]
    return {
        "answers": len(answers),
        "results": sum(isinstance(one, ToolResult) for one in entries),
        "calls": kinds.count("ToolCall"),
        "thinking": kinds.count("Thinking"),
        "input": sum(one.usage.input for one in answers),
        "output": sum(one.usage.output for one in answers),
    }


def wanted_of_claude(facts):
    usage = facts["usage_by_unique_message_id"]
    return {
        "answers": facts["assistant_messages_by_id"] or facts["assistant_lines"],
        "results": facts["tool_results"],
        "calls": facts["tool_calls"],
        "thinking": facts["thinking_blocks"],
        "input": usage.get("input_tokens", 0),
        "output": usage.get("output_tokens", 0),
    }
