"""Questions, plans and todo lists in real runs: in a terminal, and with no user present."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.e2e.terminal import ENTER, Terminal
from tests.e2e.test_print import call, entries

if TYPE_CHECKING:
    from tests.e2e.conftest import Place

STORE = {
    "question": "Which store?",
    "options": [{"label": "SQLite", "description": "one file"}, {"label": "Postgres"}],
}
PARTS = {
    "question": "Which parts?",
    "options": [{"label": "docs"}, {"label": "code"}, {"label": "tests"}],
    "multi_select": True,
}
ASKS = call("ask_user", questions=[STORE, PARTS])
PLANS = (
    call("enter_plan_mode"),
    call("exit_plan_mode", plan="1. touch a file"),
    call("bash", command="touch made"),
)


def results(place: Place) -> list[str]:
    found = [entry["data"] for entry in entries(place) if entry["type"] == "tool.result"]
    return [one["content"][0]["text"] for one in found]


@pytest.fixture
def talk(place: Place):
    """Say something in a terminal whose model makes these calls."""
    opened = []

    def talk(*calls, flags=()) -> Terminal:
        model = place.script(*calls, {"text": "all done"})
        command = [str(place.bin / "gong"), "chat", "-m", model, *flags]
        terminal = Terminal(command, cwd=place.folder, env=place.env, columns=100, rows=30)
        opened.append(terminal)
        terminal.wait_for("ready")
        terminal.wait_for_keys()
        terminal.say("begin")
        return terminal

    yield talk
    for terminal in opened:
        terminal.__exit__()


def test_a_person_answers_by_number_and_in_words_m194_m225(talk, place):
    """M194 M225: numbered answers above the prompt; a line answers."""
    terminal = talk(ASKS)
    terminal.wait_for("? (1 of 2) Which store?")
    terminal.wait_for("▶ 1  SQLite – one file")
    terminal.wait_for("waits for your answer")
    terminal.type("DuckDB" + ENTER)
    terminal.wait_for("? (2 of 2) Which parts?")
    terminal.type("3,1" + ENTER)
    terminal.wait_for(
        "● Asked 2 questions\n  Which store? → DuckDB\n  Which parts? → tests; docs\n"
    )
    terminal.wait_for("all done")
    (result,) = results(place)
    assert result == "The user answered:\n\nWhich store?\n→ DuckDB\n\nWhich parts?\n→ tests; docs"


def test_a_plan_is_refused_with_a_reason_and_then_approved_m194(talk, place):
    """M194: what is typed in place of a number is the reason."""
    terminal = talk(*PLANS[:2], *PLANS[1:])
    terminal.wait_for("Continue with this plan?")
    terminal.type("name the file" + ENTER)
    terminal.wait_for("● Plan not approved\n  name the file\n")
    terminal.wait_for("waits for your answer")
    terminal.type("1" + ENTER)
    terminal.wait_for("all done")
    assert (place.folder / "made").exists()
    refused, approved = results(place)[1:3]
    assert refused.endswith("\nReason: name the file")
    assert approved == "The plan is approved. The permission mode is bypass now."


def test_the_todo_list_is_above_the_prompt_until_it_is_done_m194(talk, place):
    """M194: todos in the UI."""
    todos = [
        {"content": "Read it", "status": "completed"},
        {"content": "Write it", "status": "in_progress", "activeForm": "Writing it"},
    ]
    done = [{**one, "status": "completed"} for one in todos]
    waits = call("bash", command="until [ -e seen ]; do sleep 0.1; done")
    terminal = talk(call("todo", todos=todos), waits, call("todo", todos=done))
    terminal.wait_for("▶ Writing it", on_screen=True)
    (place.folder / "seen").touch()
    terminal.wait_for("all done")
    terminal.wait_until_gone("▶ Writing it")


def test_afk_in_a_terminal_asks_no_question(talk, place):
    terminal = talk(ASKS, flags=("--afk",))
    terminal.wait_for("all done")
    terminal.wait_for("nobody is asked: Which store?; Which parts?")
    assert results(place)[0].startswith("No user is present: decide yourself")


@pytest.mark.parametrize("afk", [False, True])
def test_headless_decides_itself_and_says_so_in_the_stream_m194(place, afk):
    model = place.script(ASKS, {"text": "done"})
    flags = ("--afk",) if afk else ()
    done = place.run("gong", "-p", "x", "-m", model, "--output-format", "stream-json", *flags)
    lines = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    (asked,) = [line for line in lines if line["kind"] == "question"]
    assert asked["waits"] is False
    assert [one["question"] for one in asked["questions"]] == ["Which store?", "Which parts?"]
    assert results(place)[0].startswith("No user is present: decide yourself")


@pytest.mark.parametrize(
    ("flags", "is_made"), [((), False), (("--afk",), True), (("--yolo",), True)]
)
def test_a_headless_plan_is_approved_by_afk_or_yolo(place, flags, is_made):
    place.env["GONG_PERMISSION"] = "accept_edits"
    place.run("gong", "-p", "x", "-m", place.script(*PLANS, {"text": "done"}), *flags)
    assert (place.folder / "made").exists() is is_made
