"""The reader and runner of pages, judged on made-up ones."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.docs.pages import Command, Ran, blocks, complaints, follow, steps, unrun


def console(text: str) -> str:
    return f"```console\n{dedent(text).strip()}\n```\n"


def judged(page: str, tmp_path) -> list[str]:
    return complaints("page.md", page, tmp_path / "home")


def test_blocks_are_found_in_lists_and_inside_longer_fences():
    page = "- item\n\n  ```sh\n  ls\n    -l\n  ```\n\n````file a.md\n```\nx\n```\n````\n"
    assert [(one.info, one.line, one.text) for one in blocks(page)] == [
        ("sh", 4, ("ls", "  -l")),
        ("file a.md", 9, ("```", "x", "```")),
    ]


def test_a_block_that_is_never_closed_is_named():
    with pytest.raises(ValueError, match="line 2: this block is never closed"):
        blocks("text\n```console\n$ true\n")


def test_a_console_block_must_begin_with_a_command():
    with pytest.raises(ValueError, match="line 2: a console block begins with"):
        steps("```console\noutput\n$ true\n```\n")


def test_a_command_has_its_lines_its_output_and_its_exit_code():
    page = console("$ cat <<END\n> a\n> END\na\n\n$ false\n[exit 1]\n$ true")
    assert steps(page) == [
        Command(2, "cat <<END\na\nEND", ("a",), 0),
        Command(7, "false", (), 1),
        Command(9, "true", (), 0),
    ]


@pytest.mark.parametrize(
    "page",
    [
        "$ echo hello\nhello",
        "$ echo hello",
        "$ printf 'a\\nb\\n'\na",
        "$ printf 'a\\n'\na\nb",
        "$ true\n[exit 1]",
        "$ false",
        "$ sh -c 'exit 3'\n[exit 4]",
        "$ echo oops >&2",
        "$ exit 0\n$ echo hello\nhello",
        "$ if",
    ],
)
def test_only_a_page_that_tells_the_truth_passes(page, tmp_path):
    found = judged(console(page), tmp_path)
    assert bool(found) is (page != "$ echo hello\nhello")


@pytest.mark.parametrize(
    ("output", "passes"),
    [
        ("one\ntwo\nthree", True),
        ("...", True),
        ("one\n...", True),
        ("...\nthree", True),
        ("one\n...\ntwo\nthree", True),
        ("...\nfour", False),
        ("o…\nt…o\nthr…ee", True),
        ("one\n…", False),
        ("one\n…\n…", True),
        ("one.two.three", False),
    ],
)
def test_dots_in_an_example_match_any_text(output, passes, tmp_path):
    found = judged(console(f"$ printf 'one\\ntwo\\nthree\\n'\n{output}"), tmp_path)
    assert (not found) is passes, found


def test_a_complaint_shows_place_command_and_both_sides(tmp_path):
    page = "# Title\n\n" + console("$ echo right; false\nleft")
    (shown,) = judged(page, tmp_path)
    assert shown.split("\n") == [
        "page.md:4: $ echo right; false",
        "--- the page shows (exit 0)",
        "left",
        "--- it printed (exit 1)",
        "right",
    ]


def test_a_page_is_one_session_in_an_empty_home(tmp_path):
    page = (
        "```file deep/hello.txt\nhello\n```\n"
        + console("$ cd deep\n$ name=you; cat hello.txt\nhello\n$ pwd\n…/home/demo/deep")
        + console("$ echo $name $HOME\nyou …/home\n$ ls -A ~\ndemo\n$ cat")
    )
    assert judged(page, tmp_path) == []


def test_no_setting_and_no_key_leaks_in(tmp_path, monkeypatch):
    for name in ("TAPE_HOME", "GONG_MODEL", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "NO_COLOR"):
        monkeypatch.setenv(name, "leak")
    assert judged(console("$ env | grep leak\n[exit 1]"), tmp_path) == []


def test_a_page_that_hangs_is_stopped_and_the_command_named(tmp_path):
    todo = steps(console("$ echo before\nbefore\n$ sleep 60"))
    assert follow(todo, tmp_path / "home", seconds=0.5) == [Ran("before\n", 0), Ran("", None)]


@pytest.mark.parametrize(
    ("block", "count"),
    [
        ("```console\n$ tape ls\n```", 0),
        ("```sh\nmake chat   # talk\n$ make test\n\n# a remark\n```", 0),
        ("```sh\ntape ls\n```", 1),
        ("```sh example\ntape ls\n```", 0),
        ("```bash\ncd elsewhere\n```", 1),
        ("```sh\ngong chat -p hello\n```", 1),
        ("```\ntape ls --json\n```", 1),
        ("```text\n$ TAPE_HOME=/x gong chat -p hi\n```", 1),
        ("```python\nprint(tape)\nmake = 1\n```", 0),
        ("```file run.sh\ntape ls\n```", 0),
        ("    $ tape ls\n", 1),
        ("Say `tape ls` here.\n\ntape files are files.\n", 0),
    ],
)
def test_a_command_that_nothing_runs_is_found(block, count):
    assert len(unrun(f"{block}\n")) == count
