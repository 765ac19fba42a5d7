"""Calls as people read them, whatever agent named its tools and arguments."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from tape.model.entries import ToolCall
from tape.render.calls import render_call

PATCH = "*** Begin Patch\n*** Delete File: a\n*** End Patch"
CASES = [
    ("bash", {"command": "pytest -q"}, ["$ pytest -q"], []),
    ("bash", {"command": "a\nb", "timeout": 9}, ["$ a", "> b", "(timeout: 9)"], []),
    ("shell", {"command": ["bash", "-lc", "ls | wc"]}, ["$ ls | wc"], []),
    ("shell", {"command": ["ls", "a b"], "workdir": "/x"}, ["$ ls 'a b'", "(workdir: /x)"], []),
    ("read", {"path": "a.py"}, ["→ read a.py"], []),
    ("Read", {"file_path": "a", "offset": 9}, ["→ Read a (offset: 9)"], []),
    ("write", {"path": "a", "content": "1\n\n2"}, ["→ write a"], ["+1", "+", "+2"]),
    ("edit", {"path": "a", "old_text": "1\n", "new_text": ""}, ["→ edit a"], ["-1"]),
    (
        "MultiEdit",
        {"file_path": "a", "edits": [{"old_string": "1", "new_string": "2"}] * 2},
        ["→ MultiEdit a"],
        ["-1", "+2", "@@", "-1", "+2"],
    ),
    (
        "str_replace_editor",
        {"command": "insert", "path": "a", "insert_line": 3, "new_str": "x"},
        ["→ str_replace_editor a (command: insert, insert_line: 3)"],
        ["@@ after line 3 @@", "+x"],
    ),
    ("apply_patch", {"input": PATCH}, ["→ apply_patch"], PATCH.split("\n")),
    ("apply_patch", PATCH, ["→ apply_patch"], PATCH.split("\n")),
    ("think", {"a": [1]}, ['→ think {"a": [1]}'], []),
    ("think", "free\ntext", ["→ think free", "text"], []),
    ("bash", {"script": 7}, ['→ bash {"script": 7}'], []),
    ("read", {}, ["→ read {}"], []),
    ("bash", {"command": "a\x1b[2J", "\x07": "\n"}, ["$ a␛[2J", "(␇: )"], []),
]


@pytest.mark.parametrize(("name", "arguments", "head", "body"), CASES)
def test_a_call_reads_as_what_it_does(name, arguments, head, body):
    if isinstance(arguments, str):
        call = ToolCall(id="c", name=name, args_text=arguments)
    else:
        call = ToolCall(id="c", name=name, args=Raw(json.dumps(arguments).encode()))
    shown = render_call(call)
    assert [list(shown.head), list(shown.body)] == [head, body]


def test_what_ran_counts_where_it_differs():
    call = ToolCall(id="c", name="bash", args=Raw(b'{"command":"asked"}'))
    assert render_call(call, Raw(b'{"command":"ran"}')).head == ("$ ran",)


def test_broken_arguments_are_shown_as_they_are():
    call = ToolCall(id="c", name="bash", args=Raw(b'{"command":'))
    assert render_call(call).head == ('→ bash {"command":',)


@pytest.mark.parametrize(
    ("name", "arguments", "sentence", "body"),
    [
        (
            *("ask_user", {"questions": [{"question": "Which store?"}, {"question": "Why?"}]}),
            *("→ Asked 2 questions", ["Which store?", "Why?"]),
        ),
        (
            *(
                "TodoWrite",
                {"todos": [{"content": "Read", "status": "completed"}, {"content": "b"}]},
            ),
            *("→ Todo list: 1 of 2 done", ["☑ Read", "☐ b"]),
        ),
        (
            *("update_plan", {"plan": [{"step": "Read", "status": "in_progress"}]}),
            *("→ Todo list: 0 of 1 done", ["▶ Read"]),
        ),
        ("ExitPlanMode", {"plan": "# Do\n1. it"}, "→ Proposed a plan", ["# Do", "1. it"]),
        ("Task", {"description": "count files", "prompt": "All."}, "→ Task: count files", ["All."]),
        ("spawn_agent", {"task": "look\x1b[2J"}, "→ Task: look␛[2J", []),
        ("Skill", {"skill": "commit", "args": "-a"}, "→ Skill: commit -a", []),
    ],
)
def test_a_call_of_an_agents_own_tool_is_a_sentence(name, arguments, sentence, body):
    """Issue 35: also in sessions of other agents; another shape of arguments stays as it is."""
    shown = render_call(ToolCall(id="c", name=name, args=Raw(json.dumps(arguments).encode())))
    assert (list(shown.head), list(shown.body), shown.is_patch) == ([sentence], body, False)
    odd = render_call(ToolCall(id="c", name="todo", args=Raw(b'{"todos":3}')))
    assert odd.head == ('→ todo {"todos":3}',)
