"""One block of Markdown → lines of a width, by markdown-it, imported with the first that needs it.

What people copy has no frame: code begins at the margin, uncut and without marks; a link is
followed by its address, which is never broken. HTML is shown as it is written.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from tape.text import measure_width, show_controls

from .code_colours import paint_code
from .lines import StyledLine, StyledPart, join_parts, wrap_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MARKED = re.compile(
    r"[\\`*_~<>\[\]#&|!=+]|^ *(?:[-*+]|\d+[.)])( |$)|^ {4}|^ *-{2,} *$", re.MULTILINE
)
"""What text without Markdown does not contain."""
_SINGLE_WORD = re.compile(r"\w+\Z")
_NARROWEST = 8
"""Columns below which nothing is wrapped."""
_NARROWEST_CELL = 6
_MAX_BLOCK = 20_000
"""Characters of a block from which on it is shown as it was written."""
_GAP = "  "
_RULE_COLUMNS = 24


def render_block(text: str, columns: int) -> list[StyledLine]:
    """Return the lines of one block; `text` has no control character but newlines."""
    if not _MARKED.search(text) or len(text) > _MAX_BLOCK:
        rows = [row for line in text.split("\n") for row in wrap_parts([StyledPart(line)], columns)]
    else:
        rows = _BlockRenderer(_load_parser().parse(text)).render(columns)
    return [join_parts(row) for row in rows]


@cache
def _load_parser() -> Any:
    """Return the parser; links keep the address as it is written."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable(["reference", "html_block", "html_inline"])
    for name, rule in (("normalizeLink", str), ("normalizeLinkText", str), ("validateLink", bool)):
        setattr(parser, name, rule)
    return parser


class _BlockRenderer:
    """Walks the tokens of a block once; a nested block is narrower."""

    def __init__(self, tokens: Sequence[Any]) -> None:
        self.tokens = tokens
        self.at = 0

    def render(
        self, columns: int, until: str = "", *, tight: bool = False
    ) -> list[list[StyledPart]]:
        """Return the rows up to a closing token; blocks have an empty row between them."""
        rows: list[list[StyledPart]] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if token.type == until:
                break
            block = self._render_token(token, columns)
            if block is None:
                continue
            is_close = (tight or token.hidden) and token.type not in {"fence", "code_block"}
            if rows and block and not is_close:
                rows.append([])
            rows += block
        return rows

    def _render_token(self, token: Any, columns: int) -> list[list[StyledPart]] | None:  # noqa: PLR0911 (a case each)
        match token.type:
            case "inline":
                return wrap_inline(token.children, columns)
            case "heading_open":
                style = "title" if token.tag == "h1" else "heading"
                return [
                    [StyledPart(part.text, part.style or style) for part in row]
                    for row in self.render(columns, "heading_close")
                ]
            case "paragraph_open":
                return self.render(columns, "paragraph_close")
            case "fence" | "code_block":
                language = token.info.split()[0] if token.info.split() else ""
                return paint_code(token.content.removesuffix("\n").split("\n"), language)
            case "blockquote_open":
                inner = self.render(max(columns - 2, _NARROWEST), "blockquote_close")
                return [[StyledPart("> " if row else ">", "faint"), *row] for row in inner]
            case "bullet_list_open" | "ordered_list_open":
                return self._render_list(token, columns)
            case "hr":
                return [[StyledPart("─" * min(columns, _RULE_COLUMNS), "faint")]]
            case "table_open":
                return _render_table(self._read_table(), columns)
            case _:
                return None

    def _render_list(self, opening: Any, columns: int) -> list[list[StyledPart]]:
        rows: list[list[StyledPart]] = []
        closing = opening.type.replace("open", "close")
        while (token := self.tokens[self.at]).type != closing:
            self.at += 1
            mark = f"{token.info}{token.markup} " if token.info else "- "
            is_tight = next(
                (t.hidden for t in self.tokens[self.at :] if t.type == "paragraph_open"), True
            )
            inner = self.render(
                max(columns - len(mark), _NARROWEST), "list_item_close", tight=is_tight
            )
            inner = _mark_task(inner) or [[]]
            if rows and not is_tight:
                rows.append([])
            rows.append([StyledPart(mark), *inner[0]])
            rows += [[StyledPart(" " * len(mark)), *row] if row else [] for row in inner[1:]]
        self.at += 1
        return rows

    def _read_table(self) -> list[list[tuple[list[StyledPart], str]]]:
        """Return the rows of a table: each cell's pieces and its alignment."""
        rows: list[list[tuple[list[StyledPart], str]]] = []
        while (token := self.tokens[self.at]).type != "table_close":
            self.at += 1
            if token.type == "tr_open":
                rows.append([])
            elif token.type in {"th_open", "td_open"}:
                cell = _flatten_inline(self.tokens[self.at].children)
                align = str(token.attrs.get("style", "")).removeprefix("text-align:")
                rows[-1].append(([part for line in cell for part in line], align))
        self.at += 1
        return rows


def _mark_task(rows: list[list[StyledPart]]) -> list[list[StyledPart]]:
    """Replace the marks of a task list, [ ] and [x], by boxes."""
    if not rows or len(rows[0]) == 0:
        return rows
    text = "".join(part.text for part in rows[0])
    for mark, box in (("[ ] ", "☐ "), ("[x] ", "☑ "), ("[X] ", "☑ ")):
        if text.startswith(mark) and len(rows[0][0].text) >= 1:
            left, rest = len(mark), []
            for part in rows[0]:
                cut = min(left, len(part.text))
                rest.append(StyledPart(part.text[cut:], part.style))
                left -= cut
            return [[StyledPart(box), *rest], *rows[1:]]
    return rows


def wrap_inline(children: Sequence[Any], columns: int) -> list[list[StyledPart]]:
    """Return the rows of a paragraph; the line ends that were written stay."""
    return [row for line in _flatten_inline(children) for row in wrap_parts(line, columns)]


def _flatten_inline(children: Sequence[Any]) -> list[list[StyledPart]]:  # noqa: C901 (a kind each)
    """Return inline tokens as lines of pieces."""
    lines: list[list[StyledPart]] = [[]]
    styles: list[str] = []
    links: list[tuple[str, str]] = []

    def add(text: str, style: str = "") -> None:
        text = show_controls(text).replace("\n", " ").replace("\t", " ")
        lines[-1].append(StyledPart(text, style or " ".join(dict.fromkeys(styles))))
        links[:] = [(href, label + text) for href, label in links]

    def add_address(href: str) -> None:
        for text, style in ((" (", ""), (href, "link"), (")", "")):
            add(text, style)

    for place, token in enumerate(children):
        kind, _, end = token.type.rpartition("_")
        if token.type in {"softbreak", "hardbreak"}:
            lines.append([])
        elif token.type == "code_inline":
            add(token.content, "code")
        elif token.type == "image":
            add(token.content or "image")
            add_address(str(token.attrs.get("src", "")))
        elif kind == "strong" and _is_name(children, place):
            add("__")
        elif end == "open":
            styles.append(_INLINE_STYLES.get(kind, ""))
            links += [(str(token.attrs.get("href", "")), "")] if kind == "link" else []
        elif end == "close":
            styles.pop()
            if kind == "link":
                href, label = links.pop()
                if href not in {label, f"mailto:{label}"}:
                    add_address(href)
        else:
            add(token.content)
    return lines


_INLINE_STYLES = {"strong": "strong", "em": "emphasis", "s": "strike", "link": "link"}


def _is_name(children: Sequence[Any], place: int) -> bool:
    """Whether underscores around one word are part of a name, as in `__init__`."""
    step = children[place].nesting
    inner, other = place + step, place + 2 * step
    return (
        children[place].markup == "__"
        and 0 <= other < len(children)
        and children[other].type.startswith("strong_")
        and children[inner].type == "text"
        and _SINGLE_WORD.match(children[inner].content) is not None
    )


def _measure_parts(parts: Sequence[StyledPart]) -> int:
    return sum(measure_width(part.text) for part in parts)


def _render_table(
    table: list[list[tuple[list[StyledPart], str]]], columns: int
) -> list[list[StyledPart]]:
    """Return a table in columns, its cells wrapped; if it is too wide for them, row by row."""
    cells = [[cell for cell, _ in column] for column in zip(*table, strict=False)]
    widths = [max(map(_measure_parts, column)) for column in cells]
    room = columns - len(_GAP) * (len(widths) - 1)
    fitted = _fit_widths(widths, room)
    words = [
        [word for cell in column for word in "".join(part.text for part in cell).split()]
        for column in cells
    ]
    longest = [max(map(measure_width, column), default=0) for column in words]
    if fitted is None or any(wide > fit for wide, fit in zip(longest, fitted, strict=True)):
        return [*_render_records(table, columns)]
    head, *body = table
    rows = [*_render_cells([(_paint_parts(cell, "strong"), align) for cell, align in head], fitted)]
    rows.append([StyledPart(_GAP.join("─" * wide for wide in fitted), "faint")])
    for row in body:
        rows += _render_cells(row, fitted)
    return rows


def _paint_parts(parts: Sequence[StyledPart], style: str) -> list[StyledPart]:
    return [StyledPart(part.text, part.style or style) for part in parts]


def _fit_widths(widths: Sequence[int], room: int) -> list[int] | None:
    """Return widths whose sum is at most `room`, the widest narrowed first; None if too many."""
    fitted = list(widths)
    if room < len(fitted) * _NARROWEST_CELL and sum(fitted) > room:
        return None
    while sum(fitted) > room:
        widest = max(fitted)
        at = fitted.index(widest)
        second = max((wide for wide in fitted if wide < widest), default=0)
        fitted[at] = max(second, widest - (sum(fitted) - room), 1)
        if fitted[at] == widest:
            fitted[at] -= 1
    return fitted


def _render_cells(
    cells: Sequence[tuple[list[StyledPart], str]], widths: Sequence[int]
) -> Iterator[list[StyledPart]]:
    """Yield the rows of one row of a table."""
    wrapped = [wrap_parts(cell, wide) for (cell, _), wide in zip(cells, widths, strict=False)]
    for at in range(max((len(rows) for rows in wrapped), default=0)):
        row: list[StyledPart] = []
        for number, (rows, wide) in enumerate(zip(wrapped, widths, strict=False)):
            parts = rows[at] if at < len(rows) else []
            fill, align = max(wide - _measure_parts(parts), 0), cells[number][1]
            left = {"right": fill, "center": fill // 2}.get(align, 0)
            is_last = number == len(widths) - 1
            row += [
                StyledPart(_GAP if number else ""),
                StyledPart(" " * left),
                *parts,
                StyledPart("" if is_last else " " * (fill - left)),
            ]
        while row and not row[-1].text.strip():
            row.pop()
        yield row


def _render_records(
    table: list[list[tuple[list[StyledPart], str]]], columns: int
) -> Iterator[list[StyledPart]]:
    """Yield a table as one paragraph for each row, its cells behind the names of their columns."""
    head, *body = table
    for number, row in enumerate(body):
        if number:
            yield []
        for (name, _), (cell, _) in zip(head, row, strict=False):
            yield from wrap_parts(
                [*_paint_parts(name, "strong"), StyledPart(": "), *cell],
                columns,
                rest=[StyledPart("  ")],
            )
