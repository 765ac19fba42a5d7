import pytest

from gong.search_terms import MAX_TERMS, parse_terms, parse_words, weigh_term
from tape.errors import UsageError


def words(query):
    return [term.begins for term in parse_words(query)]


def test_words_that_carry_no_meaning_are_left_out_where_others_remain():
    assert words("Who told you about the ports?") == ["port"]
    assert words("数据库的端口是什么") == ["数据", "据库", "端口"]
    assert words("what is it") == ["what", "is", "it"]
    assert words("的") == ["的"]
    assert words("?!") == []


def test_a_word_finds_those_that_begin_with_it():
    (term,) = parse_words("listens")
    assert term.pattern.search("It is listening")
    assert not term.pattern.search("relisten")


def test_words_in_a_row_count_once_more():
    *_, row = parse_terms("the code word")
    assert row.pattern.search("Code-word")
    assert len(parse_terms("code")) == 1
    assert len(parse_words(" ".join(f"w{n}" for n in range(99)))) == MAX_TERMS
    with pytest.raises(UsageError, match="nothing to search for"):
        parse_terms("?")


def test_rare_words_count_more():
    assert weigh_term(1, 100) > weigh_term(50, 100) > weigh_term(100, 100) > 0
