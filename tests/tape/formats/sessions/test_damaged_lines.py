"""Lines with values of any shape in any place: they are read, or what is odd is left out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tape.formats.sessions.loading import detect_tool, load_reader
from tape.model.line import encode_payload
from tests.tape.formats.sessions import (
    test_antigravity,
    test_closed,
    test_cursor,
    test_documents,
    test_goose,
    test_grok,
)
from tests.tape.formats.sessions.lines import ClaudeFile, CodexFile, call, text
from tests.tape.formats.sessions.test_damaged_documents import ODD, list_places, put, replace_at

ROW = {"role": "user", "content": "go", "timestamp": 1784024100.5, "active": 1, "compacted": 0}
HERMES = {
    "id": "s",
    "source": "cli",
    "model": "m",
    "started_at": 1784024100.5,
    "cwd": "/src",
    "git_branch": "main",
    "messages": [
        ROW,
        {
            **ROW,
            "role": "assistant",
            "content": '\0json:[{"type":"text","text":"yes"}]',
            "reasoning": "Hm.",
            "reasoning_details": '[{"type":"x"}]',
            "tool_calls": '[{"id":"t","function":{"name":"delegate_task","arguments":"{}"}}]',
            "token_count": 3,
        },
        {**ROW, "role": "tool", "content": "{}", "tool_call_id": "t", "active": 0},
        {**ROW, "content": "[CONTEXT SUMMARY]: so", "_compressed_summary": 1},
        {**ROW, "role": "system"},
    ],
    "agents": [{"id": "a", "started_at": 1784024100.0, "end_reason": "error"}],
}
GROK = [test_grok.SUMMARY, *test_grok.CHAT, *test_grok.UPDATES]
GROK += [test_grok.update(20, "auto_compact_completed", tokens_before=3, summary_preview="s")]
GROK += [test_grok.update(21, "rewind_marker", target_prompt_index=0)]


def write_claude():
    file = ClaudeFile()
    file.say("u1", None, "list")
    file.answer("a1", "u1", text("Hm."), call("t1"), stop="tool_use")
    file.result("r1", "a1", "t1", "a.py", toolUseResult={"stdout": "a.py"})
    file.answer("a2", "r1", text("One."), stop="end_turn")
    file.say("u2", "a1", "other")
    return file.lines


def write_codex():
    file = CodexFile()
    file.message("user", "list")
    file.item(type="reasoning", summary=[{"type": "summary_text", "text": "Hm."}])
    file.item(type="function_call", name="shell", call_id="c", arguments="{}")
    file.item(type="function_call_output", call_id="c", output="a.py")
    file.message("assistant", "One.")
    file.tokens(10, 3, 13)
    return file.lines


GEMINI = [test_documents.HEADER, test_documents.PROMPT, test_documents.ANSWER]
FILES = {
    "amp": [test_closed.THREAD],
    "claude": write_claude(),
    "codex": write_codex(),
    "copilot": [json.loads(one) for one in test_closed.EVENTS],
    "gemini": GEMINI,
    "antigravity": [*test_antigravity.LINES, test_antigravity.step(9, "CHECKPOINT", "So far.")],
    "cursor": [test_cursor.RECORD, *test_cursor.MESSAGES],
    "goose": [test_goose.HEADER, *test_goose.MESSAGES],
    "grok": GROK,
    "grok chat": [test_grok.SUMMARY, *test_grok.CHAT],
    "hermes": [HERMES],
}


def read_steps(file, values):
    data = [json.dumps(value).encode() for value in values]
    detect_tool(lambda: data)
    session = load_reader(file.split()[0]).read_session(lambda: data, "name")
    for step in session.read_steps(put):
        yield step.parent, [encode_payload(one) for one in step.payloads]


@pytest.mark.parametrize("file", FILES)
def test_a_file_is_recognized(file):
    data = [json.dumps(value).encode() for value in FILES[file]]
    assert detect_tool(lambda: data) == file.split()[0]
    assert len([*read_steps(file, FILES[file])]) > 1


@pytest.mark.parametrize("file", FILES)
@given(st.data())
def test_an_odd_value_anywhere_is_no_crash(file, data):
    lines = FILES[file]
    for _ in range(data.draw(st.integers(1, 2))):
        places = [place for place in list_places(lines) if place]
        lines = replace_at(lines, data.draw(st.sampled_from(places)), data.draw(ODD))
    for _parent, _entries in read_steps(file, lines):
        pass


@pytest.mark.parametrize("file", ["antigravity", "cursor", "goose", "grok"])
def test_more_lines_give_the_same_steps_and_more(file):
    """So that a session that grew is continued; an answer at the end may grow itself."""
    whole = [*read_steps(file, FILES[file])]
    for count in range(1, len(FILES[file])):
        part = [*read_steps(file, FILES[file][:count])]
        if file == "grok" and count <= len(test_grok.CHAT) + 1:
            continue  # the lines of the other log alone
        assert part[:-1] == whole[: max(len(part) - 1, 0)]
