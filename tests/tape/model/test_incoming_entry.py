"""Lines other programs give: kept to the byte but for blanks, or refused with the reason."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from tape.errors import InvalidEntry
from tape.model.entries import RESERVED
from tape.model.incoming_entry import MAX_NESTING, IncomingEntry, parse_incoming_entry

BLANKS = st.text(" \t\r", max_size=2)
DIGITS = st.text("0123456789", min_size=1, max_size=30)
NUMBERS = st.one_of(
    st.just("-0"),
    st.builds("{}.{}e{}{}".format, st.integers(), DIGITS, st.sampled_from(["", "+", "-"]), DIGITS),
    st.integers().map(str),
    DIGITS.map(lambda digits: f"1{digits * 20}"),
)
ESCAPES = st.sampled_from(
    [r"\u0000", r"\/", r"\"", r"\\", r"\n", r"\u00e9", r"\u2028", r"\ud83d\ude00", r"\uD83D\uDE00"]
)
PLAIN = st.text(
    st.characters(min_codepoint=32, exclude_characters='"\\', exclude_categories=["Cs"]), max_size=4
)
STRINGS = st.lists(st.one_of(PLAIN, ESCAPES), max_size=4).map(lambda parts: f'"{"".join(parts)}"')
LITERALS = st.sampled_from(["true", "false", "null"])


LOOSE = st.recursive(
    st.text(max_size=3) | st.floats(), lambda inner: st.lists(inner, max_size=2), max_leaves=4
)


def tokens(start, items, end):
    """A container as tokens: its items' tokens with commas between."""
    joined = [token for item in items for token in [*item, ","]][:-1]
    return [start, *joined, end]


def members(keys_and_values):
    return tokens("{", [[key, ":", *value] for key, value in keys_and_values], "}")


def containers(values):
    lists = st.lists(values, max_size=4).map(lambda items: tokens("[", items, "]"))
    pairs = st.lists(st.tuples(STRINGS, values), max_size=4)
    return st.one_of(lists, pairs.map(members))


VALUES = st.recursive(
    st.one_of(NUMBERS, STRINGS, LITERALS).map(lambda token: [token]), containers, max_leaves=12
)
DATA = st.lists(st.tuples(STRINGS, VALUES), max_size=4, unique_by=lambda pair: json.loads(pair[0]))


@settings(max_examples=60)
@drawn(DATA, st.booleans(), st.data())
def test_everything_but_blanks_is_kept(pairs, data_first, data):
    payload = members(pairs)
    parts = [['"type"', ":", '"note"'], ['"data"', ":", *payload]]
    line = tokens("{", parts[::-1] if data_first else parts, "}")
    blanks = data.draw(st.lists(BLANKS, min_size=len(line), max_size=len(line)))
    spread = "".join(blank + token for blank, token in zip(blanks, line, strict=True))
    assert parse_incoming_entry(spread.encode()) == IncomingEntry("note", "".join(payload).encode())


@settings(max_examples=30)
@drawn(st.dictionaries(st.text(max_size=3), LOOSE, max_size=3))
def test_what_strict_json_refuses_is_refused_and_nothing_else(value):
    text = json.dumps({"type": "note", "data": value}, ensure_ascii=False)
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:  # a lone surrogate is one, too
        with pytest.raises(InvalidEntry):
            parse_incoming_entry(text.encode("utf-8", "surrogatepass"))
        with pytest.raises(InvalidEntry):
            parse_incoming_entry(json.dumps({"type": "note", "data": value}).encode())
    else:
        assert json.loads(parse_incoming_entry(text.encode()).data) == value


@settings(max_examples=60)
@drawn(st.binary(max_size=40))
def test_any_bytes_are_taken_or_refused(line):
    with suppress(InvalidEntry):
        json.loads(parse_incoming_entry(line).data)


def line(data=b"{}", kind=b'"note"'):
    return b'{"type":%b,"data":%b}' % (kind, data)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"", "not JSON: Expecting value at character 1"),
        (b"{", "not JSON"),
        (b"[]", "not an object"),
        (b"1", "not an object"),
        (line() + b"{}", "not JSON: Extra data"),
        (b"\xef\xbb\xbf" + line(), "not JSON"),
        (line(b'{"a":"\xff"}'), "not UTF-8: byte 28"),
        (line(b'{"a":"\xed\xa0\x80"}'), "not UTF-8"),
        (line(rb'{"a":"\ud800"}'), "a lone surrogate"),
        (line(rb'{"a":"\uDC00x"}'), "a lone surrogate"),
        (line(rb'{"\ud800":1}'), "a lone surrogate"),
        (line(b'{"a":NaN}'), "NaN is not JSON"),
        (line(b'{"a":[Infinity]}'), "Infinity is not JSON"),
        (line(b'{"a":-Infinity}'), "-Infinity is not JSON"),
        (line(b'{"a":01}'), "not JSON"),
        (line(b'{"a":"\t"}'), "not JSON: Invalid control character"),
        (line(b'{"a":"\0"}'), "not JSON: Invalid control character"),
        (line(b'{"a":{"$blob":1}}'), "`$blob`"),
        (line(b'{"a":[{"x":{"$blob":1}}]}'), "`$blob`"),
        (line(rb'{"\u0024blob":1}'), "`$blob`"),
        (line(b'{"a":1,"b":2,"a":3}'), "key 'a' is duplicated in data"),
        (line(rb'{"a":1,"\u0061":3}'), "key 'a' is duplicated in data"),
        (b'{"type":"note","type":"note","data":{}}', "key 'type' is duplicated in the line"),
        (b'{"type":"note","data":{},"id":1}', "unknown key 'id'"),
        (b'{"type":"note"}', "data must be an object"),
        (line(b"[]"), "data must be an object"),
        (line(b"null"), "data must be an object"),
        (line(b"5"), "data must be an object"),
        (b'{"data":{}}', "type None is not allowed"),
        (line(kind=b"5"), "type '5' is not allowed"),
        (line(kind=b'"Note"'), "type 'Note' is not allowed"),
        (line(kind=b'"note\\n"'), "is not allowed"),
        (line(kind=b'"' + b"n" * 65 + b'"'), "is not allowed"),
        (line(b'{"a":' + b"[" * 100_000), "nested more than"),
        (line(b'{"a":' + b"[" * MAX_NESTING + b"]" * MAX_NESTING + b"}"), "nested more than"),
        *(
            (line(kind=b'"%b"' % kind.encode()), f"type '{kind}' are written")
            for kind in sorted(RESERVED)
        ),
    ],
)
def test_what_may_not_be_written_is_refused(bad, reason):
    with pytest.raises(InvalidEntry) as error:
        parse_incoming_entry(bad)
    assert reason in str(error.value)


def test_a_double_key_further_down_is_somebody_elses_business():
    data = b'{"args":{"a":1,"a":2}}'
    assert parse_incoming_entry(line(data)).data == data


def test_brackets_in_strings_do_not_count_as_levels():
    data = b'{"a":"' + b"[" * 1000 + b'"}'
    assert parse_incoming_entry(line(data)).data == data


def test_keys_of_the_line_may_be_escaped():
    assert parse_incoming_entry(rb'{"t\u0079pe":"note","d\u0061ta":{"x": 1}}') == IncomingEntry(
        "note", b'{"x":1}'
    )
