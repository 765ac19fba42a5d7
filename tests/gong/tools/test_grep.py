import shutil

import pytest

from gong.env.local import LocalEnvironment
from gong.tools import grep
from gong.tools.grep import SearchDetails
from gong.tools.tool import ToolContext, ToolOutcome
from tape.model.entries import join_texts
from tests.gong.env.memory import MemoryEnvironment


@pytest.fixture(params=["rg", "native"])
def search(request, folder):
    """Search with ripgrep, where it is installed, and without it."""
    program = shutil.which("rg")
    if request.param == "rg" and program is None:
        pytest.skip("ripgrep is not installed")
    path = program.rpartition("/")[0] if request.param == "rg" else "/nonexistent"

    async def search(**arguments):
        env = LocalEnvironment(str(folder), {"PATH": path})
        return await grep.run_grep(
            grep.GrepArguments(**arguments), ToolContext(env, "c1", lambda text: None)
        )

    return search


def plant(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


async def test_one_file_is_searched(search, folder):
    """M099 J5-1.1"""
    plant(folder, {"file.txt": "a\nb\nhello world\n"})
    expected = ToolOutcome.from_text("file.txt:3: hello world", SearchDetails("hello", 1, 1, False))
    assert await search(pattern="hello", path="file.txt") == expected
    assert await search(pattern="hello") == expected


async def test_files_of_a_folder_are_searched_in_the_order_of_their_names(search, folder):
    """M099 J5-1.2"""
    plant(folder, {"b/x.txt": "test\n", "a.txt": "x\ntest\n", "c.txt": "none", ".h": "test"})
    assert await search(pattern="test") == ToolOutcome.from_text(
        ".h:1: test\na.txt:2: test\nb/x.txt:1: test", SearchDetails("test", 3, 3, False)
    )


class CountingEnvironment(MemoryEnvironment):
    """Files that count how often each is read to show what is around its matches."""

    def __init__(self, files):
        super().__init__(files)
        self.reads = []

    async def read_file(self, path, root=None):
        self.reads.append(path)
        return await super().read_file(path, root)


async def test_each_file_is_read_once_for_all_of_its_matches():
    """M100: then come lines as "f:42: text", and those around them as "f-41- text"."""
    env = CountingEnvironment({"a": b"1\nx\n3\nx\n5\n6\n", "b": b"x\n", "c": b"none\n"})
    context = ToolContext(env, "c1", lambda text: None)
    result = await grep.run_grep(grep.GrepArguments("x", context=1), context)
    assert join_texts(result.content).split("\n") == [
        *("a-1- 1", "a:2: x", "a-3- 3", "a:4: x", "a-5- 5", "b:1: x"),
    ]
    assert env.reads == ["/work/a", "/work/b"]


async def test_nothing_found_says_so(search, folder):
    """M102 J5-1.3"""
    plant(folder, {"a.txt": "x"})
    assert await search(pattern="nonexistent") == ToolOutcome.from_text(
        "No matches found", SearchDetails("nonexistent", 0, 0, False)
    )


async def test_limit_and_context(search, folder):
    """M101 M102 J5-2.1"""
    plant(folder, {"a.txt": "before\nmatch one\nafter\nmiddle\nmatch two\n"})
    result = await search(pattern="match", limit=1, context=1)
    assert join_texts(result.content) == (
        "a.txt-1- before\na.txt:2: match one\na.txt-3- after\n\n"
        "[1 matches limit reached. Use limit=2 for more, or refine pattern]"
    )


@pytest.mark.parametrize(
    "wish",
    [
        {"pattern": r"foo\.bar\("},
        {"pattern": "foo.bar(", "literal": True},
        {"pattern": "FOO", "ignore_case": True},
        {"pattern": r"baz\)$"},
    ],
)
async def test_pattern_text_and_case(search, folder, wish):
    """M099 J5-2.2 to J5-2.4"""
    plant(folder, {"a.txt": "fooXbar\nfoo.bar(baz)\r\n"})
    shown = join_texts((await search(**wish)).content).split("\n")
    assert shown[-1] == "a.txt:2: foo.bar(baz)"


async def test_bytes_cut_at_50_kilobytes(search, folder):
    """M101 M102 J5-3.1"""
    plant(folder, {"a.txt": ("word " * 90 + "\n") * 200})
    text = join_texts((await search(pattern="word", limit=200)).content)
    assert text.endswith(
        "\n\n[200 matches limit reached. Use limit=400 for more, or refine pattern."
        " 50.0KB limit reached]"
    )
    assert len(text) < 51_400


async def test_a_long_line_is_cut(search, folder):
    """M101 M102"""
    plant(folder, {"a.txt": "x" * 501})
    assert join_texts((await search(pattern="x")).content) == (
        f"a.txt:1: {'x' * 500}... [truncated]\n\n"
        "[Some lines truncated to 500 chars. Use read tool to see full lines]"
    )


@pytest.mark.parametrize("pattern", ["needle", "nee.le"])
@pytest.mark.parametrize("path", [".", "keys.ts"])
@pytest.mark.parametrize(
    "data",
    [
        b'const key = a + "\0" + b;\nexport function needle() {}\n',
        b"\x89PNG\r\n\xff\0\xfe needle \xff",
        b"\xff\0" * 3_000_000 + b"needle",
        b"needle\n" + b"\xfe" * 6_000_000 + b"\0",
    ],
    ids=["text with a zero", "picture", "large", "large with a late zero"],
)
async def test_a_binary_file_with_a_match_is_named(search, folder, pattern, path, data):
    """M102: without a byte of it."""
    plant(folder, {"keys.ts": data})
    found = await search(pattern=pattern, path=path)
    assert found.content[0].text == "1 binary file matches: keys.ts"
    assert found.details == SearchDetails(pattern, 0, 0, truncated=False)


async def test_binary_files_are_named_beside_lines_and_only_five_of_them(search, folder):
    plant(folder, {"a.txt": "needle", **{f"b{n}": b"\0needle" for n in range(7)}, "c": b"\0"})
    found = await search(pattern="needle")
    assert found.content[0].text == (
        "a.txt:1: needle\n\n[7 binary files match: b0, b1, b2, b3, b4 and 2 more]"
    )
    assert not found.details.truncated


@pytest.mark.parametrize("pattern", ["needle", "n[e]+dle", "(?<=x)need"])
@pytest.mark.parametrize("path", [".", "a.js"])
async def test_of_a_long_line_the_part_that_matches_is_shown(search, folder, pattern, path):
    """M102"""
    plant(folder, {"a.js": f"{'x' * 3_000}needle{'y' * 3_000}\n"})
    found = await search(pattern=pattern, path=path)
    line = found.content[0].text.split("\n")[0]
    assert line == f"a.js:1: [truncated] ...{'x' * 250}needle{'y' * 244}... [truncated]"
    ended = f"{'x' * 3_000}needle"
    plant(folder, {"a.js": ended})
    found = await search(pattern="NEEDLE", ignore_case=True)
    assert found.content[0].text.split("\n")[0] == f"a.js:1: [truncated] ...{ended[-500:]}"


@pytest.mark.parametrize("glob", ["*.ex", "**/*.ex", "lib/**", "*.{ex,exs}", "lib/*.ex"])
async def test_only_files_that_match_a_glob(search, folder, glob):
    """M099 J5-3.2"""
    plant(folder, {"lib/a.ex": "test", "a.js": "test"})
    assert join_texts((await search(pattern="test", glob=glob)).content) == "lib/a.ex:1: test"


async def test_binary_and_ignored_files_and_git_are_skipped_beside_others(search, folder):
    """M102 J5-3.3"""
    plant(
        folder,
        {
            "a.txt": "test",
            "a.png": b"test\n\x89PNG\0\0\n",
            "b.png": b"\x89PNG\0\0\ntest\n",
            ".git/config": "test",
            ".gitignore": "out/\n*.log\n!keep.log",
            "out/a": "test",
            "sub/a.log": "test",
            "sub/keep.log": "test",
            "sub/.gitignore": "deep",
            "sub/x/deep": "test",
            "utf16": "test".encode("utf-16"),
        },
    )
    assert join_texts((await search(pattern="test")).content).split("\n") == [
        *("a.txt:1: test", "sub/keep.log:1: test", "utf16:1: test"),
    ]
    assert join_texts((await search(pattern="test", glob="*.png")).content) == (
        "2 binary files match: a.png, b.png"
    )


async def test_an_impossible_search_is_explained(search, folder):
    """M103"""
    assert await search(pattern="x", path="gone") == ToolOutcome.error(
        "Path not found: gone", kind="FileNotFound"
    )
    result = await search(pattern="a(")
    assert join_texts(result.content).startswith("Invalid regular expression: a(: ")


@pytest.mark.parametrize("pattern", [None, 42, []])
async def test_a_pattern_that_is_no_text_is_a_validation_error(use, pattern):
    """M045 J5-4.1"""
    result = await use("grep", pattern=pattern)
    assert join_texts(result.content).startswith("Invalid arguments for tool: grep: ")
