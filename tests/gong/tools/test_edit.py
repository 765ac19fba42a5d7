import asyncio

import pytest

from gong.tools.edit import Details
from gong.tools.tool import ToolResult

NOT_FOUND = (
    "Could not find the exact text in a.txt."
    " The old text must match exactly including all whitespace and newlines."
)
FOUND = (
    "Found {} occurrences of the text in a.txt. The text must be unique."
    " Please provide more context to make it unique."
)


@pytest.fixture
def edit(use, folder):
    """Edit a file of these bytes; return the result and the bytes it holds then."""

    async def edit(data, old, new):
        (folder / "a.txt").write_bytes(data)
        result = await use("edit", path="a.txt", oldText=old, newText=new)
        return result, (folder / "a.txt").read_bytes()

    return edit


async def test_the_one_place_is_replaced_and_the_change_shown(edit):
    """M076"""
    assert await edit(b"Hello, world!", "world", "testing") == (
        ToolResult.from_text(
            "Successfully replaced text in a.txt.",
            Details(
                path="a.txt",
                old_text="world",
                new_text="testing",
                diff_lines=(
                    "- 1 Hello, world!\n\\ No newline at end of file",
                    "+ 1 Hello, testing!\n\\ No newline at end of file",
                ),
                diff=(
                    "- 1 Hello, world!\n\\ No newline at end of file\n"
                    "+ 1 Hello, testing!\n\\ No newline at end of file"
                ),
                first_changed_line=1,
            ),
        ),
        b"Hello, testing!",
    )


@pytest.mark.parametrize(
    ("data", "old", "new", "said"),
    [
        (b"Hello, world!", "nonexistent", "x", NOT_FOUND),
        (b"", "a", "x", NOT_FOUND),
        (
            b"foo bar foo baz foo",
            "foo",
            "qux",
            FOUND.format(3),
        ),
        (
            b"hello\r\nworld\r\nhello\nworld\n",
            "hello\nworld",
            "x",
            FOUND.format(2),
        ),
        (
            b"hello",
            "hello",
            "hello",
            "No changes made to a.txt. The replacement produced identical content.",
        ),
        (
            b"a\r\nb",
            "a\nb",
            "a\r\nb",
            "No changes made to a.txt. The replacement produced identical content.",
        ),
        (
            b"",
            "",
            "content",
            "oldText is empty: name the text to replace in a.txt, or use write for all of it.",
        ),
        (
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
            "PNG",
            "GIF",
            "Cannot edit a.txt: it is a binary file. Use bash to change it.",
        ),
    ],
)
async def test_what_cannot_be_done_is_said_and_the_file_stays(edit, data, old, new, said):
    """M074"""
    assert await edit(data, old, new) == (ToolResult.error(said), data)


async def test_a_missing_file_and_a_folder_are_named(use, folder):
    """M074"""
    (folder / "sub").mkdir()
    assert await use("edit", path="no.txt", oldText="a", newText="b") == ToolResult.error(
        "File not found: no.txt"
    )
    assert await use("edit", path="sub", oldText="a", newText="b") == ToolResult.error(
        "Is a directory: sub"
    )


@pytest.mark.parametrize(
    ("data", "old", "new", "after"),
    [
        (b"one\r\ntwo\r\nthree\r\n", "one\ntwo\n", "1\n2\n", b"1\r\n2\r\nthree\r\n"),
        (b"one\ntwo\n", "two\n", "2\r\n3\r\n", b"one\n2\n3\n"),
        (b"\xef\xbb\xbfone\r\ntwo\r\n", "two\n", "2\n", b"\xef\xbb\xbfone\r\n2\r\n"),
        (b"one\r\ntwo\nthree\rfour\r\n", "four", "4", b"one\r\ntwo\nthree\r4\r\n"),
        (
            b"caf\xe9 \x93bar\x94 \xc2\xa0 \r\nbar2",
            "bar2",
            "x",
            b"caf\xe9 \x93bar\x94 \xc2\xa0 \r\nx",
        ),
    ],
)
async def test_line_ends_mark_and_all_other_bytes_stay(edit, data, old, new, after):
    """M077"""
    result, left = await edit(data, old, new)
    assert not result.is_error
    assert left == after


@pytest.mark.parametrize("new", ["$1 \\1 \\g<0> $& $$", "\\n", "{0} %s"])
async def test_new_text_is_put_in_word_for_word(edit, new):
    assert (await edit(b"a b", "b", new))[1] == b"a " + new.encode()


@pytest.mark.parametrize("path", ["../../etc/passwd", "../outside.txt", "sub/../../outside.txt"])
async def test_a_path_that_climbs_out_is_refused(use, tmp_path, path):
    (tmp_path / "outside.txt").write_text("root")
    assert await use("edit", path=path, oldText="root", newText="hacked") == ToolResult.error(
        f'Path leaves the working directory: {path}. Name a file inside it, without "..".'
    )
    assert (tmp_path / "outside.txt").read_text() == "root"


async def test_a_path_from_home_is_expanded_and_mode_and_link_stay(use, tmp_path):
    script = tmp_path / "home/bin/run"
    script.parent.mkdir(parents=True)
    script.write_text("echo old\n")
    script.chmod(0o755)
    (tmp_path / "home/link").symlink_to("bin/run")
    await use("edit", path="~/link", oldText="old", newText="new")
    assert script.read_text() == "echo new\n"
    assert script.stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "home/link").is_symlink()


async def test_two_edits_at_once_leave_one_whole_file(use, folder):
    """M079"""
    (folder / "a.txt").write_text("A\n" + "x" * 1_000_000 + "\nB\n")
    edits = [
        use("edit", path="a.txt", oldText=f"{letter}\n", newText=f"{letter}1\n") for letter in "AB"
    ]
    results = await asyncio.gather(*edits)
    middle = "x" * 1_000_000
    possible = {f"A1\n{middle}\nB1\n", f"A1\n{middle}\nB\n", f"A\n{middle}\nB1\n"}
    assert not any(result.is_error for result in results)
    assert (folder / "a.txt").read_text() in possible
    assert [path.name for path in folder.iterdir()] == ["a.txt"]
