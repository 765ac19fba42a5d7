"""A session of a repository is found from its other checkouts, whatever its remote looks like."""

from __future__ import annotations

import subprocess

import pytest

from tests.tape.cli.conftest import Command, line, words

TEXT = "import os\nprint('hi')\n"


def git(folder, *args):
    command = ["git", "-c", "protocol.file.allow=always", "-c", "user.name=A"]
    command += ["-c", "user.email=a@example.org", "-C", folder, *args]
    subprocess.run(command, check=True, capture_output=True)


def init(folder, url=None):
    """Make a repository with one commit of `src/a.py`, which says who wrote line 3 by hand."""
    (folder / "src").mkdir(parents=True)
    (folder / "src/a.py").write_text(f"{TEXT}by_hand = 1\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "First")
    if url is not None:
        git(folder, "remote", "add", "origin", url)
    return folder


def with_urls(one, other):
    return lambda path: (init(path / "one", one), init(path / "other", other))


def clone_of_folder(path):
    """Two clones of a bare repository on this machine, one of them by a relative path."""
    git(path, "clone", "-q", "--bare", init(path / "seed"), path / "app.git")
    git(path, "clone", "-q", path / "app.git", path / "one")
    git(path, "clone", "-q", path / "app.git", path / "other")
    git(path / "other", "remote", "set-url", "origin", "../app.git")
    return path / "one", path / "other"


def worktrees(path):
    one = init(path / "one", "ssh://git@example.org:2222/team/app.git")
    git(one, "worktree", "add", "-q", "-b", "side", path / "other")
    return one, path / "other"


def submodule_and_clone(path):
    """The repository as a part of another one, and by itself."""
    seed = init(path / "seed")
    outer = init(path / "outer", "https://example.org/team/outer")
    git(outer, "submodule", "add", "-q", seed, "lib")
    git(outer / "lib", "remote", "set-url", "origin", "https://example.org/team/app.git")
    return outer / "lib", init(path / "other", "git@example.org:team/app")


def session_around_a_submodule(path):
    """The session works at the top of the outer repository, on a file of the inner one."""
    lib, other = submodule_and_clone(path)
    return lib, other, lib.parent


SAME = {
    "ssh and https": with_urls(
        "git@example.org:team/app.git", "https://me:secret@Example.org/team/app/"
    ),
    "ssh with a port, and git": with_urls(
        "ssh://git@example.org:2222/team/app.git", "git://example.org/team/app"
    ),
    "a folder": clone_of_folder,
    "worktrees": worktrees,
    "a submodule and a clone": submodule_and_clone,
    "around a submodule": session_around_a_submodule,
}
OTHER = {
    "no remote": with_urls(None, None),
    "no remote here": with_urls("https://example.org/team/app", None),
    "an odd remote": with_urls("ext::sh -c x", "ext::sh -c x"),
    "another repository": with_urls(
        "https://example.org/team/app", "https://example.org/team/app-server"
    ),
}


def record(home, place, file):
    """Record a session that works in a folder and writes a file."""
    there = Command(home, place)
    made = there("new", "--title", "the work").text.strip()
    block = {"name": "write", "args": {"path": str(file), "content": TEXT}}
    call = {"type": "tool_call", "id": "c_1", **block}
    said = line("user", content=words("write it"))
    said += line("assistant", content=[call], provider="p", model="m")
    said += line("tool.result", call_id="c_1", name="write", content=words("ok"))
    there("append", made, stdin=said)
    return there


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.mark.parametrize("kind", SAME)
def test_another_checkout_is_found(home, tmp_path, kind):
    """By lists, by a REF that names none, by search and by blame, each with its folder."""
    one, other, *at = SAME[kind](tmp_path)
    place = at[0] if at else one
    record(home, place, one / "src/a.py")
    here = Command(home, other / "src")
    explained = [found["prompt"] for found in here("blame", "a.py", "--json").json]
    assert explained == ["write it", None]
    if at:  # a session of the outer repository is not one of the inner
        return
    for verb in (("ls",), ("ls", "--here"), ("ls", "--repository", ".")):
        (row,) = here(*verb, "--json").json
        assert (row["title"], row["cwd"]) == ("the work", str(place))
    assert here("show", "--json").json["title"] == "the work"
    assert str(place) in here("show").text
    (hit,) = here("search", "write", "--type", "user", "--repository", ".", "--json").json
    assert hit["cwd"] == str(place)


@pytest.mark.parametrize("kind", OTHER)
def test_another_repository_is_not(home, tmp_path, kind):
    one, other = OTHER[kind](tmp_path)
    here = record(home, one, one / "src/a.py")
    there = Command(home, other / "src")
    assert "no tape" in there.refused("blame", "a.py", code=3)
    assert there("ls", "--here", "--json").json == []
    assert "no tape for" in there.refused("show", code=3)
    assert there("search", "write", "--repository", ".", code=1).text == ""
    assert here("ls", "--here", "--json").json[0]["title"] == "the work"
    assert here("blame", "src/a.py", "--json").json[0]["prompt"] == "write it"


def test_this_checkout_explains_its_lines_itself(home, tmp_path):
    """What both wrote is of here; the others tell of lines that came from there."""
    one, other = SAME["ssh and https"](tmp_path)
    record(home, one, one / "src/a.py")
    here = Command(home, other)
    made = here("new").text.strip()
    new = "print('hi')\nprint('there')\n"
    args = {"path": "src/a.py", "old_string": "print('hi')\n", "new_string": new}
    call = {"type": "tool_call", "id": "c_1", "name": "edit", "args": args}
    said = line("user", content=words("edit it"))
    said += line("assistant", content=[call], provider="p", model="m")
    said += line("tool.result", call_id="c_1", name="edit", content=words("ok"))
    here("append", made, stdin=said)
    (other / "src/a.py").write_text(f"import os\n{new}by_hand = 1\n")
    found = here("blame", "src/a.py", "--json").json
    prompts = [row["prompt"] for row in found for _ in range(row["first"], row["last"] + 1)]
    assert prompts == ["write it", "write it", "edit it", None]
    assert [row["last"] for row in found] == [2, 3, 4]


def test_a_file_that_was_renamed_elsewhere_is_followed(home, tmp_path):
    one, other = SAME["ssh and https"](tmp_path)
    there = record(home, one, one / "src/old.py")
    patch = "*** Begin Patch\n*** Update File: src/old.py\n*** Move to: src/a.py\n*** End Patch\n"
    call = {"type": "tool_call", "id": "c_2", "name": "apply_patch", "args": {"input": patch}}
    said = line("assistant", content=[call], provider="p", model="m")
    said += line("tool.result", call_id="c_2", name="apply_patch", content=words("ok"))
    there("append", stdin=said)
    assert not (other / "src/old.py").exists()
    found = Command(home, other)("blame", "src/a.py", "--json").json
    assert [row["prompt"] for row in found] == ["write it", None]
