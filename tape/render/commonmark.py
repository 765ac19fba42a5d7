"""Markdown of somebody else → Markdown that may be in a page of ours; pure.

It still renders, but only in its place. Invariants, whatever the text: no HTML, no code block
that is not closed, no heading as high as ours, no image that is fetched, no definition that gives
other text a link, no link but to the web, to mail or to a file. This needs no parser of the whole:
fences are written again at the margin, and backticks pair within a line or not at all.

    a block that begins with      becomes
    a fence                       a fence at the margin, longer than any in it, closed
    >, up to 8 deep               a quote of what is in it
    four blanks, not in a list    a fence
    anything else                 lines on their own: headings two levels lower, = and - below
                                  words escaped, and what acts outside of code escaped
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_DEEPEST = 8
"""Deepest nesting of quotes that is kept."""
_ITEM = r"(?:[-*+]|[0-9]{1,9}[.)])[ \t]++"
_OPENS = re.compile(rf"([ \t]*)((?:{_ITEM})*)(?:(`{{3,}})([^`]*)|(~{{3,}})(.*))\Z")
_QUOTE = re.compile(r" {0,3}>")
_HEADING = re.compile(rf"([ \t]*(?:{_ITEM})*)(#{{1,6}})(?=[ \t]|\Z)(.*)\Z")
_OURS = re.compile(
    r"[\s\\*_`#]*(?:user|assistant|tool\.result|context|anchor|start)\b[^·]*·", re.IGNORECASE
)
"""A heading that could be taken for one of the page."""
_UNDERLINE = re.compile(rf"([ \t]*(?:{_ITEM})*)(=+|-+)[ \t]*\Z")
_INDENTED = re.compile(r" {0,3}\t| {4}")
_LISTED = re.compile(rf"[ \t]*(?:{_ITEM}|[-*+][ \t]*\Z)")
_DIVIDES = re.compile(r"(?=[^-]*-)[\s>|:-]*+\Z")
"""The row below the head of a table; in a table a pipe ends a cell, even inside code."""
_FENCE = re.compile(r" {0,3}(`{3,})")
_TOKEN = re.compile(r"\\?`+|\\[!-/:-@\[-_{-~]|<|\]\(|\]:|!\[")
_SAFE = re.compile(r"[ \t]{0,3}(?:https?://|mailto:|[^\s:&\\)<]{0,300}[/?#) \t])", re.IGNORECASE)


def fence_code(lines: Sequence[str], about: str = "") -> list[str]:
    """Return lines as a block of code, with a fence longer than any fence in them."""
    longest = max((len(match[1]) for line in lines if (match := _FENCE.match(line))), default=2)
    fence = "`" * max(3, longest + 1)
    return [fence + about, *lines, fence]


def quote_code(text: str) -> str:
    """Return one line of text as inline code."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " * (longest > 0 or text.startswith(" ") or not text)
    return f"{ticks}{pad}{text}{pad}{ticks}"


def escape_markdown(text: str) -> str:
    """Return one line of text escaped, so that Markdown shows it literally."""
    return re.sub(r"([\\`*_<>\[\]#&~|!])", r"\\\1", text)


def contain_markdown(
    lines: Sequence[str], depth: int = 0, *, tables: bool | None = None
) -> list[str]:
    """Return the lines of foreign Markdown as Markdown that is safe to embed."""
    if tables is None:
        tables = any(map(_DIVIDES.match, lines))
    return list(_contain_lines(lines, depth, tables))


def _contain_lines(lines: Sequence[str], depth: int, tables: bool) -> Iterator[str]:
    at, listing, blank = 0, False, True
    while at < len(lines):
        line = lines[at]
        if opens := _OPENS.match(line):
            fence = opens[3] or opens[5]
            closes = re.compile(rf"[ \t]*{fence[0]}{{{len(fence)},}}[ \t]*\Z")
            ends = (end for end in range(at + 1, len(lines)) if closes.match(lines[end]))
            end = next(ends, len(lines))
            yield from _contain_fence(lines[at + 1 : end], opens)
            at, blank = end + 1, True
        elif depth < _DEEPEST and _QUOTE.match(line):
            end = _find_run_end(lines, at, lambda line: bool(_QUOTE.match(line)))
            inner = [re.sub(r"^ {0,3}> ?", "", line) for line in lines[at:end]]
            yield from (f"> {line}".rstrip() for line in _contain_lines(inner, depth + 1, tables))
            at, blank = end, False
        elif blank and not listing and _INDENTED.match(line) and line.strip():
            end = _find_run_end(
                lines, at, lambda line: bool(_INDENTED.match(line)) or not line.strip()
            )
            yield from fence_code([_INDENTED.sub("", line, count=1) for line in lines[at:end]])
            at, blank = end, True
        else:
            yield _contain_line(line, tables)
            blank = not line.strip()
            listing = bool(_LISTED.match(line)) or (listing and (blank or line[:1] in {" ", "\t"}))
            at += 1


def _find_run_end(lines: Sequence[str], start: int, holds: Callable[[str], bool]) -> int:
    """Return the number of the first line from `start` on that does not hold, or of lines."""
    return next((at for at in range(start, len(lines)) if not holds(lines[at])), len(lines))


def _contain_fence(lines: Sequence[str], opens: re.Match[str]) -> Iterator[str]:
    """Yield a block of code at the margin, after the marker of its list item if any."""
    if opens[2]:
        yield _contain_line(opens[1] + opens[2].rstrip(), tables=False)
    room = len((opens[1] + opens[2]).expandtabs(4))
    about = re.sub(r"[^\w.+#-].*", "", (opens[4] or opens[6] or "").strip())
    yield from fence_code(
        [re.sub(rf"^[ \t]{{1,{room}}}", "", line) if room else line for line in lines], about
    )


def _contain_line(line: str, tables: bool) -> str:
    """Return a line outside of code blocks, made safe."""
    if underline := _UNDERLINE.match(line):
        before, drawn = underline.groups()
        rule = drawn[0] == "-" and len(drawn) > 2  # noqa: PLR2004 (as many make a rule)
        return f"{before}***" if rule else f"{before}\\{drawn}"
    if heading := _HEADING.match(line):
        before, marks, text = heading.groups()
        if _OURS.match(text):
            return f"{before}\\{marks}{_contain_inline(text, tables)}"
        return f"{before}{'#' * min(len(marks) + 2, 6)}{_contain_inline(text, tables)}"
    return _contain_inline(line, tables)


def _contain_inline(line: str, tables: bool) -> str:
    """Return text with everything outside of inline code made harmless."""
    pieces: list[str] = []
    at = 0
    while match := _TOKEN.search(line, at):
        pieces.append(line[at : match.start()])
        mark, at = match[0], match.end()
        if mark[-1] == "`":
            # backticks of the same number close it in this line, or it is no code
            closed = mark[0] != "\\" and re.compile(rf"(?<!`){mark}(?!`)").search(line, at)
            if closed:
                piece, at = line[match.start() : closed.end()], closed.end()
                pieces.append(re.sub(r"(?<!\\)\|", r"\\|", piece) if tables else piece)
            else:
                pieces.append("\\`" * mark.count("`"))
        elif mark == "](":
            pieces.append(mark if _SAFE.match(line, at) else "]\\(")
        else:
            pieces.append(_HARMLESS.get(mark, mark))
    return "".join([*pieces, line[at:]])


_HARMLESS = {"<": "&lt;", "]:": "]\\:", "![": "\\!["}
