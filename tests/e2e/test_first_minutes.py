"""What a person meets first: keys, sessions to continue, a folder that moved. Issue 35, item 3."""

from __future__ import annotations

import json

import pytest

from tests.e2e.terminal import CTRL_D, DOWN, ENTER, ESC, Terminal

KEY = "sk-0123456789abcdef"


def chat(place, *words, cwd=None, **env):
    command = [str(place.bin / "gong"), *words]
    return Terminal(command, cwd=cwd or place.folder, env={**place.env, **env}, columns=100)


def read_keys(place):
    status = place.run("gong", "auth", "status", "--json")
    return [one["provider"] for one in json.loads(status.stdout)]


@pytest.mark.parametrize(
    ("keys", "marked"), [("openrouter", "openrouter –"), (DOWN, "▶  2  "), ("2", "▶  2  ")]
)
def test_a_login_without_a_provider_lists_them(place, keys, marked):
    """By arrows, by number and by name."""
    with chat(place, "auth", "login") as terminal:
        terminal.wait_for("▶  1  ")
        terminal.type(keys)
        terminal.wait_until(
            lambda: any(row[:1] == "▶" and marked in row for row in terminal.rows()), marked
        )
        terminal.type(ENTER)
        terminal.wait_for("Key for ")
        terminal.type(KEY + ENTER)
        assert terminal.wait_for_end() == 0
        assert KEY not in terminal.text()
    assert read_keys(place)  # more than one where providers share it


def test_a_login_without_a_provider_can_be_left(place):
    assert "name a provider: " in place.run("gong", "auth", "login", code=2).stderr
    with chat(place, "auth", "login") as terminal:
        terminal.wait_for("▶  1  ")
        terminal.type(ESC)
        assert terminal.wait_for_end() == 130
    assert read_keys(place) == []


def test_login_works_inside_of_a_conversation(place):
    """The list and the key are those of `gong auth login`; the key is on no tape."""
    with chat(place, "chat", "-m", place.script({"text": "ok"})) as terminal:
        terminal.wait_for("ready")
        terminal.wait_for_keys()
        terminal.say("/login openrouter")
        terminal.wait_for("Key for ")
        terminal.type(KEY + ENTER)
        terminal.wait_for("done: /model chooses a model")
        terminal.say("go")
        terminal.wait_for("\nok")
        assert terminal.wait_for_end(CTRL_D) == 0
    assert read_keys(place) == ["openrouter"]
    assert KEY not in place.run("tape", "cat", "--json").stdout


def test_resume_takes_a_ref_with_a_prompt(place):
    model = place.script({"text": "one"}, {"text": "two"})
    first = place.json("gong", "-p", "a", "-m", model, "--output-format", "json")
    ref = first["session"][:8]
    more = place.json(
        *("gong", "--resume", ref, "-p", "b", "-m", model, "--output-format", "json"),
    )
    assert more["session"] == first["session"]
    needs = place.run("gong", "--resume", "-p", "b", "-m", model, code=2).stderr
    assert "give it a REF" in needs


def test_a_folder_beside_the_one_that_is_gone_is_asked_about(place):
    """`mv rep rep2` without a commit; an empty folder there is another one."""
    model = place.script({"text": "first"}, {"text": "second"})
    (place.folder / "a.txt").write_text("a\n")
    place.run("gong", "-p", "hi", "-m", model)
    moved, empty = place.home / "rep2", place.home / "empty"
    place.folder.rename(moved)
    empty.mkdir()
    assert "gone" not in place.run("gong", "-c", "-p", "x", "-m", model, cwd=empty, code=3).stderr
    refused = place.run("gong", "-c", "-p", "hi", "-m", model, cwd=moved, code=3).stderr
    assert f"in {place.folder}, which is gone; it stood beside this folder" in refused
    assert "gone" not in place.run("tape", "ls", cwd=moved).stderr
    with chat(place, "-c", "-m", model, cwd=moved) as terminal:
        terminal.wait_for("record the move")
        terminal.wait_for_keys()
        terminal.type("y")
        terminal.wait_for("continuing ")
    (tape,) = place.json("tape", "ls", "--json", cwd=moved)
    assert tape["cwd"] == str(moved)


def test_a_project_that_moved_is_recognised(place):
    """`mv rep rep2; gong -c`: the session is offered, and the move recorded."""
    model = place.script({"text": "hello"}, {"text": "again"})
    place.run("gong", "-p", "hi", "-m", model)
    moved = place.home / "elsewhere" / place.folder.name
    moved.parent.mkdir()
    place.folder.rename(moved)
    refused = place.run("gong", "-c", "-p", "hi", "-m", model, cwd=moved, code=3).stderr
    assert "tape mv" in refused
    with chat(place, "-c", "-m", model, cwd=moved) as terminal:
        terminal.wait_for("record the move")
        terminal.wait_for_keys()
        terminal.type(ESC)
        assert terminal.wait_for_end() == 3
        assert "tape mv" in terminal.text()
    with chat(place, "-c", "-m", model, cwd=moved) as terminal:
        terminal.wait_for("record the move")
        terminal.wait_for_keys()
        terminal.type("y")
        terminal.wait_for("continuing ")
        assert terminal.wait_for_end(CTRL_D) == 0
    (tape,) = place.json("tape", "ls", "--json", cwd=moved)
    assert tape["cwd"] == str(moved)
