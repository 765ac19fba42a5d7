"""Transcripts of Claude Code: answers in many lines, results in a row, branches, sub-agents."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tape.formats.sessions import claude
from tape.formats.sessions.loading import detect_tool
from tape.model.entries import (
    AgentEnd,
    AgentStart,
    Anchor,
    Assistant,
    BlobRef,
    Context,
    Custom,
    Meta,
    Thinking,
    ToolResult,
    User,
    join_texts,
    select_tool_calls,
)
from tape.places.reference import parse_reference
from tests.tape.formats.sessions.lines import ClaudeFile, call, text


def put(data):
    return BlobRef(hashlib.sha256(data).hexdigest(), len(data))


def read_file(data):
    session = claude.read_session(lambda: data.split(b"\n"), "file")
    return session, [*session.read_steps(put)]


def show_tree(steps):
    """Return parent → step of every step that has an id."""
    return [(step.parent, step.id) for step in steps if step.id is not None]


@pytest.fixture
def file():
    return ClaudeFile()


def test_one_answer_in_many_lines_is_one_step_with_the_last_usage(file):
    file.say("u1", None, "go")
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    file.answer("a1", "u1", thought, message="m", usage={"input_tokens": 1, "output_tokens": 1})
    file.answer(
        "a2", "a1", text("Yes."), message="m", usage={"input_tokens": 1, "output_tokens": 9}
    )
    file.say("u2", "a2", "more")
    _, steps = read_file(file.data)
    assert show_tree(steps) == [("", "u1"), ("u1", "a1"), ("a1", "u2")]
    (answer,) = steps[1].payloads
    assert isinstance(answer, Assistant)
    assert [type(block).__name__ for block in answer.content] == ["Thinking", "Text"]
    assert isinstance(answer.content[0], Thinking)
    assert json.loads(bytes(answer.content[0].wire)) == {"signature": "sig"}
    assert (answer.usage.input, answer.usage.output, answer.model) == (1, 9, "claude-opus-4-8")
    assert answer.response_id == "m"


def test_results_of_one_answer_are_in_a_row(file):
    """As the table in the module has it."""
    file.say("u1", None, "go")
    file.answer("a1", "u1", call("t1"), message="m")
    file.result("r1", "a1", "t1", "one")
    file.answer("a2", "r1", call("t2"), message="m")
    file.result("r2", "a2", "t2", "two")
    file.say("u2", "r2", "next")
    file.say("u3", "a1", "another way")
    _, steps = read_file(file.data)
    assert show_tree(steps) == [
        *(("", "u1"), ("u1", "a1"), ("a1", "r1"), ("r1", "r2")),
        *(("r2", "u2"), ("r2", "u3")),
    ]
    (answer,), (first,), (second,) = (step.payloads for step in steps[1:4])
    assert [one.id for one in select_tool_calls(answer.content)] == [first.call_id, second.call_id]


def test_a_prompt_after_an_earlier_answer_is_a_branch(file):
    file.say("u1", None, "go")
    file.answer("a1", "u1", text("Ready."))
    file.say("u2", "a1", "left")
    file.say("u3", "a1", "right")
    _, steps = read_file(file.data)
    assert show_tree(steps)[2:] == [("a1", "u2"), ("a1", "u3")]


def test_lines_beside_the_talk_are_kept_whole_and_begin_no_branch(file):
    file.say("u1", None, "go")
    for number in range(3):
        file.add("attachment", f"x{number}", "u1", attachment={"type": "todo"})
    file.lines.append({"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}})
    file.answer("a1", "x2", text("Done."))
    session, steps = read_file(file.data)
    assert show_tree(steps) == [("", "u1"), ("u1", "a1")]
    assert [one.kind for step in steps for one in step.payloads if isinstance(one, Custom)] == [
        *(["claude.attachment"] * 3),
        "claude.file_history_snapshot",
    ]
    assert session.unknown == {"attachment": 3, "file_history_snapshot": 1}


def test_a_compaction_follows_what_it_covers(file):
    file.say("u1", None, "go")
    file.answer("a1", "u1", text("Yes."))
    file.add(
        *("system", "c1", None),
        subtype="compact_boundary",
        logicalParentUuid="a1",
        compactMetadata={"trigger": "auto", "preTokens": 15000},
    )
    file.say("s1", "c1", "This is what happened.", isCompactSummary=True)
    file.say("u2", "s1", "go on")
    _, steps = read_file(file.data)
    assert show_tree(steps)[2:] == [("a1", "c1"), ("c1", "s1"), ("s1", "u2")]
    (anchor,) = steps[3].payloads
    assert isinstance(anchor, Anchor)
    assert (anchor.summary, anchor.tokens.before) == ("This is what happened.", 15000)


class TestSubAgents:
    def test_one_in_the_same_file_is_a_session_of_its_own(self, file):
        file.say("u1", None, "go")
        given_call = call("t1", "Task", subagent_type="Explore", prompt="Find it.")
        file.answer("a1", "u1", given_call)
        file.say("s1", None, "Find it.", isSidechain=True)
        file.answer("s2", "s1", text("Here."), isSidechain=True)
        file.result("r1", "a1", "t1", "Here.")
        session, steps = read_file(file.data)
        (child,) = session.children
        assert child.id == f"{file.session}/s1"
        assert [step.id for step in child.read_steps(put)] == ["s1", "s2"]
        begin, result, end = steps[2].payloads
        assert isinstance(begin, AgentStart)
        assert isinstance(result, ToolResult)
        assert isinstance(end, AgentEnd)
        assert (begin.kind, begin.task, begin.tape) == ("Explore", "Find it.", child.tape_id)
        assert (end.agent, end.result, end.status) == (begin.agent, "Here.", "completed")

    def test_one_in_a_file_of_its_own_is_found_by_its_id(self, file):
        file.say("s1", None, "Find it.", isSidechain=True, agentId="a7")
        file.answer("s2", "s1", text("Here."), isSidechain=True, agentId="a7")
        session, steps = read_file(file.data)
        assert (session.id, session.children, len(steps)) == (f"{file.session}/a7", (), 2)
        main = ClaudeFile()
        main.say("u1", None, "go")
        main.answer("a1", "u1", call("t1", "Task", subagent_type="Plan", prompt="Find it."))
        main.result("r1", "a1", "t1", "Here.", toolUseResult={"agentId": "a7", "status": "failed"})
        _, steps = read_file(main.data)
        begin, _, end = steps[2].payloads
        assert (begin.tape, end.status) == (session.tape_id, "failed")


def test_titles_folders_and_remarks_for_the_model(file):
    file.say("u1", None, "go")
    file.say("u2", "u1", "a caveat", isMeta=True)
    file.say("u3", "u2", "elsewhere", cwd="/src/other")
    file.lines.append({"type": "ai-title", "sessionId": file.session, "aiTitle": "A good name"})
    session, steps = read_file(file.data)
    payloads = [one for step in steps for one in step.payloads]
    assert isinstance(payloads[1], Context)
    assert [one.cwd for one in payloads if isinstance(one, Meta)] == ["/src/other"]
    assert (session.title, session.cwd, session.git.branch) == ("A good name", "/src/app", "main")


def test_a_file_that_names_no_parents_is_one_conversation(file):
    for number in range(4):
        file.say(f"u{number}", None, f"prompt {number}")
    _, steps = read_file(file.data)
    assert [step.parent for step in steps] == ["", "newest", "newest", "newest"]


REVIEW = (
    "<command-message>review is running…</command-message>\n"
    "<command-name>/review</command-name>\n<command-args>src/a.py</command-args>"
)


def test_a_slash_command_is_a_prompt_as_it_was_typed(file):
    file.say("u1", None, REVIEW)
    _, steps = read_file(file.data)
    (kept, prompt) = steps[0].payloads
    assert b"review is running" in bytes(kept.data)
    assert isinstance(prompt, User)
    assert join_texts(prompt.content) == "/review src/a.py"


@pytest.mark.parametrize(
    "words",
    [
        "<command-name>/clear</command-name>\n            <command-message>clear</command-message>",
        "<local-command-stdout></local-command-stdout>",
        "<local-command-caveat>Caveat: …</local-command-caveat>",
        "<bash-input>ls</bash-input>",
        "<bash-stdout>a.py</bash-stdout><bash-stderr></bash-stderr>",
        "[Request interrupted by user for tool use]",
    ],
)
def test_what_claude_code_writes_as_the_user_is_a_note(file, words):
    file.say("u1", None, words)
    _, steps = read_file(file.data)
    (note,) = steps[0].payloads
    assert isinstance(note, Context)
    assert join_texts(note.content) == words


@pytest.mark.parametrize("words", ["what is <bash-input>?", "<command-message> is a tag", "/x"])
def test_words_that_only_look_alike_are_the_users(file, words):
    file.say("u1", None, words)
    _, steps = read_file(file.data)
    (prompt,) = steps[0].payloads
    assert isinstance(prompt, User)


def test_a_structured_result_is_kept_beside_its_words(file):
    file.say("u1", None, "go")
    file.answer("a1", "u1", call("t1"))
    file.result("r1", "a1", "t1", "ok", toolUseResult={"stdout": "ok", "stderr": ""})
    _, steps = read_file(file.data)
    (result,) = steps[2].payloads
    assert json.loads(bytes(result.details)) == {"stdout": "ok", "stderr": ""}


@given(data=st.data())
def test_damage_costs_the_line_it_is_in(data):
    file = ClaudeFile()
    file.say("u1", None, "go")
    for number in range(1, 5):
        file.answer(f"a{number}", f"u{number}", text(f"answer {number}"))
        file.say(f"u{number + 1}", f"a{number}", f"prompt {number + 1}")
    lines = file.data.splitlines()
    at = data.draw(st.integers(0, len(lines) - 1))
    lines[at] = lines[at][: data.draw(st.integers(0, len(lines[at]) - 1))]
    session, steps = read_file(b"\n".join(lines))
    said = [
        join_texts(one.content)
        for step in steps
        for one in step.payloads
        if isinstance(one, User | Assistant)
    ]
    assert len(said) == len(lines) - 1
    assert session.damaged == bool(lines[at])


def test_it_is_recognized_and_named(file):
    file.say("u1", None, "go")
    assert detect_tool(lambda: file.data.split(b"\n")) == "claude"
    session, _ = read_file(file.data)
    reference = parse_reference(f"claude:{file.session}:left@u1~2")
    assert reference[:3] == (session.tape_id, "left", "u1")
    assert reference.back == 2
