"""Results that Claude Code stores beside a session are kept whole, and nothing else is read."""

from __future__ import annotations

import os

import pytest

from tape.model.entries import ToolResult, join_texts
from tape.sessions import sources
from tape.sessions.import_ import import_session
from tape.sessions.sources import SessionFile, open_session_file
from tape.store.store import Beginning, Store
from tests.tape.formats.sessions.lines import ClaudeFile, call, text

FOLDER = "/home/u/.claude/projects/-src-app"


class Saved:
    """A session whose result is in a file beside it."""

    def __init__(self, path):
        self.store = Store(path / "store", durable=False)
        self.lines = ClaudeFile()
        self.path = path / f"{self.lines.session}.jsonl"
        self.results = path / self.lines.session / "tool-results"
        self.results.mkdir(parents=True)
        self.whole = "".join(f"line {number}\n" for number in range(20_000))
        self.named = f"{FOLDER}/{self.lines.session}/tool-results/t1.txt"

    @property
    def short(self):
        told = f"Output too large (58.6KB). Full output saved to: {self.named}"
        return f"<persisted-output>\n{told}\n\nPreview (first 2KB):\nline 0\n</persisted-output>"

    def write(self, **details):
        self.lines.say("u1", None, "build")
        self.lines.answer("a1", "u1", call("t1"))
        self.lines.result("r1", "a1", "t1", self.short, toolUseResult=details or "as it was")
        self.lines.answer("a2", "r1", text("built"))
        self.path.write_bytes(self.lines.data)

    def bring(self):
        session, digest = open_session_file(SessionFile(self.path))
        done, *_ = import_session(self.store, session, Beginning("/", "t"), "f", digest)
        with self.store.open(done.id) as tape:
            entries = tape.entries(tape.head())
            (result,) = [one.data for one in entries if isinstance(one.data, ToolResult)]
            full = result.full
            self.kept = full if isinstance(full, str | None) else tape.load(full).decode()
        assert join_texts(result.content) == self.short
        return done


@pytest.fixture
def saved(tmp_path):
    return Saved(tmp_path)


@pytest.mark.parametrize("is_in_details", [True, False])
def test_the_whole_output_is_kept_and_the_view_stays_short(saved, is_in_details):
    (saved.results / "t1.txt").write_text(saved.whole)
    details = {"stdout": "line 0", "persistedOutputPath": saved.named}
    saved.write(**details if is_in_details else {})
    done = saved.bring()
    assert saved.kept == saved.whole
    assert done.left_out == {}


def test_a_file_that_is_gone_is_counted_and_changes_nothing_later(saved):
    (saved.results / "t1.txt").write_text(saved.whole)
    saved.write()
    saved.bring()
    (saved.results / "t1.txt").unlink()
    again = saved.bring()
    assert (again.added, again.branches) == (0, 1)
    assert again.left_out == {"not_whole": 1}
    assert saved.kept == saved.whole


def test_a_file_of_a_sub_agent_is_in_the_folder_of_its_session(saved):
    agents = saved.results.parent / "subagents"
    agents.mkdir()
    saved.path = agents / "agent-a1.jsonl"
    (saved.results / "t1.txt").write_text(saved.whole)
    saved.write()
    saved.bring()
    assert saved.kept == saved.whole


@pytest.mark.parametrize(
    "named",
    [
        "/etc/hostname",
        "../secret/t1.txt",
        f"{FOLDER}/tool-results/..",
        f"{FOLDER}/tool-results/",
        f"{FOLDER}/tool-results/link.txt",
        f"{FOLDER}/tool-results/folder",
        f"{FOLDER}/tool-results/pipe",
        f"{FOLDER}/tool-results/large.txt",
        f"{FOLDER}/tool-results/a\0b",
    ],
)
def test_nothing_else_is_read(saved, named, monkeypatch):
    monkeypatch.setattr(sources, "_MAX_RESULT_BYTES", 10)
    (saved.path.parent / "secret").mkdir()
    (saved.path.parent / "secret/t1.txt").write_text("key")
    (saved.results / "link.txt").symlink_to(saved.path.parent / "secret/t1.txt")
    (saved.results / "folder").mkdir()
    (saved.results / "large.txt").write_text("x" * 11)
    os.mkfifo(saved.results / "pipe")
    saved.named = named
    saved.write(persistedOutputPath=named)
    done = saved.bring()
    assert saved.kept is None
    assert done.left_out == {"not_whole": 1}


def test_a_fork_shares_the_result_that_is_beside_its_parent(saved):
    (saved.results / "t1.txt").write_text(saved.whole)
    saved.write()
    first = saved.bring()
    parent = saved.lines.session
    saved.lines.session = "5c0375b4-57a5-4f26-b12d-d022ee4e51b8"
    for line in saved.lines.lines:
        line["sessionId"] = saved.lines.session
        line["forkedFrom"] = {"sessionId": parent, "messageUuid": line["uuid"]}
    saved.path = saved.path.with_stem(saved.lines.session)
    saved.path.write_bytes(saved.lines.data)
    again = saved.bring()
    assert (again.id, again.added, again.branches) == (first.id, 0, 2)


@pytest.mark.parametrize("is_own", [True, False])
def test_a_folder_that_is_a_link_is_not_read(saved, tmp_path, is_own):
    """Neither that of the results nor that of the session."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "tool-results").mkdir(parents=True)
    (elsewhere / "tool-results/t1.txt").write_text("key")
    saved.results.rmdir()
    if is_own:
        saved.results.parent.rmdir()
        saved.results.parent.symlink_to(elsewhere)
    else:
        saved.results.symlink_to(elsewhere / "tool-results")
    saved.write()
    saved.bring()
    assert saved.kept is None
