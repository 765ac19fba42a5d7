"""Entries → a conversation with its work folded: prompts, answers, and a line for a run of calls.

    entry                                  what is shown
    user, answer with text, error, anchor  a paragraph, as `render_entry` shows it
    answers that only call, results        one line for all of them up to the next paragraph
    start, branch, model, …                one line
    approval, tool.start, checkpoint, …    nothing: what they belong to says it

Pure. Entries come oldest first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec.structs import replace

from ..model.entries import (
    Approval,
    Assistant,
    Checkpoint,
    Custom,
    SideUsage,
    Text,
    ToolCall,
    ToolResult,
    ToolStart,
    User,
    select_tool_calls,
)
from ..text import SHORT, cut_to_width, format_count, shorten_to_width
from .entries import describe_stop, render_block, render_entry, render_entry_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..model.line import Entry
    from .entries import RenderOptions

LineKind = Literal["heading", "prompt", "text", "calls", "other", "gap"]
"""What a line is of: a paragraph, its heading, a run of calls, or another entry; or empty."""
_SILENT = (Approval, ToolStart, SideUsage, Custom)
_PARAGRAPHS = frozenset({"user", "assistant", "anchor", "error", "context", "note"})
_AFTER_ID, _GAP = "  ", " · "


class FoldedLine(NamedTuple):
    """One line."""

    kind: LineKind
    text: str


class FoldedLog:
    """Shows entries one after the other; what is folded so far is shown with what follows it."""

    def __init__(self, columns: int, shown_lines: int, options: RenderOptions) -> None:
        self._columns, self._shown_lines, self._options = columns, shown_lines, options
        self._first = ""
        """The id of the first entry of the run of calls."""
        self._calls: list[str] = []
        self._failed = 0
        self._last: LineKind | None = None

    def take_entry(self, entry: Entry) -> Iterator[FoldedLine]:
        """Yield the lines that an entry adds."""
        data = entry.data
        if isinstance(data, _SILENT) or (isinstance(data, Checkpoint) and data.why == "tool"):
            return
        if isinstance(data, ToolResult):
            self._failed += data.is_error
            self._first = self._first or entry.id
            return
        if isinstance(data, Assistant):
            yield from self._take_answer(entry, data)
            return
        yield from self.end()
        if entry.type not in _PARAGRAPHS:
            yield from self._separate("other")
            yield FoldedLine("other", render_entry_line(entry, self._columns))
        else:
            yield from self._show_paragraph(entry, "prompt" if isinstance(data, User) else "text")

    def _take_answer(self, entry: Entry, data: Assistant) -> Iterator[FoldedLine]:
        calls = select_tool_calls(data.content)
        has_text = any(isinstance(block, Text) and block.text.strip() for block in data.content)
        if has_text or describe_stop(data) or not calls:
            yield from self.end()
            rest = tuple(block for block in data.content if not isinstance(block, ToolCall))
            yield from self._show_paragraph(
                replace(entry, data=replace(data, content=rest)), "text"
            )
        if calls:
            self._first = self._first or entry.id
            self._calls += [line for call in calls for line in render_block(call)]

    def end(self) -> Iterator[FoldedLine]:
        """Yield the run of calls that nothing was shown of yet."""
        if self._first:
            counted = format_count(len(self._calls), "call") if self._calls else "a result"
            failed = f", {self._failed} failed" if self._failed else ""
            named = f": {_GAP.join(self._calls)}" if self._calls else ""
            yield from self._separate("calls")
            room = max(self._columns - SHORT - len(_AFTER_ID), 20)
            text = shorten_to_width(f"{counted}{failed}{named}", room)
            yield FoldedLine("calls", f"{self._first[:SHORT]}{_AFTER_ID}{text}")
        self._first, self._calls, self._failed = "", [], 0

    def _show_paragraph(self, entry: Entry, kind: LineKind) -> Iterator[FoldedLine]:
        yield from self._separate(kind)
        heading, *body = render_entry(entry, self._shown_lines, self._options)
        yield FoldedLine("heading", cut_to_width(heading, max(self._columns, 20)))
        for line in body:
            yield FoldedLine(kind, line)

    def _separate(self, kind: LineKind) -> Iterator[FoldedLine]:
        if self._last is not None and not kind == self._last == "other":
            yield FoldedLine("gap", "")
        self._last = kind
