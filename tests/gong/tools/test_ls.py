import os

import pytest

from gong.tools.find import LsDetails
from gong.tools.tool import ToolOutcome
from tape.model.entries import join_texts


async def test_names_are_sorted_without_case_with_hidden_ones_and_folders(use, folder):
    """M108"""
    for name in ("Zebra.txt", "apple.txt", "Banana.txt", ".hidden-file", "sub/inner/deep"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("12")
    (folder / ".hidden-dir").mkdir()
    (folder / "dangling").symlink_to("nowhere")
    (folder / "linked").symlink_to("sub")
    assert await use("ls") == ToolOutcome.from_text(
        ".hidden-dir/\n.hidden-file\napple.txt\nBanana.txt\nlinked/\nsub/\nZebra.txt",
        LsDetails(".", 7, 8, False),
    )


async def test_an_empty_folder_says_so(use, folder):
    """M108"""
    (folder / "sub").mkdir()
    assert await use("ls", path="sub") == ToolOutcome.from_text(
        "(empty directory)", LsDetails("sub", 0, 0, False)
    )


async def test_a_file_and_a_missing_path_are_refused(use, folder):
    """M108"""
    (folder / "file").touch()
    assert await use("ls", path="file") == ToolOutcome.error("Not a directory: file")
    assert await use("ls", path="gone") == ToolOutcome.error(
        "Path not found: gone", kind="FileNotFound"
    )


@pytest.mark.parametrize(
    ("limit", "shown", "notice"),
    [
        ({}, 500, "[500 entries limit reached, 100 more entries. Use limit=600 to see all.]"),
        ({"limit": 2}, 2, "[2 entries limit reached, 598 more entries. Use limit=600 to see all.]"),
        ({"limit": 600}, 600, ""),
    ],
)
async def test_a_cut_list_tells_the_rest(use, folder, limit, shown, notice):
    """M108"""
    names = [f"file{n:03}" for n in range(600)]
    for name in names:
        (folder / name).touch()
    result = await use("ls", **limit)
    expected = "\n".join(names[:shown]) + (f"\n\n{notice}" if notice else "")
    assert (join_texts(result.content), result.details) == (
        expected,
        LsDetails(".", 600, 0, shown < 600),
    )


async def test_bytes_cut_at_50_kilobytes(use, folder):
    """M108"""
    for n in range(300):
        (folder / f"{n:03}{'x' * 197}").touch()
    result = await use("ls")
    text = join_texts(result.content)
    assert text.endswith("x\n\n[50.0KB limit reached, 46 more entries. List a subfolder.]")
    assert text.count("x\n") == 254
    assert result.details.truncated


async def test_strange_names_stay_one_line_of_text_each(use, folder):
    (folder / "a\nb").touch()
    (folder / os.fsdecode(b"caf\xe9")).touch()
    assert join_texts((await use("ls")).content) == "a\\nb\ncaf\ufffd"
