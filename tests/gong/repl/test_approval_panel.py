"""M177: what a person reads before a call is allowed."""

import msgspec
from msgspec import Raw

from gong.agent.events import ApprovalRequested
from gong.repl.draw.approval_panel import mark_parts, render_question
from gong.repl.draw.lines import StyledLine, StyledPart


def ask(name, arguments, *reasons, offered=(), dangerous=False, columns=100):
    args = Raw(msgspec.json.encode(arguments))
    why = "; ".join(reasons)
    event = ApprovalRequested("c1", name, why, offered, dangerous, args, reasons)
    return render_question(event, columns)


def test_the_parts_that_are_asked_about_are_marked_in_the_whole_command():
    asked = ask(
        "bash", {"command": "ls && rm -r x\ntouch y"}, "rm -r x: removes", "touch y: writes"
    )
    assert asked == [
        StyledLine(
            "? bash: ls && rm -r x",
            "call",
            (StyledPart("? bash: ls && "), StyledPart("rm -r x", "risky")),
        ),
        StyledLine("  touch y", "call", (StyledPart("  "), StyledPart("touch y", "risky"))),
        StyledLine("  rm -r x: removes", "note"),
        StyledLine("  touch y: writes", "note"),
        StyledLine("  1 once · 4 no (a reason, then Enter) · e edits", "note"),
    ]


def test_an_edit_is_a_diff_and_another_call_shows_all_its_arguments():
    edit = {"path": "a", "oldText": "x = 1", "newText": "x = 2"}
    asked = ask("edit", edit, "changes a", offered=("Edit(a)",))
    assert [line.text for line in asked] == [
        *("? edit a", "  - x = 1", "  + x = 2", "  changes a"),
        "  1 once · 2 this session · 3 always: Edit(a) · 4 no (a reason, then Enter) · e edits",
    ]
    asked = ask("mcp__db__drop", {"path": "a", "force": True}, "is not known", dangerous=True)
    assert [line.text for line in asked[:2]] == [
        '? mcp__db__drop: {"path":"a","force":true}',
        "  DANGEROUS: is not known",
    ]
    new = ask("write", {"path": "n", "content": "line\n" * 2000}, "writes n")
    assert len(new) == 2003


def test_a_command_that_controls_the_terminal_is_shown_harmless():
    (line,) = mark_parts("echo \x1b[2J\u202e", ["\x1b[2J"])
    assert line.text == "echo ␛[2J<U+202E>"
    assert StyledPart("␛[2J", "risky") in line.parts


def test_the_keys_are_broken_between_words():
    edit = {"path": "a", "oldText": "x", "newText": "y"}
    rows = [line.text for line in ask("edit", edit, "edits a", offered=("Edit(a)",), columns=40)]
    assert rows[-3:] == [
        "  1 once · 2 this session · 3 always:",
        "    Edit(a) · 4 no (a reason, then",
        "    Enter) · e edits",
    ]
