"""The list of /resume: this project and all, looked into, renamed, moved to the trash."""

from __future__ import annotations

import pytest

from tests.e2e.terminal import DOWN, ENTER, ESC, UP

CTRL_A, CTRL_R, CTRL_U, CTRL_X = "\x01", "\x12", "\x15", "\x18"


@pytest.fixture
def sessions(place):
    """Two sessions of this folder, newest last, and one of another."""
    (place.folder / "far").mkdir()
    model = place.script({"text": "one\nsecond line"}, {"text": "two"}, {"text": "three"})
    for number, folder in enumerate((place.folder / "far", place.folder, place.folder)):
        words = ("-m", model, "-p", f"think about subject{number}")
        place.run("gong", "chat", *words, cwd=folder)
    return [row["id"] for row in place.json("tape", "ls", "--json", "--sort", "created")][::-1]


def titles(place):
    return {row["title"] for row in place.json("tape", "ls", "--json")}


@pytest.mark.parametrize("how", [(), ("--tui",)])
@pytest.mark.parametrize("columns", [44, 80, 140])
def test_this_project_is_listed_first_and_all_with_ctrl_a(place, open_chat, sessions, columns, how):
    now = open_chat("--resume", *how, ready="1/2", columns=columns)
    assert "subject0" not in "\n".join(now.rows())
    now.type(CTRL_A)
    now.wait_for("1/3", on_screen=True)
    shown = "\n".join(now.rows())
    assert "far " in shown
    assert ("^A here" if columns < 120 else "Ctrl+A this project") in shown
    now.type(DOWN + DOWN)
    now.wait_for("3/3", on_screen=True)
    now.type(CTRL_A)
    now.wait_for("/2 ·", on_screen=True)
    now.type(ESC)
    now.wait_for("ready", on_screen=True)


def test_what_is_found_in_another_project_is_one_key_away(place, open_chat, sessions):
    now = open_chat("--resume", ready="1/2", columns=80)
    now.type("subject0")
    now.wait_for("nothing found here; Ctrl+A searches all projects", on_screen=True)
    now.type(CTRL_A)
    now.wait_for("1/1", on_screen=True)


def test_a_session_is_looked_into(place, open_chat, sessions):
    """With Space where nothing is typed, and → behind what is."""
    now = open_chat("--resume", ready="1/2", columns=80)
    now.type(" ")
    now.wait_for("> think about subject2", on_screen=True)
    assert f"{sessions[2][:8]} · 1 branch" in "\n".join(now.rows())
    now.type(DOWN)
    now.wait_for("> think about subject1", on_screen=True)
    now.type(" ")
    now.wait_until_gone("1 branch")
    now.type("subject1\x1b[C")
    now.wait_for("> think about subject1", on_screen=True)


def test_a_session_is_renamed_in_the_list(place, open_chat, sessions):
    now = open_chat("--resume", ready="1/2", columns=80)
    now.type(DOWN + CTRL_R)
    now.wait_for("new title: think about subject1", on_screen=True)
    now.type(ESC)
    now.wait_for("resume:", on_screen=True)
    now.type(CTRL_R)
    now.wait_for("new title: ", on_screen=True)
    now.type(CTRL_U + "A better name" + ENTER)
    now.wait_for("title: A better name", on_screen=True)
    now.wait_for("▶ A better name", on_screen=True)
    assert titles(place) == {"A better name", "think about subject0", "think about subject2"}


@pytest.mark.parametrize("yes", [UP + ENTER, "y", "1"])
@pytest.mark.parametrize("no", [ENTER, "n", "2", ESC])
def test_a_session_is_moved_to_the_trash_after_a_question(place, open_chat, sessions, no, yes):
    """By arrows, letters or numbers alone; what brings it back is said, and stays on the screen."""
    now = open_chat("--resume", ready="1/2", columns=80)
    now.type(CTRL_X)
    now.wait_for('Move "think about subject2" to the trash?', on_screen=True)
    now.type(no)
    now.wait_until_gone("to the trash?")
    assert len(titles(place)) == 3
    now.type(CTRL_X)
    now.wait_for("to the trash?", on_screen=True)
    now.type(yes)
    said = f"/tape restore {sessions[2][:8]} brings it back"
    now.wait_for(said, on_screen=True)
    now.wait_for("▶ think about subject1", on_screen=True)
    assert titles(place) == {"think about subject0", "think about subject1"}
    now.type(ESC)
    now.wait_for("ready", on_screen=True)
    assert said in now.text()
    now.say(f"/tape restore {sessions[2][:8]}")
    now.wait_for("restored")
    assert len(titles(place)) == 3


def test_an_open_session_is_not_moved(place, open_chat, sessions):
    now = open_chat("-c")
    now.say("/resume")
    now.wait_for("1/2", on_screen=True)
    now.type(CTRL_X)
    now.wait_for("to the trash?", on_screen=True)
    now.type("y")
    now.wait_for("is being written", on_screen=True)
    assert len(titles(place)) == 3


def test_a_narrow_window_says_in_full_what_brings_a_session_back(place, open_chat, sessions):
    now = open_chat("--resume", ready="1/2", columns=44)
    now.type(CTRL_X)
    now.wait_for("to the trash?", on_screen=True)
    now.type("y")
    said = f'"think about subject2" is in the trash; /tape restore {sessions[2][:8]} brings it back'
    now.wait_until(lambda: said in " ".join(" ".join(now.rows()).split()), said)
    now.type("\x1b[A")
    now.wait_for("1/1 · ^A all · → view", on_screen=True)
