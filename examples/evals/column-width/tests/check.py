import sys
import unittest

sys.path.insert(0, ".")
from table import draw_table


class Table(unittest.TestCase):
    def check(self, rows, *lines, **kwargs):
        self.assertEqual(draw_table(rows, **kwargs), "".join(f"{line}\n" for line in lines))

    def test_ascii(self):
        self.check([["a", "bb", "c"], ["ddd", "e", ""]], "a    bb  c", "ddd  e")

    def test_wide_characters_take_two_columns(self):
        self.check([["日本", "x"], ["abc", "y"], ["ＡＢ", "z"], ["ｱ", "."]],
                   "日本  x", "abc   y", "ＡＢ  z", "ｱ     .")

    def test_marks_and_joiners_take_none(self):
        self.check([["e\u0301a", "x"], ["ab", "y"], ["\u200dq\u200b", "z"], ["o\u20dd", "."]],
                   "e\u0301a  x", "ab  y", "\u200dq\u200b   z", "o\u20dd   .")

    def test_control_characters_are_shown(self):
        self.check([["a\nb", "x"], ["\t", "y"], ["\x1b[1m", "z"], ["\x00\x85", "."]],
                   "a⏎b   x", "      y", "·[1m  z", "··    .")

    def test_rows_of_different_lengths(self):
        self.check([["a"], [], ["bb", "c", "d"], ["", "", ""]], "a", "", "bb  c  d", "")
        self.check([])
        self.check([[]], "")

    def test_cells_are_cut(self):
        self.check([["abcdef", "x"], ["abcd", "y"]], "abc…  x", "abcd  y", max_width=4)
        self.check([["日本語", "x"], ["日本", "y"]], "日…   x", "日本  y", max_width=4)
        self.check([["日本語", "x"]], "日本…  x", max_width=5)
        self.check([["日本"], ["ab"], ["a"]], "…", "…", "a", max_width=1)

    def test_a_cut_leaves_marks_with_their_character(self):
        self.check([["e\u0301e\u0301e\u0301e\u0301", "x"]], "e\u0301e\u0301…  x", max_width=3)
        self.check([["abc\u0301", "x"]], "abc\u0301  x", max_width=3)
        self.check([["ab\ncd\n"]], "ab⏎…", max_width=4)

    def test_rows_are_left_alone(self):
        rows = [["a\n"], []]
        draw_table(rows, max_width=2)
        self.assertEqual(rows, [["a\n"], []])


unittest.main()
