"""Tool calls of many agents → what they do to files."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from tape.files.calls import (
    FileCall,
    FileDelete,
    FileEdit,
    FileRead,
    FileWrite,
    PatchHunk,
    TextInsertion,
    TextReplacement,
    parse_file_calls,
)
from tape.model.entries import ToolCall


def call(name: str, **args) -> ToolCall:
    return ToolCall(id="c", name=name, args=Raw(json.dumps(args).encode()))


ONE = FileEdit((TextReplacement("a", "b"),))
EVERY = FileEdit((TextReplacement("a", "b", every=True),))
CALLS = [
    (call("NotebookRead", notebook_path="f"), [FileCall("read", "f", FileRead())]),
    (
        call("NotebookEdit", notebook_path="f", new_source="x"),
        [FileCall("edit", "f", FileEdit(()))],
    ),
    (call("notebook_edit", new_source="x"), []),
    (call("read", path="f"), [FileCall("read", "f", FileRead())]),
    (call("read", path="f", offset=1), [FileCall("read", "f", FileRead())]),
    (call("Read", file_path="f", offset=5), [FileCall("read", "f", FileRead(whole=False))]),
    (call("read_file", absolute_path="f", limit=1), [FileCall("read", "f", FileRead(whole=False))]),
    (call("write", path="f", content="x"), [FileCall("write", "f", FileWrite("x"))]),
    (call("write_file", file_path="f", content=""), [FileCall("write", "f", FileWrite(""))]),
    (
        call("WriteFile", path="f", content="x", mode="append"),
        [FileCall("write", "f", FileEdit((TextInsertion(None, "x"),)))],
    ),
    (call("edit", path="f", oldText="a", newText="b"), [FileCall("edit", "f", ONE)]),
    (
        call("edit", path="f", edits=[{"oldText": "a", "newText": "b"}]),
        [FileCall("edit", "f", ONE)],
    ),
    (call("Edit", file_path="f", old_string="a", new_string="b"), [FileCall("edit", "f", ONE)]),
    (call("edit", filePath="f", oldString="a", newString="b"), [FileCall("edit", "f", ONE)]),
    (
        call("Edit", file_path="f", old_string="a", new_string="b", replace_all=True),
        [FileCall("edit", "f", EVERY)],
    ),
    (
        call("replace", file_path="f", old_string="a", new_string="b", expected_replacements=3),
        [FileCall("edit", "f", EVERY)],
    ),
    (
        call("MultiEdit", file_path="f", edits=[{"old_string": "a", "new_string": "b"}] * 2),
        [FileCall("edit", "f", FileEdit(ONE.steps * 2))],
    ),
    (
        call("StrReplaceFile", path="f", edit={"old": "a", "new": "b"}),
        [FileCall("edit", "f", ONE)],
    ),
    (
        call("Edit", file_path="f", old_string="", new_string="x"),
        [FileCall("edit", "f", FileWrite("x", created=True))],
    ),
    (
        call("str_replace_based_edit_tool", command="create", path="f", file_text="x"),
        [FileCall("write", "f", FileWrite("x"))],
    ),
    (
        call("str_replace_editor", command="str_replace", path="f", old_str="a", new_str="b"),
        [FileCall("edit", "f", ONE)],
    ),
    (
        call("str_replace_editor", command="insert", path="f", insert_line=2, new_str="b"),
        [FileCall("edit", "f", FileEdit((TextInsertion(2, "b"),)))],
    ),
    (
        call("mcp__disk__write_file", path="f", content="x"),
        [FileCall("write", "f", FileWrite("x"))],
    ),
    (call("bash", command="rm f"), []),
    (call("edit", path="f"), []),
    (call("write", path=7, content="x"), []),
    (ToolCall(id="c", name="write", args_text="not JSON"), []),
    (ToolCall(id="c", name="write", args=Raw(b"[1]")), []),
]


@pytest.mark.parametrize(("made", "calls"), CALLS, ids=range(len(CALLS)))
def test_a_call_says_what_it_does_to_which_file(made, calls):
    assert list(parse_file_calls(made)) == calls


PATCH = """*** Begin Patch
*** Add File: new.py
+one
+
*** Update File: old.py
@@ class A
@@ def f
 x
-y
+z

+more
*** End of File
*** Update File: here.py
*** Move to: there.py
@@
-a
+b
*** Delete File: gone.py
*** End Patch"""
PATCHED = [
    FileCall("patch", "new.py", FileWrite("one\n\n")),
    FileCall(
        "patch",
        "old.py",
        FileEdit(
            (PatchHunk(("x", "y", ""), ("x", "z", "", "more"), ("class A", "def f"), at_end=True),)
        ),
    ),
    FileCall("patch", "there.py", FileEdit((PatchHunk(("a",), ("b",)),)), source="here.py"),
    FileCall("patch", "here.py", FileDelete()),
    FileCall("patch", "gone.py", FileDelete()),
]


def test_a_patch_says_what_it_does_to_each_file():
    freeform = ToolCall(id="c", name="apply_patch", args_text=PATCH)
    assert list(parse_file_calls(freeform)) == PATCHED
    assert list(parse_file_calls(call("apply_patch", input=PATCH.replace("\n", "\r\n")))) == PATCHED
    assert list(parse_file_calls(call("apply_patch", patch=f"  {PATCH} \n"))) == PATCHED


def test_a_patch_given_to_a_shell_counts_from_its_folder():
    made = call("shell", command=["apply_patch", PATCH], workdir="sub")
    assert [one.path for one in parse_file_calls(made)] == [f"sub/{one.path}" for one in PATCHED]
    assert parse_file_calls(made)[2].source == "sub/here.py"
    assert parse_file_calls(call("shell", command=["cat", PATCH])) == ()
    told = call("bash", command=f"apply_patch <<'EOF'\n{PATCH}\nEOF")
    assert list(parse_file_calls(told)) == PATCHED


def test_arguments_it_ran_with_count_more_than_those_of_the_call():
    ran = Raw(b'{"path":"g","content":"y"}')
    assert parse_file_calls(call("write", path="f", content="x"), ran) == (
        FileCall("write", "g", FileWrite("y")),
    )
