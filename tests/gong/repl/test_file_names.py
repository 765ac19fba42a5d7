"""Files found by parts of their names."""

from __future__ import annotations

import pytest
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


def test_names_that_no_file_can_have_are_no_mentions(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home/mine.txt").write_text("mine\n")
    (tmp_path / "~nobody-here").write_text("odd\n")
    text = f"see @~/mine.txt @~nobody-here @~nobody-there/x @{'a' * 300} @{'b/' * 3000} @a\0b"
    found = read_mentions(text, str(tmp_path), RULES)
    assert found.remarks == ["attached ~/mine.txt: 1 lines", "attached ~nobody-here: 1 lines"]


FORMS = {
    "@notes.txt": ['<file path="notes.txt">\none\ntwo\nthree\n</file>'],
    '@"my notes.txt"': ['<file path="my notes.txt">\nmine\n</file>'],
    '@"my notes.txt":1,': ['<file path="my notes.txt">\nmine\n</file>'],
    "@notes.txt:2-3.": ['<file path="notes.txt" lines="2-3" of="3">\ntwo\nthree\n</file>'],
    "@notes.txt:2": ['<file path="notes.txt" lines="2-2" of="3">\ntwo\n</file>'],
    "@d/ @d": ['<folder path="d/">\nx\n</folder>'],
    "@notes.txt @notes.txt": ['<file path="notes.txt">\none\ntwo\nthree\n</file>'],
    '@missing @"not there" a@notes.txt': [],
    "@" + "a" * 300: [],
}


@pytest.mark.parametrize("words", FORMS)
def test_each_form_of_a_mention(tmp_path, words):
    """The terminal and -p read them with this function."""
    (tmp_path / "notes.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "my notes.txt").write_text("mine\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x").touch()
    found = read_mentions(f"see {words}", str(tmp_path), RULES)
    assert [document.text for document in found.documents] == FORMS[words]
