import pytest

from gong.tools.patch.update import SeekLines, seek_lines


@pytest.mark.parametrize(
    ("lines", "pattern", "found"),
    [
        (["a", "b", "c"], ["b", "c"], (1, "")),
        (["a  ", "a"], ["a"], (1, "")),
        (["a\t", "b  "], ["a", "b"], (0, "blanks at the ends of lines")),
        (["    a", "b"], ["a", "b"], (0, "indentation")),
        (["x", "  a", "a "], ["a"], (2, "blanks at the ends of lines")),
        (
            ["\u201ca\u201d\u00a0\u2013 \u2018b\u2019 \u2212"],
            ["\"a\" - 'b' -"],
            (0, "indentation and typographic characters"),
        ),
        (['"a"'], ["\u201ea\u201f"], (0, "indentation and typographic characters")),
        (["a", "a", "b"], ["a", "b"], (1, "")),
        (["a"], ["a", "b"], None),
        ([], ["a"], None),
        (["a"], [], (0, "")),
        (["a\r"], ["a"], (0, "blanks at the ends of lines")),
    ],
)
def test_a_weaker_look_is_taken_only_when_the_stronger_found_nothing(lines, pattern, found):
    """M082"""
    assert seek_lines(SeekLines(lines), pattern, 0) == found


@pytest.mark.parametrize(
    ("start", "at_end", "found"),
    [(0, False, 0), (1, False, 2), (3, False, 4), (5, False, None), (0, True, 4), (9, True, None)],
)
def test_the_search_begins_at_its_start_line(start, at_end, found):
    """M082"""
    match = seek_lines(SeekLines(["a", "b", "a", "b", "a"]), ["a"], start, at_end=at_end)
    assert (match and match.start) == found


def test_lines_that_are_not_at_the_end_are_found_all_the_same():
    assert seek_lines(SeekLines(["a", "b"]), ["a"], 0, at_end=True) == (0, "")
