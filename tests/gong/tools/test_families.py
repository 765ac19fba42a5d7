import errno
import os
import re

import pytest

from gong.tools.builtin import FAMILY_TOOLS, build_registry
from gong.tools.families.file_tools import ReadManyDetails
from gong.tools.families.search_tools import ListDirDetails as Listing
from gong.tools.limits import FAMILY_LIMITS
from gong.tools.read import ReadDetails
from tape.model.entries import Image, Text, join_texts
from tests.gong.env.memory import MemoryEnvironment
from tests.gong.tools.conftest import caller


@pytest.fixture
def face(use_face):
    """Run a face by its name and return what it says."""

    async def face(name, **arguments):
        return join_texts((await use_face(name, **arguments)).content)

    return face


def test_faces_are_there_but_not_chosen():
    registry = build_registry()
    assert {tool.name for tool in FAMILY_TOOLS} & set(registry.active) == set()
    assert {tool.name for tool in FAMILY_TOOLS} <= set(registry.names)
    assert registry.get("read_file").limits == FAMILY_LIMITS["read_file"]


async def test_read_file_counts_lines(face, folder):
    """M066"""
    (folder / "a").write_text("one\ntwo\nthree\n")
    assert await face("read_file", file_path="a") == "  1 | one\n  2 | two\n  3 | three\n"
    assert await face("read_file", file_path="a", offset=2, limit=1) == (
        "  2 | two\n\n[1 more lines in file. Use offset=3 to continue.]"
    )
    (folder / "b").write_bytes(b"\0")
    assert "it is a binary file" in await face("read_file", file_path="b")
    assert await face("read_file", file_path="a", offset=9) == (
        "Offset 9 is beyond end of file (3 lines total)"
    )


async def test_read_file_shows_2000_lines_and_says_how_many_follow(use_face, folder):
    """M066 M053"""
    (folder / "a").write_text("x\n" * 2500)
    result = await use_face("read_file", file_path="a")
    assert join_texts(result.content).endswith(
        "2000 | x\n\n[500 more lines in file. Use offset=2001 to continue.]"
    )
    assert result.details == ReadDetails("a", 2500, False, "utf-8", None, 2000, 2000)
    assert (await use_face("read_file", file_path="a", limit=3000)).details is None


async def test_read_file_keeps_both_ends_of_50000_characters(use_face, folder):
    """M113 M112 C3: cut once, and the way on stays."""
    (folder / "a").write_text(("x" * 93 + "\n") * 2500)
    result = await use_face("read_file", file_path="a")
    said = join_texts(result.content)
    assert said.count("[WARNING: Tool output was truncated. ") == 1
    assert said.startswith("   1 | xxx")
    assert said.endswith("[500 more lines in file. Use offset=2001 to continue.]")
    assert len(said) < 50_300
    assert (result.details.truncated, result.details.truncated_by) == (True, "chars")
    assert result.details.output_lines < 500
    assert result.full.count("\n") == 2001


async def test_read_file_shows_pictures(use_face, folder):
    """M066"""
    (folder / "a").write_bytes(b"GIF89a\x02\0\x03\0")
    result = await use_face("read_file", file_path="a")
    assert join_texts(result.content) == "[Picture a: image/gif, 2x3, 10B]"
    assert [type(block) for block in result.content] == [Text, Image]
    assert (result.details.width, result.details.height) == (2, 3)


async def test_read_many_files(face, folder):
    """M067"""
    (folder / "a.py").write_text("a\n")
    (folder / "b.py").write_text("b")
    assert await face("read_many_files", paths=["*.py", "gone", "a.py"]) == (
        "--- a.py ---\n\na\n\n--- b.py ---\n\nb\n\n"
        "--- gone ---\n\nENOENT: no such file or directory: gone\n"
    )


async def test_read_many_files_shows_pictures_and_tells_what_failed(use_face, folder):
    """M067"""
    (folder / "a.gif").write_bytes(b"GIF89a\x02\0\x03\0")
    (folder / "b").write_text("b")
    result = await use_face("read_many_files", paths=["a.gif", "b", "gone"])
    assert [type(block) for block in result.content] == [Text, Image]
    assert result.details == ReadManyDetails(("a.gif", "b"), ("gone",), 0)
    assert not result.is_error
    assert (await use_face("read_many_files", paths=["gone"])).is_error
    nothing = await use_face("read_many_files", paths=["*.none"])
    assert join_texts(nothing.content) == "No files found matching pattern"


async def test_read_many_files_stops_when_it_is_enough(use_face, folder):
    """M067"""
    for name in "abcd":
        (folder / name).write_text("x" * 600_000)
    result = await use_face("read_many_files", paths=["*"])
    assert result.details.left_out == 2
    assert result.full.endswith("[2 more files left out after 1.0MB. Name fewer at once.]\n")


async def test_list_dir_goes_as_deep_as_asked(face, use_face, folder):
    """M067"""
    (folder / "d/e").mkdir(parents=True)
    (folder / "d/e/f").write_text("12")
    assert await face("list_dir") == "d/"
    assert await face("list_dir", path="d", depth=2) == "e/\ne/f"
    assert (await use_face("list_dir", path="d", depth=2)).details == Listing("d", 2, 2)
    assert await face("list_dir", path="gone") == "Path not found: gone"
    assert await face("list_dir", path="d/e/f") == "Not a directory: d/e/f"


async def test_write_file_confirms_the_bytes(face, folder):
    """M069"""
    assert await face("write_file", file_path="a", content="hé") == (
        "Successfully wrote 3 bytes to a"
    )
    assert (folder / "a").read_text() == "hé"


class ClosedDisk(MemoryEnvironment):
    """Files that cannot be written, for the reason of an error number."""

    def __init__(self, number):
        super().__init__({"a": b"old"})
        self._number = number

    async def write_file(self, path, data, root=None):
        raise OSError(self._number, os.strerror(self._number))


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EACCES, "EACCES: permission denied: a"),
        (errno.ENOSPC, "ENOSPC: no space left on device: a"),
    ],
)
async def test_write_file_says_why_it_could_not_write(heard, number, said):
    """M069: and the file stays."""
    registry, env = build_registry(), ClosedDisk(number)
    registry.set_active(["write_file"])
    result = await caller(registry, env, heard)("write_file", file_path="a", content="new")
    assert (join_texts(result.content), result.is_error) == (said, True)
    assert env.files == {"/work/a": b"old"}


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


@pytest.mark.parametrize(
    ("mode", "shown", "notice"),
    [
        ("content", 2, "2 matches limit reached. Use max_results=4 for more, or refine pattern"),
        ("files_with_matches", 2, "2 files limit reached. Use max_results=4 for more, or"),
        ("count", 2, "2 files limit reached. Use max_results=4 for more, or refine pattern"),
    ],
)
async def test_grep_search_says_that_there_is_more(use_face, folder, mode, shown, notice):
    """M103 M104"""
    for name in "abc":
        (folder / name).write_text("x\n" * (1 if mode == "content" else 150))
    result = await use_face("grep_search", pattern="x", max_results=2, output_mode=mode)
    text, _, said = join_texts(result.content).partition("\n\n")
    assert len(text.split("\n")) == shown
    assert said.startswith(f"[{notice}")
    assert result.details.truncated
    if mode != "content":
        whole = await use_face("grep_search", pattern="x", max_results=3, output_mode=mode)
        assert (whole.details.truncated, "[" in join_texts(whole.content)) == (False, False)


async def test_grep_search_shows_100_matches_by_default(face, folder):
    """M103"""
    (folder / "a").write_text("x\n" * 101)
    *found, _, notice = (await face("grep_search", pattern="x")).split("\n")
    assert found == [f"a:{n}: x" for n in range(1, 101)]
    assert notice == "[100 matches limit reached. Use max_results=200 for more, or refine pattern]"


@pytest.mark.parametrize(("mode", "line"), [("files_with_matches", "a"), ("count", "a:1")])
async def test_grep_search_names_binary_files_beside_others(use_face, folder, mode, line):
    """M104"""
    (folder / "a").write_text("x\n")
    (folder / "b").write_bytes(b"\0x\n")
    result = await use_face("grep_search", pattern="x", output_mode=mode)
    assert join_texts(result.content) == f"{line}\n\n[1 binary file matches: b]"
    assert not result.details.truncated


async def test_grep_search_counts_beyond_what_it_shows(face, folder):
    """M104"""
    (folder / "a").write_text("x\n" * 9999)
    assert await face("grep_search", pattern="x", output_mode="count") == "a:9999"
    (folder / "a").write_text("x\n" * 10_001)
    assert await face("grep_search", pattern="x", output_mode="count") == (
        "a:10000\n\n[Stopped after 10000 matches: there may be more. Refine pattern]"
    )


async def test_grep_search_shows_the_first_200_lines_and_20000_characters(face, folder):
    """M113 C24: the first matches survive."""
    (folder / "a").write_text("x\n" * 300)
    said = (await face("grep_search", pattern="x", max_results=250)).split("\n")
    assert (said[0], said[199]) == ("a:1: x", "a:200: x")
    assert said[200:] == [
        "",
        (
            "[250 matches limit reached. Use max_results=500 for more, or refine pattern."
            " 200 lines limit reached]"
        ),
    ]
    (folder / "a").write_text(("x" * 400 + "\n") * 90)
    said = await face("grep_search", pattern="x")
    assert said.endswith("\n\n[19.5KB limit reached]")
    assert said.startswith("a:1: xx")
    assert len(said) < 20_100


async def test_glob_shows_the_500_newest(use_face, folder):
    """M107 M113 C24"""
    for n in range(510):
        (folder / f"{n:03}").touch()
        os.utime(folder / f"{n:03}", (n, n))
    result = await use_face("glob", pattern="*")
    said = join_texts(result.content).split("\n")
    assert (said[0], said[499]) == ("509", "010")
    assert said[501] == "[500 newest of 510 files shown. Refine pattern or path to see others]"
    assert result.details.truncated


async def test_glob_shows_20000_characters(face, folder):
    """M113 C24: the newest survive."""
    for n in range(150):
        (folder / f"{n:03}{'x' * 197}").touch()
        os.utime(folder / f"{n:03}{'x' * 197}", (n, n))
    said = await face("glob", pattern="*")
    assert said.startswith("149xx")
    assert said.endswith("\n\n[19.5KB limit reached]")
    assert len(said) < 20_100


async def test_glob_shows_the_last_changed_first(face, folder):
    """M107"""
    for name, when in {"a": 1, "b": 3, "c": 2}.items():
        (folder / name).touch()
        os.utime(folder / name, (when, when))
    assert await face("glob", pattern="*") == "b\nc\na"


MISSING = "".join(f"*** Delete File: {'gone' * 400}{n}\n" for n in range(9))


@pytest.mark.parametrize(
    ("tool", "arguments", "chars", "half"),
    [
        ("read_file", {"file_path": "long"}, 50_000, 25_000),
        ("shell", {"command": "tr -d '\\n' < long"}, 30_000, 15_000),
        ("edit_file", {"file_path": "x" * 12_000, "old_string": "a", "new_string": ""}, 10_000, 0),
        ("replace", {"file_path": "x" * 12_000, "old_string": "a", "new_string": ""}, 10_000, 0),
        (
            "apply_patch",
            {"input": f"*** Begin Patch\n{MISSING}*** End Patch\n"},
            10_000,
            0,
        ),
        ("write_file", {"file_path": "x" * 3_000, "content": ""}, 1_000, 0),
    ],
)
async def test_a_longer_text_is_cut_where_the_table_says(
    use_face, folder, tool, arguments, chars, half
):
    """M113: its end, or both of its ends."""
    (folder / "long").write_text("\n".join(f"{n:090}" for n in range(1_000)))
    result = await use_face(tool, **arguments)
    said, full = join_texts(result.content), result.full
    said = said.partition("\n\n[exit code")[0]
    start, warning, end = re.split(r"(?:\n\n)?(\[WARNING: .*?\])\n\n", said)
    assert (start, end) == (full[:half], full[half - chars :])
    removed = len(full) - chars
    assert f" {removed} characters were removed" in warning
    assert removed > 0
