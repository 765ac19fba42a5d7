"""M136 M137 C28: what is read, in which order, and what is left out, from real files."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.context.instructions import (
    MAX_IMPORT_DEPTH,
    MAX_INSTRUCTION_BYTES,
    TRUNCATION_MARKER,
    InstructionFile,
    Instructions,
    _fit_files,
    read_instructions,
    render_instructions,
)


@pytest.fixture
def place(tmp_path):
    """A repository below home; files are written by their path in it."""
    return Place(tmp_path)


class Place:
    def __init__(self, top):
        self.top = top
        self.home, self.root = top / "home", top / "home" / "repo"
        (self.root / ".git").mkdir(parents=True)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def read(self, folder="", own=None):
        (self.root / folder).mkdir(parents=True, exist_ok=True)
        return read_instructions(
            str(self.root / folder),
            home=str(self.home),
            config_folder=str(self.home / ".config" / "gong"),
            own_file=own,
        )

    def names(self, folder="", own=None):
        return self.read(folder, own).names


def test_each_folder_from_the_root_down_with_the_nearest_last(place):
    """M136"""
    place.write("../AGENTS.md", "above the repository")
    place.write("AGENTS.md", "root")
    place.write("a/AGENTS.md", "middle")
    place.write("a/b/AGENT.md", "near")
    place.write("other/AGENTS.md", "beside")
    found = place.read("a/b")
    assert [one.text for one in found.files] == ["root", "middle", "near"]
    assert found.names == ["../../AGENTS.md", "../AGENTS.md", "AGENT.md"]


def test_outside_of_a_repository_only_the_folder_itself_is_read(place):
    (place.root / ".git").rmdir()
    place.write("AGENTS.md", "root")
    place.write("a/AGENTS.md", "here")
    assert place.names("a") == ["AGENTS.md"]


def test_agents_goes_before_agent_and_the_familys_own_file_comes_after(place):
    place.write("AGENTS.md", "1")
    place.write("AGENT.md", "2")
    place.write("CLAUDE.md", "3")
    place.write("GEMINI.md", "4")
    place.write(".codex/instructions.md", "5")
    assert place.names() == ["AGENTS.md"]
    assert place.names(own="CLAUDE.md") == ["AGENTS.md", "CLAUDE.md"]
    assert place.names(own="GEMINI.md") == ["AGENTS.md", "GEMINI.md"]
    codex = ".codex/instructions.md"
    assert place.names(own=codex) == ["AGENTS.md", codex]


def test_agent_is_preferred_over_claude(place):
    """M137"""
    place.write("AGENT.md", "2")
    place.write("CLAUDE.md", "3")
    assert place.names(own="CLAUDE.md") == ["AGENT.md"]


def test_without_agents_the_file_of_any_family_is_for_every_model(place):
    """M136 C28: the family's own first, else the first of the others; the same in each folder."""
    place.write(".codex/instructions.md", "5")
    assert place.names() == place.names(own="CLAUDE.md") == [".codex/instructions.md"]
    place.write("GEMINI.md", "4")
    assert place.names() == place.names(own="CLAUDE.md") == ["GEMINI.md"]
    place.write("CLAUDE.md", "3")
    assert place.names() == ["CLAUDE.md"]
    assert place.names(own="GEMINI.md") == ["GEMINI.md"]
    place.write("a/AGENTS.md", "near")
    place.write("a/b/CLAUDE.md", "nearest")
    assert place.names("a/b") == ["../../CLAUDE.md", "../AGENTS.md", "CLAUDE.md"]
    assert place.read("a/b").remarks == ()


def test_the_users_own_file_comes_first(place):
    """M137"""
    place.write("AGENTS.md", "project")
    place.write("../.claude/CLAUDE.md", "old own")
    assert place.names() == ["~/.claude/CLAUDE.md", "AGENTS.md"]
    place.write("../.claude/AGENT.md", "own")
    assert place.names() == ["~/.claude/AGENT.md", "AGENTS.md"]
    place.write("../.config/gong/AGENTS.md", "own")
    assert place.names() == ["~/.config/gong/AGENTS.md", "AGENTS.md"]


def test_a_file_is_read_once_under_any_of_its_names(place):
    place.write("AGENTS.md", "one")
    (place.root / "CLAUDE.md").symlink_to("AGENTS.md")
    assert place.names(own="CLAUDE.md") == ["AGENTS.md"]
    (place.root / "CLAUDE.md").unlink()
    place.write("CLAUDE.md", "@AGENTS.md\n")
    assert place.names(own="CLAUDE.md") == ["AGENTS.md"]


def test_imports_come_before_the_file_that_names_them(place):
    place.write("CLAUDE.md", "See @docs/style.md, and ask @alice; mail me@docs/no.md.\n")
    place.write("docs/style.md", "Style. @more.md")
    place.write("docs/more.md", "More.")
    place.write("docs/no.md", "no")
    found = place.read(own="CLAUDE.md")
    assert found.names == ["docs/more.md", "docs/style.md", "CLAUDE.md"]
    assert found.remarks == ()


def test_agents_imports_nothing(place):
    place.write("AGENTS.md", "See @a.md")
    place.write("a.md", "no")
    assert place.names() == ["AGENTS.md"]


def test_code_is_no_import(place):
    place.write("CLAUDE.md", "`@a.md`\n```\n@a.md\n```\n~~~sh\n@a.md\n~~~\nend\n")
    place.write("a.md", "no")
    assert place.names(own="CLAUDE.md") == ["CLAUDE.md"]


def test_imports_in_a_circle_end(place):
    place.write("CLAUDE.md", "x @a.md")
    place.write("a.md", "y @CLAUDE.md @b.md")
    place.write("b.md", "z @a.md")
    assert place.names(own="CLAUDE.md") == ["b.md", "a.md", "CLAUDE.md"]


def test_imports_are_followed_only_so_deep(place):
    place.write("CLAUDE.md", "x @a0.md")
    for level in range(9):
        place.write(f"a{level}.md", f"y @a{level + 1}.md")
    found = place.read(own="CLAUDE.md")
    assert len(found.files) == 1 + MAX_IMPORT_DEPTH
    assert "6 levels deep" in found.remarks[0]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../secret.md", "outside of the project"),
        ("~/secret.md", "outside of the project"),
        ("/etc/hostname", "outside of the project"),
        ("a/../../secret.md", "outside of the project"),
        ("link.md", "out of the project"),
        (".env", "hidden"),
        (".git/config", "hidden"),
        ("gone.md", "does not exist"),
    ],
)
def test_a_projects_file_imports_nothing_from_elsewhere(place, name, why):
    place.write("CLAUDE.md", f"text @{name}")
    place.write("../secret.md", "secret")
    place.write(".env", "secret")
    place.write(".git/config", "secret")
    (place.root / "link.md").symlink_to("../secret.md")
    found = place.read(own="CLAUDE.md")
    assert found.names == ["CLAUDE.md"]
    assert why in found.remarks[0]
    assert "secret" not in render_instructions(found).replace("secret.md", "")


def test_the_users_own_file_may_import_from_anywhere(place):
    place.write("../.claude/CLAUDE.md", "own @~/notes/x.md")
    place.write("../notes/x.md", "notes")
    assert place.names() == ["~/notes/x.md", "~/.claude/CLAUDE.md"]


def test_an_unreadable_file_is_reported(place):
    os.mkfifo(place.root / "AGENTS.md")
    place.write("a/AGENTS.md/x", "a folder")
    place.write("a/b/AGENTS.md", b"PNG\0\1\2")
    (place.root / "a" / "b" / "c").mkdir()
    (place.root / "a" / "b" / "c" / "AGENTS.md").symlink_to("/etc/hostname")
    (place.root / "a" / "b" / "c" / "d").mkdir()
    (place.root / "a" / "b" / "c" / "d" / "AGENTS.md").symlink_to("nowhere.md")
    place.write("a/b/c/d/e/AGENTS.md", "good")
    found = place.read("a/b/c/d/e")
    assert [one.text for one in found.files] == ["good"]
    reasons = ["regular file", "regular file", "binary", "out of the project", "No such file"]
    assert [why in remark for why, remark in zip(reasons, found.remarks, strict=True)] == [True] * 5


def test_a_byte_order_mark_and_broken_text_do_no_harm(place):
    place.write("AGENTS.md", b"\xef\xbb\xbfone \xff\n")
    assert place.read().files[0].text == "one \ufffd\n"


def test_a_long_file_is_cut_with_the_marker(place):
    """M136"""
    place.write("AGENTS.md", "ä" * 20_000)
    found = place.read()
    (one,) = found.files
    assert one.text.endswith(f"\n{TRUNCATION_MARKER}")
    assert TRUNCATION_MARKER == "[Project instructions truncated at 32KB]"
    assert one.text.startswith("ä" * 16_384 + "\n")
    assert "AGENTS.md is cut" in found.remarks[0]


def test_the_nearest_file_stays_whole(place):
    """M136: deeper is later and wins, so the far ones give way."""
    place.write("AGENTS.md", "f" * 30_000)
    place.write("a/AGENTS.md", "m" * 30_000)
    place.write("a/b/AGENTS.md", "n" * 10_000)
    texts = [one.text for one in place.read("a/b").files]
    assert texts[-1] == "n" * 10_000
    assert texts[0] == "m" * (MAX_INSTRUCTION_BYTES - 10_000) + f"\n{TRUNCATION_MARKER}"
    assert len(texts) == 2


def test_a_huge_file_is_not_read_whole(place):
    file = place.write("AGENTS.md", "x\n")
    with file.open("r+b") as opened:
        opened.truncate(1 << 40)  # a hole of 1 TB
    assert "binary" in place.read().remarks[0]


@given(st.lists(st.text(max_size=40).map(lambda text: text * 700), max_size=6))
def test_all_texts_together_fit(texts):
    files = [InstructionFile(str(n), str(n), text) for n, text in enumerate(texts)]
    fitting, remarks = _fit_files(files)
    size = sum(len(one.text.removesuffix(f"\n{TRUNCATION_MARKER}").encode()) for one in fitting)
    assert size <= MAX_INSTRUCTION_BYTES
    whole = sum(len(text.encode()) for text in texts) <= MAX_INSTRUCTION_BYTES
    assert bool(remarks) is not whole
    assert sum(TRUNCATION_MARKER in one.text for one in fitting) == (not whole)


def test_nothing_there_is_nothing():
    assert render_instructions(Instructions()) == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all")
def test_a_file_of_another_user_is_reported(place):
    place.write("AGENTS.md", "x").chmod(0)
    assert "Permission denied" in place.read().remarks[0]
