import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gong.env.globs import compile_glob
from gong.env.local import LocalEnvironment
from gong.env.protocol import Search
from gong.env.search import find_below

CORPUS = Path(__file__).parents[4] / "shared/corpus/tools/gitignore.jsonl"
CASES = CORPUS.read_text("utf-8").split("\n") if CORPUS.exists() else []


def kept(folder, files):
    """Return which of these files are there after a walk that minds .gitignore files."""
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return {one.path for one in find_below(str(folder), "**") if not one.is_dir} & set(files)


def git_keeps(folder, files):
    """Return which of these files git does not ignore."""
    asked = "".join(f"{name}\0" for name in files).encode()
    command = ["git", "-c", "core.excludesFile=", "check-ignore", "--no-index", "-z", "--stdin"]
    done = subprocess.run(command, cwd=folder, input=asked, capture_output=True, check=False)
    return set(files) - set(done.stdout.decode().split("\0"))


@pytest.mark.corpus
@pytest.mark.parametrize("line", [one for one in CASES if one])
def test_cases_that_git_was_asked_about(tmp_path, line):
    """M105"""
    case = json.loads(line)
    for name, text in case["ignore_files"].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for check in case["checks"]:
        if not check["is_dir"]:
            assert (check["path"] in kept(tmp_path, [check["path"]])) != check["ignored"], check


FILES = [
    "da/a",
    "ab/c/a",
    "aa",
    "d/ea/b",
    "a",
    "b.log",
    "d/a",
    "d/b.log",
    "d/e/a",
    "d/e/c.txt",
    "foo bar",
    "#x",
    "d/!a",
    "a]",
    "d/-",
    "é",
    "d/é",
    "A",
    "d/a\r",
    "a ",
    "\ta",
]
PIECES = st.sampled_from(
    [
        *("a", "b", "d", "e", "*", "**", "/", "?", ".log", "!", "#", " ", "\\", "[ab]", "[!a]"),
        *("\\ ", "***", "[a-", "]", "[[:alpha:]]", "c.txt", "**/", "/**", "foo bar", "[^b]", "-"),
        *("é", "?é", "[é]", "[[:graph:]]", "[[:print:]]", "[[:cntrl:]]", "[[:blank:]]", "\r"),
        *("[[:space:]]", "[[:upper:]]", "A", "\t", "\\!", "[z-a]", "[!/]"),
    ]
)
LINES = st.lists(st.lists(PIECES, min_size=1, max_size=5).map("".join), max_size=4)


@example(outer=["a**/*", "da/**"], inner=["**/e**"], end="\n", mark="")
@example(outer=["d/e***", "!d/e**/c*"], inner=["a**", "***"], end="\n", mark="")
@example(outer=["[^b]"], inner=["d/?", "[[:graph:]]"], end="\r\n", mark="\ufeff")
@given(
    outer=LINES,
    inner=LINES,
    end=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
)
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_what_git_ignores_is_left_out(tmp_path_factory, outer, inner, end, mark):
    """M105: judged by git itself, which takes names and patterns for bytes."""
    folder = tmp_path_factory.mktemp("work")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (folder / "d").mkdir()
    (folder / ".git/info/exclude").write_text("*.txt\n/aa\n")
    (folder / ".gitignore").write_text(mark + end.join(outer), newline="")
    (folder / "d/.gitignore").write_text(mark + end.join(inner), newline="")
    assert kept(folder, FILES) == git_keeps(folder, FILES)


async def test_rules_that_are_a_pipe_are_not_waited_for_m105(tmp_path):
    """M105: nor rules that cannot be read."""
    (tmp_path / "d").mkdir()
    for name in ("a", "d/b"):
        (tmp_path / name).write_text("x")
    os.mkfifo(tmp_path / ".gitignore")
    (tmp_path / "d/.gitignore").mkdir()
    names = [".gitignore", "a", "d", "d/.gitignore", "d/b"]
    assert [one.path for one in find_below(str(tmp_path), "**")] == names
    env = LocalEnvironment(str(tmp_path), dict(os.environ))
    async with asyncio.timeout(10):
        assert [one.path for one in await env.glob(".", "**")] == names
        assert [one.path for one in (await env.grep("d", Search("x"))).found] == ["b"]


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.py", ["a.py", "d/e/a.py", ".py"], ["a.pyc", "a.py/b"]),
        ("src/*.py", ["src/a.py"], ["src/d/a.py", "x/src/a.py"]),
        ("src/**/a", ["src/a", "src/x/y/a"], ["src/ba"]),
        ("**/x/**", ["x/a", "b/x/c/d"], ["x", "bx/a"]),
        ("{a,b{c,d}}.t", ["a.t", "bc.t", "bd.t"], ["b.t"]),
        ("./a", ["a"], []),
        ("[]a]", ["]", "a"], ["b"]),
        ("a[!/]b", ["axb"], ["a/b"]),
        ("\\*", ["*"], ["a"]),
        ("[z-a]b", ["zb"], ["ab", "yb"]),
        ("a**b", ["ab", "axxb"], ["a/b"]),
    ],
)
def test_globs(glob, yes, no):
    """M106"""
    pattern = compile_glob(glob)
    assert [one for one in yes + no if pattern.matches(one)] == yes
