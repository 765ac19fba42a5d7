"""Sessions of agents that publish no format: Copilot CLI and Amp."""

from __future__ import annotations

import json

from tape.formats.sessions import amp, copilot
from tape.formats.sessions.loading import detect_tool
from tape.model.entries import (
    Assistant,
    BlobRef,
    Note,
    Thinking,
    ToolResult,
    Usage,
    User,
    join_texts,
    select_tool_calls,
)
from tape.sessions.sources import find_sessions_of, find_tool_folders, open_session_file


def put(data):
    return BlobRef("0" * 64, len(data))


def list_payloads(session):
    return [one for step in session.read_steps(put) for one in step.payloads]


def event(number, kind, **data):
    time = f"2026-05-01T10:00:{number:02}.000Z"
    told = {"type": kind, "id": f"e{number}", "timestamp": time, "parentId": None, "data": data}
    return json.dumps(told).encode()


EVENTS = [
    event(
        0,
        "session.start",
        sessionId="s-1",
        producer="copilot-agent",
        copilotVersion="1.0.1",
        startTime="2026-05-01T10:00:00Z",
        selectedModel="gpt-6",
        context={"cwd": "/src/app", "branch": "main"},
    ),
    event(1, "user.message", content="list it", attachments=[]),
    event(2, "assistant.turn_start", turnId="0"),
    event(
        3,
        "assistant.message",
        messageId="m1",
        content="Listing.",
        reasoningText="Look first.",
        outputTokens=7,
        toolRequests=[{"toolCallId": "c1", "name": "bash", "arguments": {"command": "ls"}}],
    ),
    event(4, "tool.execution_start", toolCallId="c1", toolName="bash", arguments={}),
    event(5, "tool.execution_complete", toolCallId="c1", success=True, result={"content": "a.py"}),
    event(6, "session.model_change", newModel="claude-x"),
    event(7, "session.info", infoType="mcp", message="connected"),
    event(8, "assistant.message", messageId="m2", content="a.py"),
    event(9, "assistant.message", messageId="m3", content="inside", parentToolCallId="c1"),
    event(10, "session.truncation", tokens=9),
    event(11, "tool.execution_complete", toolCallId="c9", success=False, error={"message": "no"}),
]


def test_events_of_copilot_become_a_conversation():
    lines = [*EVENTS[:4], b"{broken", *EVENTS[4:]]
    assert detect_tool(lambda: lines) == "copilot"
    session = copilot.read_session(lambda: lines, "folder")
    payloads = list_payloads(session)
    assert (session.id, session.cwd, session.damaged) == ("s-1", "/src/app", 1)
    assert session.git is not None
    assert session.git.branch == "main"
    assert session.unknown == {"subagent_assistant_message": 1, "session_truncation": 1}
    user, first, result, note, second, _, _, failed = payloads
    assert isinstance(user, User)
    assert isinstance(first, Assistant)
    assert type(first.content[0]) is Thinking
    assert (first.model, first.usage, first.response_id) == ("gpt-6", Usage(0, 7, total=7), "m1")
    (call,) = select_tool_calls(first.content)
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.name, join_texts(result.content)) == (call.id, "bash", "a.py")
    assert note == Note("connected")
    assert isinstance(second, Assistant)
    assert second.model == "claude-x"
    assert isinstance(failed, ToolResult)
    assert (failed.is_error, join_texts(failed.content)) == (True, "no")


def test_a_session_that_grew_gives_the_same_steps_and_more():
    def steps(count):
        session = copilot.read_session(lambda: EVENTS[:count], "x")
        return [*session.read_steps(put)]

    whole = steps(len(EVENTS))
    for count in range(1, len(EVENTS)):
        part = steps(count)
        assert whole[: len(part)] == part


THREAD = {
    "v": 42,
    "id": "T-0199aaaa-bbbb-7ccc-8ddd-eeeeffff0001",
    "created": 1768178184664,
    "title": "Fix the off-by-one",
    "env": {
        "initial": {
            "trees": [
                {"uri": "file:///src/my%20app", "repository": {"ref": "refs/heads/main"}},
            ]
        }
    },
    "messages": [
        {
            "role": "user",
            "meta": {"sentAt": 1768178271390},
            "content": [{"type": "text", "text": "fix it"}],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "x", "provider": "anthropic"},
                {
                    "type": "tool_use",
                    "complete": True,
                    "id": "toolu_01",
                    "name": "Bash",
                    "input": {"cmd": "make"},
                },
            ],
            "state": {"type": "complete", "stopReason": "tool_use"},
            "usage": {
                "model": "claude-x",
                "inputTokens": 12,
                "outputTokens": 80,
                "cacheReadInputTokens": 3400,
                "cacheCreationInputTokens": 900,
            },
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "toolUseID": "toolu_01",
                    "run": {"status": "error", "error": {"message": "no make"}},
                }
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "I st"}],
            "state": {"type": "cancelled"},
        },
        {"role": "parent", "threads": []},
    ],
}


def test_a_thread_of_amp_becomes_a_conversation():
    lines = json.dumps(THREAD, indent=2).encode().split(b"\n")
    assert detect_tool(lambda: lines) == "amp"
    session = amp.read_session(lambda: lines, "x")
    user, answer, result, cut, _ = list_payloads(session)
    assert (session.id, session.cwd) == (THREAD["id"], "/src/my app")
    assert session.title == "Fix the off-by-one"
    assert session.unknown == {"parent": 1}
    assert isinstance(user, User)
    assert isinstance(answer, Assistant)
    assert answer.usage == Usage(12, 80, cache_read=3400, cache_write=900, total=4392)
    assert (answer.model, answer.stop_reason, answer.partial) == ("claude-x", "tool_calls", False)
    (call,) = select_tool_calls(answer.content)
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.is_error) == (call.id, True)
    assert isinstance(cut, Assistant)
    assert cut.partial


def test_both_are_found_where_they_are_kept(tmp_path):
    events = tmp_path / ".copilot/session-state/s-2/events.jsonl"
    thread = tmp_path / ".local/share/amp/threads/T-1.json"
    for file in (events, thread):
        file.parent.mkdir(parents=True)
    events.write_bytes(b"\n".join(EVENTS[1:4]) + b"\n")
    thread.write_text(json.dumps(THREAD))
    folders = find_tool_folders({"HOME": str(tmp_path)})
    assert set(folders) == {"copilot", "amp"}
    ids = [
        open_session_file(one)[0].id
        for tool, folder in folders.items()
        for one in find_sessions_of(tool, folder)
    ]
    assert ids == ["s-2", THREAD["id"]]
