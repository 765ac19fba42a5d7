"""A line that an agent writes a second time is left out and counted; the first one counts."""

from __future__ import annotations

import json

import pytest

from tape.formats.sessions.loading import load_reader
from tape.formats.sessions.steps import REPEATED
from tape.model.entries import Assistant, join_texts
from tape.store.store import Store
from tests.tape.formats.sessions.lines import (
    ClaudeFile,
    CodexFile,
    call,
    describe_branches,
    list_payloads,
    read_lines,
    store_session,
    text,
    write_lines,
)

NOW = "2026-05-01T10:00:00.000Z"


def write_claude():
    file = ClaudeFile()
    file.say("u1", None, "list it")
    file.answer("a1", "u1", text("look"), message="m")
    file.answer("a2", "a1", call("t1"), message="m")
    file.result("r1", "a2", "t1", "a.py")
    file.answer("a3", "r1", text("it is listed"))
    return file.lines


def write_codex():
    file = CodexFile()
    file.message("user", "go")
    file.item(type="function_call", call_id="c1", name="shell", arguments="{}")
    file.item(type="function_call_output", call_id="c1", output="a.py")
    file.message("assistant", "done")
    file.tokens(100, 10, 110)
    return file.lines


def write_pi():
    def entry(identity, parent, role, words):
        content = [{"type": "text", "text": words}]
        told = {"role": role, "content": content}
        return {"type": "message", "id": identity, "parentId": parent, "timestamp": NOW} | {
            "message": told
        }

    return [
        {"type": "session", "version": 3, "id": "s", "timestamp": NOW, "cwd": "/w"},
        entry("aaaa0001", None, "user", "one"),
        entry("aaaa0002", "aaaa0001", "assistant", "ans"),
    ]


def write_qwen():
    def record(identity, parent, kind, words):
        facts = {"sessionId": "s", "version": "1", "timestamp": NOW, "cwd": "/w"}
        said = {"role": "model" if kind == "assistant" else "user", "parts": [{"text": words}]}
        return facts | {"uuid": identity, "parentUuid": parent, "type": kind, "message": said}

    return [record("1", None, "user", "go"), record("2", "1", "assistant", "done")]


def write_gemini():
    header = {"sessionId": "s", "projectHash": "h", "startTime": NOW, "lastUpdated": NOW}
    return [
        header,
        {"id": "1", "timestamp": NOW, "type": "user", "content": "go"},
        {"id": "2", "timestamp": NOW, "type": "gemini", "content": "done"},
    ]


def write_copilot():
    def event(number, kind, **data):
        return {"type": kind, "id": f"e{number}", "timestamp": NOW, "data": data}

    return [
        event(0, "session.start", sessionId="s"),
        event(1, "user.message", content="go"),
        event(2, "assistant.message", messageId="m", content="done"),
    ]


def write_antigravity():
    def step(number, source, kind, words):
        facts = {"step_index": number, "source": source, "type": kind, "status": "DONE"}
        return facts | {"created_at": f"2026-05-01T10:00:0{number}Z", "content": words}

    return [
        step(0, "USER_EXPLICIT", "USER_INPUT", "go"),
        step(1, "MODEL", "PLANNER_RESPONSE", "done"),
    ]


def write_goose():
    def message(identity, role, words):
        content = [{"type": "text", "text": words}]
        return {"id": identity, "role": role, "created": 1_777_000_000, "content": content}

    header = {"working_dir": "/w", "description": "d"}
    return [header, message("m1", "user", "go"), message("m2", "assistant", "done")]


def write_vibe():
    facts = {"session_id": "s", "start_time": NOW, "environment": {"working_directory": "/w"}}
    return [
        facts,
        {"role": "user", "content": "go", "message_id": "m1"},
        {"role": "assistant", "content": "done", "message_id": "m2"},
    ]


def write_llm():
    def message(identity, parent, role, words):
        parts = [{"type": "text", "text": words}]
        return {"llm_message": identity, "parent": parent, "role": role, "parts": parts}

    return [
        {"llm_session": "s", "model": "m"},
        message("1", None, "user", "go"),
        message("2", "1", "assistant", "done"),
    ]


LINES = {
    "claude": write_claude(),
    "codex": write_codex(),
    "pi": write_pi(),
    "qwen": write_qwen(),
    "gemini": write_gemini(),
    "copilot": write_copilot(),
    "antigravity": write_antigravity(),
    "goose": write_goose(),
    "vibe": write_vibe(),
    "llm": write_llm(),
}
"""Tool → the lines of a session; those of all but the header have an id or a time."""
HEADERS = frozenset({"pi", "gemini", "goose", "vibe", "llm"})
"""Tools whose first line is no part of the conversation."""


@pytest.mark.parametrize("tool", LINES)
def test_repeated_lines_are_left_out_and_counted(tool):
    lines = LINES[tool]
    again = lines[tool in HEADERS :]
    once = read_lines(tool, write_lines(*lines))
    twice = read_lines(tool, write_lines(*lines, *again))
    assert list_payloads(twice) == list_payloads(once) != []
    assert twice.left_out[REPEATED] == len(again)
    assert once.left_out[REPEATED] == 0


DOCUMENTS = {
    "opencode": {
        "info": {"id": "s"},
        "messages": [
            {"info": {"id": "1", "role": "user"}, "parts": [{"type": "text", "text": "go"}]},
            {"info": {"id": "2", "role": "assistant"}, "parts": [{"type": "text", "text": "so"}]},
        ],
    },
    "amp": {
        "id": "T-1",
        "messages": [
            {"messageId": 0, "role": "user", "content": [{"type": "text", "text": "go"}]},
            {"messageId": 1, "role": "assistant", "content": [{"type": "text", "text": "so"}]},
        ],
    },
    "gemini": {
        "sessionId": "s",
        "startTime": NOW,
        "messages": [
            {"id": "1", "type": "user", "content": "go"},
            {"id": "2", "type": "gemini", "content": "so"},
        ],
    },
    "atif": {
        "schema_version": "ATIF-v1.8",
        "steps": [
            {"step_id": 1, "source": "user", "message": "go"},
            {"step_id": 2, "source": "agent", "message": "so"},
        ],
    },
}


@pytest.mark.parametrize("tool", DOCUMENTS)
def test_repeated_messages_of_a_document_are_left_out(tool):
    document = DOCUMENTS[tool]
    name = "steps" if tool == "atif" else "messages"
    once = read_lines(tool, write_lines(document))
    twice = read_lines(tool, write_lines({**document, name: document[name] * 2}))
    assert list_payloads(twice) == list_payloads(once) != []
    assert twice.left_out[REPEATED] == 2


def test_the_first_line_of_a_uuid_wins_when_a_later_one_has_another_parent(tmp_path):
    file = ClaudeFile()
    file.say("u1", None, "one")
    file.answer("a1", "u1", text("first"))
    file.say("u2", "a1", "two")
    file.answer("a2", "u2", text("second"))
    file.lines += [{**file.lines[2], "parentUuid": None}, {**file.lines[3], "parentUuid": None}]
    session = read_lines("claude", file.data)
    said = [one for one in list_payloads(session) if isinstance(one, Assistant)]
    assert [join_texts(one.content) for one in said] == ["first", "second"]


@pytest.mark.parametrize("tool", ["claude", "codex", "pi"])
def test_a_session_imported_in_steps_has_each_line_once(tool, tmp_path):
    store = Store(tmp_path / "store", durable=False)
    lines = LINES[tool]
    again = [*lines, *lines[tool in HEADERS :]]
    whole = [json.dumps(line).encode() for line in again]
    for count in range(1, len(whole) + 1):
        session = load_reader(tool).read_session(lambda count=count: whole[:count], "name")
        done = store_session(store, session)
    fresh = Store(tmp_path / "fresh", durable=False)
    once = store_session(fresh, read_lines(tool, write_lines(*lines)))
    grown = describe_branches(store, done.id)
    assert [*grown] == ["main"]
    said = [
        one for one in grown["main"] if one[0] != "Branch"
    ]  # an answer that grew begins a phase
    assert said == describe_branches(fresh, once.id)["main"]
