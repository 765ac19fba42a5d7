"""`gong chat --tui`: the conversation on the whole screen, beside a pane of usage and files.

The prompt, its keys and its commands are those of `Terminal`; only where lines go is different:

    transcript, it scrolls                        │ todo
    …                                             │ tasks in the background
    the live lines                                │ files that this session changed
    > prompt                                      │ cost, context
    status line

The wheel and PageUp scroll; a drag selects, and puts the text on the clipboard through the
terminal (OSC 52), so that it works over SSH. There is no pane below 90 columns, nor before it has
something to show that the status line does not.

It uses prompt-toolkit, which is loaded anyway: docs/performance.md has the figures.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from prompt_toolkit.filters import Condition, to_filter
from prompt_toolkit.layout import (
    ConditionalContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    UIContent,
    UIControl,
    VSplit,
    Window,
)
from prompt_toolkit.layout.processors import Processor, Transformation
from prompt_toolkit.mouse_events import MouseEventType

from tape.text import measure_width

from .lines import find_unsettled_chars, settle_widths
from .terminal import Terminal, style_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prompt_toolkit.completion import Completer
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.key_binding.key_bindings import NotImplementedOrNone
    from prompt_toolkit.layout.processors import TransformationInput
    from prompt_toolkit.mouse_events import MouseEvent

    from .lines import StyledLine

PANE_COLUMNS = 32
_MIN_COLUMNS = 90
_WHEEL_ROWS = 3
_FRAME_SECONDS = 0.03


class FullScreenTerminal(Terminal):
    """The prompt below a transcript that scrolls, in the alternate screen."""

    def __init__(
        self,
        live: Callable[[], list[StyledLine]],
        status: Callable[[], StyledLine],
        accept: Callable[[str], None],
        keys: KeyBindings,
        ticks: Callable[[], bool] = lambda: False,
        history: History | None = None,
        completer: Completer | None = None,
        expand: Callable[[str], str] = lambda text: text,
        *,
        menu: Callable[[int], list[StyledLine]] = lambda _: [],
        panes: Callable[[int], list[StyledLine]] = lambda _: [],
    ) -> None:
        """As `Terminal`; `panes` returns the lines beside the transcript for a width."""
        super().__init__(live, status, accept, keys, ticks, history, completer, expand, menu=menu)
        self._transcript = _Transcript(live, self.copy_text)
        self._prompt.input_processors = [_SettledDraft()]
        self._panes = panes
        self._pane: tuple[int, list[StyledLine]] = -1, []
        """Lines of the pane, and the frame that they were read for."""
        self._has_ended = False
        pane = ConditionalContainer(
            VSplit(
                [
                    Window(width=1, char="│", style="class:faint"),
                    Window(
                        FormattedTextControl(lambda: self._style_lines(self._read_pane())),
                        width=PANE_COLUMNS - 1,
                    ),
                ]
            ),
            Condition(self._has_pane),
        )
        prompt = self._prompt.layout
        self._app.layout = Layout(
            HSplit(
                [
                    VSplit([Window(self._transcript), pane]),
                    HSplit([prompt.container], height=self._count_prompt_rows),
                ]
            ),
            focused_element=self.draft,
        )
        self._app.full_screen = self._app.renderer.full_screen = True
        self._app.renderer.mouse_support = to_filter(True)
        keys.add("pageup")(lambda _: self._transcript.scroll(self._transcript.height // 2))
        keys.add("pagedown")(lambda _: self._transcript.scroll(-self._transcript.height // 2))

    @property
    def columns(self) -> int:
        """The width of the transcript in columns."""
        wide = self._get_window_columns()
        return wide - PANE_COLUMNS if wide >= _MIN_COLUMNS and self._pane[1] else wide

    def _has_pane(self) -> bool:
        return self._get_window_columns() >= _MIN_COLUMNS and bool(self._read_pane())

    def _read_pane(self) -> list[StyledLine]:
        """Return the lines of the pane, read once for each frame."""
        frame = self._app.render_counter
        if self._pane[0] != frame:
            self._pane = frame, self._panes(PANE_COLUMNS - 1)
        return self._pane[1]

    def print(self, lines: list[StyledLine]) -> None:
        """Add finished lines to the transcript; after the end they are for the scrollback."""
        if self._has_ended:
            super().print(lines)
            return
        self._transcript.add(lines)
        self._changed.set()

    def flush(self) -> None:
        """Write the transcript into the scrollback once the conversation has ended."""
        if self._has_ended:
            super().flush()

    def close(self) -> None:
        """Leave the whole transcript in the scrollback, and what is printed from now on."""
        self._has_ended = True
        self._finished = [*self._transcript.lines]

    async def draw(self) -> None:
        """Redraw changes until cancelled."""
        while True:
            await self._changed.wait()
            await self._is_here.wait()
            self._changed.clear()
            self._app.invalidate()
            await asyncio.sleep(_FRAME_SECONDS)

    def _get_window_columns(self) -> int:
        return self._app.output.get_size().columns

    def _style_lines(self, lines: list[StyledLine]) -> StyleAndTextTuples:
        return [(style, settle_widths(text)) for style, text, *_ in style_lines(lines)]

    def _count_prompt_rows(self) -> int:
        """Return how many rows the prompt and the status line take."""
        size = self._app.output.get_size()
        rows = sum(
            1 + (measure_width(line) + 2) // size.columns for line in self.draft.text.split("\n")
        )
        menu = len(self._menu(size.columns))
        return min(rows + 1 + menu, size.rows // 2)

    def _arrange(self, layout: Layout) -> None:
        """Leave the prompt alone: the live region is in the transcript."""


class _SettledDraft(Processor):
    """Shows the draft as `settle_widths` does; what is sent is what was typed."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return the fragments of a line, and which character is where."""
        fragments = transformation_input.fragments
        text = "".join(text for _, text, *_ in fragments)
        if settle_widths(text) == text:
            return Transformation(fragments)
        left_out = find_unsettled_chars(text)
        places = [place for place in range(len(text)) if place not in left_out]
        cells = [(style, char) for style, part, *_ in fragments for char in part]
        return Transformation(
            [(cells[place][0], settle_widths(cells[place][1])) for place in places],
            source_to_display=lambda place: bisect_left(places, place),
            display_to_source=lambda place: places[place] if place < len(places) else len(text),
        )


class _Place(NamedTuple):
    """A place in the transcript."""

    row: int
    column: int


class _Transcript(UIControl):
    """Rows of finished lines and of live ones; the newest are shown unless it was scrolled."""

    def __init__(self, live: Callable[[], list[StyledLine]], copy: Callable[[str], None]) -> None:
        self._live, self._copy = live, copy
        self.lines: list[StyledLine] = []
        """The finished lines."""
        self._rows: list[StyleAndTextTuples] = []
        """The finished lines as rows of `_width` columns, as far as they were wrapped."""
        self._wrapped = 0
        """Number of lines in `_rows`."""
        self._width = 0
        self.height = 1
        self._back = 0
        """Number of rows that are below the screen."""
        self._first = 0
        """Number of the row at the top of the screen."""
        self._screen_rows: list[StyleAndTextTuples] = []
        self._drag: tuple[_Place, _Place] | None = None

    def add(self, lines: Sequence[StyledLine]) -> None:
        """Add finished lines; where it was scrolled, the rows on the screen stay."""
        before = len(self._rows)
        self.lines += lines
        self._wrap_new_lines()
        if self._back:
            self._back += len(self._rows) - before

    def scroll(self, rows: int) -> None:
        """Move by rows, backwards if positive."""
        self._back = max(min(self._back + rows, len(self._rows) - self.height), 0)

    def is_focusable(self) -> bool:
        return False

    def create_content(self, width: int, height: int) -> UIContent:
        """Return the rows that are on the screen."""
        if width != self._width:
            self._width, self._rows, self._wrapped = width, [], 0
            self._drag = None
        self._wrap_new_lines()
        self.height = height
        live = [row for line in self._live() for row in wrap_line(line, width)]
        rows = [*self._rows, *live]
        end = max(len(rows) - self._back, min(height, len(rows)))
        self._first = max(end - height, 0)
        self._screen_rows = rows[self._first : end]
        filled = [*self._screen_rows, *([[]] * (height - len(self._screen_rows)))]
        return UIContent(lambda number: self._mark(number, filled[number]), line_count=height)

    def mouse_handler(self, mouse_event: MouseEvent) -> NotImplementedOrNone:
        """Scroll by the wheel; select by dragging, and copy at its end."""
        at = _Place(self._first + mouse_event.position.y, mouse_event.position.x)
        match mouse_event.event_type:
            case MouseEventType.SCROLL_UP:
                self.scroll(_WHEEL_ROWS)
            case MouseEventType.SCROLL_DOWN:
                self.scroll(-_WHEEL_ROWS)
            case MouseEventType.MOUSE_DOWN:
                self._drag = at, at
            case MouseEventType.MOUSE_MOVE if self._drag is not None:
                self._drag = self._drag[0], at
            case MouseEventType.MOUSE_UP if self._drag is not None:
                self._drag = self._drag[0], at
                if text := self.read_selection():
                    self._copy(text)
                else:
                    self._drag = None
            case _:
                return NotImplemented
        return None

    def read_selection(self) -> str:
        """Return the selected text, both ends included; empty for a click."""
        if self._drag is None or self._drag[0] == self._drag[1]:
            return ""
        first, last = sorted(self._drag)
        lines = []
        for number in range(first.row, last.row + 1):
            place = number - self._first
            if 0 <= place < len(self._screen_rows):
                text = "".join(part[1] for part in self._screen_rows[place])
                start = first.column if number == first.row else 0
                end = last.column + 1 if number == last.row else len(text)
                lines.append(text[start:end].rstrip())
        return "\n".join(lines)

    def _mark(self, number: int, row: StyleAndTextTuples) -> StyleAndTextTuples:
        """Return a row with its selected part in reverse."""
        if self._drag is None or self._drag[0] == self._drag[1]:
            return row
        first, last = sorted(self._drag)
        place = self._first + number
        if not first.row <= place <= last.row:
            return row
        start = first.column if place == first.row else 0
        end = last.column + 1 if place == last.row else None
        marked: StyleAndTextTuples = []
        column = 0
        for style, text, *_ in row:
            for char in text:
                is_marked = column >= start and (end is None or column < end)
                marked.append((f"{style} reverse" if is_marked else style, char))
                column += 1
        return marked

    def _wrap_new_lines(self) -> None:
        if self._width:
            for line in self.lines[self._wrapped :]:
                self._rows += wrap_line(line, self._width)
            self._wrapped = len(self.lines)


def wrap_line(line: StyledLine, columns: int) -> list[StyleAndTextTuples]:
    """Return a line as rows of at most `columns`, cut at blanks where there are some.

    Escape sequences in it have no effect, and nothing is wider or narrower than terminals think.
    """
    parts = [(style, settle_widths(text)) for style, text, *_ in style_lines([line])[:-1]]
    if sum(measure_width(text) for _, text in parts) <= columns:
        return [[(style, text) for style, text in parts if text]]
    rows: list[list[tuple[str, str]]] = [[]]
    used = 0
    for style, text in parts:
        for char in text:
            wide = measure_width(char)
            if used + wide > columns:
                rest = _take_last_word(rows[-1])
                rows.append(rest)
                used = sum(measure_width(letter) for _, letter in rest)
                if char == " " and not rest:
                    continue
            rows[-1].append((style, char))
            used += wide
    return [_join_runs(row) for row in rows]


def _take_last_word(row: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Remove the word that a row ends with, and the blank before it; nothing of a single word."""
    start = max((place + 1 for place, (_, char) in enumerate(row) if char == " "), default=0)
    if all(char == " " for _, char in row[:start]):
        return []
    word = row[start:]
    del row[start - 1 :]
    return word


def _join_runs(row: list[tuple[str, str]]) -> StyleAndTextTuples:
    runs = groupby(row, lambda cell: cell[0])
    return [(style, "".join(char for _, char in same)) for style, same in runs]
