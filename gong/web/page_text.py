"""What a fetched page is, by its type and its bytes, and its text in the charset it really has.

    bytes                    named type                   read as
    -----------------------  ---------------------------  ----------------------------------
    begin as a PDF           any                          pdf, by whoever can read it
    have zeros               any                          nothing: it is a binary file
    begin as HTML            none, HTML, or a binary one  HTML, as Markdown of its main part
    begin as JSON            JSON, or HTML                JSON, indented where a line is long
    any other text           any                          itself

Where the named charset does not fit the bytes, UTF-8 is tried, then Windows-1252.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from .html_markdown import convert_page

if TYPE_CHECKING:
    from .fetching import FetchedPage

PageKind = Literal["html", "json", "text", "pdf"]

_BEGINNING = 2048
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_UNSURE_TYPES = frozenset({"", "application/octet-stream", "application/pdf", "unknown/unknown"})
_HTML_START = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_ANY_TAG = re.compile(r"<[a-zA-Z!/][^<>]*>")
_META_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NO_CHARSETS = frozenset(
    {"unicode-escape", "raw-unicode-escape", "punycode", "idna", "undefined", "utf-7"}
)
"""Codecs of Python that are no charset of pages."""
_LONG_LINE = 2000


class PageText(NamedTuple):
    """A page as text."""

    text: str
    kind: PageKind
    title: str = ""


class BinaryPage(ValueError):
    """A page that is no text."""


def is_pdf(body: bytes) -> bool:
    """Whether a page is a PDF, whatever it is called."""
    return body.startswith(b"%PDF-") or (b"%PDF-" in body[:1024] and b"\0" in body[:_BEGINNING])


def read_page_text(page: FetchedPage) -> PageText:
    """Return the text of a page that is not a PDF; raises BinaryPage. Of large ones in a thread."""
    text = decode_page(page.body, page.charset)
    if text is None:
        raise BinaryPage
    start = text[:_BEGINNING]
    is_named_html = page.media_type in _HTML_TYPES
    is_named_json = page.media_type.endswith(("/json", "+json"))
    if is_named_json or (is_named_html and text.lstrip()[:1] in {"{", "["}):
        indented = _indent_json(text)
        if indented is not None:
            return PageText(indented, "json")
    starts_as_html = _HTML_START.match(start) is not None
    is_unsure = page.media_type in _UNSURE_TYPES or is_named_json
    is_html = is_named_html and _ANY_TAG.search(text) is not None
    if is_html or (starts_as_html and is_unsure):
        markdown, title = convert_page(text.encode("utf-8", "replace"), page.url)
        return PageText(markdown, "html", title)
    return PageText(text.replace("\r\n", "\n"), "text")


def decode_page(body: bytes, charset: str) -> str | None:
    """Return the text of a page; None for a binary file."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    if b"\0" in body[:_BEGINNING] and not charset.lower().startswith(("utf-16", "utf-32")):
        return None
    meta = _META_CHARSET.search(body, 0, _BEGINNING)
    names = [charset, meta[1].decode("ascii") if meta else "", "utf-8"]
    if not body.isascii():  # what is UTF-8 by chance is too rare to count
        names.insert(0, "utf-8")
    for name in names:
        if name and (text := _decode_strictly(body, name)) is not None:
            return text
    text = body.decode("utf-8", "replace")
    is_damaged = text.count("\ufffd") * 20 <= sum(byte > 127 for byte in body)  # noqa: PLR2004
    return text if is_damaged else body.decode("windows-1252", "replace")


def _decode_strictly(body: bytes, name: str) -> str | None:
    """Return the text where the charset is one and fits."""
    try:
        codec = codecs.lookup(name)
        if codec.name.replace("_", "-") in _NO_CHARSETS:
            return None
        # pages that say Latin-1 mean Windows-1252, as browsers know
        return body.decode("windows-1252" if codec.name == "iso8859-1" else codec.name)
    except (LookupError, UnicodeError, ValueError):
        return None


def _indent_json(text: str) -> str | None:
    """Return JSON whose lines can be paged; None where it is not JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if all(len(line) <= _LONG_LINE for line in text.split("\n")):
        return text
    return json.dumps(value, indent=1, ensure_ascii=False)
