from hashlib import sha256

import pytest

from gong.tools.read import ReadDetails
from gong.tools.tool import ToolOutcome
from tape.model.entries import BlobRef, Image, Text, join_texts


def numbered(first, last):
    return "\n".join(f"Line {n}" for n in range(first, last + 1))


@pytest.mark.parametrize("text", ["one\ntwo\nthree", "one\ntwo\nthree\n", "", "\n", "a\r\nb\r\n"])
async def test_a_short_file_is_shown_as_it_is(use, folder, text):
    """M057"""
    (folder / "a.txt").write_bytes(text.encode())
    assert await use("read", path="a.txt") == ToolOutcome.from_text(text)


@pytest.mark.parametrize("end", ["", "\n"])
async def test_the_first_2000_lines_are_shown(use, folder, end):
    """M057 M058 M065"""
    (folder / "a.txt").write_text(numbered(1, 2500) + end)
    notice = "[Showing lines 1-2000 of 2500. Use offset=2001 to continue.]"
    assert await use("read", path="a.txt") == ToolOutcome(
        (Text(f"{numbered(1, 2000)}\n\n{notice}"),),
        ReadDetails("a.txt", 2500, True, "utf-8", "lines", 2500, 2000),
        full=numbered(1, 2500) + end,
    )


@pytest.mark.parametrize("end", ["", "\n"])
async def test_exactly_2000_lines_are_shown_whole(use, folder, end):
    """M057"""
    text = numbered(1, 2000) + end
    (folder / "a.txt").write_text(text)
    assert await use("read", path="a.txt") == ToolOutcome.from_text(text)


@pytest.mark.parametrize(("size", "whole"), [(51_200, True), (51_201, False)])
async def test_exactly_50_kilobytes_are_shown_whole(use, folder, size, whole):
    """M057"""
    text = ("x" * 99 + "\n") * 511 + "y" * (size - 51_101) + "\n"
    (folder / "a.txt").write_text(text)
    result = await use("read", path="a.txt")
    assert (result.details is None) is whole
    assert (join_texts(result.content) == text) is whole


async def test_the_first_50_kilobytes_are_shown(use, folder):
    """M057 M058"""
    (folder / "a.txt").write_text("\n".join(["x" * 199] * 500))
    result = await use("read", path="a.txt")
    assert join_texts(result.content).endswith(
        "x\n\n[Showing lines 1-256 of 500 (50.0KB limit). Use offset=257 to continue.]"
    )
    assert result.details == ReadDetails("a.txt", 500, True, "utf-8", "bytes", 500, 256)


@pytest.mark.parametrize(
    ("page", "shown", "notice"),
    [
        ({"offset": 51}, (51, 100), ""),
        ({"offset": 100}, (100, 100), ""),
        ({"offset": 1}, (1, 100), ""),
        ({"offset": 0}, (1, 100), ""),
        ({"limit": 100}, (1, 100), ""),
        ({"limit": 10}, (1, 10), "[90 more lines in file. Use offset=11 to continue.]"),
        (
            {"offset": 41, "limit": 20},
            (41, 60),
            "[40 more lines in file. Use offset=61 to continue.]",
        ),
        ({"offset": "41", "limit": "60"}, (41, 100), ""),
    ],
)
async def test_pages_are_counted_from_one(use, folder, page, shown, notice):
    """M057 M059"""
    (folder / "a.txt").write_text(numbered(1, 100))
    expected = numbered(*shown) + (f"\n\n{notice}" if notice else "")
    assert join_texts((await use("read", path="a.txt", **page)).content) == expected


async def test_a_cut_page_continues_where_it_stopped(use, folder):
    """M058"""
    (folder / "a.txt").write_text(numbered(1, 5000))
    text = join_texts((await use("read", path="a.txt", offset=1001, limit=3000)).content)
    assert text == (
        f"{numbered(1001, 3000)}\n\n[Showing lines 1001-3000 of 5000. Use offset=3001 to continue.]"
    )


@pytest.mark.parametrize("end", ["", "\n"])
async def test_an_offset_beyond_the_end_says_how_long_the_file_is(use, folder, end):
    """M059"""
    (folder / "a.txt").write_text(f"a\nb\nc{end}")
    assert await use("read", path="a.txt", offset=100) == ToolOutcome.error(
        "Offset 100 is beyond end of file (3 lines total)"
    )


async def test_a_line_too_long_to_show_comes_with_a_way_to_see_it(use, folder):
    """M060 J3-3.3"""
    (folder / "a b.txt").write_text("short\n" + "x" * 122_880 + "\nshort\n")
    result = await use("read", path="a b.txt", offset=2)
    assert join_texts(result.content) == (
        "[Line 2 is 120.0KB, exceeds 50.0KB limit. Use bash: sed -n '2p' 'a b.txt' | head -c 51200]"
    )
    assert result.details == ReadDetails("a b.txt", 3, True, "utf-8", "bytes", 2, 0, True)


async def test_a_link_is_followed(use, folder):
    """M057"""
    (folder / "a.txt").write_text("text")
    (folder / "link").symlink_to("a.txt")
    assert join_texts((await use("read", path="link")).content) == "text"


async def test_a_path_from_home_is_expanded(use, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/截图 下午.txt").write_text("text")
    assert join_texts((await use("read", path="@~/截图\u202f下午.txt")).content) == "text"


async def test_stray_bytes_are_replaced(use, folder):
    (folder / "a.txt").write_bytes(b"caf\xe9\n")
    assert join_texts((await use("read", path="a.txt")).content) == "caf\ufffd\n"


async def test_other_line_separators_are_text(use, folder):
    text = "a\u2028b\u0085c\x0bd\re\nf"
    (folder / "a.txt").write_bytes(text.encode())
    assert join_texts((await use("read", path="a.txt", limit=1)).content) == (
        "a\u2028b\u0085c\x0bd\re\n\n[1 more lines in file. Use offset=2 to continue.]"
    )


async def test_a_missing_file_is_enoent(use):
    """M064"""
    assert await use("read", path="no.txt") == ToolOutcome.error(
        "ENOENT: no such file or directory: no.txt", kind="FileNotFound"
    )


async def test_an_unreadable_file_is_eacces(use, anyone):
    """M064 J3-5.4"""
    path = anyone / "a.txt"
    path.touch(0o000)
    assert await use("read", path=str(path)) == ToolOutcome.error(
        f"EACCES: permission denied: {path}", kind="PermissionDenied"
    )


async def test_a_folder_and_a_device_are_refused(use):
    assert await use("read", path=".") == ToolOutcome.error("Is a directory: .. List it with ls.")
    assert await use("read", path="/dev/zero") == ToolOutcome.error(
        "EINVAL: not a regular file: /dev/zero"
    )


async def test_a_binary_file_is_refused_in_words(use, folder):
    """M066"""
    (folder / "a.txt").write_bytes(b"\x7fELF\0\0\0\0")
    assert await use("read", path="a.txt") == ToolOutcome.error(
        "Cannot read a.txt as text: it is a binary file of 8B."
        " Look into it with bash: file, strings or xxd."
    )


PICTURES = [
    (b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
    (b"\xff\xd8\xff\xe0\0", "image/jpeg"),
    (b"GIF89a\0", "image/gif"),
    (b"RIFF\n\0\0\0WEBPVP8 ", "image/webp"),
]


@pytest.mark.parametrize(("data", "kind"), PICTURES)
async def test_a_picture_is_recognised_by_its_first_bytes(use, folder, data, kind):
    """M062 J3-4.1"""
    (folder / "a.txt").write_bytes(data)
    words, picture = (await use("read", path="a.txt")).content
    assert words == Text(f"[Picture a.txt: {kind}, {len(data)}B]")
    assert picture == Image(blob=BlobRef(sha256(data).hexdigest(), len(data)), mime=kind)


async def test_text_named_as_a_picture_is_text(use, folder):
    """M062 J3-4.2"""
    (folder / "a.png").write_text("text")
    assert await use("read", path="a.png") == ToolOutcome.from_text("text")


@pytest.mark.parametrize(
    ("there", "asked"),
    [
        ("Shot at 3.42\u202fPM.txt", "Shot at 3.42 PM.txt"),
        ("cafe\u0301.txt", "caf\u00e9.txt"),
        ("l\u2019art.txt", "l'art.txt"),
        ("l\u2019e\u0301cran.txt", "l'\u00e9cran.txt"),
        ("截图 2026-02-11 下午3.42.10.txt", "截图 2026-02-11 下午3.42.10.txt"),
    ],
)
async def test_a_name_as_macos_writes_it_is_found(use, folder, there, asked):
    """M061 J3-6.1 J11-3.1 J11-3.2 J11-3.3"""
    (folder / there).write_text("text")
    assert await use("read", path=asked) == ToolOutcome.from_text("text")


async def test_of_several_spellings_the_one_that_was_asked_for_goes_first(use, folder):
    """M061: as it is, narrow blank before AM or PM, letters apart, curly quote, the last two."""
    asked = "l'\u00e9 at 3.42 PM.txt"
    there = [
        asked,
        "l'\u00e9 at 3.42\u202fPM.txt",
        "l'e\u0301 at 3.42 PM.txt",
        "l\u2019\u00e9 at 3.42 PM.txt",
        "l\u2019e\u0301 at 3.42 PM.txt",
    ]
    for name in there:
        (folder / name).write_text(name)
    for name in there:
        assert await use("read", path=asked) == ToolOutcome.from_text(name)
        (folder / name).unlink()
    assert (await use("read", path=asked)).kind == "FileNotFound"


async def test_utf_16_is_read_as_text(use, folder):
    (folder / "a.txt").write_bytes("\ufeffcaf\u00e9\n".encode("utf-16-le"))
    assert await use("read", path="a.txt") == ToolOutcome.from_text("caf\u00e9\n")


@pytest.mark.parametrize("path", [None, 42, ["a"]])
async def test_a_path_that_is_no_text_is_a_validation_error(use, path):
    """M045 J3-6.3"""
    result = await use("read", path=path)
    assert result.is_error
    assert join_texts(result.content).startswith("Invalid arguments for tool: read: ")
