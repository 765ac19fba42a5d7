"""Sessions of Grok Build: folders with a log for people, a log for the model, and a summary."""

from __future__ import annotations

import json

import pytest

from tape.formats.sessions import grok
from tape.formats.sessions.loading import detect_tool
from tape.ids import compute_tape_id
from tape.model.entries import (
    AgentEnd,
    AgentStart,
    Anchor,
    Assistant,
    BlobRef,
    Context,
    Image,
    Note,
    SideUsage,
    Thinking,
    ToolResult,
    User,
    join_texts,
)
from tape.sessions.import_ import import_session
from tape.sessions.sources import (
    find_sessions_in,
    find_sessions_of,
    find_tool_folders,
    open_session_file,
)
from tape.store.store import Beginning, Store
from tests.tape.formats.sessions.lines import write_lines

ID = "019f45e3-e1ef-7690-a29f-fe2554382b49"
SUMMARY = {
    "info": {"id": ID, "cwd": "/repo"},
    "generated_title": "Repo Q&A",
    "created_at": "2026-07-02T01:24:11.341000Z",
    "current_model_id": "grok-4.5",
    "head_branch": "main",
}
USAGE = {
    "inputTokens": 100,
    "outputTokens": 20,
    "cachedReadTokens": 60,
    "reasoningTokens": 5,
    "costUsdTicks": 84868000,
}
CALLS = [
    {"id": "c1", "name": "read_file", "arguments": '{"path":"a.py"}'},
    {"id": "c2", "name": "run_terminal_command", "arguments": '{"command":"ls"}'},
]
CHAT = [
    {"type": "system", "content": "You are Grok."},
    {"type": "user", "content": [{"type": "text", "text": "<user_info>\nOS\n</user_info>"}]},
    {
        "type": "user",
        "content": [{"type": "text", "text": "<user_query>\nwhat is it?\n</user_query>"}],
        "prompt_index": 0,
    },
    {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": "e",
    },
    {
        "type": "assistant",
        "content": "Looking.",
        "tool_calls": CALLS,
        "model_id": "grok-4.5-build",
    },
    {"type": "tool_result", "tool_call_id": "c1", "content": "x = 1 in full"},
    {"type": "tool_result", "tool_call_id": "c2", "content": "no"},
    {"type": "assistant", "content": "It is x.", "model_id": "grok-4.5-build"},
]


def update(seconds, kind, *, meta=None, **fields):
    shown = {"sessionUpdate": kind, **fields}
    if meta is not None:
        shown["_meta"] = meta
    stamp = {"agentTimestampMs": 1783000000000 + seconds * 1000}
    params = {"sessionId": ID, "update": shown, "_meta": stamp}
    return {"timestamp": 1783000000 + seconds, "method": "session/update", "params": params}


def say(seconds, text, index, **meta):
    content = {"type": "text", "text": text}
    meta = {"modelId": "grok-4.5", "promptIndex": index, **meta}
    return update(seconds, "user_message_chunk", content=content, meta=meta)


def answer(seconds, text, kind="agent_message_chunk"):
    return update(seconds, kind, content={"type": "text", "text": text})


def call(seconds, identity, name, asked):
    meta = {"x.ai/tool": {"name": name}}
    return update(seconds, "tool_call", toolCallId=identity, title=name, rawInput=asked, meta=meta)


def result(seconds, identity, text, status="completed"):
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    return update(seconds, "tool_call_update", toolCallId=identity, status=status, content=content)


def end(seconds, reason="end_turn", usage=USAGE):
    return update(seconds, "turn_completed", stop_reason=reason, usage=usage)


UPDATES = [
    say(1, "what is it?", 0),
    answer(2, "Hm.", "agent_thought_chunk"),
    answer(3, "Looking."),
    call(4, "c1", "read_file", {"path": "a.py"}),
    call(4, "c2", "run_terminal_command", {"command": "ls"}),
    update(5, "tool_call_update", toolCallId="c1", status="in_progress"),
    result(6, "c1", "x = 1"),
    result(7, "c2", "no", "failed"),
    update(8, "hook_execution", event_name="stop"),
    answer(8, "It is x."),
    end(9),
]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / f".grok/sessions/%2Frepo/{ID}"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps(SUMMARY, indent=1))
    (folder / "chat_history.jsonl").write_bytes(write_lines(*CHAT))
    (folder / "updates.jsonl").write_bytes(write_lines(*UPDATES))
    (folder / "events.jsonl").write_text('{"ts":"2026-07-02T01:24:12Z","type":"turn_started"}\n')
    (folder / "signals.json").write_text('{"turnCount": 2}')
    return folder


def put(data):
    return BlobRef("0" * 64, len(data))


def read(folder):
    (found,) = find_sessions_of("grok", folder.parents[2])
    return open_session_file(found)[0]


def list_payloads(session):
    return [one for step in session.read_steps(put) for one in step.payloads]


def read_lines(*lines):
    data = write_lines(*lines).splitlines()
    return grok.read_session(lambda: data, ID)


def test_a_folder_becomes_one_conversation(folder, tmp_path):
    assert find_tool_folders({"HOME": str(tmp_path)})["grok"] == tmp_path / ".grok"
    assert len(find_sessions_in(tmp_path)) == 1
    assert detect_tool(lambda: (folder / "updates.jsonl").read_bytes().splitlines()) == "grok"
    session = read(folder)
    user, first, listed, failed, last = list_payloads(session)
    assert (type(user), join_texts(user.content)) == (User, "what is it?")
    thought, words, *calls = first.content
    assert (type(thought), thought.text, words.text) == (Thinking, "Hm.", "Looking.")
    assert [(one.name, json.loads(bytes(one.args))) for one in calls] == [
        ("read_file", {"path": "a.py"}),
        ("run_terminal_command", {"command": "ls"}),
    ]
    assert [one.call_id for one in (listed, failed)] == [one.id for one in calls]
    assert (join_texts(listed.content), listed.is_error) == ("x = 1 in full", False)
    assert (type(failed), failed.is_error) == (ToolResult, True)
    assert (last.usage.input, last.usage.cache_read, last.usage.total) == (40, 60, 120)
    assert last.cost.amount == pytest.approx(0.0084868)
    assert first.usage.total == 0
    assert (session.id, session.cwd, session.title, session.git.branch) == (
        *(ID, "/repo", "Repo Q&A"),
        "main",
    )
    assert [step.time for step in session.read_steps(put)][:2] == [
        *(1783000001_000000, 1783000002_000000),
    ]
    assert session.unknown == {}


def test_without_updates_the_log_of_the_model_is_read(folder):
    (folder / "updates.jsonl").unlink()
    session = read(folder)
    system, info, user, first, _, result_2, last = list_payloads(session)
    assert (system.role, type(info), join_texts(user.content)) == (
        *("system", Context),
        "what is it?",
    )
    assert json.loads(bytes(first.content[0].wire)) == {"id": "rs", "encrypted_content": "e"}
    assert [type(one).__name__ for one in first.content] == [
        *("Thinking", "Text", "ToolCall", "ToolCall"),
    ]
    assert (first.model, result_2.name) == ("grok-4.5-build", "run_terminal_command")
    assert (type(last), session.id) == (Assistant, ID)
    summary = {"type": "user", "content": "So far.", "synthetic_reason": "compaction_meta"}
    anchor = list_payloads(read_lines(SUMMARY, CHAT[0], summary, CHAT[-1]))[1]
    assert (type(anchor), anchor.summary) == (Anchor, "So far.")


def test_pictures_hidden_prompts_agents_and_what_is_unknown():
    image = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
    meta = {"modelId": "grok-4.5", "promptIndex": 0}
    child = {"subagent_id": "sub-1", "child_session_id": "sub-1", "subagent_type": "explore"}
    session = read_lines(
        say(1, "lo", 0),
        say(1, "ok", 0),
        update(1, "user_message_chunk", content=image, meta=meta),
        update(2, "subagent_spawned", description="count", **child),
        update(3, "subagent_finished", status="completed", output="two", **child),
        end(4, "cancelled", {}),
        say(5, "woken", 1, hideFromScrollback=True),
        end(6),
        update(7, "goal_updated", goal="x"),
    )
    user, start, finish, note, hidden, usage, unknown = list_payloads(session)
    assert [type(one).__name__ for one in user.content] == ["Text", "Image"]
    assert (join_texts(user.content), type(user.content[1])) == ("look", Image)
    assert (type(start), start.tape, start.task) == (
        *(AgentStart, compute_tape_id("grok", "sub-1")),
        "count",
    )
    assert (type(finish), finish.result) == (AgentEnd, "two")
    assert (type(note), note.text) == (Note, "the turn ended: cancelled")
    assert (type(hidden), type(usage), usage.usage.total) == (Context, SideUsage, 120)
    assert unknown.kind == "grok.goal_updated"


def test_rewinds_are_branches_and_compactions_anchors(folder, tmp_path):
    store = Store(tmp_path / "store")

    def record():
        return import_session(store, read(folder), Beginning("/", "t"), "f", "0" * 64)[0]

    first = record()
    assert (first.added, record().added) == (6, 0)
    more = [say(10, "more", 1), answer(11, "More."), end(12)]
    more += [update(13, "rewind_marker", target_prompt_index=1), say(14, "else", 1)]
    (folder / "updates.jsonl").write_bytes(write_lines(*UPDATES, *more))
    grown = record()
    assert (grown.id, grown.added, grown.branches) == (first.id, 3, 2)
    more += [answer(15, "Else."), end(16)]
    more += [update(17, "compaction_checkpoint", checkpoint_id="cp1")]
    more += [update(18, "auto_compact_completed", tokens_before=900, tokens_after=90)]
    (folder / "updates.jsonl").write_bytes(write_lines(*UPDATES, *more))
    checkpoint = {
        "checkpoint_id": "cp1",
        "compacted_history": [
            {"type": "user", "content": "So far.", "synthetic_reason": "compaction_meta"}
        ],
    }
    (folder / "compaction_checkpoints").mkdir()
    (folder / "compaction_checkpoints/cp1.json").write_text(json.dumps(checkpoint, indent=1))
    omitted = {**CHAT[5], "content": "[Tool result omitted — too old]"}
    summary = {"type": "user", "content": "So far.", "synthetic_reason": "compaction_meta"}
    (folder / "chat_history.jsonl").write_bytes(write_lines(CHAT[0], omitted, summary))
    done = record()
    assert (done.added, done.branches) == (2, 2)
    with store.open(done.id) as tape:
        newest = [one.data for one in tape.entries(tape.head())][-1]
    assert (newest.summary, newest.tokens.before) == ("So far.", 900)
    assert record().added == 0


def test_damaged_files_cost_their_lines_only(folder):
    damaged = write_lines(*UPDATES[:3]) + b'{broken\n[]\n{"params": 3}\n\xff\xfe\n'
    damaged += b'{"params":{"update":{"sessionUpdate":4,"content":[]}}}\n'
    (folder / "updates.jsonl").write_bytes(damaged + write_lines(*UPDATES[3:]) + b'{"params":{"upd')
    (folder / "summary.json").write_text("{")
    (folder / "chat_history.jsonl").write_bytes(b'{"type":"tool_result","tool_call_id":4}\nx\n')
    session = read(folder)
    kinds = [type(one).__name__ for one in list_payloads(session)]
    assert kinds.count("ToolResult") == 2
    assert session.damaged == 6
    whole = write_lines(*CHAT)
    (folder / "updates.jsonl").unlink()
    for size in range(0, len(whole), 97):
        (folder / "chat_history.jsonl").write_bytes(whole[:size] or b"\n")
        data = whole[:size].splitlines()
        list_payloads(grok.read_session(lambda data=data: data, ID))
