"""The menu of completions below the prompt: its rows, the one that is marked, and its keys.

    key        does
    ---------  --------------------------------------------------------------------------
    ↑ ↓        marks another row; what is typed stays until a row is taken
    Tab        takes the marked row, else the first
    Enter      takes the marked row; what is typed in full is sent as it is
    Esc        closes the menu

The first row is marked where it has what is typed in it, so that Enter never puts in a name that
was not meant. Taking a command without an argument sends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.filters import has_completions, is_searching

from tape.text import measure_width, shorten_to_width, show_controls, to_single_line

from ..draw.lines import StyledLine, StyledPart, join_parts, wrap_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prompt_toolkit.buffer import Buffer, CompletionState
    from prompt_toolkit.completion import Completion
    from prompt_toolkit.key_binding import KeyBindings

MAX_MENU_ROWS = 8
"""Rows of the menu: descriptions take the ones they need of these."""
_MARK, _NO_MARK = "▶ ", "  "
_GAP = "  "
_NAME_SHARE = 0.5
"""So much of the width names may take where descriptions have to be wrapped."""


class CompletionMenu:
    """What the menu shows of the completions of a draft."""

    def __init__(self, draft: Callable[[], Buffer]) -> None:
        self._draft = draft
        self._state: CompletionState | None = None
        self._marked: int | None = None
        """The row that was chosen with a key; None before."""

    def render(self, columns: int) -> list[StyledLine]:
        """Return the rows, names left and descriptions right; none while it is closed."""
        completions = self._list_completions()
        if not completions:
            return []
        marked, names = self._find_marked(), [show_controls(c.display_text) for c in completions]
        longest = max(measure_width(show_controls(c.display_meta_text)) for c in completions)
        room = columns - len(_MARK) - (longest + len(_GAP) + 1 if longest else 0)
        width = min(max(map(measure_width, names)), max(room, int(columns * _NAME_SHARE)))
        first = max(min((marked or 0) - MAX_MENU_ROWS // 2, len(names) - MAX_MENU_ROWS), 0)
        lines: list[StyledLine] = []
        for place in range(first, len(names)):
            note = show_controls(completions[place].display_meta_text)
            rows = _render_row(names[place], note, width, columns, is_marked=place == marked)
            if lines and len(lines) + len(rows) > MAX_MENU_ROWS:
                return [*lines, StyledLine(f"  … {len(names) - place} more", "result")]
            lines += rows
        return lines

    def add_keys(self, keys: KeyBindings, submit: Callable[[], None]) -> None:
        """Bind its keys; `submit` sends the draft."""
        is_open = has_completions & ~is_searching
        keys.add("up", filter=is_open)(lambda _: self._move(-1))
        keys.add("down", filter=is_open)(lambda _: self._move(1))
        keys.add("s-tab", filter=is_open)(lambda _: self._move(-1))
        keys.add("tab", filter=is_open)(lambda _: self._take(self._marked or 0))
        keys.add("enter", filter=is_open)(lambda _: self._handle_enter(submit))
        keys.add("escape", filter=is_open, eager=True)(lambda _: self._draft().cancel_completion())

    def _list_completions(self) -> Sequence[Completion]:
        state = self._draft().complete_state
        if state is not self._state:
            self._state, self._marked = state, None
        return () if state is None else state.completions

    def _find_typed(self) -> str:
        """Return the part of the draft that a completion replaces."""
        before = self._draft().document.text_before_cursor
        start = min((c.start_position for c in self._list_completions()), default=0)
        return before[len(before) + start :]

    def _find_marked(self) -> int | None:
        """Return the place of the marked row; None if Enter takes none."""
        completions, typed = self._list_completions(), self._find_typed().casefold()
        if self._marked is not None or not typed:
            return self._marked
        if any(completion.text.strip().casefold() == typed for completion in completions):
            return None
        return 0 if completions and typed in completions[0].text.casefold() else None

    def _move(self, by: int) -> None:
        count = len(self._list_completions())
        before = self._find_marked()
        self._marked = (-1 if by < 0 else 0) % count if before is None else (before + by) % count

    def _handle_enter(self, submit: Callable[[], None]) -> None:
        marked = self._find_marked()
        if marked is None:
            self._draft().cancel_completion()
            submit()
            return
        self._take(marked)
        text = self._draft().text
        if text.startswith("/") and not text.endswith((" ", "/")):
            submit()

    def _take(self, place: int) -> None:
        """Put a row into the draft; where a command has an argument, its menu opens."""
        completions, draft = self._list_completions(), self._draft()
        draft.cancel_completion()
        draft.apply_completion(completions[place])


def _render_row(
    name: str, note: str, width: int, columns: int, *, is_marked: bool
) -> list[StyledLine]:
    """Return a name with its description, which is wrapped at the right.

    A name that is too long for its column has a row of its own; what tells it from others is at
    its end, so that is what stays of one longer than the row.
    """
    style = "you" if is_marked else ""
    mark, room = _MARK if is_marked else _NO_MARK, columns - len(_MARK) - 1
    name = to_single_line(name)
    if measure_width(name) > room:
        name = f"…{name[1 - room :]}" if name.isascii() else shorten_to_width(name, room)
    head = f"{mark}{name}"
    if not note:
        return [StyledLine(head, style)]
    if measure_width(name) > width:
        below = [StyledPart(" " * (2 * len(_MARK)))]
        rows = wrap_parts([StyledPart(note, "result")], columns - 1, first=below, rest=below)
        return [StyledLine(head, style), *(join_parts(row, "") for row in rows)]
    fill = " " * (width - measure_width(name)) + _GAP
    indent = " " * (len(_MARK) + width + len(_GAP))
    rows = wrap_parts(
        [StyledPart(note, "result")],
        max(columns - 1, len(indent) + 8),
        first=[StyledPart(f"{head}{fill}", style)],
        rest=[StyledPart(indent)],
    )
    return [join_parts(row, "") for row in rows]
