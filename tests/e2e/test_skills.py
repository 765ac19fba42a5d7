"""Skills in `gong chat` and `gong -p`: found, completed, run, refused until they are trusted."""

from __future__ import annotations

import json

import pytest

from tests.e2e.conftest import BIN
from tests.e2e.terminal import ENTER, Terminal

SKILL = """\
---
name: greet
description: Greet somebody
argument-hint: "[who]"
---
Say hello to $1 and read !`echo the-output`
"""


@pytest.fixture
def work(place):
    """A folder with a trusted skill of the project, and one that has the name of a command."""
    for name in ("greet", "help"):
        file = place.folder / ".claude/skills" / name / "SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_text(SKILL.replace("name: greet", f"name: {name}"))
    (place.folder / "answers.json").write_text(
        json.dumps([{"text": "well done"}, {"text": "well met"}, {"text": "well said"}])
    )
    return place


def list_texts(place):
    """Return the text of each entry of the newest session, by its type."""
    shown = place.run("gong", "tape", "log", "--json").stdout
    return [
        (one["type"], "".join(block.get("text", "") for block in one["data"].get("content", [])))
        for one in sorted(json.loads(shown), key=lambda one: one["n"])
    ]


def test_a_prompt_on_the_command_line_names_a_skill(work):
    """M181: gong -p "/name arguments", after the project is trusted."""
    prompt = ("gong", "-m", "scripted/answers.json", "-p", "/greet 'the world'")
    assert "gong trust" in work.run(*prompt, code=2).stderr
    work.run("gong", "trust", "--yes")
    assert work.run(*prompt).stdout == "well done\n"
    texts = dict(list_texts(work))
    assert texts["user"] == "/greet 'the world'"
    assert "Say hello to the world and read the-output" in texts["context"]


def test_a_skill_is_completed_and_run_in_the_terminal(work):
    """M181: /name in the same list as the commands, its arguments shown; /skills lists them."""
    work.run("gong", "trust", "--yes")
    argv = [str(BIN / "gong"), "chat", "-m", "scripted/answers.json"]
    with Terminal(argv, cwd=work.folder, env=work.env, columns=100, rows=24) as terminal:
        terminal.wait_for("ready", on_screen=True)
        terminal.wait_for_keys()
        terminal.type("/gre")
        terminal.wait_for("/greet [who]", on_screen=True)
        terminal.type("et me" + ENTER)
        terminal.wait_for("well done")
        terminal.type("/skills" + ENTER)
        terminal.wait_for("/skill:help [who]")
        terminal.wait_for("/tape-recall")
        terminal.type("/skill:help you" + ENTER)
        terminal.wait_for("well met")
        terminal.type("/gret" + ENTER)
        terminal.wait_for("unknown command /gret")
    texts = [text for kind, text in list_texts(work) if kind == "context"]
    assert ["Say hello to me" in texts[0], "Say hello to you" in texts[1]] == [True, True]
