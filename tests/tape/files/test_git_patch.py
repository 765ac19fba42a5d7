"""A patch is one that git takes, and gives exactly the version it was made from."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tape.files.git_patch import PatchSide, build_patch, count_changed_lines, quote_path

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"\n", b"}\n", b"c\r\n", b"\xff\n"]), max_size=30)
TEXTS = st.builds(lambda lines, end: b"".join(lines) + end, LINES, st.sampled_from([b"", b"end"]))
BYTES = st.one_of(TEXTS, TEXTS, st.binary(max_size=200), st.just(b"\0" * 100))
NAMES = st.sampled_from(
    [
        "a.py",
        "b/c d.txt",
        'q"\\uote',
        "line\nfeed\t",
        "\x1b[31mred",
        "é日本",
        os.fsdecode(b"raw\xff"),
        "tail ",
        "-dash",
    ]
)
MODES = st.sampled_from(["100644", "100600", "100755"])
FILES = st.builds(PatchSide, NAMES, BYTES, MODES)
LINKS = st.builds(lambda name, to: PatchSide(name, to, "120777"), NAMES, st.just(b"to/there"))
VERSIONS = st.one_of(st.none(), FILES, FILES, LINKS)


def put(folder, version):
    path = folder / version.path
    path.parent.mkdir(parents=True, exist_ok=True)
    if version.git_mode == "120000":
        path.symlink_to(os.fsdecode(version.data))
        return
    path.write_bytes(version.data)
    path.chmod(int(version.git_mode, 8) & 0o777)


def look(folder):
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = ("120000", os.fsencode(path.readlink()))
        elif path.is_file():
            mode = "100755" if path.stat().st_mode & 0o100 else "100644"
            found[name] = (mode, path.read_bytes())
    return found


def apply(folder, patch, *more):
    git = {"GIT_DIR": "/nowhere", "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", *more, "-"],
        cwd=folder,
        input=patch,
        env=os.environ | git,
        check=True,
        capture_output=True,
    )


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return iter(lambda: tmp_path_factory.mktemp("patch"), None)


@given(VERSIONS, VERSIONS)
@example(PatchSide("a.py", b""), None)
@example(None, PatchSide("a.py", b""))
@example(PatchSide("a.py", b"x"), PatchSide("b/c d.txt", b"x", "100755"))
def test_git_applies_a_patch_forth_and_back(places, before, after):
    folder = next(places)
    if before:
        put(folder, before)
    old = look(folder)
    patch = b"".join(build_patch(before, after, with_bytes=True))
    new = {}
    if after:
        new[after.path] = (after.git_mode, after.data)
    if not patch:
        assert old == new
        return
    apply(folder, patch)
    assert look(folder) == new
    apply(folder, patch, "-R")
    assert look(folder) == old


@given(TEXTS, TEXTS)
def test_counts_are_those_of_the_hunks(old, new):
    lines = build_patch(PatchSide("a", old), PatchSide("a", new))
    hunks = [line for line in lines if line[:3] not in (b"+++", b"---")]
    added, removed = (sum(line.startswith(sign) for line in hunks) for sign in (b"+", b"-"))
    assert count_changed_lines(old, new) == (added, removed)


def test_a_patch_as_git_writes_it():
    old = b"".join(b"%d\n" % n for n in range(1, 30))
    new = old.replace(b"\n5\n", b"\nfive\n").replace(b"29\n", b"29")
    before, after = PatchSide("src/a b.py", old), PatchSide("src/c.py", new, "100755")
    assert b"".join(build_patch(before, after)).decode() == (
        "diff --git a/src/a b.py b/src/c.py\n"
        "old mode 100644\n"
        "new mode 100755\n"
        "rename from src/a b.py\n"
        "rename to src/c.py\n"
        "index 748f1f3..9be7f87\n"
        "--- a/src/a b.py\t\n"
        "+++ b/src/c.py\n"
        "@@ -2,7 +2,7 @@\n"
        " 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        "@@ -26,4 +26,4 @@\n"
        " 26\n 27\n 28\n-29\n+29\n"
        "\\ No newline at end of file\n"
    )


def test_what_is_binary_is_named_in_one_line():
    patch = build_patch(PatchSide("a.png", b"\0"), PatchSide("a.png", b"\0\1"))
    assert patch[-1] == b"Binary files a/a.png and b/a.png differ\n"
    assert count_changed_lines(b"\0", b"x\n") is None


def test_a_long_change_is_compared_step_by_step():
    old = [b"%d\n" % n for n in range(10_000)]
    new = [*old[:10], b"new\n", *old[10:5_000], *old[5_002:]]
    assert count_changed_lines(b"".join(old), b"".join(new)) == (1, 2)


@pytest.mark.parametrize(
    ("path", "quoted"),
    [
        ("a b", b"a b"),
        ("é", "é".encode()),
        ('\n\x1b"\\', rb'"\n\033\"\\"'),
        (os.fsdecode(b"\xff\xc3\xa9"), rb'"\377\303\251"'),
        ("\ud800", "\ufffd".encode()),
    ],
)
def test_names_are_quoted_as_git_quotes_them(path, quoted):
    assert quote_path(path) == quoted
