import json
from itertools import pairwise

import msgspec
import pytest
from msgspec import Raw

from gong.agent import events
from gong.llm.partial_json import parse_partial_arguments
from gong.repl.draw.lines import StyledLine, StyledPart, clip_line, wrap_last_rows, wrap_row
from gong.repl.draw.panels import (
    OpenChoice,
    QueuedLine,
    build_choices,
    render_choices,
    render_queue,
    render_todos,
)
from gong.repl.draw.screen import Screen
from gong.repl.draw.tool_cards import describe_call, render_result
from gong.tools.dialogue import Todo
from tape.model.entries import Opaque, Text, ToolCall, Usage
from tape.text import format_seconds, measure_width


def text(delta, block=0):
    return events.MessageUpdate("text", block, delta)


def thinking(delta, block=0):
    return events.MessageUpdate("thinking", block, delta)


def call(name, args, call_id="c1"):
    return ToolCall(id=call_id, name=name, args=Raw(args))


def said(*content, stop_reason="stop"):
    """Return the end of an answer; what its text was does not matter here."""
    return events.MessageEnd("e1", content or (Text("said"),), stop_reason, Usage())


def started(name="bash", call_id="c1"):
    return events.ToolExecutionStart(call_id, name, "running")


def update(output):
    return events.ToolExecutionUpdate("c1", output, "running", output)


def ran(output, name="bash", call_id="c1", *, is_error=False, duration_ms=5):
    status = "error" if is_error else "completed"
    said = (Text(text=output),)
    return events.ToolExecutionEnd(call_id, name, said, is_error, duration_ms, status)


def ended(stop_reason="stop"):
    return events.RunEnd(stop_reason, 1, Usage(), 0)


@pytest.fixture
def screen():
    return Screen()


@pytest.fixture
def shown(screen):
    """Show events at 40 columns and return every line they finished."""

    def shown(*happened):
        return [line for event in happened for line in screen.show(event, 40)]

    return shown


def join_rows(lines):
    """Return lines with those in one that were one line before it was wrapped at blanks."""
    joined = []
    for line in lines:
        if line.text.startswith("  ") and joined and joined[-1].style == line.style:
            joined[-1] = StyledLine(f"{joined[-1].text} {line.text.strip()}", line.style)
        else:
            joined.append(line)
    return joined


def test_a_block_of_text_is_given_out_when_it_is_whole(screen, shown):
    assert shown(text("Hel"), text("lo\nwor")) == []
    assert screen.live(40) == [StyledLine("Hello"), StyledLine("wor")]
    assert shown(text("ld\n\nNext")) == [*map(StyledLine, ("", "Hello", "world"))]
    assert screen.live(40) == [StyledLine(""), StyledLine("Next")]
    assert shown(said()) == [StyledLine(""), StyledLine("Next")]
    assert screen.live(40) == []


def test_thinking_is_one_line_when_it_is_over(screen, shown):
    """UX: the thought is seen while it grows, and all of it afterwards with Ctrl+T."""
    begun, ended = "2026-01-01T00:00:00.000000Z", "2026-01-01T00:01:05.250000Z"
    shown(events.MessageUpdate("thinking", 0, "hm\n", time=begun))
    shown(events.MessageUpdate("thinking", 0, "well", time=ended))
    assert screen.live(40) == [StyledLine("hm", "thinking"), StyledLine("well", "thinking")]
    assert shown(text("Yes.", 1), said()) == [
        *(StyledLine(""), StyledLine("thought for 1 min 5 s", "thinking")),
        *(StyledLine(""), StyledLine("Yes.")),
    ]
    assert screen.switch_thinking(40) == [
        StyledLine("thinking is shown in full", "note"),
        *(StyledLine("hm", "thinking"), StyledLine("well", "thinking")),
    ]


def test_thinking_is_shown_in_full_on_request(screen, shown):
    screen.switch_thinking(40)
    assert shown(thinking("hm\nwell\nso")) == [
        *(StyledLine(""), StyledLine("hm", "thinking"), StyledLine("well", "thinking"))
    ]
    assert screen.live(40) == [StyledLine("so", "thinking")]
    assert shown(text("Yes.", 1), said()) == [
        StyledLine("so", "thinking"),
        *(StyledLine(""), StyledLine("Yes.")),
    ]


def test_empty_lines_before_the_first_words_are_left_out_and_others_kept(shown):
    assert shown(text("\n\nOne\n\nTwo\n"), said()) == [
        *(StyledLine(""), StyledLine("One"), StyledLine(""), StyledLine("Two"))
    ]


def test_an_unfinished_line_shows_its_last_rows(screen, shown):
    shown(text("x" * 1000))
    assert screen.live(10) == [StyledLine("x" * 10)] * 12


def test_rows_of_a_growing_line_do_not_move():
    line = "".join(chr(97 + at % 26) for at in range(1000))
    frames = [wrap_last_rows(line[:length], 10, 6) for length in range(100, 1000)]
    for now, then in pairwise(frames):
        assert then[:-1] in (now[:-1], now[1:])


def test_a_call_and_its_result_are_shown_when_it_has_run(screen, shown):
    wanted = call("bash", b'{"command":"wc -l README.md"}')
    assert shown(said(wanted, stop_reason="tool_calls"), started()) == []
    assert screen.live(40) == [StyledLine("● $ wc -l README.md", "call")]
    assert screen.doing == "bash"
    assert shown(ran("40 README.md\n")) == [
        *(
            StyledLine(""),
            StyledLine("● $ wc -l README.md", "call"),
            StyledLine("  40 README.md", "result"),
        )
    ]
    assert (screen.live(40), screen.doing) == ([], "")


def test_output_of_a_running_tool_shows_its_last_rows(screen, shown):
    shown(said(call("bash", b'{"command":"make"}')), started())
    shown(*(update(f"step {number}\n") for number in range(9)))
    assert screen.live(40) == [
        StyledLine("● $ make", "call"),
        *(StyledLine(f"  step {number}", "result") for number in range(4, 9)),
    ]


def test_a_progress_bar_shows_where_it_is_now(screen, shown):
    shown(said(call("bash", b'{"command":"make"}')), started())
    shown(update("get\n10%\r20%\r"), update("30%"))
    assert [line.text for line in screen.live(40)[1:]] == ["  get", "  30%"]


def test_calls_that_only_read_are_one_line_together(screen, shown):
    """UX: one line, once something else follows; a failure is shown as any."""
    names = ("a.py", "b.py", "c.py")
    calls = [call("read", f'{{"path":"{name}"}}'.encode(), name) for name in names]
    assert shown(said(*calls, call("ls", b'{"path":"src"}', "d"))) == []
    for name in names:
        assert shown(started("read", name), ran("text\n" * 9, "read", name)) == []
    assert screen.live(40) == [StyledLine("● read 3 files: a.py, b.py, c.py", "call")]
    assert shown(started("ls", "d"), ran("x", "ls", "d")) == []
    assert shown(text("Done.\n\n")) == [
        StyledLine(""),
        StyledLine("● Explored: 3 files, 1 folder: a.py, b.…", "call"),
        *(StyledLine(""), StyledLine("Done.")),
    ]
    shown(said(call("read", b'{"path":"d"}')), started("read"))
    assert shown(ran("no such file", "read", is_error=True)) == [
        *(StyledLine(""), StyledLine("● read d", "call"), StyledLine("  no such file", "error"))
    ]


EDITED = b"""{"path":"a.py","diff":"  1 import os\\n- 2 x = old(1)\\n+ 2 x = new(1)\\n  3 y"}"""


def test_an_edit_shows_its_diff_with_what_changed_inside_the_line(screen, shown):
    """M218."""
    shown(said(call("edit", b'{"path":"a.py"}')), started("edit"))
    done = msgspec.structs.replace(ran("ok", "edit"), details=Raw(EDITED))
    _, *lines = shown(done)
    assert lines == [
        StyledLine("● edit a.py · +1 −1", "call"),
        StyledLine("    1 import os", "result"),
        StyledLine(
            "  - 2 x = old(1)",
            "removed",
            (StyledPart("  - 2 x = "), StyledPart("old", "changed"), StyledPart("(1)")),
        ),
        StyledLine(
            "  + 2 x = new(1)",
            "added",
            (StyledPart("  + 2 x = "), StyledPart("new", "changed"), StyledPart("(1)")),
        ),
        StyledLine("    3 y", "result"),
    ]


def test_a_new_file_is_counted_and_a_patch_shows_each_file(shown):
    shown(said(call("write", b'{"path":"n","content":"a\\nb\\n"}')), started("write"))
    written = ran("ok", "write")
    created = msgspec.structs.replace(written, details=Raw(b'{"path":"n","created":true}'))
    assert shown(created)[1:] == [StyledLine("● write n · new file, 2 lines", "call")]
    patch = b'{"input":"*** Begin Patch\\n*** Add File: b\\n+x\\n*** End Patch"}'
    shown(said(call("apply_patch", patch)), started("apply_patch"))
    files = b'{"files":[{"op":"add","path":"b","dest":null,"diff":"+ 1 x"}]}'
    patched = msgspec.structs.replace(ran("ok", "apply_patch"), details=Raw(files))
    assert shown(patched) == [
        *(StyledLine("● apply_patch b · +1 −0", "call"), StyledLine("  add b")),
        StyledLine("  + 1 x", "added"),
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "lines"),
    [
        ("bash", b'{"command":"make al', ["○ $ make al"]),
        ("read", b'{"pa', ["○ read"]),
        ("read", b'{"path":"REA', ["○ read REA"]),
        (
            "edit",
            b'{"path":"a","oldText":"x = 1","newText":"x =',
            ["○ edit a", "  - x = 1", "  + x ="],
        ),
        ("write", b'{"path":"a","content":"1\\n2\\n3', ["○ write a", "  + 1", "  + 2", "  + 3"]),
        (
            "apply_patch",
            b'{"input":"*** Begin Patch\\n*** Update File: a\\n-x',
            ["○ apply_patch a", "  *** Begin Patch", "  *** Update File: a", "  -x"],
        ),
    ],
)
def test_a_call_is_shown_while_the_model_still_writes_it(screen, shown, name, arguments, lines):
    """M036, M218: path, command or diff before the call is whole."""
    shown(events.MessageUpdate("tool_call", 0, "", name))
    partial = Raw(msgspec.json.encode(parse_partial_arguments(arguments.decode())))
    shown(events.MessageUpdate("tool_call", 0, arguments.decode(), arguments=partial))
    assert [line.text.rstrip() for line in screen.live(40)] == lines


def test_the_last_result_is_shown_in_full_on_request(screen, shown):
    """UX: Ctrl+O."""
    shown(said(call("bash", b'{"command":"seq 9"}')), started(), ran("\n".join("123456789")))
    assert screen.expand_result("\n".join("123456789")) == [
        *(StyledLine(""), StyledLine("● $ seq 9", "call")),
        *(StyledLine(f"  {number}", "result") for number in range(1, 10)),
    ]


def test_a_call_that_never_ran_is_shown_with_its_title(shown):
    shown(said(call("bash", b'{"command":"make"}')))
    assert shown(ran("Skipped due to queued user message", is_error=True)) == [
        StyledLine(""),
        StyledLine("● $ make", "call"),
        StyledLine("  Skipped due to queued user message", "error"),
    ]


def test_a_call_that_took_long_says_how_long(shown):
    shown(said(call("bash", b'{"command":"make a very long list of everything"}')))
    assert shown(started(), ran("done", duration_ms=75_200))[1] == StyledLine(
        "● $ make a very long list… · 1 min 15 s", "call"
    )


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (call("read", b'{"path":"README.md","limit":3}'), "read README.md"),
        (call("edit", b'{"path":"src/a.py","oldText":"a","newText":"b"}'), "edit src/a.py"),
        (call("bash", b'{"command":"ls"}'), "$ ls"),
        (call("bash", b"{}"), "bash "),
        (call("ls", b""), "ls "),
        (call("search", b'{"words":"a b"}'), 'search {"words":"a b"}'),
        (ToolCall(id="c", name="patch", args_text="*** Begin"), "patch *** Begin"),
    ],
)
def test_a_call_is_named_by_what_it_works_on(wanted, words):
    assert describe_call(wanted) == words


def test_a_result_shows_five_lines_and_counts_the_rest():
    output = "\n".join(str(number) for number in range(42))
    assert render_result(output, 40, is_error=False) == [
        *(StyledLine(f"  {number}", "result") for number in range(5)),
        StyledLine("  … 37 more lines (Ctrl+O shows all)", "result"),
    ]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("short", ["short"]),
        ("a reply of many words in a row", ["a reply of many", "  words in a row"]),
        ("  * indented words go on here", ["  * indented words", "    go on here"]),
        ("/x    * what it does now", ["/x    * what it", "        does now"]),
        ("/x      what it does now", ["/x      what it", "        does now"]),
        ("/a/long/name  what it does", ["/a/long/name  what", "  it does"]),
        ("a/very/long/path/that/has/no/blank is", ["a/very/long/path/that/has/no/blank", "  is"]),
        ("日本 日本 日本 日本 日本", ["日本 日本 日本 日", "  本 日本"]),
    ],
)
def test_replies_are_wrapped_at_blanks_and_in_their_columns(text, rows):
    assert wrap_row(text, 18) == rows


def test_a_failure_shows_its_last_lines():
    output = "\n".join(str(number) for number in range(5)) + "\n\nCommand exited with code 2"
    assert render_result(output, 40, is_error=True) == [
        StyledLine("  … 2 more lines (Ctrl+O shows all)", "error"),
        *(StyledLine(f"  {number}", "error") for number in (2, 3, 4)),
        *(StyledLine("", "error"), StyledLine("  Command exited with code 2", "error")),
    ]


def test_a_huge_result_is_as_short_as_any():
    lines = render_result("x" * 1000 + "\n" + "y\n" * 10_000, 48, is_error=False)
    assert lines[0] == StyledLine("  " + "x" * 45 + "…", "result")
    assert lines[-1] == StyledLine("  … 9996 more lines of 10001 (Ctrl+O shows all)", "result")
    narrow = render_result("y\n" * 10_000, 40, is_error=False)
    assert narrow[-1] == StyledLine("  … 9995 more lines of 10000 (Ctrl+O)", "result")
    assert render_result("y\n" * 10_000, 20, is_error=False)[-1].text == "  … 9995 more lines…"
    assert len(lines) == 6


@pytest.mark.parametrize(
    ("output", "is_error", "lines"),
    [
        (
            "\n".join(map(str, range(98001, 100_001)))
            + "\n\n[Showing lines 98001-100000 of 100000. Full output: /tmp/x]",
            False,
            ["… 99995 more lines of 100000", "99996", "99997", "99998", "99999", "100000"],
        ),
        (
            "3\n4\n\n[Showing lines 3-4 of 4 (1KB limit), 9KB in all. Full output: /tmp/x]",
            False,
            ["… 2 more lines", "3", "4"],
        ),
        (
            "9\n\n[Showing lines 9-9 of 9. Full output: /tmp/x]\n\nCommand exited with code 2",
            True,
            ["… 8 more lines", "9", "", "Command exited with code 2"],
        ),
        (
            "long\n\n[Showing last 50KB of line 7, 60KB in all. Full output: /tmp/x]",
            False,
            ["… 6 more lines", "long"],
        ),
        (
            "\n".join("abcdefg") + "\n\n[Showing lines 4-10 of 50. Use offset=11 to continue.]",
            False,
            ["a", "b", "c", "d", "e", "… 42 more lines"],
        ),
        (
            "1\n2\n[... 4744 lines omitted ...]\n4999\n5000\n\n[exit code 0, 8 ms, output: b]",
            False,
            ["1", "2", "[... 4744 lines omitted ...]", "4999", "5000", "… 4743 more lines of 4748"],
        ),
        ("done\n\n[exit code 0, 3 ms]", False, ["done"]),
        (
            "a\n\n[41 more lines in file. Use offset=2 to continue.]",
            False,
            ["a", "… 41 more lines"],
        ),
        (
            "b\n\n[1 entries limit reached, 9 more entries. Use limit=10 to see all.]",
            False,
            ["b", "… 9 more lines"],
        ),
        (
            "\n".join("abcdefg") + "\n\n[7 matches limit reached. Use limit=14 for more.]",
            False,
            ["a", "b", "c", "d", "e", "… at least 2 more lines"],
        ),
        ("a\n\n[1 matches limit reached. Use limit=2 for more.]", False, ["a", "… more"]),
        (
            "\n".join("abcdef") + "\n[... 4744 lines omitted ...]\n" + "\n".join("ghijkl"),
            False,
            ["a", "b", "c", "d", "e", "… 4751 more lines of 4756"],
        ),
        (
            "\n".join("abcdefg") + "\n\n[7 newest of 30 files shown. Refine pattern or path]",
            False,
            ["a", "b", "c", "d", "e", "… 25 more lines"],
        ),
        (
            "a\n\n...9 lines truncated...\n\nThe tool call succeeded but\nUse Grep",
            False,
            ["a", "… 9 more lines"],
        ),
        (
            "...9 lines truncated...\n\nThe tool call succeeded but\nUse Grep\n\na",
            False,
            ["… 9 more lines", "a"],
        ),
        (
            "a\n\n...9 bytes truncated...\n\nThe tool call succeeded but\nUse Grep",
            False,
            ["a", "… more"],
        ),
        ("a\n\n[section]", False, ["a", "", "[section]"]),
    ],
)
def test_what_a_tool_left_out_is_counted(output, is_error, lines):
    said = render_result(output, 80, is_error=is_error)
    texts = [line.text.strip().removesuffix(" (Ctrl+O shows all)") for line in said]
    assert texts == lines


@pytest.mark.parametrize(
    ("line", "columns", "kept"),
    [
        ("  four", 6, "  four"),
        ("  fours", 6, "  fou…"),
        ("日本語の文", 10, "日本語の文"),
        ("日本語の文", 9, "日本語の…"),
        ("日本語の文", 8, "日本語…"),
        ("e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"),
    ],
)
def test_a_line_is_clipped_by_the_columns_it_takes(line, columns, kept):
    assert clip_line(line, columns) == kept


def test_wide_text_is_folded_by_the_columns_it_takes():
    assert wrap_last_rows("日本語の文章", 5, 6) == ["日本", "語の", "文章"]


@pytest.mark.parametrize("drawn", ["👨‍👩‍👧‍👦", "👍🏽", "🇯🇵", "e\u0301", "한"])
@pytest.mark.parametrize("before", ["", "x", "xy"])
def test_what_is_drawn_as_one_character_is_not_cut(drawn, before):
    rows = wrap_last_rows(before + drawn * 60, 39, 999)
    assert "".join(rows) == before + drawn * 60
    assert all(set(row.removeprefix(before).split(drawn)) == {""} for row in rows)
    assert all(measure_width(row) <= 39 for row in rows)


ATTACK = "\x1b]0;owned\x07\x1b[2J\x9b31mred\x08\u202etxt"


def test_no_escape_sequence_of_a_model_reaches_the_terminal(shown):
    assert shown(text(ATTACK + "\r\n\n")) == [
        *(StyledLine(""), StyledLine("␛]0;owned␇␛[2J<U+009B>31mred␈<U+202E>txt"))
    ]


def test_no_escape_sequence_of_a_tool_reaches_the_terminal(shown):
    shown(said(call("bash", b'{"command":"rm -rf x\\rls \\u001b[8m"}')))
    assert shown(started(), ran("\x1b[31mred\x1b[0m\x1b[K \x1b]0;owned\x07\r\n\tend")) == [
        StyledLine(""),
        StyledLine("● $ rm -rf x␍ls ␛[8m", "call"),
        *(StyledLine("  red ␛]0;owned␇", "result"), StyledLine("      end", "result")),
    ]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            events.HistoryRepaired(1, 0, "a call had no result"),
            StyledLine(
                "History repaired: 1 interrupted tool call got a placeholder result "
                "(a call had no result)",
                "note",
            ),
        ),
        (
            events.HistoryRepaired(2, 1, "no result"),
            StyledLine(
                "History repaired: 2 interrupted tool calls got a placeholder result, "
                "1 entry left out (no result)",
                "note",
            ),
        ),
        (
            events.TurnLimit("round", 1, 1),
            StyledLine(
                "stopped at the limit of 1 round of tool calls for one prompt; "
                "a new prompt continues (gong chat -c)",
                "note",
            ),
        ),
        (events.Warn("slow\x1b[0m\nnetwork"), StyledLine("slow␛[0m network", "note")),
        (
            events.TurnLimit("total_turns", 3, 3),
            StyledLine(
                "stopped at the limit of 3 model calls; a new prompt continues (gong chat -c)",
                "note",
            ),
        ),
        (
            events.RunFailure("RateLimited", "too many requests", True, 75),
            StyledLine("too many requests (trying again may help)", "error"),
        ),
        (events.RunFailure("ContentFiltered", "no", False, 1), StyledLine("no", "error")),
        (ended("aborted"), StyledLine("stopped", "note")),
    ],
)
def test_what_happens_beside_the_answer_comes_behind_it(shown, event, line):
    lines = shown(text("So far"), event)
    assert join_rows(lines) == [StyledLine(""), StyledLine("So far"), line]
    assert max(len(line.text) for line in lines) <= 40


def test_steering_that_was_taken_is_shown_as_words_of_the_person(shown):
    assert shown(text("So far"), events.SteeringInjected("stop\nplease", "steering")) == [
        *(StyledLine(""), StyledLine("So far"), StyledLine(""), StyledLine("> stop please", "you"))
    ]


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("length", "the answer was cut at the limit of its length (max_output_tokens)"),
        ("content_filter", "the answer ended early: content_filter"),
    ],
)
def test_an_answer_that_was_cut_says_so(shown, reason, why):
    assert join_rows(shown(text("So"), said(stop_reason=reason))) == [
        *(StyledLine(""), StyledLine("So"), StyledLine(why, "note"))
    ]


def test_nothing_is_live_after_a_run_however_it_ended(screen, shown):
    shown(said(call("bash", b'{"command":"ls"}')), started())
    shown(update("a"), ended("aborted"))
    assert (screen.live(40), screen.doing) == ([], "")


def test_a_compaction_is_named_until_it_ends_and_is_one_line(screen, shown):
    shown(events.CompactionStart("compaction", "window", 900))
    assert screen.doing == "summarising"
    shown(events.Warn("the summary was made by rules, because nobody answers"))
    assert screen.doing == "summarising"
    assert join_rows(shown(events.CompactionEnd("compaction", "e1", 9000, 1200, 1))) == [
        StyledLine(
            "Compacted 1 entry (9,000 → 1,200 tokens, summary by rules)"
            " · /compact --undo reverts this",
            "note",
        )
    ]
    assert screen.doing == ""
    assert screen.prompt("next")[0] == StyledLine("")


def test_the_current_activity_is_named(screen, shown):
    assert screen.doing == ""
    shown(thinking("a"))
    assert screen.doing == "thinking"
    shown(text("a", 1))
    assert screen.doing == "answering"
    shown(events.MessageUpdate("tool_call", 2, "", "write"))
    shown(events.MessageUpdate("tool_call", 2, '{"pa'))
    assert screen.doing == "calling write"
    shown(said())
    assert screen.doing == ""


def test_tools_that_run_side_by_side_are_all_live(screen, shown):
    shown(said(call("ls", b'{"path":"a"}', "c1"), call("read", b'{"path":"b"}', "c2")))
    shown(started("ls", "c1"), started("read", "c2"))
    assert screen.live(40) == [StyledLine("● ls a", "call"), StyledLine("● read b", "call")]
    assert screen.doing == "ls, read"


def test_a_prompt_of_several_lines_is_shown_whole(screen):
    assert screen.prompt("one\ntwo\x07") == [
        *(StyledLine(""), StyledLine("> one", "you"), StyledLine("  two␇", "you"))
    ]


def test_the_reply_of_a_command_is_below_it(screen):
    assert [*screen.prompt("/x"), *screen.reply("no\nsuch", failed=True)] == [
        *(
            StyledLine(""),
            StyledLine("> /x", "you"),
            StyledLine(""),
            StyledLine("no", "error"),
            StyledLine("such", "error"),
        )
    ]


def test_what_waits_is_shown_in_a_few_lines():
    kinds = ("steering", "follow_up", "prompt", "prompt", "prompt")
    waiting = [QueuedLine(*one) for one in zip(kinds, ("a", "b\nc", "d", "e", "f"), strict=True)]
    assert render_queue(waiting, 40) == [
        *(
            StyledLine("steering: a", "call"),
            StyledLine("follow-up: b c", "note"),
            StyledLine("next prompt: d", "note"),
        ),
        StyledLine("… 2 more queued", "note"),
    ]


def test_durations_are_for_people():
    assert [format_seconds(0.4), format_seconds(59.9), format_seconds(61)] == [
        "0 s",
        "59 s",
        "1 min 1 s",
    ]


def test_questions_and_todos_of_a_model_are_harmless_lines_m194():
    """Control characters are shown, and every line is one line."""
    evil = "a\x1b[2J\nb\u202ec\r"
    asked = OpenChoice(evil, ((evil, evil),), is_many=True)
    todos = [Todo(evil, "in_progress", evil), *(Todo(f"step {n}") for n in range(20))]
    lines = [*render_choices(asked, build_choices(asked), 80), *render_todos(todos, 40)]
    for line in lines:
        assert not set(line.text) & set("\x1b\n\r\u202e")
    assert render_todos([Todo("x", "completed")], 40) == []
    assert lines[-1].text == "… 13 more to do or done"


@pytest.mark.parametrize(
    "text",
    [
        "a\n[... {} lines omitted ...]\nb",
        "a\n\n...{} lines truncated...\n\nThe tool call succeeded but\nmore",
        "a\n\n[{} more lines in file.]",
    ],
)
def test_a_number_that_python_does_not_read_is_no_notice(text):
    """What a tool printed may look like a notice of ours: it is shown as it is."""
    number = "9" * 5000
    assert render_result(text.format(number), 80, is_error=False)


@pytest.mark.parametrize(
    ("line", "single", "several"),
    [
        ("2", ("b",), ("b",)),
        ("2, 1", ("2, 1",), ("b", "a")),
        ("3", ("3",), ("3",)),
        (" my own ", ("my own",), ("my own",)),
        ("²", ("²",), ("²",)),
        ("9" * 5000, ("9" * 5000,), ("9" * 5000,)),
    ],
)
def test_a_line_answers_by_number_or_in_words(line, single, several):
    options = (("a", ""), ("b", ""))
    assert OpenChoice("?", options).read_answer(line) == single
    assert OpenChoice("?", options, is_many=True).read_answer(line) == several


@pytest.mark.parametrize(
    ("command", "is_folded"),
    [
        ("cat a.py", True),
        ("rg -n 'a|b' src | head -5", True),
        ("find . -name '*.py' | sort | uniq", True),
        ("ls", True),
        ("find . -delete", False),
        ("rg --pre x a", False),
        ("cat a > b", False),
        ("cat $(x)", False),
        ("cat a | sh", False),
        ("ls && rm a", False),
        ("wc -l a", False),
        ("cat 'a", False),
    ],
)
def test_a_command_that_only_shows_files_is_folded_like_a_tool_that_reads(
    shown, command, is_folded
):
    args = json.dumps({"command": command}).encode()
    shown(said(call("bash", args)), started("bash"))
    lines = [line.text for line in [*shown(ran("output", "bash")), *shown(text("Done.\n\n"))]]
    assert f"● $ {command}" in lines
    assert ("  output" in lines) is not is_folded


def test_reading_calls_of_all_kinds_are_one_line(screen, shown):
    commands = ("cat a.py", "rg TODO src")
    calls = [call("bash", json.dumps({"command": one}).encode(), one) for one in commands]
    shown(said(*calls, call("read", b'{"path":"b.py"}', "r")))
    for each in commands:
        shown(started("bash", each), ran("output", "bash", each))
    shown(started("read", "r"), ran("text", "read", "r"))
    assert screen.live(80) == [
        StyledLine("● Explored: 2 files, 1 search: a.py, TODO, b.py", "call")
    ]


def test_what_is_not_worth_a_line_has_none(shown):
    """No `(no output)`, no exit code 0."""
    for output in ("(no output)", "\n\n[exit code 0, 12 ms]", ""):
        shown(said(call("bash", b'{"command":"touch a"}')), started("bash"))
        assert [line.text for line in shown(ran(output))][-1] == "● $ touch a"
    shown(said(call("bash", b'{"command":"x"}')), started("bash"))
    assert shown(ran("out\n\n[exit code 1, 12 ms]", is_error=True))[-1].text.endswith("12 ms]")


def test_tools_of_our_own_are_sentences(shown):
    """Issue 35: no JSON of a tool of ours."""
    asked = {"questions": [{"question": "Which?", "options": []}, {"question": "Why?"}]}
    shown(said(call("ask_user", json.dumps(asked).encode())), started("ask_user"))
    answers = Raw(b'{"answers":{"Which?":["a","b"],"Why?":[]}}')
    done = msgspec.structs.replace(ran("The user answered", "ask_user"), details=answers)
    assert [line.text for line in shown(done)][1:] == [
        *("● Asked 2 questions", "  Which? → a; b", "  Why? → (no answer)")
    ]
    task = b'{"description":"count files","prompt":"Count all.","subagent_type":"explore"}'
    shown(said(call("Task", task)), started("Task"))
    assert [line.text for line in shown(ran('{"agent_id":"agent-1","n":3}', "Task"))] == [
        *("● Task (explore): count files", "  agent id: agent-1", "  n: 3")
    ]


def test_a_search_of_the_provider_is_shown_with_the_pages_that_are_cited(shown):
    """M195"""
    search = Raw(b'{"type":"web_search_call","action":{"query":"the \\u001b[31manswer"}}')
    note = b'{"type":"url_citation","url":"https://a.example/","title":"Page A"}'
    cited = Text("It is 42.", wire=Raw(b'{"annotations":[' + note + b"]}"))
    assert shown(said(Opaque(raw=search), cited)) == [
        StyledLine(""),
        StyledLine("● web_search: the ␛[31manswer", "call"),
        StyledLine("Sources:", "result"),
        StyledLine("[1] Page A – https://a.example/", "result"),
    ]
