"""Lines of a large file are found in pieces, and are those of the whole."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gong.env import scanner
from gong.env.local import LocalEnvironment
from gong.env.protocol import LineMatch, LineMatches, Search
from gong.env.scanner import find_lines, find_matches, read_batches, read_lines, split_text_lines
from tests.tape.making import BUDGET

PIECES = st.sampled_from(
    [b"a\n", b"needle", b"\n", b"\r\n", b"\0", b"\xff", "é".encode(), b"x" * 9]
)


@settings(max_examples=int(60 * BUDGET), deadline=None)
@given(
    st.lists(PIECES, min_size=1, max_size=30).map(b"".join),
    st.integers(4, 12),
    st.sampled_from(["", "utf-16"]),
)
def test_a_file_in_pieces_has_the_lines_of_the_whole(tmp_path_factory, data, size, encoding):
    if encoding:
        data = data.decode("utf-8", "ignore").encode(encoding)
    path = tmp_path_factory.mktemp("work") / "a"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("LARGE_BYTES", "SAMPLE_BYTES", "PIECE_BYTES"):
            patch.setattr(scanner, name, size)
        batches = list(read_batches(str(path)))
        lines = [line for one in batches for line in scanner.split_lines(one.data)]
        starts = dict.fromkeys(range(1, len(lines) + 2), 0)
        numbered = {number: part.text for number, part in read_lines(str(path), starts).items()}
        found = find_matches(batches, partial(find_lines, re.compile("e+d")), 100, b"need")
    whole = split_text_lines(data)
    if whole or not data:
        assert lines == whole
        assert numbered == dict(enumerate(whole, 1))
        hits = [(n, line.index("eed")) for n, line in enumerate(whole, 1) if "need" in line]
        assert found == (hits, False)
    else:
        assert numbered == {}
        assert found.is_binary or found.lines == []


SMALL_SIZES = {
    "LARGE_BYTES": 16,
    "SAMPLE_BYTES": 8,
    "PIECE_BYTES": 7,
    "LINE_BYTES": 16,
    "OVERLAP_BYTES": 9,
    "SHOWN_CHARACTERS": 6,
}


@settings(max_examples=int(60 * BUDGET), deadline=None)
@given(
    st.lists(
        st.sampled_from(["né😀d", "x", "yy", "é", "😀", "\n", "zzzzzzzzzzzz"]), max_size=40
    ).map("".join),
    st.sampled_from(["né😀d", "^x", "yy$"]),
)
def test_a_long_line_in_parts_has_the_matches_of_the_whole(tmp_path_factory, text, pattern):
    path = tmp_path_factory.mktemp("work") / "a"
    path.write_text(text)
    expression = re.compile(pattern)
    with pytest.MonkeyPatch.context() as patch:
        for name, size in SMALL_SIZES.items():
            patch.setattr(scanner, name, size)
        batches = list(read_batches(str(path)))
        matches = find_matches(batches, partial(find_lines, expression), 100)
        starts = dict(matches.lines)
        parts = read_lines(str(path), starts)
    lines = text.removesuffix("\n").split("\n")
    whole = [
        (number, match.start())
        for number, line in enumerate(lines, 1)
        if (match := expression.search(line))
    ]
    # the end of a part counts as that of the line
    ends = [one for one in matches.lines if one[0] not in dict(whole)] if "$" in pattern else []
    assert [one for one in matches.lines if one not in ends] == whole or "$" in pattern
    assert {*dict(whole)} <= {*starts}
    assert {*parts} == {*starts}
    for number, part in parts.items():
        line, end = lines[number - 1], part.start + len(part.text)
        assert line[part.start : end] == part.text
        assert part.start <= starts[number] <= end
        assert part.has_more is (end < len(line))
        assert len(part.text) <= 2 * SMALL_SIZES["SHOWN_CHARACTERS"]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A file of about 170 MB, a needle in its last line."""
    file = tmp_path_factory.mktemp("log") / "big.log"
    with file.open("wb") as written:
        for part in range(20):
            lines = (b"a line of a log, with words in it: %08d\n" % n for n in range(190_000))
            written.write(b"".join(lines) + b"part %d\n" % part)
        written.write(b"the needle\n")
    return file


_MEASURED = """
import asyncio, resource, sys, time
from gong.env.local import LocalEnvironment
from gong.env.protocol import Search

async def main():
    env = LocalEnvironment("/", {"PATH": "/nonexistent"})
    search = Search(sys.argv[3], ignore_case="-i" in sys.argv)
    await env.grep(sys.argv[2], search)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    searching = asyncio.create_task(env.grep(sys.argv[1], search))
    turns = 0
    while not searching.done():
        await asyncio.sleep(0.005)
        turns += 1
    (found,) = (await searching).found
    part = (await env.read_lines(sys.argv[1], {found.line: found.at}))[found.line]
    assert part.text[found.at - part.start :] == "needle"
    who = max(resource.getrusage(one).ru_maxrss for one in (resource.RUSAGE_SELF, -1))
    print(found.line, turns, (who - before) // 1024)

asyncio.run(main())
"""


@pytest.mark.parametrize("pattern", ["needle", "n.*le$"])
def test_a_large_file_is_searched_in_little_memory(log, tmp_path, pattern):
    """M099: without ripgrep; the loop turns meanwhile."""
    (tmp_path / "a").write_text("the needle\n")
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(log), str(tmp_path / "a"), pattern],
        capture_output=True,
        text=True,
        check=True,
    )
    line, turns, megabytes = map(int, done.stdout.split())
    assert line == 20 * 190_001 + 1
    assert turns > 5
    assert megabytes <= 60


@pytest.mark.parametrize("pattern", ["needle", "n.*le$", "NEEDLE"])
def test_a_line_of_many_megabytes_is_searched_in_little_memory(tmp_path, pattern):
    """M099: the whole of it was held four times."""
    (tmp_path / "a").write_text("the needle\n")
    (tmp_path / "long").write_text("lorem ipsum dolor é " * 1_200_000 + "needle\n")
    options = ("-i",) if pattern.isupper() else ()
    files = (str(tmp_path / "long"), str(tmp_path / "a"))
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *files, pattern, *options],
        capture_output=True,
        text=True,
        check=True,
    )
    line, _, megabytes = map(int, done.stdout.split())
    assert line == 1
    assert megabytes <= 60


@pytest.mark.parametrize("pattern", ["needle", "n.*le"])
async def test_a_large_file_is_not_read_on_to_see_whether_it_is_binary(tmp_path, pattern):
    """M102: what comes after the last line that is shown makes no difference."""
    path = tmp_path / "a"
    path.write_bytes(b"needle\n" + b"x\n" * 3_000_000 + b"\0\xff")
    env = LocalEnvironment(str(tmp_path), {"PATH": "/nonexistent"})
    shown = await env.grep("a", Search(pattern, limit=1))
    assert shown == LineMatches((LineMatch("a", 1, 0),), limited=True)
    assert await env.grep("a", Search(pattern)) == LineMatches((), limited=False, binary=("a",))


@pytest.mark.parametrize("pattern", ["needle", "n.*le"])
async def test_a_large_text_with_a_zero_byte_is_named(tmp_path, pattern):
    """M102"""
    (tmp_path / "a").write_bytes(b"needle\n" + b"x\n" * 3_000_000 + b"\0\n")
    env = LocalEnvironment(str(tmp_path), {"PATH": "/nonexistent"})
    assert await env.grep("a", Search(pattern)) == LineMatches((), limited=False, binary=("a",))


async def test_many_binary_files_are_not_a_pattern_that_takes_long(tmp_path):
    """M103: the time is that of lines, not of files without any."""
    for n in range(30):
        (tmp_path / f"a{n}").write_bytes(b"needle " * 1_000_000 + b"\xff\0")
    (tmp_path / "z").write_text("needle\n")
    env = LocalEnvironment(str(tmp_path), {"PATH": "/nonexistent"})
    found = await env.grep(".", Search("n.*le"))
    binary = tuple(sorted(f"a{n}" for n in range(30)))  # their beginning is text
    assert found == LineMatches((LineMatch("z", 1, 0),), limited=False, binary=binary)


async def test_a_pattern_that_takes_long_in_a_binary_file_leaves_it_out(tmp_path):
    """M103: in a text it is an error."""
    (tmp_path / "a").write_bytes(b"\0" + b"a" * 60 + b"b")
    (tmp_path / "z").write_text("ac\n")
    env = LocalEnvironment(str(tmp_path), {"PATH": "/nonexistent"})
    found = await env.grep(".", Search("(a+)+c"))
    assert found == LineMatches((LineMatch("z", 1, 0),), limited=False)
    (tmp_path / "y").write_bytes(b"a" * 60 + b"b")
    with pytest.raises(ValueError, match="took too long"):
        await env.grep(".", Search("(a+)+c"))
