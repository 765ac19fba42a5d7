"""What is wrong with a path is the same plain error for every tool that takes one."""

from __future__ import annotations

import subprocess

import pytest

from tape.model.entries import join_texts

CALLS = {
    "read": {},
    "read_file": {},
    "read_many_files": {},
    "write": {"content": "x"},
    "write_file": {"content": "x"},
    "edit": {"oldText": "a", "newText": "b"},
    "edit_file": {"old_string": "a", "new_string": "b"},
    "replace": {"old_string": "a", "new_string": "b"},
    "apply_patch": {},
    "grep": {"pattern": "x"},
    "grep_search": {"pattern": "x"},
    "find": {"pattern": "*"},
    "glob": {"pattern": "*"},
    "ls": {},
    "list_dir": {},
}
PATHS = {
    "a long name": ("n" * 300, "file name too long"),
    "a long path": ("d/" * 2_500 + "f", "file name too long"),
    "a little too long": ("d/" * 2_047 + "f", "file name too long"),
    "no character": ("a\0b", "Not a path: 'a\\x00b'."),
    "a loop": ("loop", "too many levels of symbolic links"),
    "below a file": ("file/x", "ot a directory"),
}


def call_for(tool, path):
    if tool == "apply_patch":
        patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch\n"
        return {"input": patch}
    if tool == "read_many_files":
        return {"paths": [path]}
    name = "file_path" if tool in {"read_file", "write_file", "edit_file", "replace"} else "path"
    return {name: path, **CALLS[tool]}


@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize(("path", "said"), PATHS.values(), ids=PATHS)
async def test_a_wrong_path_is_a_plain_error(use_face, folder, tool, path, said):
    (folder / "file").write_text("a\n")
    (folder / "loop").symlink_to("pool")
    (folder / "pool").symlink_to("loop")
    result = await use_face(tool, **call_for(tool, path))
    text = result.full or join_texts(result.content)
    assert result.is_error
    assert said in text
    assert "Tool error" not in text
    if said.startswith("Not a path") and tool not in {"apply_patch", "read_many_files"}:
        assert (text, result.kind) == (said, "ValidationError")
    assert sorted(one.name for one in folder.iterdir()) == ["file", "loop", "pool"]
    assert (folder / "file").read_text() == "a\n"


async def test_a_path_of_many_folders_is_no_recursion(use_face, folder):
    path = "d/" * 1_200 + "f"
    result = await use_face("write", path=path, content="x\n")
    subprocess.run(["rm", "-rf", folder / "d"], check=True)  # noqa: ASYNC221 - too deep for Python
    assert not result.is_error or "EMFILE" in join_texts(result.content)
