"""Places in a text, in the units of each encoding and as people count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.lsp.positions import (
    ENCODINGS,
    Spot,
    find_symbol,
    split_lines,
    to_path,
    to_position,
    to_spot,
    to_uri,
)


@given(st.text(st.sampled_from("aü𝄞\n\r"), max_size=30), st.data())
def test_a_place_is_the_same_there_and_back(text, data):
    lines = split_lines(text)
    number = data.draw(st.integers(1, len(lines)))
    spot = Spot(number, data.draw(st.integers(1, len(lines[number - 1]) + 1)))
    for encoding in ENCODINGS:
        assert to_spot(lines, to_position(lines, spot, encoding), encoding) == spot


def test_columns_are_counted_in_units():
    line = ["a𝄞ü.b"]
    characters = [to_position(line, Spot(1, 5), each)["character"] for each in ENCODINGS]
    assert characters == [8, 5, 4]


def test_a_place_beyond_the_text_is_its_nearest():
    assert to_position(["ab"], Spot(9, 9), "utf-16") == {"line": 0, "character": 2}
    assert to_spot(["ab"], {"line": 0, "character": 9}, "utf-16") == Spot(1, 3)
    assert to_spot(["ab"], {"line": 7, "character": 2}, "utf-16") == Spot(8, 3)


@pytest.mark.parametrize(
    ("symbol", "line", "spot"),
    [
        ("run", None, Spot(2, 5)),
        ("run", 3, Spot(3, 7)),
        ("shop.run", None, Spot(3, 7)),
        ("runs", None, None),
        ("run", 1, None),
        ("run", 99, Spot(2, 5)),
    ],
)
def test_a_name_is_found_in_the_line_that_is_given(symbol, line, spot):
    lines = ["import runner", "def run(): pass", " shop.run()"]
    found = find_symbol(lines, symbol, line)
    assert found == (None if line == 99 else spot)


def test_a_path_is_an_address_and_back():
    path = "/a b/ü#?.py"
    assert to_path(to_uri(path)) == path
    assert to_path("untitled:1") is None
    assert to_path("file:///a#1") is None
    assert to_path("file:///a?b") is None
    assert to_path("file://elsewhere/x") is None
