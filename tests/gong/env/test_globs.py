"""Globs that would take for ever if they were expanded, or matched by trying every way."""

import asyncio
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.env.globs import compile_glob, compile_ignore_glob
from gong.env.local import LocalEnvironment
from gong.env.protocol import Search
from tests.gong.env.memory import MemoryEnvironment

HOSTILE = [
    ("{a,b}" * 20, "ab" * 10, "ab" * 10 + "c"),
    ("{a,b}" * 800, "ab" * 400, "ab" * 400 + "c"),
    ("{" * 40 + "a" + ",b}" * 40, "a", "c"),
    ("{a,{b,{c,{d," * 200 + "x" + "}" * 800, "x", "dd"),
    ("{" * 2000 + "a", "{" * 2000 + "a", "a"),
    ("*a" * 60 + "b", "a" * 250 + "b", "a" * 250),
    ("*" * 2000 + "b", "a" * 250 + "b", "a" * 250),
    ("**/" * 100 + "x", "a/" * 120 + "x", "a/" * 120 + "y"),
    ("**/a/" * 60 + "x", "a/" * 120 + "x", "a/" * 120 + "y"),
    ("{**/,}" * 100 + "x", "a/" * 120 + "x", "a/" * 120 + "y"),
    ("{*a,a*}" * 40 + "b", "a" * 250 + "b", "a" * 250),
    ("{,a}" * 40 + "{,a}" * 40 + "b", "a" * 80 + "b", "a" * 81),
    ("*[ab]" * 60 + "c", "ab" * 120 + "c", "ab" * 120),
    ("*\\a" * 60 + "b", "a" * 250 + "b", "a" * 250),
    ("?*" * 60 + "b", "a" * 250 + "b", "a" * 250),
]


@pytest.mark.parametrize(("glob", "yes", "no"), HOSTILE, ids=[one[0][:16] for one in HOSTILE])
def test_no_pattern_takes_for_ever(glob, yes, no):
    """Each of these took longer than anybody waits, or more memory than there is."""
    pattern = compile_glob(glob)
    assert [pattern.matches(yes), pattern.matches(no)] == [True, False]


def test_a_rule_of_an_ignore_file_takes_no_longer():
    pattern = compile_ignore_glob("**/a" * 60 + "*a" * 60 + "b")
    assert not pattern.matches("a/" * 100 + "a" * 100)
    assert compile_ignore_glob("{a,b}").matches("{a,b}")


ENGINES = ["native", "programs", "confined", "memory"]


async def found(engine, folder, glob):
    """Return what `find` and `grep` find by a glob, with each engine."""
    if engine == "memory":
        files = {str(one): one.read_bytes() for one in folder.rglob("*") if one.is_file()}
        env = MemoryEnvironment(files, str(folder))
    else:
        path = "/nonexistent" if engine == "native" else "/usr/bin:/usr/local/bin"
        env = LocalEnvironment(str(folder), {"PATH": path})
    root = str(folder.resolve()) if engine == "confined" else None
    listed = await env.glob(str(folder), glob, root)
    matches = await env.grep(str(folder), Search("word", glob=glob), root)
    return [one.path for one in listed if not one.is_dir], [one.path for one in matches.found]


@pytest.mark.parametrize(
    ("glob", "wanted"),
    [
        ("{a,b}" * 12 + ".t", ["ab" * 6 + ".t"]),
        ("**/" * 30 + "x", ["d/e/x", "x"]),
        ("{**/,}{x,y}", ["d/e/x", "x"]),
        ("d/{e,{f,g}}/*", ["d/e/x", "d/g/z"]),
        ("[{]a}", ["{a}"]),
        ("\\{a\\}", ["{a}"]),
        ("\\\\{x,y}", ["\\x"]),
        ("{x", []),
        ("x}", []),
        ("{x}", ["d/e/x", "x"]),
        ("{x,}", ["d/e/x", "x"]),
        ("{a,b", ["{a,b"]),
    ],
)
async def test_all_engines_find_the_same(tmp_path, glob, wanted):
    for name in ["ab" * 6 + ".t", "d/e/x", "d/g/z", "x", "{a}", "\\x", "{a,b"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("word\n")
    results = await asyncio.gather(*(found(engine, tmp_path, glob) for engine in ENGINES))
    assert results == [(wanted, wanted)] * len(ENGINES)


PIECES = ["a", "b", "/", "*", "**", "?", "[ab]", "[!a]", "**/", "/**", "\\*"]


def expanded(parts):
    """Return every glob without braces that these parts stand for."""
    return ["".join(choice) for choice in product(*parts)]


@given(
    st.lists(st.lists(st.sampled_from(["", *PIECES]), min_size=1, max_size=3), max_size=5),
    st.lists(st.text("ab*", min_size=1, max_size=3), min_size=1, max_size=4),
)
def test_braces_mean_what_their_expansion_means(parts, names):
    path = "/".join(names)
    glob = "x/" + "".join("{" + ",".join(part) + "}" for part in parts)
    each = [compile_glob("x/" + one) for one in expanded(parts)]
    if any(one.endswith("/") for one in expanded(parts)):
        return
    wanted = any(one.matches(f"x/{path}") for one in each)
    assert compile_glob(glob).matches(f"x/{path}") == wanted
