"""The patch tool judged by cases recorded from other programs; only outcomes are compared.

`cookbook` and openai-agents add no final newline, which ours does to new lines: it is not compared.
"""

import json
import shutil
from pathlib import Path

import pytest

from gong.env.local import LocalEnvironment
from gong.tools.apply_patch import ApplyPatchArguments, run_apply_patch
from gong.tools.patch.parse import (
    AddFile,
    DeleteFile,
    InvalidPatch,
    PatchCommand,
    UpdateFile,
    find_patch_in_command,
    parse_patch,
)
from gong.tools.patch.plan import PatchFailures, plan_patch
from gong.tools.patch.update import SeekLines, seek_lines
from gong.tools.tool import ToolContext

CORPUS = Path(__file__).parents[4] / "shared/corpus/apply_patch"

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus beside the project"),
]

OTHER_DIALECT = {"py_apply_diff_with_empty_input_and_crlf_diff_preserves_crlf"}
"""There the patch says how lines end where the file has none; ours says LF."""


def rows(name):
    file = CORPUS / f"{name}.jsonl"
    lines = file.read_text("utf-8").split("\n") if file.exists() else []
    return [pytest.param(row, id=row["id"]) for row in map(json.loads, filter(None, lines))]


def scenarios():
    folders = sorted((CORPUS / "scenarios").iterdir()) if CORPUS.is_dir() else []
    return [pytest.param(folder, id=folder.name) for folder in folders]


def tree(folder, newline):
    """Return what a folder holds; without the final newlines when `newline` does not matter."""
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {
        str(path.relative_to(folder)): data if newline else data.removesuffix(b"\n")
        for path, data in files.items()
    }


@pytest.mark.parametrize("folder", scenarios())
async def test_scenario(folder, tmp_path):
    """M081 M082"""
    case = json.loads((folder / "meta.json").read_text("utf-8"))
    work = tmp_path / "work"
    if (folder / "input").is_dir():
        shutil.copytree(folder / "input", work)
    work.mkdir(exist_ok=True)
    before = tree(work, newline=True)
    text = (folder / "patch.txt").read_bytes().decode()
    env = LocalEnvironment(str(work), {})
    result = await run_apply_patch(ApplyPatchArguments(text), ToolContext(env, "c1", print))
    assert result.is_error == (case["outcome"] == "failure"), result
    newline = case["dialect"] != "cookbook"
    if result.is_error:
        assert tree(work, newline=True) == before
    elif case["state_checked"]:
        assert tree(work, newline) == tree(folder / "expected", newline)


def plainly(hunk):
    match hunk:
        case AddFile(path, content):
            return {"op": "add", "path": path, "contents": content}
        case DeleteFile(path):
            return {"op": "delete", "path": path}
        case UpdateFile(path, move_to, chunks):
            said = [
                {
                    "context": chunk.contexts[0] if chunk.contexts else None,
                    "old_lines": list(chunk.old),
                    "new_lines": list(chunk.new),
                    "end_of_file": chunk.at_end,
                }
                for chunk in chunks
            ]
            return {"op": "update", "path": path, "move_to": move_to, "chunks": said}


@pytest.mark.parametrize("case", rows("parser_cases"))
def test_parser(case):
    """M082"""
    found, expect = parse_patch(case["patch"]), case["expect"]
    if expect["ok"]:
        assert list(map(plainly, found)) == expect["hunks"]
    else:
        assert isinstance(found, InvalidPatch)
        assert found.line == expect["line"]


@pytest.mark.parametrize("case", rows("seek_cases"))
def test_seek(case):
    found = seek_lines(SeekLines(case["lines"]), case["pattern"], case["start"], at_end=case["eof"])
    assert (found and found.start) == case["expect_index"]


def whole(diff):
    return f"*** Begin Patch\n{diff}\n*** End Patch"


@pytest.mark.parametrize("case", rows("v4a_diff"))
def test_diff(case):
    """M082"""
    creates = case["mode"] == "create"
    header = "*** Add File: a.txt" if creates else "*** Update File: a.txt"
    hunks = parse_patch(whole(f"{header}\n{case['diff']}"))
    made = (
        hunks
        if isinstance(hunks, InvalidPatch)
        else plan_patch(hunks, lambda _: case["input"].encode())
    )
    assert isinstance(made, InvalidPatch | PatchFailures) != case["expect"]["ok"], made
    if case["expect"]["ok"] and case["id"] not in OTHER_DIALECT:
        after = made.operations[0].after.decode()
        assert after in {case["expect"]["output"], case["expect"]["output"] + "\n"}


@pytest.mark.parametrize("case", rows("unified_diff_cases"))
def test_file_in_a_unified_diff_case(case):
    made = plan_patch(parse_patch(case["patch"]), {case["file"]: case["input"].encode()}.get)
    assert made.operations[0].after.decode() == case["content"]


@pytest.mark.parametrize("case", rows("invocation_cases"))
def test_invocation(case):
    found = find_patch_in_command(case["argv"])
    assert isinstance(found, PatchCommand) == case["is_apply_patch"]
    assert isinstance(found, InvalidPatch) == (case["error_kind"] == "implicit_invocation")
    assert getattr(found, "folder", None) == case["workdir"]
