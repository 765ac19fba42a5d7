"""Sessions of Mistral Vibe: messages, and what their folder says of them."""

from __future__ import annotations

import json

import pytest

from tape.model.entries import Anchor, Assistant, Context, Image, ToolResult, User
from tape.sessions.sources import find_sessions_of, find_tool_folders, open_session_file
from tape.store.store import Store
from tests.tape.formats.sessions.lines import (
    list_payloads,
    read_lines,
    store_session,
    write_lines,
)

META = {
    "session_id": "5c0375b4",
    "start_time": "2026-10-01T10:00:00+00:00",
    "end_time": None,
    "git_commit": "abc123",
    "git_branch": "main",
    "environment": {"working_directory": "/src/app"},
    "username": "a",
    "title": "A list",
    "config": {"active_model": "devstral", "model_name": "devstral-3"},
}
CALL = {"id": "c1", "index": 0, "type": "function",
        "function": {"name": "bash", "arguments": '{"command":"ls"}'}}  # fmt: skip
MESSAGES = (
    {"role": "user", "content": "list", "message_id": "m1",
     "images": [{"source": {"kind": "inline", "data": "iVBORw0KGgo="}, "alias": "a",
                 "mime_type": "image/png"}]},
    {"role": "assistant", "content": "", "reasoning_content": "Hm.", "reasoning_message_id": "r1",
     "tool_calls": [CALL], "message_id": "m2"},
    {"role": "tool", "content": "<tool_error>no</tool_error>", "name": "bash", "tool_call_id": "c1",
     "tool_result": {"output": {"x": 1}, "cancelled": False}},
    {"role": "user", "content": "be quick", "injected": True, "message_id": "m3"},
    {"role": "assistant", "content": "One file.", "message_id": "m4"},
)  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / ".vibe/logs/session/session_20261001_100000_5c0375b4"
    made.mkdir(parents=True)
    (made / "meta.json").write_text(json.dumps(META, indent=2))
    (made / "messages.jsonl").write_bytes(write_lines(*MESSAGES))
    return made


def read(folder):
    home = folder.parents[3]
    (found,) = find_sessions_of("vibe", find_tool_folders({"HOME": str(home)})["vibe"])
    return open_session_file(found)[0]


def test_messages_become_a_conversation(folder):
    session = read(folder)
    user, answer, result, hidden, done = list_payloads(session)
    assert [type(one) for one in user.content][-1] is Image
    assert (type(user), type(answer), type(hidden)) == (User, Assistant, Context)
    thought, call = answer.content
    assert (thought.text, call.name, bytes(call.args)) == ("Hm.", "bash", b'{"command":"ls"}')
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.is_error) == (call.id, True)
    assert json.loads(bytes(result.details))["output"] == {"x": 1}
    assert (done.provider, done.model) == ("mistral", "devstral-3")
    assert (session.id, session.cwd, session.title) == ("5c0375b4", "/src/app", "A list")
    assert (session.git.branch, session.git.commit) == ("main", "abc123")


def test_a_session_that_grew_continues_and_a_compaction_is_an_anchor(folder, tmp_path):
    store = Store(tmp_path / "store")
    first = store_session(store, read(folder))
    assert store_session(store, read(folder)).added == 0
    boundary = {"role": "user", "content": "so far", "context_boundary": "compaction",
                "message_id": "m5"}  # fmt: skip
    more = write_lines(boundary, {"role": "user", "content": "and now?", "message_id": "m6"})
    with (folder / "messages.jsonl").open("ab") as file:
        file.write(more)
    (folder / "meta.json").write_text(json.dumps({**META, "config": {"model_name": "other"}}))
    grown = store_session(store, read(folder))
    assert (grown.id, grown.branches, grown.added) == (first.id, 1, 2)
    with store.open(grown.id) as tape:
        *_, anchor, _ = (one.data for one in tape.entries(tape.head()))
    assert isinstance(anchor, Anchor)
    assert anchor.summary == "so far"


def test_messages_alone_are_a_session_and_broken_lines_cost_themselves_only():
    data = write_lines(MESSAGES[0]) + b"{broken\n" + write_lines({"role": "odd", "content": 3})
    session = read_lines("vibe", data, "folder")
    user, unknown = list_payloads(session)
    assert (type(user), unknown.kind) == (User, "vibe.odd")
    assert (session.id, session.damaged) == ("folder", 1)
