from hypothesis import assume, given
from hypothesis import strategies as st

from gong.tools.diff import build_diff
from gong.tools.text_files import decode_text_file, find_text, replace_spans


def change(before, old, new):
    file = decode_text_file(before.encode())
    return build_diff(
        replace_spans(file, find_text(before, old).spans, new, file.to_bytes(file.text))
    )


def test_line_numbers_are_right_far_from_the_beginning():
    """M076"""
    text = "".join("target\n" if n == 338 else f"line {n}\n" for n in range(1, 501))
    diff = change(text, "target", "replaced")
    assert diff.first_changed_line == 338
    assert diff.lines == (
        "      ...",
        "  334 line 334",
        "  335 line 335",
        "  336 line 336",
        "  337 line 337",
        "- 338 target",
        "+ 338 replaced",
        "  339 line 339",
        "  340 line 340",
        "  341 line 341",
        "  342 line 342",
        "      ...",
    )


def test_lines_alike_inside_the_span_are_context():
    diff = change("a\nb\nc\nd\n", "a\nb\nc\nd", "a\nB\nnew\nc\nd")
    assert diff.lines == ("  1 a", "- 2 b", "+ 2 B", "+ 3 new", "  4 c", "  5 d")
    assert diff.first_changed_line == 2


def test_a_long_stretch_between_two_changes_is_left_out():
    middle = "".join(f"{n}\n" for n in range(2, 16))
    diff = change(f"a\n{middle}z\n", f"a\n{middle}z", f"A\n{middle}Z")
    assert diff.lines == (
        *("-  1 a", "+  1 A", "   2 2", "   3 3", "   4 4", "   5 5", "     ..."),
        *("  12 12", "  13 13", "  14 14", "  15 15", "- 16 z", "+ 16 Z"),
    )


def test_a_change_at_the_very_end_shows_the_missing_line_feed():
    assert change("a\nb\n", "b\n", "b").lines == (
        "  1 a",
        "- 2 b",
        "+ 2 b\n\\ No newline at end of file",
    )


def test_emptying_a_file_is_a_change_of_its_first_line():
    diff = change("a", "a", "")
    assert (diff.lines, diff.first_changed_line) == (
        ("- 1 a\n\\ No newline at end of file",),
        1,
    )


def test_carriage_returns_are_not_shown():
    assert change("a\r\nb\r\n", "b", "c").lines == ("  1 a", "- 2 b", "+ 2 c")


def test_a_huge_span_is_compared_change_by_change():
    old = "".join(f"{n}\n" for n in range(5000))
    new = old.replace("\n2500\n", "\nother\n").replace("\n100\n", "\nother\n")
    diff = change(old, old, new)
    assert diff.first_changed_line == 101
    assert diff.lines[:6] == (
        "       ...",
        "    97 96",
        "    98 97",
        "    99 98",
        "   100 99",
        "-  101 100",
    )
    assert diff.lines[-1] == "       ..."
    assert len(diff.lines) == 3 + 2 * (4 + 2 + 4)


def test_changes_of_a_huge_span_come_and_go():
    old = "".join(f"{n}\n" for n in range(9000))
    new = old.replace("\n100\n", "\n").replace("\n8000\n", "\n8000\nmore\nand more\n") + "end\n"
    signs = [line.split(" ", 1)[0] for line in change(old, old, new).lines]
    assert (signs.count("-"), signs.count("+")) == (1, 3)


def test_a_huge_span_that_is_another_one_is_shown_whole():
    old = "".join(f"{n}\n" for n in range(6000))
    new = "".join(f"{n}x\n" for n in range(6000))
    assert len(change(old, old, new).lines) == 12_000


LINES = st.lists(st.sampled_from(["a", "b", "c"]), max_size=12).map(
    lambda x: "".join(f"{y}\n" for y in x)
)


@given(LINES, LINES, LINES, LINES)
def test_every_line_shown_has_its_number(top, old, new, bottom):
    assume(old != new)
    before, after = f"{top}<{old}>{bottom}", f"{top}<{new}>{bottom}"
    diff = change(before, f"<{old}>", f"<{new}>")
    texts = {"-": before.split("\n"), "+": after.split("\n"), " ": after.split("\n")}
    for line in (line for line in diff.lines if not line.endswith(" ...")):
        number, _, text = line[2:].partition("\n")[0].lstrip().partition(" ")
        assert texts[line[0]][int(number) - 1] == text
    signs = [line[0] for line in diff.lines]
    assert signs.count("+") - signs.count("-") == new.count("\n") - old.count("\n")
