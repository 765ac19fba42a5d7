import re

import pytest

from gong.context.system import GitRepository, Surroundings, build_system_prompt
from gong.tools.builtin import build_registry

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def prompt(tools=("read", "write", "edit", "bash"), repository=None):
    where = Surroundings("/work", "linux", "Linux 6", "2026-11-22", repository)
    return build_system_prompt(where, "p/m", tools)


def named(text):
    return set(re.findall(r"`(\w+)`", text))


def test_the_usual_tools_are_told_by_what_they_are_for():
    assert (
        "- Use `edit` to change a part of a file, `write` for new files or whole rewrites,"
        " `bash` to run commands.\n" in prompt()
    )


@pytest.mark.parametrize(
    "tools",
    [
        ("read",),
        ("read_file", "list_dir"),
        ("read", "edit"),
        ("bash",),
        ("shell", "apply_patch"),
        ("read_file", "write_file", "replace", "shell"),
        ("tape_search",),
        tuple(build_registry().names),
        (),
    ],
)
def test_only_tools_that_are_there_are_named(tools):
    text = prompt(tools)
    assert named(text) <= set(tools)
    others = {"edit", "write", "bash", "shell", "apply_patch", "grep", "read_file"} - set(tools)
    assert [name for name in others if re.search(rf"\b{name}\b", text)] == []


def test_without_tools_the_model_is_told_so():
    assert "You have no tools in this session" in prompt(())
    assert "the tools you are given" in prompt(("read",))


@pytest.mark.parametrize(
    ("repository", "lines"),
    [
        (None, ["Is git repository: no"]),
        (
            GitRepository("main", COMMIT, dirty=False),
            ["Is git repository: yes", "Git branch: main"],
        ),
        (
            GitRepository(None, COMMIT, dirty=True),
            ["Is git repository: yes", "Git branch: none (detached HEAD at 0123456789ab)"],
        ),
        (
            GitRepository("main", None, dirty=False),
            ["Is git repository: yes", "Git branch: main (no commit yet)"],
        ),
        (GitRepository("main", None, None), ["Is git repository: yes", "Git branch: main"]),
        (GitRepository(None, None, None), ["Is git repository: yes"]),
    ],
)
def test_the_repository_is_told(repository, lines):
    assert [
        line for line in prompt(repository=repository).split("\n") if "git" in line.lower()
    ] == lines
