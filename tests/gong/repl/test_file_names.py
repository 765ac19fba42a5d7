"""Files found by parts of their names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gong.repl.typing.file_names import find_names
from gong.repl.typing.mentions import read_mentions
from gong.repl.typing.pictures import PictureRules

NAMES = ("src/", "src/parser.py", "src/parse_args.py", "tests/test_parser.py", "README.md")
RULES = PictureRules(1_000_000, is_blocked=False)


def test_the_best_come_first():
    parsers = ["src/parser.py", "tests/test_parser.py", "src/parse_args.py"]
    assert find_names(NAMES, "parser", 9) == parsers
    assert find_names(NAMES, "srcpy", 9) == ["src/parser.py", "src/parse_args.py"]
    assert find_names(NAMES, "readme", 9) == ["README.md"]
    assert find_names(NAMES, "Readme", 9) == []
    assert find_names(NAMES, "", 2) == ["src/", "README.md"]


@given(st.lists(st.text("abAB/._", min_size=1), unique=True), st.text("abAB/."))
def test_a_name_is_found_exactly_if_it_has_the_characters_in_order(names, typed):
    def has_all(name):
        rest = iter(name if typed != typed.lower() else name.lower())
        return all(one in rest for one in typed)

    assert sorted(find_names(names, typed, len(names))) == sorted(filter(has_all, names))


def test_what_a_prompt_names(tmp_path):
    (tmp_path / "a.py").write_text("one\ntwo\nthree")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "x.md").write_text("x")
    (tmp_path / "data.bin").write_bytes(b"\0\1")
    text = "see (a.py) mail@a.py @a.py, @a.py:2 @a.py:2-9. @a.py @docs/ @data.bin @a.py:7 @none"
    found = read_mentions(text, str(tmp_path), RULES)
    assert [one.text for one in found.documents] == [
        '<file path="a.py">\none\ntwo\nthree\n</file>',
        '<file path="a.py" lines="2-2" of="3">\ntwo\n</file>',
        '<file path="a.py" lines="2-3" of="3">\ntwo\nthree\n</file>',
        '<folder path="docs/">\nx.md\n</folder>',
    ]
    assert found.remarks[-2:] == [
        "@data.bin is not attached: it is not text",
        "@a.py:7 is not attached: the file has 3 lines",
    ]
