"""HTML as Markdown: code to the letter, tables, lists, and links with their whole address.

The tree is walked once, without recursion but for tables in tables. What is too deep for the parser
(2048 levels) becomes plain text, with the standard library's parser.
"""

from __future__ import annotations

import re
from contextlib import suppress
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from .main_region import find_main_region, is_dropped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_MARKDOWN_CHARS = 2_000_000
"""Characters of Markdown after which a page is left: half a million tokens are for no model."""
MAX_DEPTH = 2000
"""Levels of elements; the parser drops what is below 2048."""
_BLOCKS = frozenset(
    {
        "address", "article", "aside", "body", "center", "details", "dialog", "div", "dl", "dt",
        "fieldset", "figcaption", "figure", "footer", "header", "hgroup", "html", "legend", "main",
        "p", "search", "section", "summary", "caption", "tr", "td", "th", "tbody", "thead",
    }
)  # fmt: skip
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_EMPHASIS = {
    "b": "**", "strong": "**", "i": "*", "em": "*", "cite": "*", "dfn": "*",
    "del": "~~", "s": "~~", "strike": "~~",
}  # fmt: skip
_CODE = frozenset({"code", "kbd", "samp", "tt"})
_SPACES = re.compile(r"[ \t\n\r\f\v]+")
_LANGUAGE_PREFIXES = ("language-", "lang-", "highlight-source-", "highlight-", "src-")
_BRUSH = re.compile(r"\bbrush:\s*([\w+#.-]+)")
_LANGUAGES = frozenset(
    {
        "bash", "c", "clojure", "cpp", "csharp", "css", "diff", "dockerfile", "elixir", "erlang",
        "go", "haskell", "html", "java", "javascript", "js", "json", "kotlin", "lua", "makefile",
        "ocaml", "perl", "php", "python", "r", "ruby", "rust", "scala", "sh", "shell", "sql",
        "swift", "toml", "ts", "typescript", "xml", "yaml", "console",
    }
)  # fmt: skip
"""Classes that are a language without saying so."""
_NO_LANGUAGES = frozenset(
    {"default", "none", "text", "plain", "plaintext", "nohighlight", "output"}
)
_TICKS = re.compile("`+")
_MAX_CELLS = 200
"""Columns of a table; `colspan` makes no more."""


def convert_page(data: bytes, url: str) -> tuple[str, str]:
    """Return the Markdown of the main part of a page in UTF-8, and its title."""
    from lxml import etree  # an extra, and slow to load

    parser = etree.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        root = None
    if root is None:
        return "", ""
    if _is_too_deep(root):
        return _extract_plain_text(data), _find_title(root)
    region = find_main_region(root)
    base = root.find(".//base[@href]")
    if base is not None:
        with suppress(ValueError):  # an address that is none
            url = urljoin(url, base.get("href"))
    writer = _MarkdownWriter(url)
    text = writer.write(region)
    title = _find_title(root)
    return text, title


def convert_region(region: Any, url: str) -> str:
    """Return the Markdown of an element."""
    return _MarkdownWriter(url).write(region)


def _is_too_deep(root: Any) -> bool:
    from lxml.etree import iterwalk  # loaded already

    depth = 0
    for event, _ in iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def _find_title(root: Any) -> str:
    title = root.find(".//title")
    return "" if title is None else " ".join("".join(title.itertext()).split())


class _PlainText(HTMLParser):
    """Collects the text of a page whatever its depth."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._dropped = ""

    def handle_starttag(self, tag: str, attrs: Sequence[object]) -> None:  # noqa: ARG002
        """Begin a line with a block; pass over scripts and styles."""
        if not self._dropped and tag in {"script", "style", "noscript", "template"}:
            self._dropped = tag
        elif tag in _BLOCKS or tag in _HEADINGS or tag in {"li", "br", "pre"}:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """End what is passed over."""
        if tag == self._dropped:
            self._dropped = ""

    def handle_data(self, data: str) -> None:
        """Keep a text."""
        if not self._dropped:
            self.parts.append(data)


def _extract_plain_text(data: bytes) -> str:
    parser = _PlainText()
    parser.feed(data.decode("utf-8", "replace"))
    parser.close()
    lines = (line.strip() for line in "".join(parser.parts).split("\n"))
    return "\n".join(filter(None, lines))


class _Level:
    """A list item, a quotation or a description: what stands before its lines."""

    __slots__ = ("first", "rest")

    def __init__(self, first: str, rest: str) -> None:
        self.first: str | None = first
        """Before its first line; None once that is written."""
        self.rest = rest


class _MarkdownWriter:
    """Writes one element; each element of the walk opens and closes in here."""

    def __init__(self, base: str, *, is_cell: bool = False) -> None:
        self._base = base
        self._is_cell = is_cell
        self._lines: list[str] = []
        self._levels: list[_Level] = []
        self._lists: list[int | None] = []
        """The number of the next item of each open list; None of one without numbers."""
        self._inline: list[str] = []
        self._paragraph = 0
        """Counts the paragraphs, so that a mark knows whether its text is still in this one."""
        self._marks: list[tuple[int, int]] = []
        """Where each open mark began: paragraph and place in `_inline`."""
        self._heading = ""
        self._was_in_list = False
        self._size = 0
        """Characters that are written."""

    def write(self, region: Any) -> str:
        """Return the Markdown of a region."""
        from lxml.etree import iterwalk  # loaded already

        is_in_body = region.tag in {"body", "html"}
        walk = iterwalk(region, events=("start", "end"))
        skipped = None
        for event, element in walk:
            if event == "start":
                if element is not region and is_dropped(element, is_in_body=is_in_body):
                    skipped = element
                elif not self._open(element):
                    if element.text:
                        self._inline.append(element.text)
                    continue
                else:
                    skipped = element
                walk.skip_subtree()
                continue
            if element is skipped:
                skipped = None
            else:
                self._close(element)
            if element is not region and element.tail:
                self._inline.append(element.tail)
            if self._size > MAX_MARKDOWN_CHARS:
                self._write_block(["[The page is longer: the rest of it is left out.]"])
                break
        self._flush()
        return "\n".join(self._lines).strip("\n")

    def _open(self, element: Any) -> bool:
        """Begin an element; return whether all of it is written already."""
        tag = element.tag
        if tag in _BLOCKS:
            self._flush()
        elif tag == "a" or tag in _EMPHASIS or tag in {"sup", "sub"}:
            self._marks.append((self._paragraph, len(self._inline)))
        elif tag in _CODE:
            self._inline.append(_quote_code("".join(_list_code(element, is_block=False))))
            return True
        elif tag == "br":
            self._inline.append("\0")
        elif tag in _HEADINGS:
            self._flush()
            self._heading = "" if self._is_cell else f"{_HEADINGS[tag]} "
        elif tag in {"ul", "ol"}:
            self._flush()
            self._lists.append(_find_start(element) if tag == "ol" else None)
        elif tag in {"li", "dd", "blockquote"}:
            self._open_level(element)
        elif tag in {"pre", "listing", "xmp", "plaintext"}:
            self._flush()
            self._write_code(element)
            return True
        elif tag == "table":
            self._flush()
            return self._write_table(element)
        else:
            return self._open_other(element)
        return False

    def _open_other(self, element: Any) -> bool:
        match element.tag:
            case "img":
                self._inline.append(self._render_image(element))
            case "hr":
                self._flush()
                self._write_block(["---"])
            case "math":
                self._inline.append(_render_formula(element))
                return True
        return False

    def _open_level(self, element: Any) -> None:
        self._flush()
        first = "> "
        if element.tag == "dd":
            first = ":   "
        elif element.tag == "li":
            number = self._lists[-1] if self._lists else None
            first = "- " if number is None else f"{number}. "
            if number is not None:
                self._lists[-1] = number + 1
        self._levels.append(_Level(first, "> " if first == "> " else " " * len(first)))

    def _close(self, element: Any) -> None:
        tag = element.tag
        if tag == "a":
            self._close_link(element)
        elif tag in _EMPHASIS:
            self._close_mark(_EMPHASIS[tag])
        elif tag in {"sup", "sub"}:
            self._close_script("^" if tag == "sup" else "_")
        elif tag in _BLOCKS:
            self._flush()
        elif tag in _HEADINGS:
            self._flush()
            self._heading = ""
        elif tag in {"ul", "ol"}:
            self._flush()
            self._lists.pop()
        elif tag in {"li", "dd", "blockquote"}:
            self._flush()
            self._levels.pop()

    def _take_marked(self) -> tuple[str, str, str] | None:
        """Return the text since the newest mark, with the space before and after it."""
        paragraph, start = self._marks.pop()
        if paragraph != self._paragraph:
            return None
        text = "".join(self._inline[start:])
        del self._inline[start:]
        inner = text.strip()
        before = " " if text[: len(text) - len(text.lstrip())] else ""
        after = " " if inner and text != text.rstrip() else ""
        return before, inner, after

    def _close_link(self, element: Any) -> None:
        href = (element.get("href") or "").strip()
        marked = self._take_marked()
        target = "" if href.startswith("#") else self._resolve(href)
        if marked is None:  # it holds whole paragraphs
            if target:
                self._inline.append(f"<{target}>")
                self._flush()
            return
        before, inner, after = marked
        if inner and target and "\0" not in inner:
            inner = f"[{_SPACES.sub(' ', inner)}]({target})"
        self._inline += (before, inner, after)

    def _close_mark(self, sign: str) -> None:
        marked = self._take_marked()
        if marked is None:
            return
        before, inner, after = marked
        is_marked = inner and "\0" not in inner and not self._heading
        if is_marked and not inner.startswith(sign):
            inner = f"{sign}{inner}{sign}"
        self._inline += (before, inner, after)

    def _close_script(self, sign: str) -> None:
        marked = self._take_marked()
        if marked is None:
            return
        before, inner, after = marked
        is_plain = inner and not inner.startswith("[")
        self._inline += (before, f"{sign}{inner}" if is_plain else inner, after)

    def _resolve(self, href: str) -> str:
        """Return a whole address; nothing of one that leads to no page."""
        try:
            target = urljoin(self._base, href)
        except ValueError:
            return ""
        if not target.startswith(("http://", "https://", "mailto:", "ftp://")):
            return ""
        return _SPACES.sub("%20", target).replace("(", "%28").replace(")", "%29")

    def _render_image(self, element: Any) -> str:
        alt = _SPACES.sub(" ", element.get("alt") or "").strip()
        source = (element.get("src") or "").strip()
        target = self._resolve(source) if source else ""
        return f"![{alt}]({target})" if alt and target else alt

    # blocks

    def _flush(self) -> None:
        """End the paragraph."""
        if not self._inline:
            return
        text = _SPACES.sub(" ", "".join(self._inline)).replace("\xa0", " ")
        self._inline.clear()
        self._paragraph += 1
        lines = [line.strip() for line in text.split("\0")]
        while lines and not lines[-1]:
            lines.pop()
        lines = lines[next((n for n, line in enumerate(lines) if line), 0) :]
        if not lines:
            return
        if self._heading:
            self._write_block([self._heading + " ".join(filter(None, lines))])
        else:
            self._write_block([f"{line}  " for line in lines[:-1]] + lines[-1:])

    def _write_block(self, block: Iterable[str]) -> None:
        """Write lines as one block, behind what the open levels put before them."""
        begins_item = any(level.first is not None for level in self._levels)
        if self._lines and not (begins_item and self._was_in_list):
            self._lines.append("".join(level.rest for level in self._levels).rstrip())
        self._was_in_list = bool(self._levels)
        for line in block:
            before = ""
            for level in self._levels:
                before += level.rest if level.first is None else level.first
                level.first = None
            self._lines.append(before + line if line else before.rstrip())
            self._size += len(self._lines[-1]) + 1

    def _write_code(self, element: Any) -> None:
        code = "".join(_list_code(element, is_block=True)).replace("\r\n", "\n")
        self._write_fence(code.replace("\r", "\n").removeprefix("\n"), _find_language(element))

    def _write_fence(self, code: str, language: str) -> None:
        lines = code.split("\n")
        while lines and not lines[-1].strip():
            lines.pop()
        if not lines:
            return
        longest = max((len(ticks) for ticks in _TICKS.findall(code)), default=0)
        fence = "`" * max(3, longest + 1)
        self._write_block([fence + language, *lines, fence])

    def _write_table(self, table: Any) -> bool:
        """Write a table of cells; False for one that lays out a page, which is walked."""
        if self._is_cell or next(table.iterdescendants("pre", "table"), None) is not None:
            return False
        rows = [*table.iterdescendants("tr")]
        code = _read_code_rows(rows)
        if code is not None:
            self._write_fence(code, _find_language(table))
            return True
        grid = _spread_cells(self._read_rows(rows))
        width = max(map(len, grid), default=0)
        if width == 0 or not any(any(row) for row in grid):
            return True
        if width == 1 or len(grid) == 1:
            return False
        first = next(cells for row in rows if (cells := _list_cells(row)))
        has_head = all(cell.tag == "th" for cell in first)
        caption = table.find("caption")
        if caption is not None:
            self._inline.append("".join(caption.itertext()))
            self._flush()
        head = grid[0] if has_head else [""] * width
        lines = [_format_row(head, width), _format_row(["---"] * width, width)]
        lines += [_format_row(row, width) for row in (grid[1:] if has_head else grid)]
        self._write_block(lines)
        return True

    def _read_rows(self, rows: Sequence[Any]) -> list[list[tuple[str, int, int]]]:
        """Return the cells of rows, as many as there is room for."""
        cells: list[list[tuple[str, int, int]]] = []
        size = self._size
        for row in rows:
            if size > MAX_MARKDOWN_CHARS:
                break
            cells.append(self._read_row(row))
            size += sum(len(text) + len(" | ") for text, _, _ in cells[-1])
        return cells

    def _read_row(self, row: Any) -> list[tuple[str, int, int]]:
        """Return the text, columns and rows of each cell."""
        return [
            (self._read_cell(cell), _read_span(cell, "colspan"), _read_span(cell, "rowspan"))
            for cell in _list_cells(row)
        ]

    def _read_cell(self, cell: Any) -> str:
        if not len(cell):  # most cells are plain
            return " ".join((cell.text or "").split()).replace("|", "\\|")
        text = _MarkdownWriter(self._base, is_cell=True).write(cell)
        lines = filter(None, (line.strip() for line in text.split("\n")))
        return "<br>".join(lines).replace("|", "\\|")


def _list_cells(row: Any) -> list[Any]:
    cells = row.iterchildren("td", "th")
    return [cell for cell in cells if not is_dropped(cell, is_in_body=False)]


def _read_span(cell: Any, name: str) -> int:
    text = (cell.get(name) or "").strip()
    return max(1, min(int(text), _MAX_CELLS)) if text.isdecimal() and len(text) < 5 else 1  # noqa: PLR2004


def _spread_cells(rows: Sequence[Sequence[tuple[str, int, int]]]) -> list[list[str]]:
    """Return the rows with a cell in each column that one above or beside it reaches into."""
    grid: list[list[str]] = []
    below: dict[int, int] = {}  # column → rows that a cell above still takes
    for row in rows:
        cells: list[str] = []

        def fill(cells: list[str] = cells) -> None:
            while below.get(len(cells), 0) > 0 and len(cells) < _MAX_CELLS:
                below[len(cells)] -= 1
                cells.append("")

        for text, columns, height in row:
            fill()
            for column in range(min(columns, _MAX_CELLS - len(cells))):
                below[len(cells)] = height - 1
                cells.append("" if column else text)
        fill()
        grid.append(cells)
    return [row for row in grid if row]


def _format_row(cells: Sequence[str], width: int) -> str:
    return f"| {' | '.join([*cells, *[''] * (width - len(cells))])} |"


def _read_code_rows(rows: Sequence[Any]) -> str | None:
    """Return the code of a table with a line of it in each row; None for any other."""
    cells = [
        cell
        for row in rows
        for cell in row.iterchildren("td")
        if "blob-code" in (cell.get("class") or "").split()
    ]
    if not cells or len(cells) < len(rows):
        return None
    return "\n".join("".join(cell.itertext()).strip("\n") for cell in cells)


def _find_start(element: Any) -> int:
    text = (element.get("start") or "").strip()
    return int(text) if text.isdecimal() and len(text) < 9 else 1  # noqa: PLR2004


def _list_code(element: Any, *, is_block: bool) -> Iterable[str]:
    """Yield the text of code without numbers of lines and buttons; breaks are line ends."""
    from lxml.etree import iterwalk  # loaded already

    walk = iterwalk(element, events=("start", "end"))
    for event, child in walk:
        if event == "end":
            if child is not element and child.tail:
                yield child.tail
            continue
        if child is not element and is_dropped(child, is_in_body=False):
            walk.skip_subtree()
            continue
        if child.tag == "br" and is_block:
            yield "\n"
        if child.text:
            yield child.text


def _quote_code(text: str) -> str:
    text = _SPACES.sub(" ", text)
    inner = text.strip()
    if not inner:
        return text
    longest = max((len(ticks) for ticks in _TICKS.findall(inner)), default=0)
    ticks = "`" * (longest + 1)
    space = " " if inner[0] == "`" or inner[-1] == "`" else ""
    before = " " if text[0] == " " else ""
    after = " " if text[-1] == " " else ""
    return f"{before}{ticks}{space}{inner}{space}{ticks}{after}"


def _find_language(element: Any) -> str:
    """Return the language that classes name: of the code, what is in it, or what is around it."""
    around = [parent for parent, _ in zip(element.iterancestors(), range(3), strict=False)]
    inner = [child for child in element if child.tag == "code"]
    for place in (*inner, element, *around):
        named = place.get("data-lang") or place.get("data-language")
        language = (named or _read_language_class(place.get("class") or "")).strip().lower()
        if language and language not in _NO_LANGUAGES and re.fullmatch(r"[\w+#.-]+", language):
            return language
    return ""


def _read_language_class(classes: str) -> str:
    if match := _BRUSH.search(classes):
        return match[1]
    tokens = classes.split()
    for prefix in _LANGUAGE_PREFIXES:
        for token in tokens:
            if token.startswith(prefix):
                return token.removeprefix(prefix)
    return next((token for token in tokens if token in _LANGUAGES), "")


def _render_formula(element: Any) -> str:
    for note in element.iter("annotation"):
        if note.get("encoding") == "application/x-tex" and note.text:
            return f"${note.text.strip()}$"
    tex = element.get("alttext")
    return f"${tex.strip()}$" if tex else " ".join("".join(element.itertext()).split())
