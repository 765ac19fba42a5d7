import pytest
from hypothesis import given
from hypothesis import strategies as st

from gong.tools.text_files import (
    NormalizedText,
    decode_text_file,
    find_lookalike_spans,
    find_text,
    is_same_text,
    replace_spans,
)


def file(data):
    found = decode_text_file(data)
    assert found is not None
    return found


def spans(data, text):
    """Return the bytes of each place that holds the text as it is."""
    opened = file(data)
    found = find_text(opened.text, text)
    ends = [(len(opened.encode_piece(opened.text[:end])) for end in span) for span in found.spans]
    mark = len(opened.mark)
    return [(mark + start, mark + end) for start, end in ends] if found.exact else []


@pytest.mark.parametrize(
    ("data", "text", "found"),
    [
        (b"foo bar foo", "foo", [(0, 3), (8, 11)]),
        (b"a\r\nb\r\n", "a\nb\n", [(0, 6)]),
        (b"a\nb\n", "a\r\nb", [(0, 3)]),
        (b"x\r\n\r\ny", "\n\n", [(1, 5)]),
        (b"hello\r\nworld hello\nworld", "hello\nworld", [(0, 12), (13, 24)]),
        (b"x\r\ny", "x\r", []),
        (b"x\ry", "x\r", [(0, 2)]),
        (b"x\r\r\ny", "x\r\r\ny", [(0, 5)]),
        (b"x\r\r\ny", "x\ny", []),
        (b"\xef\xbb\xbfa", "\ufeffa", [(3, 4)]),
        (b"caf\xe9 bar", "bar", [(5, 8)]),
        (b"a.c abc", "a.c", [(0, 3)]),
        (b"a\\\rb", "\\\r", [(1, 3)]),
        (b"", "a", []),
        (b"abc", "\ud800", []),
    ],
)
def test_a_text_is_found_with_any_line_ends(data, text, found):
    assert spans(data, text) == found


@pytest.mark.parametrize(
    ("data", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc", "b", "x\ny", b"a\r\nx\r\ny\r\nc"),
        (b"a\nb\nc", "b", "x\r\ny", b"a\nx\ny\nc"),
        (b"a b", "b", "x\r\ny", b"a x\ny"),
        (b"a\r\nb\nc\r\n", "b", "x\ny", b"a\r\nx\r\ny\nc\r\n"),
        (b"\xef\xbb\xbfa\r\nb", "a\n", "\ufeffx\n", b"\xef\xbb\xbfx\r\nb"),
        (b"a\rb\nc", "c", "x\ry", b"a\rb\nx\ry"),
        (b"\nb", "b", "x\ny", b"\nx\ny"),
    ],
)
def test_what_is_put_in_gets_the_line_ends_of_the_file(data, old, new, after):
    """M077"""
    assert (
        replace_spans(file(data), find_text(file(data).text, old).spans, new, data).after == after
    )


FILES = st.lists(st.sampled_from([b"a", b"b", b"\r\n", b"\n", b"\r", b"\xff", b"\xc3\xa9"]))


@given(FILES, FILES, st.sampled_from([b"X\nY", b"X\r\nY"]), st.text("xa\n\r", max_size=5))
def test_bytes_outside_the_span_never_change(before, after, there, new):
    """M077"""
    left, right = b"".join(before), b"".join(after)
    data = left + there + right
    change = replace_spans(file(data), find_text(file(data).text, "X\nY").spans, new, data)
    assert change.after[: change.start] == left
    assert change.after[change.new_end :] == right
    assert (change.before, change.old_end) == (data, len(left + there))


def test_texts_that_differ_in_line_ends_are_the_same():
    assert is_same_text("a\r\nb", "a\nb")
    assert not is_same_text("a\rb", "a\nb")


ODD = st.text(
    st.sampled_from("ab \t\n\r\u00a0\u201c\u2014\u0301\ufb01\uff21\u3042\u3099"), max_size=12
)


CLASSES = {
    "'": "\u2018\u2019\u201a\u201b",
    '"': "\u201c\u201d\u201e\u201f",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    " ": "\u00a0" + "".join(map(chr, range(0x2002, 0x200B))) + "\u202f\u205f\u3000",
    "e\u0301": "\u00e9",
}


@pytest.mark.parametrize("plain", CLASSES)
def test_every_character_of_a_class_is_found_by_the_plain_one(plain):
    """M071: quotes, dashes, blanks, NFD; and blanks at the ends of lines."""
    for one in CLASSES[plain]:
        text = f"x a{one}b y  \nz"
        assert find_text(text, f"a{plain}b y\nz").spans == ((2, len(text)),), ascii(one)


@given(ODD, ODD, ODD)
def test_a_text_is_alike_to_itself(before, text, after):
    """M071: what is found holds what was looked for, in looks."""
    for start, end in find_lookalike_spans(before + text + after, text):
        assert (
            NormalizedText((before + text + after)[start:end]).text.strip()
            == NormalizedText(text).text.strip()
        )


@given(st.binary(max_size=20))
def test_a_file_taken_apart_has_the_same_bytes(data):
    """M077"""
    for one in (data, b"\xff\xfe" + data, b"\xfe\xff" + data, b"\xef\xbb\xbf" + data):
        opened = decode_text_file(one)
        assert opened is None or opened.to_bytes(opened.text) == one
