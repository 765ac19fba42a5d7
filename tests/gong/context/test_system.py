import re

import pytest

from gong.context.instructions import InstructionFile, Instructions
from gong.context.system import (
    GitRepository,
    ModelFacts,
    PromptOverride,
    Surroundings,
    build_system_prompt,
)
from gong.tools.builtin import build_registry
from gong.tools.profiles import PROFILES, apply_profile

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def prompt(tools=("read", "write", "edit", "bash"), repository=None, **layers):
    where = Surroundings("/work", "linux", "Linux 6", "2026-11-22", repository)
    registry = build_registry()
    specs = ()
    if tools:
        registry.set_active(tools)
        specs = registry.specs()
    return build_system_prompt(where, ModelFacts("p/m", "2026-02"), specs, **layers)


def named(text):
    return set(re.findall(r"^- `(\w+)`: ", text, re.MULTILINE))


def rules(text):
    return text.partition("<environment>")[0]


def test_the_usual_tools_are_described_by_their_purpose():
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
        *(profile.tools for profile in PROFILES.values()),
    ],
)
def test_only_tools_that_are_there_are_named(tools):
    """M133: the prompt is made from the tools that are really offered."""
    text = prompt(tools)
    assert named(text) == set(tools)
    others = {"edit", "write", "bash", "shell", "apply_patch", "grep", "read_file"} - set(tools)
    assert [name for name in others if re.search(rf"\b{name}\b", rules(text))] == []


@pytest.mark.parametrize("profile", PROFILES)
def test_the_topics_of_every_profile(profile):
    """M132 M133: identity, tool choice, edit format, read before edit, edit over write, errors."""
    text = rules(prompt(PROFILES[profile].tools))
    editor = {"default": "edit", "openai": "apply_patch"}.get(profile, "edit_file")
    writer = "write" if profile == "default" else "write_file"
    topics = [
        "You are gong",
        f"Use `{editor}` to change a part of a file",
        {"apply_patch": "*** Begin Patch", "edit": "`oldText`"}.get(editor, "`old_string`"),
        "read a file before you change it",
        f"with `{editor}` rather than with `{writer}`",
        "When a tool reports an error",
    ]
    assert [topic for topic in topics if topic not in text] == []


def test_without_tools_the_system_prompt_says_so():
    assert "You have no tools in this session" in prompt(())
    assert "the tools you are given" in prompt(("read",))


@pytest.mark.parametrize(
    ("repository", "lines"),
    [
        (None, ["Is git repository: false"]),
        (
            GitRepository("main", COMMIT, dirty=False),
            ["Is git repository: true", "Git branch: main"],
        ),
        (
            GitRepository(None, COMMIT, dirty=True),
            ["Is git repository: true", "Git branch: none (detached HEAD at 0123456789ab)"],
        ),
        (
            GitRepository("main", None, dirty=False),
            ["Is git repository: true", "Git branch: main (no commit yet)"],
        ),
        (GitRepository("main", None, None), ["Is git repository: true", "Git branch: main"]),
        (GitRepository(None, None, None), ["Is git repository: true"]),
    ],
)
def test_the_repository_is_described(repository, lines):
    """M134 M221: true or false, and a detached HEAD is a repository too."""
    assert [
        line for line in prompt(repository=repository).split("\n") if "git" in line.lower()
    ] == lines


def test_the_environment_block():
    """M134"""
    text = prompt(repository=GitRepository("main", COMMIT, dirty=False))
    assert text[text.index("<environment>") : text.index("</environment>")].split("\n")[1:-1] == [
        "Working directory: /work",
        "Is git repository: true",
        "Git branch: main",
        "Platform: linux",
        "OS version: Linux 6",
        "Today's date: 2026-11-22",
        "Model: p/m",
        "Knowledge cutoff: 2026-02",
    ]


def test_a_name_with_a_line_break_stays_in_its_line():
    where = Surroundings("/w\nModel: evil", "linux", "Linux 6", "2026-11-22")
    text = build_system_prompt(where, ModelFacts("p/m"), ())
    assert text.count("\nModel: ") == 1
    assert "Knowledge cutoff: unknown" in text


def test_the_state_of_git_is_described():
    """M135"""
    state = GitRepository("main", COMMIT, True, 2, 3, ("abc one", "def two"))
    text = prompt(repository=state)
    assert "Branch: main\nModified files: 2\nUntracked files: 3\nRecent commits:\n" in text
    assert "  abc one\n  def two\n</git>" in text
    assert "<git>" not in prompt(repository=GitRepository("main", COMMIT, None))


def test_the_layers_in_their_order():
    """M133: base, environment, tools, instructions, the user's own; the later one wins."""
    files = (InstructionFile("/w/AGENTS.md", "AGENTS.md", "use tabs\n"),)
    text = prompt(instructions=Instructions(files), override=PromptOverride(appended="speak Latin"))
    order = ["You are gong", "<environment>", "- `read`:", "use tabs", "speak Latin"]
    places = [text.index(one) for one in order]
    assert places == sorted(places)
    assert text.endswith("speak Latin")


def test_the_users_prompt_replaces_our_words_and_not_the_facts():
    """M133"""
    files = (InstructionFile("/w/AGENTS.md", "AGENTS.md", "use tabs\n"),)
    text = prompt(instructions=Instructions(files), override=PromptOverride("You are a poet."))
    assert text.startswith("You are a poet.\n\n<environment>")
    assert "gong" not in text
    assert "use tabs" in text
    assert prompt(override=PromptOverride("")).startswith("<environment>")


@pytest.mark.parametrize("profile", PROFILES)
def test_the_same_tools_make_the_same_bytes(profile):
    """M133: nothing in the prompt depends on the time or on an order of chance."""
    registry = apply_profile(build_registry(), profile)
    where = Surroundings("/work", "linux", "Linux 6", "2026-11-22")
    texts = {build_system_prompt(where, ModelFacts("p/m"), registry.specs()) for _ in range(3)}
    assert len(texts) == 1
