r"""Markdown as it streams → finished lines, each given out once, and the block that still grows.

Whole lines are taken one by one, so that it does not matter where the text was cut. A line belongs
to the open block or ends it; a block is parsed on its own when it has ended, and never again:

    open block   line                          then
    -----------  ----------------------------  -----------------------------------------------
    none         ```                           a fence opens
    none         # x, ---                      a heading or rule, finished at once
    none         - x, 1. x                     a list item opens, each item a block of its own
    none         four blanks                   indented code opens
    none         anything else                 text opens: a paragraph, a quote, a table
    fence        the same marks                finished; before, every 20 lines are finished
    item         indented, or more words       it continues
    code         indented                      it continues
    text         empty, #, ```, - x, > x       finished (> continues a quote)
    any          anything else                 finished, and the line is looked at again
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tape.text import measure_width

from .code_colours import paint_code
from .lines import StyledLine, escape_text, join_parts, wrap_last_rows, wrap_text
from .markdown_blocks import render_block

if TYPE_CHECKING:
    from collections.abc import Iterator

_FENCE = re.compile(r"( {0,3})(?:(`{3,})([^`]*)|(~{3,})(.*))\Z")
_HEADING = re.compile(r" {0,3}#{1,6}(?: |\Z)")
_RULE = re.compile(r" {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})\Z")
_ITEM = re.compile(r"( {0,3})([-*+]|\d{1,9}[.)])( {1,4}(?! )| +|\Z)")
_QUOTE = re.compile(r" {0,3}>")
_CODE_PIECE = 20
"""Lines of a fence that are finished together."""
_CODE_ABOVE = 200
"""Lines of a fence that are read again for the colours of those below."""
_LIVE_ABOVE = 20
_LIVE_CHARS = 4_000
"""Characters of a block up to which it is drawn while it grows; of a longer one its last rows."""
_LIVE_STEP = 1_000
_LIVE_ROWS = 12


class _Fence:
    """An open fence: what closes it, and the code of it that is finished."""

    def __init__(self, match: re.Match[str]) -> None:
        self.indent = len(match[1])
        self.marks = match[2] or match[4]
        words = (match[3] or match[5] or "").split()
        self.language = words[0].strip("{}.").partition(":")[0] if words else ""
        self.above: list[str] = []

    def closes(self, line: str) -> bool:
        """Return whether a line closes the fence."""
        text = line.strip()
        return len(text) >= len(self.marks) and set(text) == {self.marks[0]}

    def remove_indent(self, line: str) -> str:
        """Return a line of code without the blanks that the fence has before it."""
        return line[min(self.indent, len(line) - len(line.lstrip(" "))) :]


class MarkdownStream:
    """The answer of a model while it arrives."""

    def __init__(self) -> None:
        self._rest = ""
        self._kind = ""
        self._block: list[str] = []
        self._blanks = 0
        """Empty lines after the open block, which may continue behind them."""
        self._fence: _Fence | None = None
        """The open fence; of a list item the one inside it."""
        self._width = 0
        """Columns to which the text of the open list item is indented."""
        self._is_apart = False
        """Whether the next block has an empty line before it."""
        self._has_lines = False
        self._passed = 0
        """Characters of a long line that grows which are not shown any more."""
        self._drawn: tuple[object, list[StyledLine]] = (None, [])

    def feed(self, delta: str, columns: int) -> list[StyledLine]:
        """Add text; return the lines that it finished, for a screen of `columns`."""
        if "\n" not in delta:
            self._rest += delta
            return []
        *whole, self._rest = (self._rest + delta).split("\n")
        self._passed = 0
        return [styled for line in whole for styled in self._take_line(escape_text(line), columns)]

    def finish(self, columns: int) -> list[StyledLine]:
        """Return the lines of what is left; nothing may be fed afterwards."""
        rest, self._rest = self._rest, ""
        lines = [*self._take_line(escape_text(rest), columns)] if rest else []
        return [*lines, *self._end_block(columns)]

    def render_tail(self, columns: int) -> list[StyledLine]:
        """Return the last rows of the block that grows; it is drawn again only if it changed."""
        key = (self._has_lines, self._is_apart, len(self._block), len(self._rest), columns)
        if self._drawn[0] != key:
            self._drawn = (key, self._draw_tail(columns))
        return self._drawn[1]

    def _draw_tail(self, columns: int) -> list[StyledLine]:
        # a long line loses its beginning in steps: rows stand still between two of them
        start = max(len(self._rest) - _LIVE_CHARS, 0) // _LIVE_STEP * _LIVE_STEP
        rest = [escape_text(self._rest[start:])] if self._rest else []
        lines = [*self._block, *[""] * (self._blanks if rest else 0), *rest]
        if not any(lines):
            return []
        if self._kind == "fence" and self._fence is not None:
            above = self._fence.above[-_LIVE_ABOVE:]
            rows = self._render_code(self._fence, lines, above)
        elif sum(map(len, self._block)) + len(self._rest) > _LIVE_CHARS:
            rows = self._draw_long_tail(columns)
        else:
            rows = render_block("\n".join(lines), columns)
        before = [StyledLine("")] if self._is_apart and self._has_lines else []
        cut = [cut for row in rows[-_LIVE_ROWS:] for cut in _cut_rows(row, columns)]
        return [*before, *cut][-_LIVE_ROWS:]

    def _draw_long_tail(self, columns: int) -> list[StyledLine]:
        """Return the last rows of a block that is too long to be laid out for each frame.

        Of the line that grows, the beginning is passed over at the start of a row that was shown,
        so that rows stand still.
        """
        above = [escape_text(line[-_LIVE_CHARS:]) for line in self._block[-_LIVE_ROWS:]]
        rows = wrap_text(escape_text(self._rest[self._passed :]), columns)
        if len(rows) > 2 * _LIVE_ROWS:
            letters = sum(len(row) - row.count(" ") for row in rows[:-_LIVE_ROWS])
            while letters and self._passed < len(self._rest):
                letters -= not self._rest[self._passed].isspace()
                self._passed += 1
        before = [row for line in above for row in wrap_text(line, columns)]
        return [StyledLine(row) for row in [*before, *rows]]

    def _take_line(self, line: str, columns: int) -> Iterator[StyledLine]:
        """Take a whole line: it continues the open block, or ends it and opens another."""
        if self._kind == "fence" and self._fence is not None:
            yield from self._take_code(self._fence, line, columns)
        elif not line.strip():
            yield from self._take_blank(columns)
        elif not self._continue_block(line):
            yield from self._end_block(columns)
            if match := _FENCE.match(line):
                self._kind, self._fence, self._is_apart = "fence", _Fence(match), True
            elif _HEADING.match(line) or _RULE.match(line):
                self._kind, self._block = "text", [line]
                yield from self._end_block(columns)
            elif line.startswith("    "):
                self._kind, self._block, self._is_apart = "code", [line], True
            elif match := _ITEM.match(line):
                self._kind, self._block = "item", [line]
                self._width = (
                    len(match[0]) if line[len(match[0]) :] else len(match[1] + match[2]) + 1
                )
                self._note_inner_fence(line[len(match[0]) :])
            else:
                self._kind, self._block = "text", [line]

    def _take_code(self, fence: _Fence, line: str, columns: int) -> Iterator[StyledLine]:
        if fence.closes(line):
            yield from self._end_block(columns)
            self._is_apart = True
            return
        self._block.append(line)
        if len(self._block) >= _CODE_PIECE:
            yield from self._space_rows(self._render_code(fence, self._block, fence.above))
            fence.above = [*fence.above, *self._block][-_CODE_ABOVE:]
            self._block, self._is_apart = [], False

    def _take_blank(self, columns: int) -> Iterator[StyledLine]:
        if self._kind in {"item", "code"}:
            self._blanks += 1
            return
        yield from self._end_block(columns)
        self._is_apart = True

    def _continue_block(self, line: str) -> bool:
        """Add a line to the open block if it belongs there; return whether it does."""
        indent = len(line) - len(line.lstrip(" "))
        match self._kind:
            case "item":
                fits = indent >= self._width
                if not fits and (self._blanks or self._fence or _is_block_start(line)):
                    return False
                if fits:
                    self._note_inner_fence(line[self._width :])
            case "code":
                if indent < 4:  # noqa: PLR2004 (as in CommonMark)
                    return False
            case "text":
                is_quoted = _QUOTE.match(line) and _QUOTE.match(self._block[-1])
                is_underline = line.strip(" ")[0] in "-=" and len(set(line.strip(" "))) == 1
                if _is_block_start(line) and not is_quoted and not is_underline:
                    return False
            case _:
                return False
        self._block += [*[""] * self._blanks, line]
        self._blanks = 0
        return True

    def _note_inner_fence(self, line: str) -> None:
        """Note whether a fence inside a list item is open after a line."""
        if self._fence is not None:
            self._fence = None if self._fence.closes(line) else self._fence
        elif match := _FENCE.match(line.lstrip(" ")):
            self._fence = _Fence(match)

    def _end_block(self, columns: int) -> Iterator[StyledLine]:
        """Yield the lines of the open block, and close it."""
        kind, block, fence = self._kind, self._block, self._fence
        had_blank_lines = self._blanks > 0
        self._kind, self._block, self._fence, self._blanks = "", [], None, 0
        if not kind:
            return
        if kind == "fence" and fence is not None:
            rows = self._render_code(fence, block, fence.above)
        else:
            rows = render_block("\n".join(block), columns)
        yield from self._space_rows(rows)
        ends_in_code = kind in {"fence", "code"} or block[-1].strip()[:3] in {"```", "~~~"}
        self._is_apart = had_blank_lines or ends_in_code

    def _space_rows(self, rows: list[StyledLine]) -> Iterator[StyledLine]:
        """Yield the rows of a block, with an empty one before them if it stands apart."""
        if rows:
            if self._is_apart and self._has_lines:
                yield StyledLine("")
            self._has_lines = True
            yield from rows

    @staticmethod
    def _render_code(fence: _Fence, lines: list[str], above: list[str]) -> list[StyledLine]:
        code = [fence.remove_indent(line) for line in lines]
        return [join_parts(row) for row in paint_code(code, fence.language, above)] if code else []


def _cut_rows(line: StyledLine, columns: int) -> list[StyledLine]:
    """Return a line that is wider than the screen as rows of it: only they can be counted."""
    if measure_width(line.text) <= columns:
        return [line]
    return [StyledLine(row, line.style) for row in wrap_last_rows(line.text, columns, _LIVE_ROWS)]


def _is_block_start(line: str) -> bool:
    """Return whether a line begins another block than the paragraph it follows."""
    match = _ITEM.match(line)
    is_item = match is not None and bool(line[len(match[0]) :].strip())
    return is_item or any(
        pattern.match(line) is not None for pattern in (_FENCE, _HEADING, _QUOTE, _RULE)
    )
