"""Sessions of Goose: files, and rows of its database."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

from tape.formats.sessions import goose
from tape.formats.sessions.loading import detect_tool
from tape.model.entries import (
    Assistant,
    BlobRef,
    Thinking,
    ToolResult,
    User,
    join_texts,
    select_tool_calls,
)
from tape.sessions.import_ import import_session
from tape.sessions.sources import find_sessions_of, find_tool_folders, open_session_file
from tape.store.store import Beginning, Store

HEADER = {"working_dir": "/src/app", "description": "List the files", "message_count": 4}
CALL = {"name": "developer__shell", "arguments": {"command": "ls"}}
MESSAGES = [
    {"role": "user", "created": 1768178184, "content": [{"type": "text", "text": "list"}]},
    {
        "role": "assistant",
        "created": 1768178185,
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "toolRequest", "id": "t1", "toolCall": {"status": "success", "value": CALL}},
        ],
    },
    {
        "role": "user",
        "created": 1768178186,
        "content": [
            {
                "type": "toolResponse",
                "id": "t1",
                "toolResult": {"status": "success", "value": [{"type": "text", "text": "a.py"}]},
            }
        ],
    },
    {
        "role": "user",
        "created": 1768178187,
        "content": [
            {"type": "toolResponse", "id": "t2", "toolResult": {"status": "error", "error": "no"}},
            {"type": "somethingNew", "x": 1},
        ],
    },
]


def put(data):
    return BlobRef("0" * 64, len(data))


def list_payloads(session):
    return [one for step in session.read_steps(put) for one in step.payloads]


def judge(payloads):
    user, answer, result, failed, unknown = payloads
    assert isinstance(user, User)
    assert isinstance(answer, Assistant)
    assert type(answer.content[0]) is Thinking
    assert answer.stop_reason == "tool_calls"
    (call,) = select_tool_calls(answer.content)
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.name) == (call.id, "developer__shell")
    assert (join_texts(result.content), result.is_error) == ("a.py", False)
    assert isinstance(failed, ToolResult)
    assert (join_texts(failed.content), failed.is_error) == ("no", True)
    assert unknown.kind == "goose.somethingnew"
    assert json.loads(bytes(answer.content[0].wire)) == {"signature": "s"}
    return answer


def test_a_file_of_goose_becomes_a_conversation():
    lines = [json.dumps(one).encode() for one in (HEADER, *MESSAGES)]
    lines.insert(2, b"{broken")
    assert detect_tool(lambda: lines) == "goose"
    assert detect_tool(lambda: lines[1:]) == "goose"
    session = goose.read_session(lambda: lines, "20260112_1")
    judge(list_payloads(session))
    assert (session.id, session.cwd, session.title) == (
        "20260112_1",
        "/src/app",
        "List the files",
    )
    assert (session.damaged, session.unknown) == (1, {"somethingnew": 1})


def test_the_database_of_goose_gives_the_same(tmp_path):
    folder = tmp_path / ".local/share/goose/sessions"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "sessions.db")) as database:
        database.execute(
            "CREATE TABLE sessions (id TEXT, name TEXT, working_dir TEXT, created_at TEXT,"
            " provider_name TEXT, model_config_json TEXT)"
        )
        database.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT,"
            " content_json TEXT, created_timestamp INTEGER)"
        )
        config = json.dumps({"model_name": "model-x"})
        values = ("20260112_1", "List", "/src/app", "2026-01-12 00:36:24", "anthropic", config)
        database.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", values)
        for one in MESSAGES:
            database.execute(
                "INSERT INTO messages (session_id, role, content_json, created_timestamp)"
                " VALUES (?, ?, ?, ?)",
                ("20260112_1", one["role"], json.dumps(one["content"]), one["created"]),
            )
        database.commit()
    ((tool, place),) = find_tool_folders({"HOME": str(tmp_path)}).items()
    (found,) = find_sessions_of(tool, place)
    session, _ = open_session_file(found)
    answer = judge(list_payloads(session))
    assert (session.id, session.title, session.cwd) == ("20260112_1", "List", "/src/app")
    assert (answer.provider, answer.model) == ("anthropic", "model-x")


def say(role, *pieces, user=True, agent=True):
    metadata = {"userVisible": user, "agentVisible": agent}
    return {"role": role, "created": 1, "content": [*pieces], "metadata": metadata}


def words(text):
    return {"type": "text", "text": text}


def read_messages(*messages):
    lines = [json.dumps(one).encode() for one in (HEADER, *messages)]
    return goose.read_session(lambda: lines, "x")


def test_results_keep_resources_pictures_and_what_is_structured():
    resource = {"type": "resource", "resource": {"uri": "file:///a", "text": "body"}}
    content = [
        words("a"),
        resource,
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    ]
    value = {
        "content": [*content, {"type": "link"}],
        "structuredContent": {"n": 1},
        "isError": True,
    }
    request = {"type": "frontendToolRequest", "id": "t1", "toolCall": {"value": CALL}}
    broken = {"type": "toolRequest", "id": "t2", "toolCall": {"status": "error", "error": "bad"}}
    response = {"type": "toolResponse", "id": "t1", "toolResult": {"value": value}}
    session = read_messages(
        say("assistant", {"type": "reasoning", "text": "Hm."}, request, broken),
        say("user", response),
        say(
            "assistant",
            {"type": "systemNotification", "msg": "Compacting", "notificationType": "x"},
        ),
    )
    answer, result, note = list_payloads(session)
    assert [type(one).__name__ for one in answer.content] == ["Thinking", "ToolCall", "ToolCall"]
    assert [type(one).__name__ for one in result.content] == ["Text", "Text", "Image", "Opaque"]
    assert (result.is_error, json.loads(bytes(result.details))) == (
        True,
        {"structuredContent": {"n": 1}},
    )
    assert note.text == "Compacting"


def test_a_compaction_is_an_anchor_and_the_same_after_another_one(tmp_path):
    """What a compaction changes is who sees a message: no entry is added for that."""
    before = [say("user", words("one")), say("assistant", words("1")), say("user", words("two"))]
    store = Store(tmp_path)

    def record(*messages):
        beginning = Beginning("/", "t")
        return import_session(store, read_messages(*messages), beginning, "f", "0" * 64)[0]

    first = record(*before)
    hidden = [say("user", words("one"), agent=False), say("assistant", words("1"), agent=False)]
    hidden.append(say("user", words("two"), user=False, agent=False))
    summary = [say("user", words("So far: 1."), user=False)]
    summary.append(say("assistant", words("Your context was compacted."), user=False))
    after = [say("user", words("two")), say("assistant", words("2"))]
    done = record(*hidden, *summary, *after)
    assert (done.id, done.added, done.branches) == (first.id, 3, 1)
    with store.open(done.id) as tape:
        kinds = [one.data for one in tape.entries(tape.head("main"))]
        anchor = kinds[4]
    assert [type(one).__name__ for one in kinds] == [
        *("Start", "User", "Assistant", "User", "Anchor", "Context", "Assistant"),
    ]
    assert (anchor.summary, [one.count for one in anchor.kept]) == ("So far: 1.", [1])
    for one in (*summary, *after):
        one["metadata"]["agentVisible"] = False
    more = [say("user", words("Again."), user=False), say("assistant", words("…"), user=False)]
    done = record(*hidden, *summary, *after, *more)
    assert (done.added, done.branches) == (2, 1)
