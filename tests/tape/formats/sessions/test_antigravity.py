"""Transcripts of Antigravity's CLI."""

from __future__ import annotations

import json

from tape.formats.sessions import antigravity
from tape.formats.sessions.loading import detect_tool
from tape.ids import compute_tape_id
from tape.model.entries import (
    AgentEnd,
    AgentStart,
    Anchor,
    Assistant,
    BlobRef,
    Context,
    Note,
    Thinking,
    ToolResult,
    User,
    join_texts,
)
from tape.sessions.import_ import import_session
from tape.sessions.sources import (
    find_sessions_of,
    find_tool_folders,
    open_session_file,
)
from tape.store.store import Beginning, Store
from tests.tape.formats.sessions.lines import write_lines

ID = "901d1db7-8590-4cb0-a7cb-35fac369d860"
SETTINGS = (
    "<USER_SETTINGS_CHANGE>\nThe user changed setting `Model Selection` from None to "
    "Gemini 3.5 Flash (Medium). No need to comment.\n</USER_SETTINGS_CHANGE>"
)


def step(index, kind, content=None, source="MODEL", **more):
    line = {"step_index": index, "source": source, "type": kind, "status": "DONE"}
    line["created_at"] = f"2026-06-26T21:16:{index:02}Z"
    return line | ({} if content is None else {"content": content}) | more


def say(index, text, added=""):
    content = f"<USER_REQUEST>\n{text}\n</USER_REQUEST>{added}"
    return step(index, "USER_INPUT", content, "USER_EXPLICIT")


CALLS = [
    {"name": "list_dir", "args": {"DirectoryPath": '"/src"', "Depth": "2"}},
    {"name": "run_command", "args": {"CommandLine": '"ls"', "Cwd": '"/src/app"'}},
]
LINES = [
    say(0, "list the files", f"\n{SETTINGS}"),
    step(1, "CONVERSATION_HISTORY", source="SYSTEM"),
    step(
        2,
        "PLANNER_RESPONSE",
        thinking="Hm.",
        tool_calls=CALLS,
        usage={"input_tokens": 100, "output_tokens": 50, "cached_content_token_count": 20},
    ),
    step(3, "LIST_DIRECTORY", "a.py"),
    step(4, "RUN_COMMAND", "no", status="ERROR"),
    step(5, "PLANNER_RESPONSE", "One file."),
]


def put(data):
    return BlobRef("0" * 64, len(data))


def read(*lines):
    data = write_lines(*lines).splitlines()
    return antigravity.read_session(lambda: data, ID)


def list_payloads(session):
    return [one for made in session.read_steps(put) for one in made.payloads]


def test_a_transcript_becomes_a_conversation(tmp_path):
    file = tmp_path / f".gemini/antigravity-cli/brain/{ID}/.system_generated/logs/transcript.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(write_lines(*LINES))
    file.with_name("transcript_full.jsonl").write_bytes(write_lines(*LINES))
    folders = find_tool_folders({"HOME": str(tmp_path)})
    (found,) = find_sessions_of("antigravity", folders["antigravity"])
    session, _ = open_session_file(found)
    assert detect_tool(lambda: file.read_bytes().splitlines()) == "antigravity"
    added, user, answer, listed, failed, last = list_payloads(session)
    assert (type(added), type(user)) == (Context, User)
    assert join_texts(user.content) == "list the files"
    thought, *calls = answer.content
    assert (type(thought), thought.text) == (Thinking, "Hm.")
    assert [(one.name, json.loads(bytes(one.args))) for one in calls] == [
        ("list_dir", {"DirectoryPath": "/src", "Depth": 2}),
        ("run_command", {"CommandLine": "ls", "Cwd": "/src/app"}),
    ]
    assert (answer.model, answer.provider) == ("Gemini 3.5 Flash (Medium)", "google")
    assert (answer.usage.input, answer.usage.cache_read, answer.usage.total) == (80, 20, 150)
    assert [one.call_id for one in (listed, failed)] == [one.id for one in calls]
    assert (type(listed), listed.is_error, failed.is_error) == (ToolResult, False, True)
    assert (type(last), join_texts(last.content)) == (Assistant, "One file.")
    assert (session.id, session.cwd) == (ID, "/src/app")
    assert session.created == 1782508560_000000


def test_checkpoints_remarks_and_sub_agents():
    invoked = {"name": "invoke_subagent", "args": {"Role": "Coder"}}
    session = read(
        say(0, "go"),
        step(1, "CHECKPOINT", "{{ CHECKPOINT 0 }}\nSo far.", "SYSTEM"),
        step(2, "PLANNER_RESPONSE", tool_calls=[invoked], model="gemini-3.8"),
        step(3, "INVOKE_SUBAGENT", '{"conversationId":"sub-123"}', "SYSTEM"),
        step(4, "SYSTEM_MESSAGE", "remember", "SYSTEM"),
        step(5, "ERROR_MESSAGE", "overloaded", "SYSTEM", error_code=429),
        step(6, "VIEW_FILE", "result of no call"),
        step(7, "AGENT_MESSAGE", "hello", "sub-123"),
    )
    _, anchor, answer, start, result, end, context, note, odd, message = list_payloads(session)
    assert (type(anchor), anchor.summary) == (Anchor, "{{ CHECKPOINT 0 }}\nSo far.")
    assert answer.model == "gemini-3.8"
    assert json.loads(bytes(answer.content[0].args)) == {"Role": "Coder"}
    assert (type(start), start.tape) == (AgentStart, compute_tape_id("antigravity", "sub-123"))
    assert (result.name, type(end), end.status) == ("invoke_subagent", AgentEnd, "completed")
    assert (type(context), type(note), note.text) == (Context, Note, "overloaded")
    assert [odd.kind, message.kind] == ["antigravity.view_file", "antigravity.agent_message"]
    assert session.unknown == {"view_file": 1, "agent_message": 1}


def test_a_prompt_at_an_earlier_step_is_a_branch_and_growth_is_continued(tmp_path):
    store = Store(tmp_path)

    def record(*lines):
        return import_session(store, read(*lines), Beginning("/", "t"), "f", "0" * 64)[0]

    first = record(*LINES[:3], step(5, "PLANNER_RESPONSE", "One", status="RUNNING"))
    assert (first.added, record(*LINES[:3]).added) == (5, 0)
    done = record(*LINES[:3], LINES[5])
    assert (done.id, done.added, done.branches) == (first.id, 1, 1)
    store = Store(tmp_path / "other")
    first = record(*LINES, say(6, "more"), step(7, "PLANNER_RESPONSE", "More."))
    grown = record(*LINES, say(6, "more"), step(7, "PLANNER_RESPONSE", "More."), say(6, "else"))
    assert (grown.added, grown.branches) == (1, 2)
    with store.open(grown.id) as tape:
        entries = [one.data for one in tape.entries(tape.head())]
        said = [join_texts(one.content) for one in entries if isinstance(one, User | Assistant)]
    assert said[-2:] == ["One file.", "else"]


def test_damaged_lines_cost_themselves_only():
    data = write_lines(*LINES).splitlines()
    data[1:1] = [b"{broken", b"[]", b"", b"\xff\xfe"]
    data.append(
        b'{"step_index": 9, "type": "PLANNER_RESPONSE", "tool_calls": [3, {"args": 4}], "us'
    )
    data.append(b'{"step_index": "x", "type": "PLANNER_RESPONSE", "tool_calls": [3, {"args": 4}]}')
    session = antigravity.read_session(lambda: data, ID)
    assert len(list_payloads(session)) == 7
    assert session.damaged == 4
