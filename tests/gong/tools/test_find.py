import shutil

import pytest

from gong.env.globs import MAX_PATTERN_CHARACTERS
from gong.env.local import LocalEnvironment
from gong.tools import find
from gong.tools.find import FindDetails
from gong.tools.tool import ToolContext, ToolOutcome
from tape.model.entries import Text, join_texts


@pytest.fixture(params=["fd", "native"])
def look(request, folder):
    """Look with fd, where it is installed, and without it."""
    program = shutil.which("fd") or shutil.which("fdfind")
    if request.param == "fd" and program is None:
        pytest.skip("fd is not installed")
    path = program.rpartition("/")[0] if request.param == "fd" else "/nonexistent"

    async def look(**arguments):
        env = LocalEnvironment(str(folder), {"PATH": path})
        return await find.run_find(find.FindArguments(**arguments), ToolContext(env, "c1", print))

    return look


def plant(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


async def test_hidden_files_are_found(look, folder):
    """M105 J6-1.1"""
    plant(folder, ".secret/hidden.txt", "visible.txt", "other.md")
    assert await look(pattern="*.txt") == ToolOutcome.from_text(
        ".secret/hidden.txt\nvisible.txt", FindDetails("*.txt", 2, False)
    )


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("**/*.ex", ["a.ex", "lib/b.ex", "lib/deep/c.ex"]),
        ("lib/**/*.ex", ["lib/b.ex", "lib/deep/c.ex"]),
        ("lib/*", ["lib/b.ex", "lib/deep/"]),
        ("deep", ["lib/deep/"]),
        ("[ab].ex", ["a.ex", "lib/b.ex"]),
        ("{a,c}.ex", ["a.ex", "lib/deep/c.ex"]),
    ],
)
async def test_patterns(look, folder, pattern, found):
    """M106 J6-1.2"""
    plant(folder, "a.ex", "lib/b.ex", "lib/deep/c.ex")
    assert join_texts((await look(pattern=pattern)).content).split("\n") == found


async def test_nothing_found_says_so(look, folder):
    """M105 J6-1.3"""
    assert await look(pattern="*.xyz") == ToolOutcome.from_text(
        "No files found matching pattern", FindDetails("*.xyz", 0, False)
    )


async def test_what_gitignore_leaves_out_is_left_out(look, folder):
    """M105 J6-2.1"""
    plant(folder, "ignored.txt", "kept.txt", "sub/inner.txt", "sub/also.txt", ".git/a.txt")
    (folder / ".gitignore").write_text("ignored.txt\n")
    (folder / "sub/.gitignore").write_text("/inner.txt\n")
    assert join_texts((await look(pattern="*.txt")).content) == "kept.txt\nsub/also.txt"


async def test_a_limit_is_honoured_and_reported(look, folder):
    """M106 J6-2.2"""
    plant(folder, *(f"f{n}" for n in range(9)))
    shown = "f0\nf1\nf2\nf3\nf4"
    notice = "[5 results limit reached. Use limit=10 for more, or refine pattern]"
    assert await look(pattern="*", limit=5) == ToolOutcome(
        (Text(f"{shown}\n\n{notice}"),), FindDetails("*", 5, True), full=f"{shown}\nf5\nf6\nf7\nf8"
    )


async def test_a_thousand_are_shown_by_default(look, folder):
    """M106"""
    plant(folder, *(f"f{n:04}" for n in range(1001)))
    *found, _, notice = join_texts((await look(pattern="*")).content).split("\n")
    assert found == [f"f{n:04}" for n in range(1000)]
    assert notice == "[1000 results limit reached. Use limit=2000 for more, or refine pattern]"


async def test_links_are_shown_and_not_followed(look, folder, tmp_path):
    """M105 J6-2.3"""
    plant(tmp_path, "outside/a.txt")
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "dangling.txt").symlink_to("gone")
    assert join_texts((await look(pattern="*")).content) == "dangling.txt\nlink"


@pytest.mark.parametrize("pattern", [None, []])
async def test_a_pattern_that_is_no_text_is_a_validation_error(use, pattern):
    """M045 J6-3.1"""
    result = await use("find", pattern=pattern)
    assert join_texts(result.content).startswith("Invalid arguments for tool: find: ")


async def test_a_missing_folder_is_named(look):
    """M105"""
    assert await look(pattern="*", path="gone") == ToolOutcome.error(
        "Path not found: gone", kind="FileNotFound"
    )


async def test_a_pattern_that_is_too_long_names_the_limit(use_face):
    for call in (
        {"name": "find", "pattern": "a" * 5000},
        {"name": "glob", "pattern": "a" * 5000},
        {"name": "grep", "pattern": "a", "glob": "a" * 5000},
        {"name": "grep_search", "pattern": "a", "glob_filter": "a" * 5000},
        {"name": "read_many_files", "paths": ["*" * 5000]},
    ):
        result = await use_face(**call)
        assert result.is_error
        assert (
            result.content[0]
            .text.strip()
            .endswith(
                f"Pattern too long: 5000 characters, {MAX_PATTERN_CHARACTERS} at most."
                " Use a shorter one, or several."
            )
        )
