"""Conversations of llm: the message store of 0.36, and the tables before it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from tape.model.entries import Assistant, Context, Image, Thinking, ToolResult, User
from tape.sessions.sources import (
    find_sessions_of,
    find_tool_folders,
    list_sessions_in,
    open_session_file,
)
from tape.store.store import Store
from tests.tape.formats.sessions.lines import describe_branches, list_payloads, store_session

OLD = """
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, response TEXT,
 conversation_id TEXT, datetime_utc TEXT, input_tokens INTEGER, output_tokens INTEGER,
 resolved_model TEXT, reasoning TEXT);
CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB);
CREATE TABLE prompt_attachments (response_id TEXT, attachment_id TEXT, "order" INTEGER);
CREATE TABLE fragments (id INTEGER PRIMARY KEY, hash TEXT, content TEXT);
CREATE TABLE prompt_fragments (response_id TEXT, fragment_id INTEGER, "order" INTEGER);
CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, arguments TEXT,
 tool_call_id TEXT);
CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, output TEXT,
 tool_call_id TEXT, exception TEXT);
"""
NEW = """
CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT, datetime_utc TEXT);
CREATE TABLE turns (id TEXT PRIMARY KEY, thread_id TEXT, tip_message_hash TEXT, model TEXT,
 resolved_model TEXT, input_tokens INTEGER, output_tokens INTEGER, datetime_utc TEXT);
CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT);
CREATE TABLE parts (id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT,
 text TEXT, payload TEXT);
"""
PIXEL = b"\x89PNG\r\n\x1a\n"


class LogsDatabase:
    def __init__(self, home):
        self.path = home / ".config/io.datasette.llm/logs.db"
        self.path.parent.mkdir(parents=True)
        with closing(sqlite3.connect(self.path)) as database:
            database.executescript(OLD)

    def insert(self, table, *rows):
        with closing(sqlite3.connect(self.path)) as database:
            for row in rows:
                names, marks = ", ".join(f'"{one}"' for one in row), ", ".join("?" * len(row))
                query = f"INSERT INTO {table} ({names}) VALUES ({marks})"
                database.execute(query, (*row.values(),))
            database.commit()

    def upgrade(self):
        with closing(sqlite3.connect(self.path)) as database:
            database.executescript(NEW)

    def add_message(self, name, parent, role, *parts):
        """Add a message; a part is its text, or a dict."""
        self.insert("messages", {"hash": name, "parent_hash": parent, "role": role})
        for position, part in enumerate(parts):
            given = {"type": "text", "text": part} if isinstance(part, str) else dict(part)
            row = {"message_hash": name, "position": position, "type": given.pop("type"),
                   "text": given.pop("text", None)}  # fmt: skip
            self.insert("parts", {**row, "payload": json.dumps(given) if given else None})

    def add_turn(self, tip, number, thread="t1"):
        self.insert("turns", {
            "id": f"u{number}", "thread_id": thread, "tip_message_hash": tip, "model": "gpt-x",
            "input_tokens": 3, "output_tokens": 5,
            "datetime_utc": f"2026-10-01 10:00:0{number}.000000+00:00",
        })  # fmt: skip

    def read(self):
        (found,) = list_sessions_in(self.path)
        return open_session_file(found)[0]


@pytest.fixture
def logs(tmp_path):
    return LogsDatabase(tmp_path)


def test_responses_of_older_versions_are_a_conversation(logs, tmp_path):
    logs.insert("conversations", {"id": "c1", "name": "A list", "model": "gpt-4o"})
    logs.insert("attachments", {"id": "a1", "type": "image/png", "content": PIXEL})
    logs.insert("fragments", {"id": 1, "content": "a long text"})
    both = {"model": "gpt-4o", "conversation_id": "c1", "system": "be kind"}
    logs.insert(
        "responses",
        {**both, "id": "r1", "prompt": "list", "response": "Let me look.", "reasoning": "Hm.",
         "datetime_utc": "2026-05-01T10:00:00", "input_tokens": 3, "output_tokens": 5},
        {**both, "id": "r2", "prompt": "", "response": "One file.", "resolved_model": "gpt-4o-1",
         "datetime_utc": "2026-05-01T10:00:05"},
    )  # fmt: skip
    logs.insert("prompt_attachments", {"response_id": "r1", "attachment_id": "a1", "order": 0})
    logs.insert("prompt_fragments", {"response_id": "r1", "fragment_id": 1, "order": 0})
    logs.insert("tool_calls", {"response_id": "r1", "name": "ls", "arguments": '{"path": "."}',
                               "tool_call_id": "k1"})  # fmt: skip
    logs.insert("tool_results", {"response_id": "r2", "name": "ls", "output": "a.py",
                                 "tool_call_id": "k1"})  # fmt: skip
    (found,) = find_sessions_of("llm", find_tool_folders({"HOME": str(tmp_path)})["llm"])
    session = open_session_file(found)[0]
    system, user, answer, result, done = list_payloads(session)
    assert isinstance(system, Context)
    assert isinstance(user, User)
    assert user.content[0].text == "a long text\nlist"
    assert type(user.content[1]) is Image
    assert isinstance(answer, Assistant)
    thought, words, call = answer.content
    assert (type(thought), words.text, call.name) == (Thinking, "Let me look.", "ls")
    assert isinstance(result, ToolResult)
    assert (result.call_id, done.content[0].text) == (call.id, "One file.")
    assert (answer.model, done.model, answer.usage.total) == ("gpt-4o", "gpt-4o-1", 8)
    assert (session.id, session.title) == ("c1", "A list")


def test_a_thread_of_the_message_store_is_a_tree(logs, tmp_path):
    logs.upgrade()
    logs.insert("conversations", {"id": "t1", "name": "old", "model": "gpt-4o"})
    logs.insert("attachments", {"id": "a1", "type": "image/png", "content": PIXEL})
    logs.insert("fragments", {"id": 7, "content": "a long text"})
    logs.insert("threads", {"id": "t1", "name": "A list", "tip_message_hash": "m3",
                            "datetime_utc": "2026-10-01 10:00:00"})  # fmt: skip
    pieces = [{"literal": "read "}, {"fragment": 7}]
    picture = {"type": "attachment", "attachment": {"id": "a1"}}
    logs.add_message("m1", None, "user", {"type": "text", "text_ref": pieces}, picture)
    call = {"type": "tool_call", "name": "up", "arguments": {"x": 1}, "tool_call_id": "k1"}
    logs.add_message("m2", "m1", "assistant", {"type": "reasoning", "text": "Hm."}, call)
    answer = {"type": "tool_result", "name": "up", "output": "HI", "tool_call_id": "k1",
              "attachments": [{"id": "a1"}]}  # fmt: skip
    logs.add_message("m3", "m2", "tool", answer)
    logs.add_message("m4", "m3", "assistant", "done")
    logs.add_turn("m2", 1)
    logs.add_turn("m4", 2)
    session = logs.read()
    user, said, result, done = list_payloads(session)
    assert user.content[0].text == "read a long text"
    assert [type(one) for one in (user.content[1], result.content[1])] == [Image, Image]
    assert (result.call_id, said.model, done.usage.output) == (said.content[1].id, "gpt-x", 5)
    assert session.title == "A list"
    store = Store(tmp_path / "store")
    assert store_session(store, session).branches == 1
    logs.add_message("n4", "m3", "assistant", "done in another way")
    logs.add_turn("n4", 3)
    grown = store_session(store, logs.read())
    assert (grown.added, grown.branches) == (1, 2)
    ends = {one[-1][1] for one in describe_branches(store, grown.id).values()}
    assert ends == {"done", "done in another way"}
    assert store_session(store, logs.read()).added == 0


def test_an_unknown_part_and_a_lost_row_cost_themselves_only(logs):
    logs.upgrade()
    logs.insert("threads", {"id": "t1"})
    odd = {"type": "video", "url": "x"}
    gone = {"type": "attachment", "attachment": {"id": "gone"}}
    logs.add_message("m2", "lost", "user", odd, gone, "hi")
    logs.add_message("m3", "m2", "critic", "hm")
    logs.add_turn("m3", 1)
    session = logs.read()
    user, unknown = list_payloads(session)
    assert [type(one).__name__ for one in user.content] == ["Opaque", "Opaque", "Text"]
    assert unknown.kind == "llm.critic"
