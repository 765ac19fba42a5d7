"""ripgrep and fd, where they are installed, find what the search without them finds."""

import asyncio
import json
import os
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gong.env.local import LocalEnvironment
from gong.env.protocol import LineMatch, LineMatches, Search
from gong.env.search import find_below, search_below
from gong.env.search_programs import list_with_fd, search_with_ripgrep, search_with_scanner

RG, FD = shutil.which("rg"), shutil.which("fd") or shutil.which("fdfind")
NAMES = st.sampled_from(
    ["a", "b.py", ".c", "d e", "é.txt", "f.log", "-x", "[g]", "new\nline", "caf\udce9", "out", "#h"]
)
LINES = st.sampled_from(
    [
        *("def main", "", "  Needle", "needle needle\r", "é", "ÉTÉ", "x1y", "a.b", "\udcff needle"),
        *("tab\there", "naïve 日本", "needle\0", "(needle)"),
    ]
)
CONTENTS = st.lists(LINES, max_size=4).map("\n".join)
RULES = st.lists(
    st.sampled_from(["*.log", "out/", "/a", "!f.log", "d e", ".c", "out/*", "**/b.py", "*.txt"]),
    max_size=3,
).map("\n".join)
FILES = st.dictionaries(st.lists(NAMES, min_size=1, max_size=3).map("/".join), CONTENTS, max_size=8)
FOLDERS = st.sampled_from(["", "out", "a", "d e", "a/out"])
# None is about all that is not ASCII: a byte that is no UTF-8 is a character to Python alone.
PATTERNS = st.sampled_from(
    [
        *(
            "needle",
            "^needle",
            "needle$",
            "é",
            "(?i)é",
            r"\w+\d\w",
            "^$",
            r"a\.b",
            ".",
            "n{1,2}e+d",
        ),
        *(r"\bmain\b", "^.$", r"\(needle\)|def"),
    ]
)
GLOBS = st.sampled_from(["*.py", "a", "**/out/*", "{a,b.py}", "*.t?t", "out/**"])
SETTINGS = settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def plant(folder, files, rules, *, repository):
    """Make what fits: a name that is taken for a folder is no file, and the other way round."""
    if repository:
        subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
        (folder / ".git/info/exclude").write_text("#h\n")
    for name, text in [*files.items(), *((f"{one}/.gitignore", two) for one, two in rules.items())]:
        place = folder / name.lstrip("/")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode("utf-8", "surrogateescape"))
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
    (folder / "link").symlink_to("a")
    (folder / "dangling.py").symlink_to("gone")


def children():
    command = ["ps", "-ww", "--ppid", str(os.getpid()), "-o", "args="]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(RG is None, reason="ripgrep is not installed")
@given(
    files=FILES,
    rules=st.dictionaries(FOLDERS, RULES, max_size=2),
    search=st.builds(
        Search,
        PATTERNS,
        glob=st.none() | GLOBS,
        ignore_case=st.booleans(),
        literal=st.booleans(),
        limit=st.sampled_from([1, 2, 100]),
    ),
    repository=st.booleans(),
)
@SETTINGS
def test_ripgrep_and_the_native_search_agree(tmp_path_factory, files, rules, search, repository):
    """M099 M103: the same lines in the same order."""
    folder = tmp_path_factory.mktemp("work")
    plant(folder, files, rules, repository=repository)
    expected = search_below(str(folder), search)
    assert asyncio.run(search_with_ripgrep(RG, str(folder), search)) == expected


MARKED = ("work/.gitignore", ".gitignore", "work/d/.gitignore", "work/.git/info/exclude")


@pytest.mark.skipif(RG is None, reason="ripgrep is not installed")
@pytest.mark.parametrize("name", MARKED)
async def test_ripgrep_is_not_used_where_rules_begin_with_a_byte_order_mark(tmp_path, name):
    """Before 14 it takes the mark for a part of the first pattern; git does not."""
    folder = plant_marked(tmp_path, name)
    assert await search_with_ripgrep(RG, str(folder), Search("x", glob="*.txt")) is None
    found = await LocalEnvironment(str(folder), os.environ).grep(
        str(folder), Search("x", glob="*.txt")
    )
    assert [one.path for one in found.found] == ["d/b.txt"]


@pytest.mark.skipif(FD is None, reason="fd is not installed")
@pytest.mark.parametrize("name", MARKED)
async def test_fd_is_not_used_where_rules_begin_with_a_byte_order_mark(tmp_path, name):
    """As ripgrep."""
    folder = plant_marked(tmp_path, name)
    assert await list_with_fd(FD, str(folder), "*.txt") is None
    found = await LocalEnvironment(str(folder), os.environ).glob(str(folder), "**/*.txt")
    assert [one.path for one in found] == ["d/b.txt"]


def plant_marked(folder, name):
    """Make a repository `work` without `d/a.txt`, by rules that begin with a byte order mark."""
    (folder / "work/d").mkdir(parents=True)
    (folder / "work/d/a.txt").write_text("x\n")
    (folder / "work/d/b.txt").write_text("x\n")
    is_inside = name.startswith("work")
    subprocess.run(["git", "init", "-q", "work" if is_inside else "."], cwd=folder, check=True)
    (folder / name).write_bytes(b"\xef\xbb\xbfa.txt\n")
    status = ["git", "status", "--porcelain", "-uall"]
    said = subprocess.run(status, cwd=folder / "work", capture_output=True, text=True, check=True)
    assert "a.txt" not in said.stdout
    return folder / "work"


async def test_ripgrep_is_ended_at_the_limit(tmp_path):
    """M100: here a program that says what it says for three matches, and then never ends."""
    (tmp_path / "a.txt").write_text("x\n" * 9)
    match = {"type": "match", "data": {"path": {"text": "./a.txt"}}}
    events = [{**match, "data": {**match["data"], "line_number": n}} for n in (1, 2, 3)]
    program = tmp_path / "rg"
    said = "\n".join(map(json.dumps, events))
    lists = "case $* in *--files*) exit;; esac"
    program.write_text(f"#!/bin/sh\n{lists}\necho $$ >pid\ncat <<'E'\n{said}\nE\nexec sleep 900\n")
    program.chmod(0o755)
    assert await search_with_ripgrep(str(program), str(tmp_path), Search("x", limit=3)) == (
        LineMatches(tuple(LineMatch("a.txt", n) for n in (1, 2, 3)), limited=True)
    )
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@given(
    files=FILES,
    search=st.builds(Search, PATTERNS, glob=st.none() | GLOBS, ignore_case=st.booleans()),
)
@settings(SETTINGS, max_examples=15)
def test_the_scanner_and_the_native_search_agree(tmp_path_factory, files, search):
    """M103"""
    folder = tmp_path_factory.mktemp("work")
    plant(folder, files, {}, repository=False)
    assert asyncio.run(search_with_scanner(str(folder), search)) == search_below(
        str(folder), search
    )


@pytest.mark.skipif(FD is None, reason="fd is not installed")
@given(
    files=FILES,
    rules=st.dictionaries(FOLDERS, RULES, max_size=2),
    pattern=GLOBS | st.just("**"),
)
@SETTINGS
def test_fd_and_the_native_walk_agree(tmp_path_factory, files, rules, pattern):
    """M105 M106: in a repository every fd can say."""
    folder = tmp_path_factory.mktemp("work")
    plant(folder, files, rules, repository=True)
    found = asyncio.run(list_with_fd(FD, str(folder), pattern))
    assert found == find_below(str(folder), pattern)


@pytest.mark.skipif(FD is None, reason="fd is not installed")
async def test_what_only_fd_minds_makes_it_give_up(tmp_path):
    """M105"""
    plant(tmp_path, {}, {}, repository=True)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a").touch()
    assert len(await list_with_fd(FD, str(tmp_path / "sub"), "*")) == 1
    (tmp_path / ".ignore").write_text("a")
    assert await list_with_fd(FD, str(tmp_path), "*") is None
    assert await list_with_fd(FD, str(tmp_path / "sub"), "*") is None


async def test_a_repository_inside_has_its_own_rules(tmp_path):
    """M105"""
    (tmp_path / "inner/.git").mkdir(parents=True)
    for name in ("a.log", "inner/a.log", "inner/b.tmp"):
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("*.log")
    (tmp_path / "inner/.gitignore").write_text("*.tmp")
    env = LocalEnvironment(str(tmp_path), dict(os.environ))
    found = [one.path for one in await env.glob(".", "[ab].*")]
    assert found == [one.path for one in find_below(str(tmp_path), "[ab].*")] == ["inner/a.log"]


@pytest.mark.parametrize("pattern", ["", "x", "x*"])
async def test_a_long_line_full_of_matches_is_one_match(tmp_path, pattern):
    """M099: ripgrep would tell each of them."""
    (tmp_path / "a.txt").write_text("x" * 2_000_000 + "\n")
    env = LocalEnvironment(str(tmp_path), dict(os.environ))
    expected = LineMatches((LineMatch("a.txt", 1),), limited=False)
    assert await env.grep(".", Search(pattern)) == expected


@pytest.mark.parametrize("pattern", ["(a+)+$", r"(a|a)*b\1"])
async def test_a_pattern_that_takes_for_ever_is_ended(tmp_path, pattern):
    """M103: and nothing else has to wait for it."""
    (tmp_path / "a.txt").write_text("fine\n" + "a" * 40 + "!\n")
    env = LocalEnvironment(str(tmp_path), {"PATH": "/nonexistent"})
    turns = 0
    searching = asyncio.create_task(env.grep(".", Search(pattern)))
    while not searching.done():
        await asyncio.sleep(0.01)
        turns += 1
    with pytest.raises(ValueError, match="The pattern took too long: "):
        await searching
    assert turns > 5


async def test_a_search_that_is_cancelled_leaves_no_process(tmp_path):
    """M103"""
    (tmp_path / "a.txt").write_text("a" * 40 + "!\n")
    env = LocalEnvironment(str(tmp_path), {"PATH": "/nonexistent"})
    searching = asyncio.create_task(env.grep(".", Search("(a+)+$")))
    while "scanner" not in children():  # noqa: ASYNC110 - nobody tells of a process
        await asyncio.sleep(0.01)
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    assert "scanner" not in children()


async def test_odd_patterns_are_looked_for_as_they_are(tmp_path):
    (tmp_path / "a.txt").write_bytes("x\\n[日] \t\nabc\n".encode() + b"\xff\n")
    env = LocalEnvironment(str(tmp_path), {"PATH": "/nonexistent"})
    for pattern, lines in [
        (r"\[日\]\s\t", [(1, 3)]),
        ("\udcff?$", [(1, 8), (2, 3), (3, 0)]),
        (r"\x5cn", [(1, 1)]),
    ]:
        found = tuple(LineMatch("a.txt", line, at) for line, at in lines)
        expected = LineMatches(found, limited=False)
        assert await env.grep(".", Search(pattern)) == expected
    for wrong in ("a{99999999999}", "(" * 3000, "[", r"\8"):
        with pytest.raises(ValueError, match="Invalid regular expression"):
            await env.grep(".", Search(wrong))
