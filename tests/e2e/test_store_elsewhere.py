"""`--store URL`: a machine without a store of its own works on the one that is elsewhere."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.e2e.conftest import Place

RULES = ("-m", "offline/rules", "--permission", "bypass", "-p")


@pytest.fixture
def url(tmp_path):
    (tmp_path / "team").mkdir()
    return (tmp_path / "team").as_uri()


def make_machine(tmp_path, name):
    return Place(tmp_path / name)


def list_titles(place, url):
    rows = json.loads(place.run("tape", "--store", url, "ls", "--all", "--json").stdout)
    return [row["title"] for row in rows]


def test_another_machine_continues_a_session_whose_own_is_gone(tmp_path, url):
    """Nothing of the first one's disk is left, as of a container."""
    first, second = make_machine(tmp_path, "first"), make_machine(tmp_path, "second")
    first.run("gong", "chat", "--store", url, *RULES, "remember that the port is 8143")
    assert not (first.home / ".tape").exists()
    shutil.rmtree(first.home)
    assert list_titles(second, url) == ["remember that the port is 8143"]
    tape = json.loads(second.run("tape", "ls", "--all", "--json", TAPE_HOME=url).stdout)[0]["id"]
    said = second.run(
        "gong", "chat", "--store", url, "--session", tape[:8], *RULES, "which port is it?"
    )
    assert "8143" in said.stdout
    third = make_machine(tmp_path, "third")
    assert "which port is it?" in third.run("tape", "--store", url, "log", tape[:8]).stdout
    assert third.run("tape", "--store", url, "verify", "--all").returncode == 0


def test_titles_labels_and_forks_are_made_there(tmp_path, url):
    first, second = make_machine(tmp_path, "first"), make_machine(tmp_path, "second")
    tape = first.run("tape", "--store", url, "new", "--title", "one").stdout.split()[0]
    first.run("tape", "--store", url, "rename", tape, "renamed")
    first.run("tape", "--store", url, "fork", tape, "--name", "later")
    assert list_titles(second, url) == ["renamed"]
    assert "later" in second.run("tape", "--store", url, "branches", tape).stdout


def test_a_store_that_is_away_is_read_as_it_was_and_not_written(tmp_path, url):
    place = make_machine(tmp_path, "first")
    place.run("tape", "--store", url, "new", "--title", "one")
    (tmp_path / "team").rename(tmp_path / "away")
    listed = place.run("tape", "--store", url, "ls", "--all")
    assert "one" in listed.stdout
    assert "what is here is as of the last pull" in listed.stderr
    ran = place.run("gong", "chat", "--store", url, *RULES, "hello", code=75)
    assert "is it mounted?" in ran.stderr
    other = make_machine(tmp_path, "other")
    ran = other.run("tape", "--store", url, "ls", code=75)
    assert "is it mounted?" in ran.stderr
    assert not list(other.home.glob(".cache/tape/stores/*/tapes/*"))


@pytest.mark.parametrize("url", ["nosuch://host/path", "http://127.0.0.1/x"])
def test_an_address_that_is_no_store_is_refused(tmp_path, url):
    place = make_machine(tmp_path, "first")
    for command in (("tape", "--store", url, "ls"), ("gong", "chat", "--store", url, *RULES, "x")):
        assert "a remote is file://" in place.run(*command, code=2).stderr


def test_tools_may_not_change_the_copy_of_a_store(tmp_path, url):
    """It is the program's own, as ~/.tape is."""
    place = make_machine(tmp_path, "first")
    place.run("gong", "chat", "--store", url, *RULES, "hello")
    (copy,) = place.home.glob(".cache/tape/stores/*")
    target = copy / "tapes" / "new.txt"
    ran = place.run("gong", "chat", "--store", url, *RULES, f"write hello to {target}", code=None)
    assert "gong's own settings, keys or tapes" in ran.stderr
    assert not target.exists()
