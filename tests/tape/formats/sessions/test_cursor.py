"""Chats of Cursor's CLI: blobs of a database, and its record."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from hashlib import sha256

import pytest

from tape.errors import TapeError
from tape.model.entries import (
    Assistant,
    BlobRef,
    Context,
    Image,
    Thinking,
    ToolResult,
    User,
    join_texts,
)
from tape.sessions.import_ import import_session
from tape.sessions.sources import (
    find_sessions_of,
    find_tool_folders,
    list_sessions_in,
    open_session_file,
)
from tape.store.store import Beginning, Store

ID = "0b1c2d3e-0000-4000-8000-00000000000a"
CALL = {
    "type": "tool-call",
    "toolCallId": "t1",
    "toolName": "Read",
    "args": {"path": "a.py"},
}
RESULT = {"type": "tool-result", "toolCallId": "t1", "toolName": "Read", "result": "x = 1"}
MESSAGES = [
    {"role": "system", "content": "You are an agent."},
    {"role": "user", "content": "<user_info>\nWorkspace Path: /src/app\n</user_info>"},
    {
        "role": "user",
        "content": [{"type": "text", "text": "<user_query>\nread a.py\n</user_query>"}],
        "createdAt": 1781000001000,
    },
    {
        "role": "assistant",
        "id": "m1",
        "content": [{"type": "reasoning", "text": "Hm.", "signature": "s"}, CALL],
        "createdAt": 1781000002000,
        "providerOptions": {"cursor": {"modelName": "composer-2.5"}},
    },
    {"role": "tool", "content": [RESULT], "createdAt": 1781000003000},
    {"role": "assistant", "content": "One line.", "createdAt": 1781000004000},
]
RECORD = {"agentId": ID, "name": "Read", "lastUsedModel": "gpt-x", "latestRootBlobId": "0"}


class CursorChat:
    """A `store.db` that grows."""

    def __init__(self, folder):
        folder.mkdir(parents=True)
        self.path = folder / "store.db"
        self.ids = []
        with closing(sqlite3.connect(self.path)) as database:
            database.execute("CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB)")
            database.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
        self.record(RECORD)

    def run(self, query, *values):
        with closing(sqlite3.connect(self.path)) as database:
            database.execute(query, values)
            database.commit()

    def record(self, value, *, as_hex=True):
        text = json.dumps(value)
        text = text.encode().hex() if as_hex else text
        self.run("INSERT OR REPLACE INTO meta VALUES ('0', ?)", text)

    def add(self, data):
        name = sha256(data).hexdigest()
        self.run("INSERT OR IGNORE INTO blobs VALUES (?, ?)", name, data)
        return name

    def say(self, *messages):
        for message in messages:
            self.ids.append(self.add(json.dumps(message).encode()))
            self.add(b"\x0a\x03abc" + bytes([len(self.ids)]))

    def name_root(self):
        root = b"".join(b"\x0a\x20" + bytes.fromhex(one) for one in self.ids) + b"\x12\x01x"
        self.record({**RECORD, "latestRootBlobId": self.add(root)})


@pytest.fixture
def chat(tmp_path):
    chat = CursorChat(tmp_path / ".cursor/chats/00ff" / ID)
    chat.say(*MESSAGES)
    return chat


def put(data):
    return BlobRef("0" * 64, len(data))


def read(chat):
    (found,) = list_sessions_in(chat.path)
    return open_session_file(found)[0]


def list_payloads(session):
    return [one for step in session.read_steps(put) for one in step.payloads]


def test_blobs_become_a_conversation(chat, tmp_path):
    folders = find_tool_folders({"HOME": str(tmp_path)})
    (found,) = find_sessions_of("cursor", folders["cursor"])
    session, _ = open_session_file(found)
    system, added, user, answer, result, last = list_payloads(session)
    assert (system.role, added.role, type(added)) == ("system", "user", Context)
    assert (type(user), join_texts(user.content)) == (User, "read a.py")
    thought, call = answer.content
    assert (type(thought), thought.text, json.loads(bytes(thought.wire))) == (
        *(Thinking, "Hm."),
        {"signature": "s"},
    )
    assert (call.name, json.loads(bytes(call.args))) == ("Read", {"path": "a.py"})
    assert (answer.model, answer.stop_reason) == ("composer-2.5", "tool_calls")
    assert (type(result), result.call_id, result.name) == (ToolResult, call.id, "Read")
    assert (join_texts(result.content), result.is_error) == ("x = 1", False)
    assert (type(last), last.model) == (Assistant, "gpt-x")
    assert (session.id, session.title, session.cwd) == (ID, "Read", "/src/app")
    assert [step.time for step in session.read_steps(put)][2] == 1781000001_000000
    assert session.unknown == {}


def test_the_file_beside_it_and_a_plain_record_are_read(chat):
    meta = {"schemaVersion": 1, "title": "Better", "createdAtMs": 1781000000000}
    chat.path.with_name("meta.json").write_text(json.dumps(meta))
    chat.record({**RECORD, "workspacePath": "/src/other"}, as_hex=False)
    session = read(chat)
    assert (session.title, session.cwd) == ("Better", "/src/other")
    assert session.created == 1781000000_000000


def test_a_message_that_came_twice_is_there_twice_where_the_root_says_so(chat):
    """The same bytes are one blob."""
    again = {"role": "user", "content": "<user_query>go on</user_query>"}
    chat.say(again, {"role": "assistant", "content": "Yes."}, again)
    assert len(list_payloads(read(chat))) == 8
    chat.name_root()
    assert len(list_payloads(read(chat))) == 9
    chat.say({"role": "assistant", "content": "Done."})
    assert join_texts(list_payloads(read(chat))[-1].content) == "Done."


def test_pictures_results_with_parts_and_what_is_unknown(chat):
    picture = {"type": "image", "image": "iVBORw0KGgo=", "mediaType": "image/png"}
    chat.say(
        {"role": "user", "content": [{"type": "text", "text": "look"}, picture]},
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "t9",
                    "toolName": "Shell",
                    "isError": True,
                    "experimental_content": [{"type": "text", "text": "no"}, picture],
                }
            ],
        },
        {"role": "assistant", "content": [{"type": "redacted-reasoning", "data": "d"}, {"x": 1}]},
        {"role": "critic", "content": "?"},
    )
    session = read(chat)
    user, result, answer, unknown = list_payloads(session)[-4:]
    assert [type(one) for one in user.content][1] is Image
    assert [type(one) for one in result.content][1] is Image
    assert (result.name, result.is_error) == ("Shell", True)
    assert answer.content[0].redacted
    assert unknown.kind == "cursor.critic"
    assert session.unknown == {"critic": 1}


def test_a_chat_that_grew_is_continued_and_importing_twice_adds_nothing(chat, tmp_path):
    store = Store(tmp_path / "store")

    def record():
        return import_session(store, read(chat), Beginning("/", "t"), "f", "0" * 64)[0]

    first = record()
    assert (first.added, record().added) == (7, 0)
    chat.record({**RECORD, "lastUsedModel": "another"})
    chat.say({"role": "user", "content": "<user_query>more</user_query>"})
    grown = record()
    assert (grown.id, grown.added, grown.branches) == (first.id, 1, 1)


def test_damaged_databases_cost_themselves_only(chat):
    chat.add(b'{"role": "user", "content": "cut o')
    chat.add(b"{}")
    session = read(chat)
    assert len(list_payloads(session)) == 7
    assert session.damaged == 1
    chat.record([1])
    assert list_payloads(read(chat))
    whole = chat.path.read_bytes()
    for size in (0, 50, 4096, 4196, 8192, len(whole) - 2000):
        chat.path.write_bytes(whole[:size])
        for found in list_sessions_in(chat.path):
            with suppress(TapeError):
                list_payloads(open_session_file(found)[0])
