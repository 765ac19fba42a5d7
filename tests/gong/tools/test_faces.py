import os

import pytest

from gong.tools.builtin import builtin
from gong.tools.faces import FACES
from gong.tools.truncation.pipeline import LIMITS
from tape.blocks import text_of


@pytest.fixture
def face(use_face):
    """Run a face by its name and return what it says."""

    async def face(name, **arguments):
        return text_of((await use_face(name, **arguments)).content)

    return face


def test_faces_are_there_but_not_chosen():
    """M129 M130 M131"""
    registry = builtin()
    assert {tool.name for tool in FACES} & set(registry.active) == set()
    assert {tool.name for tool in FACES} <= set(registry.names)
    assert registry.get("read_file").limits == LIMITS["read_file"]


async def test_read_file_counts_lines(face, folder):
    """M066"""
    (folder / "a").write_text("one\ntwo\nthree\n")
    assert await face("read_file", file_path="a") == "  1 | one\n  2 | two\n  3 | three\n"
    assert await face("read_file", file_path="a", offset=2, limit=1) == (
        "  2 | two\n\n[1 more lines in file. Use offset=3 to continue.]"
    )
    (folder / "b").write_bytes(b"\0")
    assert "it is a binary file" in await face("read_file", file_path="b")


async def test_read_many_files(face, folder):
    """M067"""
    (folder / "a.py").write_text("a\n")
    (folder / "b.py").write_text("b")
    assert await face("read_many_files", paths=["*.py", "gone"]) == (
        "--- a.py ---\n\na\n\n--- b.py ---\n\nb\n\n"
        "--- gone ---\n\nENOENT: no such file or directory: gone\n"
    )


async def test_list_dir_goes_as_deep_as_asked(face, folder):
    """M067"""
    (folder / "d/e").mkdir(parents=True)
    (folder / "d/e/f").touch()
    assert await face("list_dir") == "d/"
    assert await face("list_dir", path="d", depth=2) == "e/\ne/f"


async def test_write_file_confirms_the_bytes(face, folder):
    """M069"""
    assert await face("write_file", file_path="a", content="hé") == (
        "Successfully wrote 3 bytes to a"
    )


async def test_edit_file_tells_how_many(face, folder):
    """M080"""
    (folder / "a").write_text("x x\n\u201cy\u201d\n")
    wish = {"file_path": "a", "old_string": "x", "new_string": "z"}
    assert (await face("edit_file", **wish)).startswith("Found 2 occurrences of the text in a.")
    assert await face("edit_file", **wish, replace_all=True) == (
        "Successfully replaced 2 occurrences in a."
    )
    assert await face("replace", file_path="a", old_string='"y"', new_string="w") == (
        "Successfully replaced 1 occurrence in a. It matched but for blanks, quotes or dashes."
    )
    assert (folder / "a").read_text() == "z z\nw\n"


async def test_grep_search_has_three_ways_to_answer(face, folder):
    """M103 M104"""
    (folder / "a.py").write_text("x\nX\n")
    (folder / "b.md").write_text("x\n")
    assert await face("grep_search", pattern="x", case_insensitive=True, glob_filter="*.py") == (
        "a.py:1: x\na.py:2: X"
    )
    assert await face("grep_search", pattern="x", output_mode="files_with_matches") == "a.py\nb.md"
    assert await face("grep_search", pattern="x", output_mode="count", case_insensitive=True) == (
        "a.py:2\nb.md:1"
    )


async def test_glob_shows_the_last_changed_first(face, folder):
    """M107"""
    for name, when in {"a": 1, "b": 3, "c": 2}.items():
        (folder / name).touch()
        os.utime(folder / name, (when, when))
    assert await face("glob", pattern="*") == "b\nc\na"
