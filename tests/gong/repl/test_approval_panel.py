"""M177: what a person reads before a call is allowed, and the answers."""

import msgspec
import pytest
from msgspec import Raw

from gong.agent.events import ApprovalRequested
from gong.repl.draw.approval_panel import (
    ANSWER_DIGITS,
    ANSWER_LETTERS,
    build_answers,
    describe_answer,
    mark_parts,
    render_call,
)
from gong.repl.draw.lines import StyledLine, StyledPart
from tape.text import measure_width

HERE = "/home/ada/shop"


def ask(name, arguments, *reasons, offered=(), dangerous=False, details=None):
    args = Raw(msgspec.json.encode(arguments))
    found = Raw(msgspec.json.encode(details or {}))
    why = "; ".join(reasons)
    return ApprovalRequested("c1", name, why, offered, dangerous, args, reasons, found)


def read_rows(event, columns=100):
    lines = render_call(event, columns, HERE) + build_answers(event, HERE).render(columns)
    return [line.text for line in lines]


def test_the_parts_that_are_asked_about_are_marked_in_the_whole_command():
    only = "is not one of the commands that only read"
    event = ask(
        *("bash", {"command": "ls && rm -r x\ntouch y"}),
        *(f"rm -r x: rm {only}", f"touch y: touch {only}", f"edits {HERE}/z"),
    )
    assert render_call(event, 100, HERE) == [
        StyledLine(
            "? $ ls && rm -r x",
            "call",
            (StyledPart("? $ ls && "), StyledPart("rm -r x", "risky")),
        ),
        StyledLine("  touch y", "call", (StyledPart("  "), StyledPart("touch y", "risky"))),
        StyledLine("  edits z", "note"),
        StyledLine("  may change something: rm -r x · touch y", "note"),
    ]


def test_a_question_shows_each_fact_once():
    """M177 M178: command, reason and rule share no words; each answer keeps its number."""
    reason = "touch one: touch is not one of the commands that only read"
    event = ask("bash", {"command": "touch one"}, reason, offered=("Bash(touch:*)",))
    assert read_rows(event) == [
        "? $ touch one",
        "▶ 1  yes, once (y) · e edit it first",
        "  2  touch …: in this session",
        "  3  always in this project · 5 everywhere",
        "  4  no – here you may type what to do instead (n)",
    ]
    event = ask("bash", {"command": "rm -r x"}, "rm -r x: rm is not one of the commands")
    assert [row[2] for row in read_rows(event)[-2:]] == ["1", "4"]


def test_each_key_of_an_answer_is_listed():
    choices = build_answers(ask("bash", {"command": "a"}, "a", offered=("Bash(a)",))).choices
    keys = [key for choice in choices for key in choice.key + choice.letter]
    assert sorted(keys) == sorted(ANSWER_DIGITS + ANSWER_LETTERS)


def test_an_edit_is_its_diff_with_numbers_and_a_path_from_the_folder():
    edit = {"path": f"{HERE}/a", "oldText": "x = 1", "newText": "x = 2"}
    diff = "\n".join([*(f"  {n} {n}" for n in range(1, 5)), "- 5 x = 1", "+ 5 x = 2", "    ..."])
    event = ask(
        "edit", edit, f"edits {HERE}/a", offered=(f"Edit({HERE}/a)",), details={"diff": diff}
    )
    assert read_rows(event)[:8] == [
        *("? edit a", "    2 2", "    3 3", "    4 4", "  - 5 x = 1", "  + 5 x = 2"),
        *("▶ 1  yes, once (y) · e edit it first", "  2  edits of this file: in this session"),
    ]
    plain = ask("edit", edit, f"edits {HERE}/a, a sensitive file")
    assert read_rows(plain)[:4] == ["? edit a", "  - x = 1", "  + x = 2", "  a sensitive file"]
    new = ask("write", {"path": "n", "content": "line\n" * 2000}, "writes n")
    assert len(render_call(new, 100)) == 2002


def test_another_call_shows_all_its_arguments():
    event = ask("mcp__db__drop", {"path": "a", "force": True}, "is not known", dangerous=True)
    assert read_rows(event)[:4] == [
        *("? mcp__db__drop", "  path: a", "  force: true", "  DANGEROUS: is not known"),
    ]
    server = ask("mcp__db__bash", {"command": "ls"}, "mcp__db__bash is not known to only read")
    assert read_rows(server)[:2] == [
        "? mcp__db__bash ls",
        "  mcp__db__bash is not known to only read",
    ]


def test_each_danger_of_a_command_is_named():
    event = ask(
        "bash",
        {"command": "touch a && rm -rf ~"},
        "rm -rf ~: removes a home folder",
        "touch a: touch is not one of the commands that only read",
        dangerous=True,
    )
    assert read_rows(event)[1:3] == [
        "  DANGEROUS: rm -rf ~: removes a home folder",
        "  may change something: touch a",
    ]


def test_a_command_that_controls_the_terminal_is_shown_harmless():
    (line,) = mark_parts("echo \x1b[2J\u202e", ["\x1b[2J"])
    assert line.text == "echo ␛[2J<U+202E>"
    assert StyledPart("␛[2J", "risky") in line.parts


@pytest.mark.parametrize("columns", [44, 80, 200])
def test_rows_fit_and_no_word_of_a_command_is_broken(columns):
    command = "python3 -m  pytest --quiet " + " ".join(f"tests/test_{n}.py" for n in range(20))
    event = ask("bash", {"command": command}, "x: y", offered=("Bash(python3 -m pytest:*)",))
    rows = read_rows(event, columns)
    assert max(map(measure_width, rows)) <= columns
    shown = " ".join(row.strip(" ?$") for row in rows[: rows.index("  x: y")])
    assert shown.split() == command.split()
    assert "-m  pytest" in shown


def test_the_record_says_what_was_allowed():
    event = ask("edit", {"path": "a"}, offered=(f"Edit({HERE}/a)",))
    assert describe_answer(event, "always", folder=HERE) == (
        "allowed in this project from now on: Edit(a)"
    )
    assert describe_answer(event, "no", "keep\nit") == "refused: keep it"
