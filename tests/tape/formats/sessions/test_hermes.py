"""Sessions of Hermes: rows of its database, and `hermes sessions export`."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress

import pytest

from tape.errors import TapeError
from tape.formats.sessions import hermes
from tape.formats.sessions.loading import detect_tool
from tape.model.entries import (
    AgentEnd,
    AgentStart,
    Anchor,
    Assistant,
    BlobRef,
    Context,
    Image,
    Start,
    Thinking,
    ToolResult,
    User,
    join_texts,
    select_tool_calls,
)
from tape.sessions.batch import ImportMemory, import_files
from tape.sessions.databases import read_database_session
from tape.sessions.import_ import import_session
from tape.sessions.sources import (
    find_sessions_of,
    find_tool_folders,
    list_sessions_in,
    open_session_file,
)
from tape.store.store import Beginning, Store

ID = "20260714_101500_ab12cd"
PIXEL = "data:image/png;base64,iVBORw0KGgo="
CALL = {"id": "t1", "function": {"name": "terminal", "arguments": '{"command":"ls"}'}}
DETAILS = [{"type": "reasoning.encrypted", "data": "e"}]
SESSIONS = """CREATE TABLE sessions (
 id TEXT PRIMARY KEY, source TEXT, model TEXT, model_config TEXT,
 parent_session_id TEXT, started_at REAL, ended_at REAL, end_reason TEXT, cwd TEXT, git_branch TEXT,
 billing_provider TEXT, title TEXT)"""
MESSAGES = """CREATE TABLE messages (
 id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT,
 content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, effect_disposition TEXT,
 timestamp REAL, token_count INTEGER, finish_reason TEXT, reasoning TEXT, reasoning_content TEXT,
 reasoning_details TEXT, _compressed_summary INTEGER DEFAULT 0, active INTEGER DEFAULT 1,
 compacted INTEGER DEFAULT 0, display_kind TEXT)"""


class HermesDatabase:
    """A `state.db` that grows."""

    def __init__(self, folder):
        folder.mkdir(parents=True)
        self.path = folder / "state.db"
        self.run(SESSIONS)
        self.run(MESSAGES)
        self.seconds = 1784024100.0

    def run(self, query, *values):
        with closing(sqlite3.connect(self.path)) as database:
            database.execute(query, values)
            database.commit()

    def insert(self, table, **columns):
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        self.run(f"INSERT INTO {table} ({names}) VALUES ({marks})", *columns.values())

    def begin(self, session=ID, **columns):
        self.insert(
            "sessions",
            **{"id": session, "source": "cli", "model": "hermes-4", "started_at": 1784024100.0}
            | {"cwd": "/src/app", "git_branch": "main", "billing_provider": "nous", "title": "T"}
            | columns,
        )

    def say(self, role, content, *, session=ID, **columns):
        self.seconds += 1
        given = {"role": role, "content": content, "timestamp": self.seconds}
        self.insert("messages", session_id=session, **given | columns)


@pytest.fixture
def database(tmp_path):
    database = HermesDatabase(tmp_path / ".hermes")
    database.begin()
    database.say("user", "list")
    database.say(
        "assistant",
        "",
        tool_calls=json.dumps([CALL]),
        reasoning="Hm.",
        reasoning_details=json.dumps(DETAILS),
        finish_reason="tool_calls",
        token_count=7,
    )
    database.say("tool", '{"output": "a.py", "error": null}', tool_call_id="t1")
    database.say("assistant", "One file.", finish_reason="stop")
    return database


def put(data):
    return BlobRef("0" * 64, len(data))


def read(database, session=ID):
    (found,) = [one for one in list_sessions_in(database.path) if one.row == session]
    return open_session_file(found)[0]


def list_payloads(session):
    return [one for step in session.read_steps(put) for one in step.payloads]


def test_rows_become_a_conversation(database, tmp_path):
    database.say(
        "user", "\0json:" + json.dumps([{"type": "image_url", "image_url": {"url": PIXEL}}])
    )
    database.say("user", "scaffold", display_kind="hidden")
    database.say("session_meta", "x")
    folders = find_tool_folders({"HOME": str(tmp_path)})
    (found,) = find_sessions_of("hermes", folders["hermes"])
    assert find_tool_folders({"HOME": "/", "HERMES_HOME": str(tmp_path)})["hermes"] == tmp_path
    session, _ = open_session_file(found)
    user, answer, result, _, picture, hidden, unknown = list_payloads(session)
    assert isinstance(user, User)
    assert isinstance(answer, Assistant)
    thought, call = answer.content
    assert (type(thought), thought.text) == (Thinking, "Hm.")
    assert json.loads(bytes(thought.wire)) == {"reasoning_details": DETAILS}
    assert (call.name, bytes(call.args)) == ("terminal", b'{"command":"ls"}')
    assert (answer.provider, answer.model, answer.usage.output) == ("nous", "hermes-4", 7)
    assert (result.call_id, result.name, result.is_error) == (call.id, "terminal", False)
    assert type(picture.content[0]) is Image
    assert isinstance(hidden, Context)
    assert unknown.kind == "hermes.session_meta"
    assert (session.id, session.cwd, session.title) == (ID, "/src/app", "T")
    assert session.git.branch == "main"
    assert session.created == 1784024100_000000


def test_results_that_failed_or_were_denied_are_errors(database):
    for given in ({"effect_disposition": "denied"}, {}):
        content = '{"success": false}' if not given else "no"
        database.say("tool", content, tool_call_id="t9", tool_name="patch", **given)
    failed = [one for one in list_payloads(read(database)) if isinstance(one, ToolResult)][1:]
    assert [(one.name, one.is_error) for one in failed] == [("patch", True)] * 2


def test_an_export_gives_the_same_and_holds_many_sessions(database):
    (source,) = list_sessions_in(database.path)
    document = json.loads(read_database_session(source.path, source.tool, source.row)[0])
    other = {**document, "id": "other", "messages": [{"role": "user", "content": "hi"}]}
    lines = [json.dumps(one).encode() for one in (document, other)]
    lines.insert(1, b"{broken")
    assert detect_tool(lambda: lines) == "hermes"
    session = hermes.read_session(lambda: lines, "export")
    assert list_payloads(session) == list_payloads(read(database))
    assert session.damaged == 1
    assert [child.id for child in session.children] == ["other"]


def store_session(store, database, session=ID):
    source = read(database, session)
    (done,) = import_session(store, source, Beginning("/", "t"), "f", "0" * 64)
    return done


def describe(tape, branch):
    return [
        (type(entry.data).__name__, join_texts(getattr(entry.data, "content", ())))
        for entry in tape.entries(tape.head(branch))
        if not isinstance(entry.data, Start)
    ]


def test_rewound_rows_are_a_branch_and_importing_twice_adds_nothing(database, tmp_path):
    store = Store(tmp_path / "store")
    first = store_session(store, database)
    assert first.added == 5
    assert store_session(store, database).added == 0
    database.run("UPDATE messages SET active = 0 WHERE id >= 4")
    database.say("user", "again")
    grown = store_session(store, database)
    assert (grown.id, grown.branches) == (first.id, 2)
    with store.open(first.id) as tape:
        current = tape.refs().current
        assert [text for _, text in describe(tape, current)][-1] == "again"
        assert "One file." in str(describe(tape, "main"))
        assert "One file." not in str(describe(tape, current))
    assert store_session(store, database).added == 0


def test_a_compaction_is_an_anchor_that_keeps_what_was_copied(database, tmp_path):
    store = Store(tmp_path / "store")
    before = store_session(store, database).entries
    database.run("UPDATE messages SET active = 0, compacted = 1 WHERE id < 4")
    database.run("UPDATE messages SET active = 0 WHERE id = 4")  # its copy follows
    database.say("user", "[CONTEXT COMPACTION] Listed one file.", _compressed_summary=1)
    database.say("assistant", "One file.", finish_reason="stop", timestamp=1784024104.0)
    database.say("user", "and now?")
    session = read(database)
    anchor = next(one for one in list_payloads(session) if isinstance(one, Anchor))
    assert anchor.summary == "[CONTEXT COMPACTION] Listed one file."
    done = store_session(store, database)
    assert (done.added, done.branches, done.entries) == (2, 1, before + 2)
    with store.open(done.id) as tape:
        assert [kind for kind, _ in describe(tape, "main")][-3:] == ["Assistant", "Anchor", "User"]
        anchor = [one.data for one in tape.entries(tape.head("main"))][-2]
        assert [one.count for one in anchor.kept] == [1]
    assert store_session(store, database).added == 0


def test_a_session_that_continues_a_compacted_one_begins_with_its_anchor(database, tmp_path):
    database.begin("next", parent_session_id=ID)
    summary = "[CONTEXT SUMMARY]: so far\n--- END OF CONTEXT SUMMARY — respond ---\n\ngo on"
    database.say("user", summary, session="next")
    database.say("assistant", "Yes.", session="next")
    done = store_session(Store(tmp_path / "store"), database, "next")
    with Store(tmp_path / "store").open(done.id) as tape:
        kinds = [kind for kind, _ in describe(tape, "main")]
        assert kinds == ["Anchor", "User", "Assistant"]
        assert describe(tape, "main")[1][1] == "go on"


def test_sub_agents_are_linked(database):
    asked = {"id": "t2", "function": {"name": "delegate_task", "arguments": "{}"}}
    database.say("assistant", "", tool_calls=json.dumps([asked]))
    config = json.dumps({"_delegate_from": ID})
    database.begin("child", parent_session_id=ID, model_config=config, started_at=database.seconds)
    database.say("tool", "done", tool_call_id="t2", tool_name="delegate_task")
    start, result, end = list_payloads(read(database))[-3:]
    assert isinstance(start, AgentStart)
    assert start.tape == read(database, "child").tape_id
    assert isinstance(result, ToolResult)
    assert (type(end), end.status) == (AgentEnd, "completed")


def test_another_model_later_leaves_the_answers_as_they_were(database, tmp_path):
    store = Store(tmp_path / "store")
    store_session(store, database)
    database.run("UPDATE sessions SET model = 'other', title = 'New'")
    database.say("user", "go on")
    database.say("assistant", "Yes.")
    done = store_session(store, database)
    assert (done.added, done.branches, done.title) == (2, 1, "New")
    with store.open(done.id) as tape:
        answers = [
            one.data for one in tape.entries(tape.head("main")) if isinstance(one.data, Assistant)
        ]
    assert [one.model for one in answers] == ["hermes-4", "hermes-4", "other"]


def test_damaged_columns_and_databases_cost_themselves_only(database, tmp_path):
    database.say("assistant", "ok", tool_calls="[{broken", reasoning_details="{")
    database.say("assistant", "\0json:[broken", tool_calls='[3, {"function": 4}]')
    database.run("UPDATE messages SET content = x'ff00fe' WHERE id = 1")
    first, *_, odd, last = list_payloads(read(database))
    assert isinstance(first, User)
    assert join_texts(odd.content) == "ok"
    assert len(select_tool_calls(last.content)) == 2
    whole = database.path.read_bytes()
    for place in (whole.index(b"sessions"), whole.index(b"TEXT"), 100, 4096, len(whole) - 90):
        database.path.write_bytes(whole[:place] + b"\xff" * 40 + whole[place + 40 :])
        for found in list_sessions_in(database.path):
            with suppress(TapeError):
                list_payloads(open_session_file(found)[0])
    for size in (0, 10, 100, 5000, len(whole) - 4096):
        database.path.write_bytes(whole[:size])
        for found in list_sessions_in(database.path):
            with suppress(TapeError):  # such as a header without its table
                list_payloads(open_session_file(found)[0])


def test_only_the_session_that_changed_is_read_again(database, tmp_path):
    """Every session of a database shares its file, and so its times."""
    database.begin("other")
    database.say("user", "hello", session="other")
    store = Store(tmp_path / "store")
    memory, here = ImportMemory(store), Beginning("/", "t")

    def bring():
        found = list_sessions_in(database.path)
        return [done.source.row for done in import_files(store, found, here, memory)]

    assert bring() == [ID, "other"]
    assert bring() == []
    database.say("user", "again", session="other")
    assert bring() == ["other"]
    database.run("UPDATE messages SET active = 0 WHERE id = 4")
    assert bring() == [ID]
    database.run("ALTER TABLE messages DROP COLUMN compacted")
    assert [one.version for one in list_sessions_in(database.path)] == ["", ""]
    assert bring() == [ID, "other"]
    assert bring() == []
