"""Rollouts of Codex: an answer for each call, one of two logs, usage that comes later."""

from __future__ import annotations

import msgspec
import pytest

from tape.formats.sessions import codex
from tape.formats.sessions.loading import detect_tool
from tape.model.entries import (
    Anchor,
    Assistant,
    BlobRef,
    Context,
    Custom,
    Meta,
    Model,
    SideUsage,
    ToolResult,
    User,
    join_texts,
    select_tool_calls,
)
from tests.tape.formats.sessions.lines import CodexFile, write_lines


def read_file(data):
    session = codex.read_session(lambda: data.split(b"\n"), "rollout-x")
    return session, [*session.read_steps(lambda data: BlobRef("0" * 64, len(data)))]


def list_payloads(steps):
    """Return what the steps give, without the header of the file."""
    return [one for step in steps for one in step.payloads if not isinstance(one, Custom)]


@pytest.fixture
def file():
    return CodexFile()


def test_reasoning_words_and_calls_are_one_answer_with_its_usage(file):
    file.message("user", "list")
    file.item(type="reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "hm"}])
    file.message("assistant", "Listing.")
    file.item(type="function_call", name="shell", call_id="c1", arguments='{"cmd":"ls"}')
    file.item(type="function_call", name="shell", call_id="c2", arguments='{"cmd":"pwd"}')
    file.item(type="function_call_output", call_id="c1", output="a.py")
    file.item(type="function_call_output", call_id="c2", output="/src")
    file.tokens(100, 20, 120, cached=60)
    file.message("assistant", "One file.")
    file.tokens(130, 5, 255)
    _, steps = read_file(file.data)
    payloads = list_payloads(steps)
    kinds = [type(one).__name__ for one in payloads]
    assert kinds == ["User", "Assistant", "ToolResult", "ToolResult", "Assistant"]
    first, results, last = payloads[1], payloads[2:4], payloads[4]
    assert [type(block).__name__ for block in first.content] == [
        *("Thinking", "Text", "ToolCall", "ToolCall"),
    ]
    assert [one.call_id for one in results] == [one.id for one in select_tool_calls(first.content)]
    assert (first.usage.input, first.usage.cache_read, first.usage.output) == (40, 60, 20)
    assert last.usage.input == 130


def test_a_call_of_the_shell_of_the_provider_is_a_call_with_its_result(file):
    action = {"type": "exec", "command": ["bash", "-lc", "ls"], "timeout_ms": 1000}
    file.message("user", "list")
    file.item(type="local_shell_call", status="completed", call_id="c1", action=action)
    file.item(
        type="function_call_output", call_id="c1", output={"content": "a.txt", "success": False}
    )
    _, steps = read_file(file.data)
    _, answer, result = list_payloads(steps)
    (called,) = select_tool_calls(answer.content)
    assert called.name == "local_shell"
    assert msgspec.json.decode(called.args) == {
        "command": ["bash", "-lc", "ls"],
        "timeout_ms": 1000,
    }
    assert (result.call_id, result.name, result.is_error) == (called.id, "local_shell", True)
    assert join_texts(result.content) == "a.txt"


def test_two_outputs_of_a_call_are_two_results_and_a_repeated_line_is_none():
    def result(text):
        output = {"type": "function_call_output", "call_id": "c1", "output": text}
        return {"timestamp": "2026-05-01T10:00:00Z", "type": "response_item", "payload": output}

    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"}
    head = {"timestamp": "2026-05-01T10:00:00Z", "type": "response_item", "payload": call}
    _, steps = read_file(write_lines(head, result("one"), result("one"), result("two")))
    answer, *results = list_payloads(steps)
    (made,) = select_tool_calls(answer.content)
    assert [(one.call_id, join_texts(one.content)) for one in results] == [
        (made.id, "one"),
        (made.id, "two"),
    ]


def test_the_words_of_another_agent_are_a_note_and_nothing_of_them_is_lost(file):
    content = [{"type": "input_text", "text": "for you"}, {"type": "encrypted_content", "x": "zz"}]
    file.item(type="agent_message", author="/root", recipient="/root/a", content=content)
    _, steps = read_file(file.data)
    payloads = [one for step in steps for one in step.payloads]
    (note,) = [one for one in payloads if isinstance(one, Context)]
    assert join_texts(note.content) == "for you"
    assert b"/root/a" in bytes(payloads[-1].data)
    assert b"zz" in bytes(payloads[-1].data)


def test_a_second_message_is_a_second_answer(file):
    file.message("user", "go")
    file.message("assistant", "First.")
    file.message("assistant", "Second.")
    _, steps = read_file(file.data)
    assert [join_texts(one.content) for one in list_payloads(steps)] == ["go", "First.", "Second."]


def test_an_event_counts_only_where_no_item_says_the_same(file):
    file.event("user_message", message="both")
    file.message("user", "both")
    file.message("assistant", "answer")
    file.event("agent_message", message="answer")
    file.event("user_message", message="event alone")
    file.event("agent_message", message="so is this")
    _, steps = read_file(file.data)
    said = [(type(one).__name__, join_texts(one.content)) for one in list_payloads(steps)]
    assert said == [
        *(("User", "both"), ("Assistant", "answer")),
        *(("User", "event alone"), ("Assistant", "so is this")),
    ]


def test_tokens_without_an_answer_are_a_usage_entry_once(file):
    file.message("user", "go")
    file.tokens(50, 0, 50)
    file.tokens(50, 0, 50)
    _, steps = read_file(file.data)
    (usage,) = [one for one in list_payloads(steps) if isinstance(one, SideUsage)]
    assert usage.usage.input == 50


def test_model_folder_and_what_codex_writes_for_the_user(file):
    file.add("turn_context", {"model": "gpt-5.2", "effort": "high", "cwd": "/src/app"})
    file.message("user", "<environment_context>x</environment_context>")
    file.message("user", "go")
    file.add("turn_context", {"model": "gpt-5.2", "effort": "high", "cwd": "/src/other"})
    file.message("assistant", "Yes.")
    _, steps = read_file(file.data)
    model, told, asked, moved, answer = list_payloads(steps)
    assert model == Model("openai", "gpt-5.2", "high")
    assert isinstance(told, Context)
    assert isinstance(asked, User)
    assert moved == Meta(cwd="/src/other")
    assert isinstance(answer, Assistant)
    assert (answer.provider, answer.model) == ("openai", "gpt-5.2")


def test_a_rollback_makes_a_branch(file):
    file.message("user", "one")
    file.message("assistant", "A.")
    file.message("user", "two")
    file.message("assistant", "B.")
    file.event("thread_rolled_back", num_turns=1)
    file.message("user", "two, but better")
    _, steps = read_file(file.data)
    by_words = {
        join_texts(one.content): step
        for step in steps
        for one in step.payloads
        if isinstance(one, User | Assistant)
    }
    assert by_words["two"].parent == by_words["two, but better"].parent == by_words["A."].id


def test_a_compaction_is_an_anchor(file):
    file.message("user", "go")
    file.add("compacted", {"message": "what happened"})
    file.message("user", "next")
    _, steps = read_file(file.data)
    anchor = list_payloads(steps)[1]
    assert isinstance(anchor, Anchor)
    assert anchor.summary == "what happened"


def test_old_files_without_wrapping_are_read(file):
    head = {"id": "old-1", "timestamp": "2025-05-01T10:00:00Z", "instructions": None}
    data = write_lines(
        head,
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"record_type": "state"},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
    )
    assert detect_tool(lambda: data.split(b"\n")) == "codex"
    session, steps = read_file(data)
    kinds = [type(one).__name__ for one in list_payloads(steps)]
    assert (session.id, kinds) == ("old-1", ["User", "Assistant", "ToolResult"])
    assert any(isinstance(one, ToolResult) for one in list_payloads(steps))


def test_damage_and_unknown_lines_cost_themselves(file):
    file.message("user", "go")
    file.add("world_state", {"a": 1})
    data = file.data + b"{torn\n" + write_lines({"type": "other"})
    session, steps = read_file(data)
    assert (session.damaged, session.unknown["world_state"], session.unknown["other"]) == (1, 1, 1)
    assert len(list_payloads(steps)) == 1


def test_what_is_left_out_is_counted(file):
    file.add("turn_context", {"cwd": "/src/app", "model": "gpt-5.5"})
    file.message("user", "go")
    file.event("user_message", message="go")
    file.item(type="reasoning", summary=[{"type": "summary_text", "text": "hm"}])
    file.event("agent_reasoning", text="hm")
    file.message("assistant", "done")
    file.event("agent_message", message="done")
    file.tokens(100, 10, 110)
    file.tokens(100, 10, 110)
    file.event("token_count", info={"prompt": 5})
    file.add("turn_context", {"cwd": "/src/app", "model": "gpt-5.5"})
    session, _ = read_file(file.data)
    assert session.left_out == {"covered": 5, "unknown_count": 1}


def test_the_repository_is_that_of_the_remote_without_credentials():
    git = {"repository_url": "https://u:pw@example.org/team/app.git", "branch": "main"}
    session, _ = read_file(CodexFile(git=git).data)
    assert session.repository == "example.org/team/app"
