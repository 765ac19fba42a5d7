"""Sessions that are one document: chats of Gemini CLI, exports and database rows of OpenCode."""

from __future__ import annotations

import json
import sqlite3

import pytest

from tape.formats.sessions import gemini_cli, opencode
from tape.formats.sessions.loading import detect_tool
from tape.model.entries import (
    Anchor,
    Assistant,
    BlobRef,
    Note,
    ToolResult,
    User,
    join_texts,
    select_tool_calls,
)
from tape.sessions.sources import find_sessions_in, open_session_file
from tape.store.store import Store
from tests.tape.formats.sessions.lines import (
    describe_branches,
    read_lines,
    store_session,
    write_lines,
)

CALL = {
    "id": "read-1",
    "name": "read_file",
    "args": {"path": "a.py"},
    "status": "success",
    "result": [
        {"functionResponse": {"id": "read-1", "name": "read_file", "response": {"output": "x = 1"}}}
    ],
    "resultDisplay": "x = 1",
}
HEADER = {
    "sessionId": "g-1",
    "projectHash": "0" * 64,
    "startTime": "2026-05-01T10:00:00Z",
    "lastUpdated": "2026-05-01T10:00:09Z",
}
ANSWER = {
    "id": "m2",
    "type": "gemini",
    "timestamp": "2026-05-01T10:00:02Z",
    "model": "gemini-3-pro",
    "content": "Reading.",
    "thoughts": [{"subject": "Plan", "description": "Read it."}],
    "tokens": {"input": 100, "output": 10, "cached": 40, "thoughts": 5, "total": 115},
    "toolCalls": [CALL],
}
PROMPT = {"id": "m1", "type": "user", "timestamp": "2026-05-01T10:00:01Z", "content": "read it"}


def put(data):
    return BlobRef("0" * 64, len(data))


def read_document(document):
    lines = [json.dumps(document).encode()]
    return opencode.read_session(lambda: lines, "x")


def list_payloads(session):
    return [one for step in session.read_steps(put) for one in step.payloads]


def check_gemini(data):
    assert detect_tool(lambda: data.split(b"\n")) == "gemini"
    session = gemini_cli.read_session(lambda: data.split(b"\n"), "file")
    prompt, answer, result = list_payloads(session)
    assert (session.id, join_texts(prompt.content)) == ("g-1", "read it")
    assert [type(block).__name__ for block in answer.content] == ["Thinking", "Text", "ToolCall"]
    assert (answer.model, answer.usage.input, answer.usage.cache_read) == ("gemini-3-pro", 60, 40)
    assert (answer.usage.output, answer.usage.reasoning) == (15, 5)
    assert isinstance(result, ToolResult)
    assert result.call_id == select_tool_calls(answer.content)[0].id
    assert join_texts(result.content) == "x = 1"


def test_a_chat_of_gemini_is_a_document():
    check_gemini(json.dumps({**HEADER, "messages": [PROMPT, ANSWER]}, indent=2).encode())


def test_or_a_message_on_each_line_and_the_last_of_one_id_counts():
    early = {**ANSWER, "content": "Rea", "toolCalls": []}
    data = write_lines(HEADER, PROMPT, early, {"$set": {"lastUpdated": "x"}}, ANSWER, ANSWER)
    check_gemini(data)
    session = gemini_cli.read_session(lambda: data.split(b"\n"), "file")
    list_payloads(session)
    assert session.left_out == {"covered": 1, "repeated": 1}


def test_a_message_of_the_model_is_an_answer():
    parts = {"id": "m2", "type": "model", "model": "gemini-3-pro", "parts": [{"text": "Done."}]}
    words = {"id": "m3", "type": "model", "content": "Really."}
    asked = {"id": "m1", "type": "user", "parts": [{"text": "go"}]}
    data = json.dumps({**HEADER, "messages": [asked, parts, words]}).encode()
    session = gemini_cli.read_session(lambda: [data], "file")
    prompt, *answers = list_payloads(session)
    assert (type(prompt), join_texts(prompt.content)) == (User, "go")
    assert [type(one) for one in answers] == [Assistant, Assistant]
    assert [join_texts(one.content) for one in answers] == ["Done.", "Really."]
    assert (answers[0].provider, answers[0].model) == ("google", "gemini-3-pro")
    assert not session.unknown


def test_remarks_and_calls_that_failed():
    failed = {**CALL, "status": "error", "result": [], "resultDisplay": "no such file"}
    messages = [{"type": "info", "content": "hello"}, {**ANSWER, "toolCalls": [failed]}]
    data = json.dumps({**HEADER, "messages": messages}).encode()
    note, _, result = list_payloads(gemini_cli.read_session(lambda: [data], "file"))
    assert note == Note("hello")
    assert (result.is_error, join_texts(result.content)) == (True, "no such file")


def make_message(identity, role, *parts, **more):
    return {"info": {"id": identity, "role": role, "time": {"created": 1780000000000}, **more},
            "parts": [*parts]}  # fmt: skip


WORDS = {"type": "text", "text": "read it"}
TOOL = {
    "type": "tool",
    "tool": "read",
    "callID": "call_1",
    "state": {"status": "completed", "input": {"filePath": "a.py"}, "output": "x = 1"},
}
TOKENS = {"input": 10, "output": 3, "reasoning": 2, "cache": {"read": 7, "write": 0}}
DOCUMENT = {
    "info": {
        "id": "ses_1",
        "title": "Reading",
        "directory": "/src/app",
        "time": {"created": 1780000000000},
    },
    "messages": [
        make_message("msg_1", "user", WORDS),
        make_message(
            *("msg_2", "assistant", {"type": "step-start"}),
            *({"type": "reasoning", "text": "hm"}, {"type": "text", "text": "Reading."}, TOOL),
            modelID="claude-sonnet-5",
            providerID="anthropic",
            tokens=TOKENS,
            cost=0.25,
            finish="tool-calls",
        ),
    ],
}


def check_opencode(session):
    prompt, answer, result = list_payloads(session)
    assert (session.id, session.title, session.cwd) == ("ses_1", "Reading", "/src/app")
    assert isinstance(prompt, User)
    assert [type(block).__name__ for block in answer.content] == ["Thinking", "Text", "ToolCall"]
    assert (answer.provider, answer.cost.amount, answer.stop_reason) == (
        *("anthropic", 0.25, "tool_calls"),
    )
    assert (answer.usage.input, answer.usage.output, answer.usage.cache_read) == (10, 5, 7)
    assert result.call_id == select_tool_calls(answer.content)[0].id


def test_an_export_of_opencode():
    data = json.dumps(DOCUMENT, indent=1).encode()
    assert detect_tool(lambda: data.split(b"\n")) == "opencode"
    check_opencode(opencode.read_session(lambda: data.split(b"\n"), "x"))


def test_a_reverted_session_is_where_it_went_back_to():
    document = {**DOCUMENT, "info": {**DOCUMENT["info"], "revert": {"messageID": "msg_2"}}}
    assert read_document(document).newest == "msg_1#0"


def test_a_compaction_of_opencode_is_an_anchor():
    document = {
        **DOCUMENT,
        "messages": [
            *DOCUMENT["messages"],
            make_message("msg_3", "user", {"type": "compaction"}),
            make_message("msg_4", "assistant", {"type": "text", "text": "short"}, summary=True),
        ],
    }
    anchor = list_payloads(read_document(document))[-1]
    assert isinstance(anchor, Anchor)
    assert anchor.summary == "short"


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "opencode.db"
    with sqlite3.connect(path) as opened:
        opened.execute(
            "CREATE TABLE session (id, title, directory, version, parent_id,"
            " time_created, time_updated, revert)"
        )
        opened.execute("CREATE TABLE message (id, session_id, time_created, data)")
        opened.execute("CREATE TABLE part (id, message_id, session_id, time_created, data)")
        info = DOCUMENT["info"]
        opened.execute(
            "INSERT INTO session VALUES (?, ?, ?, '1', NULL, ?, 0, NULL)",
            (info["id"], info["title"], info["directory"], info["time"]["created"]),
        )
        for message in DOCUMENT["messages"]:
            own = message["info"]["id"]
            data = {name: part for name, part in message["info"].items() if name != "id"}
            opened.execute("INSERT INTO message VALUES (?, 'ses_1', 0, ?)", (own, json.dumps(data)))
            for number, part in enumerate(message["parts"]):
                opened.execute(
                    "INSERT INTO part VALUES (?, ?, 'ses_1', 0, ?)",
                    (f"{own}-{number}", own, json.dumps(part)),
                )
    opened.close()
    return path


def test_a_session_in_the_database_of_opencode(database):
    (source,) = find_sessions_in(database.parent)
    assert source.name == f"{database}#ses_1"
    session, _ = open_session_file(source)
    check_opencode(session)


def test_an_answer_is_an_answer_in_every_document():
    chat = json.dumps({**HEADER, "messages": [ANSWER]}).encode()
    for session in (
        gemini_cli.read_session(lambda: [chat], "x"),
        read_document(DOCUMENT),
    ):
        assert sum(isinstance(one, Assistant) for one in list_payloads(session)) == 1


def say(identity, words):
    return {"id": identity, "type": "user", "content": words}


def list_branches(tmp_path, *lines):
    """Return the words on each branch of the tape of a chat of Gemini CLI."""
    session = read_lines("gemini", write_lines(HEADER, *lines))
    store = Store(tmp_path, durable=False)
    found = describe_branches(store, store_session(store, session).id)
    with store.open(session.tape_id) as tape:
        current = tape.refs().current
    return current, {
        name: [words for kind, words in said if kind == "User"] for name, said in found.items()
    }


def test_what_gemini_rewound_is_another_branch(tmp_path):
    """`$rewindTo` takes back its message too; what follows it begins a branch."""
    shared, gone = say("m1", "one"), say("m2", "two")
    _, branches = list_branches(tmp_path, shared, gone, say("m3", "three"))
    assert branches == {"main": ["one", "two", "three"]}
    rewound = [shared, gone, say("m3", "three"), {"$rewindTo": "m2"}]
    current, branches = list_branches(tmp_path, *rewound)
    assert branches == {"main": ["one", "two", "three"], current: ["one"]}
    again = [*rewound, say("m4", "four"), say("m2", "two again")]
    current, branches = list_branches(tmp_path, *again)
    assert branches == {"main": ["one", "two", "three"], current: ["one", "four", "two again"]}
    current, branches = list_branches(tmp_path, *again, {"$rewindTo": "nosuch"}, say("m5", "five"))
    assert branches[current] == ["five"]
    assert len(branches) == 3


def test_messages_that_gemini_sets_are_added_once():
    lines = [say("m1", "one"), {"$set": {"messages": [say("m1", "one"), say("m2", "two")]}}]
    session = read_lines("gemini", write_lines(HEADER, *lines))
    assert [join_texts(one.content) for one in list_payloads(session)] == ["one", "two"]
