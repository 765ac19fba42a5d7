"""Whole patches on real folders: what stands there before, the patch, and what stands there after.

Where nothing is said of after, the patch is refused and not a byte, mode or time has changed.
"""

import asyncio
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from gong.env.local import LocalEnvironment
from gong.tools.apply_patch import ApplyPatchArguments, run_apply_patch
from gong.tools.tool import ToolContext
from tape.model.entries import join_texts

LINK = "link to "


def patch(*lines):
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch"))


def fill(folder, files):
    for name, data in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(data, str) and data.startswith(LINK):
            place.symlink_to(data.removeprefix(LINK))
        elif data is None:
            place.mkdir()
        else:
            place.write_bytes(data)


def contents(folder):
    """Return every file and link; a folder only where it is empty."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = LINK + str(path.readlink())
        elif path.is_file():
            found[name] = path.read_bytes()
        elif not any(path.iterdir()):
            found[name] = None
    return found


def marks(folder):
    return {
        (str(p), p.lstat().st_ino, p.lstat().st_mode, p.lstat().st_mtime_ns)
        for p in (folder, *folder.rglob("*"))
    }


async def applied(folder, *lines):
    env = LocalEnvironment(str(folder), dict(os.environ))
    return await run_apply_patch(ApplyPatchArguments(patch(*lines)), ToolContext(env, "c1", print))


def old_new(old, new):
    return ["@@", f"-{old}", f"+{new}"]


GOOD = {
    "a file is made below folders that are not there": (
        {},
        ["*** Add File: a/b/c", "+x"],
        {"a/b/c": b"x\n"},
    ),
    "a file of no lines": ({}, ["*** Add File: empty"], {"empty": b""}),
    "a file of one blank line": ({}, ["*** Add File: blank", "+"], {"blank": b"\n"}),
    "a file that is there is written anew": (
        {"a": b"old\n"},
        ["*** Add File: a", "+new"],
        {"a": b"new\n"},
    ),
    "a binary file is written anew": ({"a": b"\0\xff"}, ["*** Add File: a", "+x"], {"a": b"x\n"}),
    "a file that is gone comes again": (
        {"a": b"old\n"},
        ["*** Delete File: a", "*** Add File: a", "+new"],
        {"a": b"new\n"},
    ),
    "a file that came goes again": (
        {"b": b"b\n"},
        ["*** Add File: a", "+x", "*** Delete File: a"],
        {"b": b"b\n"},
    ),
    "a file that came is changed": (
        {},
        ["*** Add File: a", "+x", "*** Update File: a", *old_new("x", "y")],
        {"a": b"y\n"},
    ),
    "one file changed by two hunks": (
        {"a": b"1\n2\n"},
        ["*** Update File: a", *old_new("1", "x"), "*** Update File: a", *old_new("x", "y")],
        {"a": b"y\n2\n"},
    ),
    "one file under two names": (
        {"d/a": b"1\n"},
        [
            "*** Update File: d/a",
            *old_new("1", "2"),
            "*** Update File: d/../d/./a",
            *old_new("2", "3"),
        ],
        {"d/a": b"3\n"},
    ),
    "a change below what was moved": (
        {"a": b"1\n"},
        ["*** Update File: a", "*** Move to: b", "*** Update File: b", *old_new("1", "2")],
        {"b": b"2\n"},
    ),
    "a move over a file": (
        {"a": b"1\n", "b": b"other\n"},
        ["*** Update File: a", "*** Move to: b", *old_new("1", "2")],
        {"b": b"2\n"},
    ),
    "a move onto itself": (
        {"a": b"1\n"},
        ["*** Update File: a", "*** Move to: ./a", *old_new("1", "2")],
        {"a": b"2\n"},
    ),
    "two files change places": (
        {"a": b"A\n", "b": b"B\n"},
        [
            *("*** Update File: a", "*** Move to: t", "*** Update File: b", "*** Move to: a"),
            *("*** Update File: t", "*** Move to: b"),
        ],
        {"a": b"B\n", "b": b"A\n"},
    ),
    "a move between folders leaves the rest": (
        {"x/a": b"1\n", "x/b": b"2\n"},
        ["*** Update File: x/a", "*** Move to: y/z/a"],
        {"x/b": b"2\n", "y/z/a": b"1\n"},
    ),
    "CRLF stays, and comes in with new lines": (
        {"a": b"1\r\n2\r\n3\r\n"},
        ["*** Update File: a", "@@", " 1", "-2", "+two", "+more", " 3"],
        {"a": b"1\r\ntwo\r\nmore\r\n3\r\n"},
    ),
    "mixed line ends stay as they are": (
        {"a": b"1\n2\r\n3\n"},
        ["*** Update File: a", "@@", " 1", " 2", "-3", "+x"],
        {"a": b"1\n2\r\nx\n"},
    ),
    "a patch that has CRLF itself": (
        {"a": b"1\n2\n"},
        ["*** Update File: a\r", "@@\r", "-1\r", "+x\r"],
        {"a": b"x\n2\n"},
    ),
    "a lone carriage return is text": (
        {"a": b"1\r2\n3\n"},
        ["*** Update File: a", *old_new("3", "x")],
        {"a": b"1\r2\nx\n"},
    ),
    "no final newline gains one": (
        {"a": b"1\n2"},
        ["*** Update File: a", *old_new("2", "x")],
        {"a": b"1\nx\n"},
    ),
    "no final newline, changed above it": (
        {"a": b"1\n2"},
        ["*** Update File: a", *old_new("1", "x")],
        {"a": b"x\n2"},
    ),
    "no final newline, and the last line is context": (
        {"a": b"1\r\n2"},
        ["*** Update File: a", "@@", "-1", "+x", " 2", "*** End of File"],
        {"a": b"x\r\n2"},
    ),
    "no final newline, lines come in below it": (
        {"a": b"1\n2"},
        ["*** Update File: a", "@@", " 2", "+3"],
        {"a": b"1\n2\n3\n"},
    ),
    "no final newline, and the last line goes": (
        {"a": b"1\n2"},
        ["*** Update File: a", "@@", " 1", "-2"],
        {"a": b"1\n"},
    ),
    "one line without a line end stays so": (
        {"a": b"1"},
        ["*** Update File: a", "@@", "+0", " 1"],
        {"a": b"0\n1"},
    ),
    "every line goes": (
        {"a": b"1\n2\n"},
        ["*** Update File: a", "@@", "-1", "-2"],
        {"a": b""},
    ),
    "lines come into an empty file": (
        {"a": b""},
        ["*** Update File: a", "@@", "+1", "+2"],
        {"a": b"1\n2\n"},
    ),
    "a BOM stays": (
        {"a": b"\xef\xbb\xbf1\n2\n"},
        ["*** Update File: a", *old_new("1", "x")],
        {"a": b"\xef\xbb\xbfx\n2\n"},
    ),
    "typographic marks in context keep their bytes": (
        {"a": "say “hi”\u00a0–\nx\n".encode()},
        ["*** Update File: a", "@@", ' say "hi" -', "-x", "+y"],
        {"a": "say “hi”\u00a0–\ny\n".encode()},
    ),
    "names and text of all kinds": (
        {"Ünï 文件.txt": "früher\n".encode()},
        [
            "*** Update File: Ünï 文件.txt",
            "*** Move to: ordner/文 件 🎉.txt",
            *old_new("früher", "später 🎉"),
        ],
        {"ordner/文 件 🎉.txt": "später 🎉\n".encode()},
    ),
    "separators that are no line ends": (
        {"a": "1\u20282\x0b3\x0c4\x855\n6\n".encode()},
        ["*** Update File: a", *old_new("6", "x\u2028y")],
        {"a": "1\u20282\x0b3\x0c4\x855\nx\u2028y\n".encode()},
    ),
    "the same lines twice, told apart by what stands above": (
        {"a": b"def f():\n  x\ndef g():\n  x\n"},
        ["*** Update File: a", "@@ def g():", "-  x", "+  y"],
        {"a": b"def f():\n  x\ndef g():\n  y\n"},
    ),
    "the last of the same lines, by the end of the file": (
        {"a": b"x\nm\nx\n"},
        ["*** Update File: a", "@@", "-x", "+y", "*** End of File"],
        {"a": b"x\nm\ny\n"},
    ),
    "through a linked folder inside": (
        {"real/a": b"1\n", "link": LINK + "real"},
        ["*** Update File: link/a", *old_new("1", "2"), "*** Add File: link/b", "+b"],
        {"real/a": b"2\n", "real/b": b"b\n", "link": LINK + "real"},
    ),
    "one file through a link and by itself": (
        {"real/a": b"1\n", "link": LINK + "real"},
        [
            "*** Update File: link/a",
            *old_new("1", "2"),
            "*** Update File: real/a",
            *old_new("2", "3"),
        ],
        {"real/a": b"3\n", "link": LINK + "real"},
    ),
    "lines that look like a patch": (
        {"a": b"1\n"},
        ["*** Update File: a", "@@", " 1", "+*** End Patch", "+*** Delete File: a"],
        {"a": b"1\n*** End Patch\n*** Delete File: a\n"},
    ),
}


@pytest.mark.parametrize("case", GOOD)
async def test_applied(tmp_path, case):
    """M081 M082"""
    before, lines, after = GOOD[case]
    fill(tmp_path, before)
    result = await applied(tmp_path, *lines)
    assert not result.is_error, result
    assert contents(tmp_path) == after


FIRST = ["*** Update File: first", *old_new("1", "2"), "*** Add File: new/x", "+x"]
BAD = {
    "the second of two chunks": ({"a": b"1\n"}, ["*** Update File: a", *old_new("1", "2"),
                                                *old_new("no", "2")]),
    "a second hunk on what the first one made": (
        {"a": b"1\n"},
        ["*** Update File: a", *old_new("1", "2"), "*** Update File: a", *old_new("1", "3")],
    ),
    "what an earlier hunk took away": (
        {"a": b"1\n"}, ["*** Delete File: a", "*** Update File: a", *old_new("1", "2")],
    ),
    "what an earlier hunk moved away": (
        {"a": b"1\n"}, ["*** Update File: a", "*** Move to: b", "*** Delete File: a"],
    ),
    "a file where a folder is": ({"d/x": b"x"}, ["*** Add File: d", "+x"]),
    "a file below a file": ({"a": b"1\n"}, ["*** Add File: a/b", "+x"]),
    "a move onto a folder": ({"a": b"1\n", "d": None}, ["*** Update File: a", "*** Move to: d"]),
    "a folder that shall go": ({"d": None}, ["*** Delete File: d"]),
    "a binary file": ({"a": b"1\n\0\n"}, ["*** Update File: a", *old_new("1", "2")]),
    "text that is not UTF-8": ({"a": b"1\n\xff\n"}, ["*** Update File: a", *old_new("1", "2")]),
    "a link that leads out": ({"l": LINK + ".."}, ["*** Add File: l/x", "+x"]),
    "a link to nowhere outside": ({"l": LINK + "../none"}, ["*** Add File: l", "+x"]),
    "links in a ring": ({"l": LINK + "m", "m": LINK + "l"}, ["*** Add File: l", "+x"]),
    "the folder above": ({}, ["*** Add File: d/../../x", "+x"]),
    "a patch that breaks off": ({"a": b"1\n"}, ["*** Update File: a", "@@"]),
}  # fmt: skip


@pytest.mark.parametrize("place", ["before", "behind"])
@pytest.mark.parametrize("case", BAD)
async def test_refused_whole(tmp_path, case, place):
    """M081: whatever else the patch holds."""
    before, bad = BAD[case]
    folder = tmp_path / "work"
    folder.mkdir()
    fill(folder, {"first": b"1\n", **before})
    was, held = marks(tmp_path), contents(tmp_path)
    result = await applied(folder, *([*bad, *FIRST] if place == "before" else [*FIRST, *bad]))
    assert result.is_error
    assert "o file was changed" in join_texts(result.content)
    assert (marks(tmp_path), contents(tmp_path)) == (was, held)


async def test_ten_megabytes_and_a_change_at_each_end(tmp_path):
    """M081"""
    lines = [f"{n:099}" for n in range(100_000)]
    (tmp_path / "big").write_text("\n".join(lines) + "\n")
    result = await applied(
        tmp_path, "*** Update File: big", *old_new(lines[0], "first"), *old_new(lines[-1], "last")
    )
    assert not result.is_error
    lines[0], lines[-1] = "first", "last"
    assert (tmp_path / "big").read_text() == "\n".join(lines) + "\n"


@contextmanager
def small_files():
    """No file of this process may hold more than a page; a write beyond it fails."""
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, was[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)
        signal.signal(signal.SIGXFSZ, ignored)


async def test_a_write_that_stops_half_way_takes_everything_back(tmp_path):
    """M081: the disk refuses the last file of the patch in its middle."""
    fill(tmp_path, {"first": b"1\n", "a": b"1\n"})
    was = contents(tmp_path)
    large = ["*** Add File: d/large", *(f"+{n:099}" for n in range(200))]
    with small_files():
        result = await applied(tmp_path, *FIRST, "*** Delete File: a", *large)
    assert join_texts(result.content) == "EFBIG: file too large: d/large. No file was changed."
    assert contents(tmp_path) == was


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("call", ["rename,renameat,renameat2", "fsync", "unlink,unlinkat"])
@pytest.mark.parametrize("count", [1, 3])
def test_killed_in_the_midst_every_file_is_the_old_or_the_new_one(tmp_path, call, count):
    """M081: no file is torn, and none is gone that was to stay."""
    folder = tmp_path / "work"
    fill(folder, {f"f{n}": b"old %d\n" % n for n in range(4)})
    lines = [f"*** Update File: f{n}\n@@\n-old {n}\n+new {n}" for n in range(4)]
    done = subprocess.run(
        [
            *("strace", "-f", "-qq", "-o", tmp_path / "trace"),
            *("-e", f"inject={call}:signal=KILL:when={count}"),
            *(Path(sys.executable).parent / "gong", "tool", "apply_patch", "-"),
        ],
        cwd=folder,
        input=json.dumps({"input": patch(*lines)}).encode(),
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    if b"ptrace" in done.stderr:
        pytest.skip("this user may not trace")
    assert done.returncode == -signal.SIGKILL
    found = contents(folder)
    for n in range(4):
        assert found[f"f{n}"] in {b"old %d\n" % n, b"new %d\n" % n}
    env = LocalEnvironment(str(folder), dict(os.environ))
    again = [f"*** Add File: f{n}\n+new {n}" for n in range(4)]
    asyncio.run(run_apply_patch(ApplyPatchArguments(patch(*again)), ToolContext(env, "c1", print)))
    assert [(folder / f"f{n}").read_text() for n in range(4)] == [f"new {n}\n" for n in range(4)]
