from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tape.errors import UsageError
from tape.ids import is_id_prefix
from tape.places.reference import GRAMMAR, Reference, parse_reference, render_reference

NAME = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,47}", fullmatch=True)
REFERENCES = st.builds(
    lambda tape, branch, at, back: Reference(tape, branch, *at, *back),
    st.none() | st.from_regex(r"[^:@~^/\x00-\x1f]+", fullmatch=True),
    st.none() | NAME,
    st.tuples(st.none() | NAME, st.none()) | st.tuples(st.none(), st.integers(0, 999_999_999)),
    st.tuples(st.integers(0, 999_999_999), st.just(0))
    | st.tuples(st.just(0), st.integers(0, 999_999_999)),
)


@given(REFERENCES)
def test_what_is_rendered_is_read_back(reference):
    assert parse_reference(render_reference(reference)) == reference


@given(st.text() | st.text("ab1.-:@~^{}/ ", max_size=12))
def test_any_text_is_a_reference_or_a_usage_error(text):
    with suppress(UsageError):
        again = parse_reference(text)
        assert parse_reference(render_reference(again)) == again


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("", Reference()),
        ("3f2a", Reference("3f2a")),
        ("2026-11-21-fix-login-3f2a9c1b", Reference("2026-11-21-fix-login-3f2a9c1b")),
        ("my own name", Reference("my own name")),
        (":try-redis", Reference(None, "try-redis")),
        ("@good", Reference(None, None, "good")),
        ("@{0}", Reference(None, None, None, 0)),
        ("@{12}", Reference(None, None, None, 12)),
        ("~3", Reference(None, None, None, None, 3)),
        ("3f2a:main@{1}~2", Reference("3f2a", "main", None, 1, 2)),
        ("3f2a@9c1bd2~0", Reference("3f2a", None, "9c1bd2")),
        ("3f2a~7", Reference("3f2a", None, None, None, 7)),
        ("main~", Reference("main", None, None, None, 1)),
        ("^", Reference(None, None, None, None, 0, 1)),
        ("^3", Reference(None, None, None, None, 0, 3)),
        ("3f2a:main@good^12", Reference("3f2a", "main", "good", None, 0, 12)),
    ],
)
def test_each_part_may_be_left_out(text, reference):
    assert parse_reference(text) == reference


@pytest.mark.parametrize(
    "text",
    [
        *(
            ":",
            "@",
            "@{}",
            "@{x}",
            "@{1",
            "@{" + "9" * 30 + "}",
            "~٣",
            "a~-1",
            "a~1~2",
            "^x",
            "^1~2",
            "^^",
        ),
        *("a:B", "a:../x", "a::b", "a@b:c", "a:main\n", "a/b", "a\nb", "\x00"),
    ],
)
def test_a_malformed_one_is_refused_with_the_grammar_in_one_line(text):
    with pytest.raises(UsageError) as caught:
        parse_reference(text)
    assert str(caught.value) == f"{text!r} is not a reference: write {GRAMMAR}"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "bare"), [("abc", True), ("abc~2", True), ("", False), ("~2", False), ("abc@d", False)]
)
def test_a_bare_word_names_neither_branch_nor_entry(text, bare):
    assert parse_reference(text).is_bare == bare


@pytest.mark.parametrize(
    ("word", "fits"),
    [("abc", True), ("0" * 40, True), ("ab", False), ("abcg", False), ("0" * 41, False)],
)
def test_three_hex_digits_can_be_the_beginning_of_an_id(word, fits):
    assert is_id_prefix(word) == fits
