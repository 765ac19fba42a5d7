"""The file tools judged by cases recorded from other programs; outcomes are compared, not words."""

import base64
import json
import re
from pathlib import Path

import pytest

from tape.model.entries import join_texts

CORPUS = Path(__file__).parents[4] / "shared/corpus"

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus beside the project"),
]

OPTIONAL = {"gemini_flexible", "conflict", "empty_old_creates"}


def rows(name):
    file = CORPUS / name
    lines = file.read_text("utf-8").split("\n") if file.exists() else []
    return [pytest.param(row, id=row["id"]) for row in map(json.loads, filter(None, lines))]


@pytest.mark.parametrize("case", rows("edit/cases.jsonl"))
async def test_edit(case, use_face, folder):
    """M070 M071 M077 M080"""
    if case["group"] in OPTIONAL:
        pytest.skip("other programs differ here")
    path, expect = folder / "a.txt", case["expect"]
    before = base64.b64decode(case["file_b64"]) if "file_b64" in case else case["file"]
    if isinstance(before, str):
        before = before.encode()
    if before is not None:
        path.write_bytes(before)
        path.chmod(int(case.get("mode_before", "0644"), 8))
    elif "directory" in case.get("setup", ""):
        path.mkdir()
    for edit in case["edits"]:
        result = await use_face(
            "edit_file",
            file_path="a.txt",
            old_string=edit["old"],
            new_string=edit["new"],
            replace_all=edit["replace_all"],
        )
    assert result.is_error != expect["ok"], join_texts(result.content)
    if not expect["ok"]:
        assert before is None or path.read_bytes() == before
    elif "content" in expect:
        assert path.read_bytes().decode() == expect["content"]
    assert path.is_dir() or "mode_after" not in case or path.stat().st_mode & 0o777 == 0o755


def text_of_input(made):
    if "text" in made:
        return made["text"]
    if "repeat" in made:
        return made["repeat"]["s"] * made["repeat"]["n"]
    lines = made["lines"]
    numbers = range(lines["start"], lines["start"] + lines["count"])
    text = "\n".join(lines["template"].replace("{n}", str(n)) for n in numbers)
    return text + "\n" * lines["final_newline"]


@pytest.mark.parametrize("case", rows("tools/cases.jsonl"))
async def test_tool(case, use, folder):
    """M057 M099 M105 M108"""
    for name, made in case["files"].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if "dir" in made:
            (folder / name).mkdir(exist_ok=True)
        else:
            (folder / name).write_text(text_of_input(made))
    result = await use(case["tool"], **case["args"])
    expect, said = case["expect"], join_texts(result.content)
    assert result.is_error != expect["ok"]
    assert all(part in said for part in expect.get("contains", ()))
    assert not any(part in said for part in expect.get("not_contains", ()))
    assert all(re.search(pattern, said) for pattern in expect.get("matches", ()))
