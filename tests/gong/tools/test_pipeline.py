import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.tool_settings import ToolSettings
from gong.tools.limits import FAMILY_LIMITS, OutputLimits, choose_family_limits
from gong.tools.truncation import limit_joined_ends, limit_text

AGAIN = (
    " The full output is available in the event stream. If you need to see specific parts,"
    " re-run the tool with more targeted parameters.]"
)


CONTRACT = (
    "read_file 50000 ht, shell 30000 ht, grep 20000 tail, glob 20000 tail, edit_file 10000 tail,"
    " apply_patch 10000 tail, write_file 1000 tail, spawn_agent 20000 ht"
)
"""Characters and mode of each tool, in the words of M113; ht is both ends."""
LINES = "shell 256, grep 200, glob 500"
"""Lines, of the others none."""


def test_the_table_is_the_contracts():
    """M113: each figure is asserted by running its tool, too."""
    lines = {name: int(count) for name, count in map(str.split, LINES.split(", "))}
    modes = {"ht": "head_tail", "tail": "tail"}
    wanted = {
        name: (int(chars), modes[mode], lines.get(name))
        for name, chars, mode in map(str.split, CONTRACT.split(", "))
    }
    assert wanted == FAMILY_LIMITS


def test_limits_can_be_set_for_each_tool():
    """M113"""
    set_shell = ToolSettings(output_limits={"shell": 7}, line_limits={"shell": 8})
    assert choose_family_limits("shell", set_shell) == (7, "head_tail", 8)
    assert choose_family_limits("grep", set_shell) == FAMILY_LIMITS["grep"]
    by_table = ToolSettings(output_limits={"grep": 7}, line_limits={"grep": 8})
    assert choose_family_limits("grep_search", by_table) == (7, "tail", 8)
    by_name = ToolSettings(output_limits={"grep": 7, "grep_search": 9})
    assert choose_family_limits("grep_search", by_name) == (9, "tail", 200)


def test_the_middle_goes_and_is_counted():
    """M112 M114"""
    assert limit_text("a" * 60 + "b" * 50, OutputLimits(100, "head_tail")) == (
        "a" * 50 + "\n\n[WARNING: Tool output was truncated. 10 characters were removed from the"
        f" middle.{AGAIN}\n\n" + "b" * 50
    )


def test_the_beginning_goes_and_is_counted():
    """M112 M114"""
    assert limit_text("a" * 60 + "b" * 50, OutputLimits(100, "tail")) == (
        f"[WARNING: Tool output was truncated. First 10 characters were removed.{AGAIN}\n\n"
        + "a" * 50
        + "b" * 50
    )


@pytest.mark.parametrize("mode", ["head_tail", "tail"])
def test_what_is_just_long_enough_stays(mode):
    """M112"""
    assert limit_text("é" * 100, OutputLimits(100, mode, 1)) == "é" * 100


def test_half_of_the_lines_stay_at_each_end():
    """M112 M114: head is the smaller half."""
    text = "\n".join(map(str, range(10)))
    assert limit_text(text, OutputLimits(1000, "tail", 5)) == (
        "0\n1\n[... 5 lines omitted ...]\n7\n8\n9"
    )
    assert limit_text(text, OutputLimits(1000, "tail", 10)) == text


def test_characters_go_before_lines():
    """M112: two lines of ten megabytes are few lines and far too long."""
    cut = limit_text("x" * 10_000_000 + "\n" + "y" * 10_000_000, FAMILY_LIMITS["shell"])
    assert len(cut) < 31_000
    assert "19970001 characters were removed from the middle" in cut
    assert "lines omitted" not in cut


def test_a_cut_that_takes_the_first_notice_with_it_counts_all_lines():
    """C3 M114: one notice is left, and its number is that of the text as it came."""
    text = "\n".join(f"line {n:04}" for n in range(10_000))
    cut = limit_text(text, FAMILY_LIMITS["shell"]).split("\n")
    assert len(cut) == 257
    assert cut[128] == "[... 9744 lines omitted ...]"
    assert (cut[127], cut[129]) == ("line 0127", "line 9872")


def test_a_notice_is_no_line_of_the_text():
    """C3 M114: few lines stay few, however many the notice of the first cut has."""
    cut = limit_text("x" * 12, OutputLimits(10, "head_tail", 3))
    assert cut.startswith("xxxxx\n\n[WARNING: Tool output was truncated. 2 characters ")
    assert "omitted" not in cut


@given(st.text(st.sampled_from("ab\né😀"), max_size=300), st.integers(2, 60), st.integers(1, 20))
def test_both_ends_are_enough_to_cut_the_whole(text, chars, lines):
    """M112"""
    for mode in ("head_tail", "tail"):
        limits = OutputLimits(chars, mode, lines)
        whole = limit_text(text, limits)
        count = text.count("\n") + 1
        assert limit_joined_ends(text[:chars], text[-chars:], len(text), count, limits) == whole
