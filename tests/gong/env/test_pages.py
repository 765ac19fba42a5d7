"""A page of a large file is found without holding the file, and is what reading it whole gives."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gong.env import pages
from gong.env.pages import LARGE_BYTES, read_page
from tests.tape.making import BUDGET

LINE = b"a line of a log, with some words in it: %08d\n"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A file of 150 000 lines, with no end of line at its end."""
    file = tmp_path_factory.mktemp("log") / "big.log"
    file.write_bytes(b"".join(LINE % number for number in range(150_000))[:-1])
    assert file.stat().st_size > LARGE_BYTES
    return file


@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 5), (0, None), (70_000, 3), (149_999, 10), (149_990, None), (150_000, 5), (200_000, 5)],
)
def test_a_page_is_what_reading_it_whole_gives(log, first, count):
    data = log.read_bytes()
    lines = data.splitlines(keepends=True)
    wanted = lines[first:] if count is None else lines[first : first + count]
    whole = b"".join(wanted)
    page = read_page(str(log), first, count, 1000)
    assert page is not None
    assert page.text == whole[:1000]
    assert (page.lines, page.total) == (len(wanted), len(lines))
    assert page.first_line == (len(wanted[0]) if wanted else 0)
    assert page.page_digest == hashlib.sha256(whole).hexdigest()
    assert (page.digest, page.size) == (hashlib.sha256(data).digest(), len(data))


@settings(max_examples=int(60 * BUDGET), deadline=None)
@given(
    st.lists(st.binary(max_size=9).map(lambda one: one.replace(b"\0", b"x")), max_size=40),
    st.integers(0, 45),
    st.integers(1, 45) | st.none(),
    st.integers(1, 7),
)
def test_pages_are_the_same_however_the_file_is_cut(texts, first, count, size):
    data = b"\n".join(texts)
    reader = pages._PageReader(first, None if count is None else first + count, 10**6)
    for at in range(0, len(data), size):
        reader.read_piece(data[at : at + size])
    page = reader.build_page()
    lines = [one + b"\n" for one in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    lines = lines if lines[-1] else lines[:-1]
    wanted = lines[first:] if count is None else lines[first : first + count]
    assert (page.text, page.lines, page.total) == (b"".join(wanted), len(wanted), len(lines))


def test_other_files_are_read_in_other_ways(tmp_path, log):
    small = tmp_path / "small.txt"
    small.write_text("a\n")
    assert read_page(str(small), 0, None, 10) is None
    for start in (b"%PDF-1.7", b"\xff\xfea\0", b"\x89PNG"):
        other = tmp_path / "other"
        other.write_bytes(start + b"x" * LARGE_BYTES)
        assert read_page(str(other), 0, None, 10) is None
    for zero_at in (10, LARGE_BYTES):
        binary = tmp_path / "binary"
        binary.write_bytes(b"x" * zero_at + b"\0" + b"x" * LARGE_BYTES)
        assert read_page(str(binary), 0, None, 10).is_binary


_MEASURED = """
import asyncio, resource, sys
from gong.env.local import LocalEnvironment

async def main():
    env = LocalEnvironment("/", {})
    await env.read_page(sys.argv[2], 0, 1, 10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    page = await env.read_page(sys.argv[1], 100_000, 5, 1 << 20)
    print(page.lines, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)

asyncio.run(main())
"""


def test_five_lines_of_a_large_file_take_little_memory(log, tmp_path):
    large = tmp_path / "large.log"
    with large.open("wb") as file:
        for _ in range(20):  # about 170 MB
            file.write(log.read_bytes() + b"\n")
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(large), str(log)],
        capture_output=True,
        text=True,
        check=True,
    )
    lines, megabytes = map(int, done.stdout.split())
    assert lines == 5
    assert megabytes <= 60
