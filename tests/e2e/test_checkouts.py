"""`gong chat -c` and `/resume` in another checkout of a repository, whatever its remote is."""

from __future__ import annotations

import json

import pytest

from gong.repl.commands.session_lists import list_sessions
from tape.places.checkout import find_checkout
from tests.tape.cli.test_checkouts import OTHER, SAME

KINDS = [kind for kind in (*SAME, *OTHER) if kind != "around a submodule"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_of_another_checkout_is_continued(place, tmp_path, kind):
    """Its folder is said; one of another repository is not touched."""
    one, other = (SAME | OTHER)[kind](tmp_path)
    model = place.script({"text": "fine"})
    words = ("-m", model, "--output-format", "json", "-p")
    first = json.loads(place.run("gong", "chat", *words, "begin", cwd=one).stdout)["session"]
    ran = place.run("gong", "chat", "-c", *words, "go on", cwd=other, code=None)
    if kind in OTHER:
        assert ran.returncode != 0 or json.loads(ran.stdout)["session"] != first
        return
    assert json.loads(ran.stdout)["session"] == first
    assert f"this session worked in {one}; it continues in {other}" in ran.stderr


def test_a_list_of_sessions_begins_with_those_of_the_repository(place, tmp_path):
    """In whatever checkout, each with its folder; also where words are searched for."""
    one, other = SAME["ssh and https"](tmp_path)
    place.folder.joinpath("none").mkdir()
    for title, folder in (("Grün one", one), ("old", place.folder), ("grün two", place.folder)):
        place.run("tape", "new", "--title", title, cwd=folder)

    def titles(folder, words=""):
        rows = list_sessions(place.home / ".tape", find_checkout(str(folder), place.env), words)
        return [row.text for row in rows]

    assert titles(other) == ["Grün one", "grün two", "old"]
    assert titles(place.folder) == ["grün two", "old", "Grün one"]
    assert titles(other, "GRÜN") == ["Grün one", "grün two"]
    assert titles(other, "team/App") == ["Grün one"]
    here = find_checkout(str(other), place.env)
    (row,) = list_sessions(place.home / ".tape", here, "Grün one")
    assert str(one)[-10:] in row.note
