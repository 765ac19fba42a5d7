"""Sessions of Qwen Code: records of a tree."""

from __future__ import annotations

import json
from itertools import count

import pytest

from tape.model.entries import Anchor, Assistant, Context, Note, ToolResult, User
from tape.sessions.sources import find_sessions_of, find_tool_folders, open_session_file
from tape.store.store import Store
from tests.tape.formats.sessions.lines import (
    describe_branches,
    list_payloads,
    read_lines,
    store_session,
    write_lines,
)

ID = "0f3b8a52-6c1e-4c55-9a1e-6f6f3f1c2d11"
CALL = {"functionCall": {"id": "c1", "name": "list_directory", "args": {"path": "."}}}
RESULT = {"functionResponse": {"id": "c1", "name": "list_directory", "response": {"output": "a"}}}


class QwenFile:
    """A chat that grows; each method adds a record and returns its uuid."""

    def __init__(self):
        self.lines = []
        self._numbers = count(1)

    def add(self, kind, parent, *parts, subtype=None, payload=None, **more):
        number = next(self._numbers)
        record = {
            "uuid": f"u{number}",
            "parentUuid": parent,
            "sessionId": ID,
            "timestamp": f"2026-10-01T10:00:{number:02}.000Z",
            "type": kind,
            "cwd": "/src/app",
            "version": "0.24.4",
            "gitBranch": "main",
            **({"subtype": subtype} if subtype else {}),
            **({"systemPayload": payload} if payload else {}),
            **more,
        }
        if parts:
            role = "model" if kind == "assistant" else "user"
            record["message"] = {"role": role, "parts": [*parts]}
        self.lines.append(record)
        return record["uuid"]

    @property
    def data(self):
        return write_lines(*self.lines)


@pytest.fixture
def chat():
    made = QwenFile()
    first = made.add("user", None, {"text": "list"})
    silent = made.add("system", first, subtype="ui_telemetry", payload={"uiEvent": {}})
    usage = {
        "promptTokenCount": 10,
        "cachedContentTokenCount": 4,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 2,
        "totalTokenCount": 15,
    }
    answer = made.add(
        *("assistant", silent, {"text": "Hm.", "thought": True}, CALL),
        model="qwen3",
        usageMetadata=usage,
    )
    made.add("tool_result", answer, RESULT)
    return made


def test_records_become_a_conversation(chat, tmp_path):
    chat.add("system", "u4", subtype="slash_command",
             payload={"phase": "invocation", "rawCommand": "/stats"})  # fmt: skip
    chat.add("user", "u5", {"text": "task done"}, subtype="notification")
    chat.add("system", "u6", subtype="custom_title", payload={"customTitle": "A list"})
    chat.add("system", "u6", subtype="goal_state", payload={"x": 1})
    session = read_lines("qwen", chat.data)
    user, answer, result, note, hidden, unknown = list_payloads(session)
    assert (type(user), type(answer), type(result)) == (User, Assistant, ToolResult)
    thought, call = answer.content
    assert (thought.text, call.name, bytes(call.args)) == ("Hm.", "list_directory", b'{"path":"."}')
    assert (answer.provider, answer.model) == ("qwen", "qwen3")
    usage = answer.usage
    assert (usage.input, usage.cache_read, usage.output, usage.reasoning) == (6, 4, 5, 2)
    assert (result.call_id, result.name) == (call.id, "list_directory")
    assert (type(note), note.text) == (Note, "/stats")
    assert isinstance(hidden, Context)
    assert unknown.kind == "qwen.goal_state"
    assert (session.id, session.cwd, session.title) == (ID, "/src/app", "A list")
    file = tmp_path / f".qwen/projects/-src-app/chats/{ID}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(chat.data)
    (found,) = find_sessions_of("qwen", find_tool_folders({"HOME": str(tmp_path)})["qwen"])
    assert open_session_file(found)[0].id == ID


def test_results_say_what_qwen_shows_and_whether_they_failed(chat):
    shown = {"callId": "c1", "status": "error", "resultDisplay": "1 line", "responseParts": []}
    chat.lines[-1]["toolCallResult"] = shown
    *_, result = list_payloads(read_lines("qwen", chat.data))
    assert result.is_error
    assert json.loads(bytes(result.details)) == {"status": "error", "resultDisplay": "1 line"}


def test_thoughts_are_counted_once(chat):
    usage = chat.lines[2]["usageMetadata"]
    usage["totalTokenCount"] = 13  # the three tokens of the answer have two of thoughts in them
    _, answer, _ = list_payloads(read_lines("qwen", chat.data))
    assert (answer.usage.output, answer.usage.reasoning, answer.usage.total) == (3, 2, 13)


def test_a_side_chain_is_a_session_of_its_own():
    made = QwenFile()
    made.add("user", None, {"text": "look"}, isSidechain=True, agentId="Explore-7f3c")
    assert read_lines("qwen", made.data).id == f"{ID}/Explore-7f3c"


def test_a_rewind_is_a_branch_and_a_compression_an_anchor(chat, tmp_path):
    said = chat.add("assistant", "u4", {"text": "One."}, model="qwen3")
    chat.add("system", "u1", subtype="rewind", payload={"truncatedCount": 3})
    other = chat.add("user", "u6", {"text": "other"})
    kept = chat.lines[-1]["message"]
    summary = {"role": "user", "parts": [{"text": "<state>so far</state>"}]}
    sure = {"role": "model", "parts": [{"text": "Got it."}]}
    payload = {"compressedHistory": [summary, sure, kept], "info": {}}
    packed = chat.add("system", other, subtype="chat_compression", payload=payload)
    chat.add("user", packed, {"text": "more"})
    store = Store(tmp_path / "store")
    session = read_lines("qwen", chat.data)
    done = store_session(store, session)
    branches = describe_branches(store, done.id)
    assert done.branches == 2
    assert [text for _, text in branches["main"]][-1] == "One."
    (other_branch,) = (one for name, one in branches.items() if name != "main")
    assert [kind for kind, _ in other_branch][-3:] == ["User", "Anchor", "User"]
    anchor = next(one for one in list_payloads(session) if isinstance(one, Anchor))
    assert anchor.summary == "<state>so far</state>"
    with store.open(done.id) as tape:
        entries = [one.data for one in tape.entries(tape.head())]
        assert next(one for one in entries if isinstance(one, Anchor)).kept[0].count == 1
    assert store_session(store, read_lines("qwen", chat.data)).added == 0
    assert said == "u5"
