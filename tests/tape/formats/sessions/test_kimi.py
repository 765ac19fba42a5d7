"""Sessions of Kimi CLI: the context file, and those that it replaced."""

from __future__ import annotations

from hashlib import md5

import pytest

from tape.model.entries import Anchor, Assistant, Context, ToolResult, User
from tape.sessions.sources import (
    SessionFile,
    find_sessions_of,
    find_tool_folders,
    open_session_file,
)
from tape.store.store import Store
from tests.tape.formats.sessions.lines import (
    describe_branches,
    list_payloads,
    store_session,
    write_lines,
)

ID = "3c0e6f6e-55d1-4d0b-8a35-0a7f2a0d9e11"
PROMPT = {"role": "_system_prompt", "content": "You are Kimi."}
CALL = {"type": "function", "id": "c1", "function": {"name": "Shell", "arguments": "{}"}}
USER = {"role": "user", "content": [{"type": "text", "text": "list"}]}
ANSWER = {
    "role": "assistant",
    "content": [
        {"type": "think", "think": "Hm.", "encrypted": "sig"},
        {"type": "text", "text": "Let me look."},
    ],
    "tool_calls": [CALL],
}
RESULT = {"role": "tool", "content": [{"type": "text", "text": "a.py"}], "tool_call_id": "c1"}
DONE = {"role": "assistant", "content": [{"type": "text", "text": "One file."}]}


def check(number):
    return {"role": "_checkpoint", "id": number}


class KimiFolder:
    """A session's folder below `~/.kimi`."""

    def __init__(self, home):
        self.home = home / ".kimi"
        project = md5(b"/src/app").hexdigest()
        self.folder = self.home / "sessions" / project / ID
        self.folder.mkdir(parents=True)
        known = b'{"work_dirs": [{"path": "/else"}, {"path": "/src/app", "kaos": "local"}]}'
        (self.home / "kimi.json").write_bytes(known)
        self.rotations = 0
        self.write(PROMPT, check(0), USER, ANSWER, RESULT, {"role": "_usage", "token_count": 9},
                   check(1), DONE)  # fmt: skip

    def write(self, *lines):
        (self.folder / "context.jsonl").write_bytes(write_lines(*lines))

    def rotate(self):
        self.rotations += 1
        (self.folder / "context.jsonl").rename(self.folder / f"context_{self.rotations}.jsonl")

    def read(self):
        folders = find_tool_folders({"HOME": str(self.home.parent)})
        (found,) = find_sessions_of("kimi", folders["kimi"])
        return open_session_file(found)[0]


@pytest.fixture
def folder(tmp_path):
    return KimiFolder(tmp_path)


def test_messages_become_a_conversation(folder):
    (folder.folder / "state.json").write_text('{"custom_title": "A list"}')
    session = folder.read()
    prompt, user, answer, result, done = list_payloads(session)
    assert prompt.kind == "kimi.system_prompt"
    assert (type(user), type(answer), type(result)) == (User, Assistant, ToolResult)
    thought, words, call = answer.content
    assert (thought.text, words.text, call.name) == ("Hm.", "Let me look.", "Shell")
    assert b"sig" in bytes(thought.wire)
    assert (result.call_id, done.content[0].text) == (call.id, "One file.")
    assert (session.id, session.cwd, session.title) == (ID, "/src/app", "A list")
    assert (session.unknown, session.damaged) == ({}, 0)


def test_a_revert_is_a_branch(folder, tmp_path):
    store = Store(tmp_path / "store")
    first = store_session(store, folder.read())
    folder.rotate()
    other = {"role": "user", "content": "other"}
    note = {"role": "user", "content": [{"type": "text", "text": "<system>CHECKPOINT 1</system>"}]}
    folder.write(PROMPT, check(0), USER, ANSWER, RESULT, check(1), note, other)
    grown = store_session(store, folder.read())
    assert (grown.id, grown.branches, grown.added) == (first.id, 2, 2)
    branches = describe_branches(store, first.id)
    assert branches["main"][-1] == ("Assistant", "One file.")
    (added,) = (one for name, one in branches.items() if name != "main")
    assert added[-2:] == [("Context", "<system>CHECKPOINT 1</system>"), ("User", "other")]
    assert store_session(store, folder.read()).added == 0


def test_a_compaction_is_an_anchor_that_keeps_what_is_copied(folder, tmp_path):
    store = Store(tmp_path / "store")
    store_session(store, folder.read())
    folder.rotate()
    head = "<system>Previous context has been compacted. Here is the compaction output:</system>"
    texts = [{"type": "text", "text": one} for one in (head, "Listed a file.")]
    summary = {"role": "user", "content": texts}
    more = {"role": "user", "content": "and now?"}
    folder.write(PROMPT, check(0), summary, RESULT, DONE, check(1), more)
    done = store_session(store, folder.read())
    assert (done.branches, done.added) == (1, 2)
    with store.open(done.id) as tape:
        *_, anchor, user = (one.data for one in tape.entries(tape.head()))
    assert isinstance(anchor, Anchor)
    assert (anchor.summary, anchor.kept[0].count) == ("Listed a file.", 2)
    assert isinstance(user, User)


def test_lines_that_cannot_be_read_cost_themselves_only(folder):
    data = write_lines(PROMPT, check(0), USER) + b"{broken\n" + write_lines({"role": "odd"}, DONE)
    (folder.folder / "context.jsonl").write_bytes(data)
    session = folder.read()
    kinds = [type(one) for one in list_payloads(session)]
    assert kinds[1:2] + kinds[3:] == [User, Assistant]
    assert (session.damaged, dict(session.unknown)) == (1, {"odd": 1})
    assert Context not in kinds


def test_the_files_of_sub_agents_are_not_read_as_replaced_ones(tmp_path):
    file = tmp_path / "context.jsonl"
    start = {"role": "_checkpoint", "id": 0}
    for name, words in (("context", "now"), ("context_1", "before"), ("context_sub_1", "other")):
        said = {"role": "user", "content": words}
        file.with_name(f"{name}.jsonl").write_bytes(write_lines(start, said))
    session, _ = open_session_file(SessionFile(file))
    said = [one.content[0].text for one in list_payloads(session) if isinstance(one, User)]
    assert said == ["before", "now"]
