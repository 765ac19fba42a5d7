"""A session that began on another machine goes on here: tools, undo and redo in this checkout."""

from __future__ import annotations

import subprocess

import pytest

from tests.e2e.conftest import Place

RULES = ("-m", "offline/rules", "--permission", "bypass", "-p")


def make_machine(tmp_path, name, repository="git@code.example:team/proj.git"):
    """Return a machine with a checkout of its own, whose store has the shared remote."""
    place = Place(tmp_path / name)
    place.folder = tmp_path / f"src-{name}"
    place.folder.mkdir()
    (place.folder / "a.txt").write_text("one\ntwo\n")
    for command in (
        ("init", "-q"),
        ("config", "user.name", name),
        ("config", "user.email", f"{name}@example.com"),
        ("remote", "add", "origin", repository),
    ):
        subprocess.run(("git", *command), cwd=place.folder, env=place.env, check=True)
    place.run("tape", "machine", f"pc-{name}")
    place.run("tape", "remote", "add", "team", str(tmp_path / "team"), "--mode", "manual")
    return place


@pytest.fixture
def ann(tmp_path):
    (tmp_path / "team").mkdir()
    place = make_machine(tmp_path, "ann")
    place.run("gong", "chat", *RULES, "write hello to b.txt")
    place.run("gong", "chat", "-c", *RULES, "read a.txt then replace one with ONE in a.txt")
    place.run("tape", "push", "--yes")
    return place


def take_over(ann, ben):
    """Let Ben have the session and the files of Ann, whose folder is not on his machine."""
    for name in ("a.txt", "b.txt"):
        (ben.folder / name).write_bytes((ann.folder / name).read_bytes())
    ben.run("tape", "pull")
    ann.folder.rename(ann.folder.with_name("away"))


def read_files(place):
    return {path.name: path.read_text() for path in place.folder.glob("*.txt")}


def test_files_of_a_colleagues_session_go_back_in_this_checkout(tmp_path, ann):
    ben = make_machine(tmp_path, "ben")
    take_over(ann, ben)
    changed = {"a.txt": "ONE\ntwo\n", "b.txt": "hello"}
    assert read_files(ben) == changed
    assert "D  b.txt" in ben.run("gong", "undo", "2", "--dry-run").stdout
    ben.run("gong", "undo", "2", "-y")
    assert read_files(ben) == {"a.txt": "one\ntwo\n"}
    ben.run("gong", "redo", "-y")
    assert read_files(ben) == changed
    ben.run("gong", "undo", "-y", "--files")
    assert read_files(ben) == changed | {"a.txt": "one\ntwo\n"}
    entries = ben.json("tape", "log", "--json")
    (moved,) = [entry["data"] for entry in entries if entry["type"] == "meta"]
    assert (moved["cwd"], moved["machine"]) == (str(ben.folder), "pc-ben")
    assert not ann.folder.exists()
    assert ben.run("tape", "verify", "--all").returncode == 0


def test_what_a_colleague_undid_is_redone_where_it_came_from(tmp_path, ann):
    ben = make_machine(tmp_path, "ben")
    take_over(ann, ben)
    ben.run("gong", "undo", "-y", "--files")
    ben.run("tape", "push", "--yes")
    ann.folder.with_name("away").rename(ann.folder)
    ran = ann.run("tape", "pull")
    assert "missing" not in ran.stderr  # blobs that are here are not asked for
    (ann.folder / "a.txt").write_text("one\ntwo\n")  # as a pull of git would bring it
    ben.folder.rename(ben.folder.with_name("away"))
    ann.run("gong", "redo", "-y")
    assert read_files(ann) == {"a.txt": "ONE\ntwo\n", "b.txt": "hello"}
    assert not ben.folder.exists()


def test_files_of_another_machine_outside_of_any_checkout_stay(tmp_path, ann):
    ben = make_machine(tmp_path, "ben", "git@code.example:other/thing.git")
    take_over(ann, ben)
    tape = ben.tapes()[0].name
    ran = ben.run("gong", "undo", "-y", "--session", tape)
    assert "pc-ann:" in ran.stdout
    assert read_files(ben) == {"a.txt": "ONE\ntwo\n", "b.txt": "hello"}


def test_a_tape_names_its_new_machine_where_both_folders_have_one_name(tmp_path, ann):
    """As in two containers: the folder alone does not tell that a colleague went on."""
    ben = make_machine(tmp_path, "ben")
    take_over(ann, ben)
    ben.folder.rename(ann.folder)
    ben.run("gong", "chat", "-c", *RULES, "read b.txt", cwd=ann.folder)
    entries = ben.json("tape", "log", "--json", cwd=ann.folder)
    (moved,) = [entry["data"] for entry in entries if entry["type"] == "meta"]
    assert moved["machine"] == "pc-ben"
    assert moved["person"] == "ben <ben@example.com>"
