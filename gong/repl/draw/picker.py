"""A list to choose from, with a search line: for sessions, prompts and branches.

It takes the place of the prompt until a row is chosen or Esc is pressed. What is chosen becomes a
command line, so that whatever the list does can also be typed:

    list       chosen with            is the command
    ---------  ---------------------  ---------------------------
    /resume    Enter on a session     /resume 3f2a9c1e:main
    /switch    Enter on a branch      /switch try-2
    /rewind    Enter on a prompt      /rewind 4be81c20
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, Window

from tape.text import cut_to_width, measure_width, show_controls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.styles import BaseStyle

_MAX_ROWS = 12
_GAP = "  "


class PickerRow(NamedTuple):
    """One row of a list."""

    value: str
    """What stands in the command."""
    text: str
    note: str = ""
    """Shown dim at the right edge, where there is room."""
    is_current: bool = False
    """Whether it is marked at first, where nothing is typed; else the first row is."""


class Picker(NamedTuple):
    """A list that a person chooses from."""

    title: str
    find: Callable[[str], Sequence[PickerRow]]
    """Return the rows for what is typed, best first; it may block, so it runs in a thread."""
    commands: Mapping[str, tuple[str, str]]
    """By key, what it does in a word or two, and the command with `{}` for the value."""


async def choose_command(
    picker: Picker,
    style: BaseStyle | None = None,
    *,
    words: str = "",
    full_screen: bool = False,
) -> str:
    """Show a list until a row is chosen; return its command, empty where nothing is chosen.

    `words` are searched for at first.
    """
    return await _PickerScreen(picker, style, words, full_screen=full_screen).run()


class _PickerScreen:
    """A list on the screen: what is typed, the rows that fit it, and the one that is marked."""

    def __init__(
        self, picker: Picker, style: BaseStyle | None, words: str, *, full_screen: bool
    ) -> None:
        self.picker = picker
        self.rows: Sequence[PickerRow] = ()
        self.marked = 0
        self.is_searching = True
        self.changed = asyncio.Event()
        self.words = Buffer(
            document=Document(words),
            multiline=False,
            on_text_changed=lambda _: self.changed.set(),
        )
        title: StyleAndTextTuples = [("class:you", f"{picker.title}: ")]
        layout = HSplit(
            [
                Window(BufferControl(self.words), height=1, get_line_prefix=lambda *_: title),
                Window(FormattedTextControl(self._render_rows), dont_extend_height=True),
                Window(FormattedTextControl(self._render_keys), height=1),
            ]
        )
        self.app: Application[str] = Application(
            Layout(layout),
            key_bindings=self._build_keys(),
            style=style,
            full_screen=full_screen,
            erase_when_done=True,
        )
        self.app.ttimeoutlen = self.app.timeoutlen = 0.1

    async def run(self) -> str:
        self.changed.set()
        searching = asyncio.create_task(self._search())
        try:
            return await self.app.run_async()
        except (EOFError, KeyboardInterrupt):
            return ""
        finally:
            searching.cancel()

    async def _search(self) -> None:
        """Find the rows each time something else is typed."""
        while True:
            await self.changed.wait()
            self.changed.clear()
            words = self.words.text.strip()
            rows = await asyncio.to_thread(self.picker.find, words)
            current = (place for place, row in enumerate(rows) if row.is_current and not words)
            self.rows, self.marked, self.is_searching = rows, next(current, 0), False
            self.app.invalidate()

    def _build_keys(self) -> KeyBindings:
        keys = KeyBindings()
        keys.add("up")(lambda _: self._move(-1))
        keys.add("c-p")(lambda _: self._move(-1))
        keys.add("down")(lambda _: self._move(1))
        keys.add("c-n")(lambda _: self._move(1))
        keys.add("pageup")(lambda _: self._move(-_MAX_ROWS))
        keys.add("pagedown")(lambda _: self._move(_MAX_ROWS))
        for key in ("escape", "c-c", "c-d", "<sigint>"):
            keys.add(key)(lambda event: event.app.exit(result=""))
        has_rows = Condition(lambda: bool(self.rows))
        for key, (_, command) in self.picker.commands.items():
            keys.add(key, filter=has_rows)(
                lambda event, command=command: event.app.exit(
                    result=command.format(self.rows[self.marked].value)
                )
            )
        return keys

    def _move(self, by: int) -> None:
        self.marked = max(min(self.marked + by, len(self.rows) - 1), 0)

    def _render_rows(self) -> StyleAndTextTuples:
        size = self.app.output.get_size()
        most = max(min(_MAX_ROWS, size.rows - 3), 1)
        first = max(min(self.marked - most // 2, len(self.rows) - most), 0)
        if not self.rows:
            return [("class:note", "  searching…" if self.is_searching else "  nothing found")]
        fragments: StyleAndTextTuples = []
        for place, row in enumerate(self.rows[first : first + most], first):
            is_marked = place == self.marked
            fragments += [("", "\n")] if fragments else []
            fragments += _render_row(row, size.columns - 1, is_marked=is_marked)
        return fragments

    def _render_keys(self) -> StyleAndTextTuples:
        names = {"enter": "Enter"}
        keys = [
            f"{names.get(key, key.replace('c-', 'Ctrl+').upper().replace('CTRL', 'Ctrl'))} {what}"
            for key, (what, _) in self.picker.commands.items()
        ]
        count = f"{self.marked + 1}/{len(self.rows)} · " if self.rows else ""
        text = f"{count}↑↓ · {' · '.join(keys)} · Esc leaves"
        return [("class:result", cut_to_width(text, self.app.output.get_size().columns - 1))]


def _render_row(row: PickerRow, columns: int, *, is_marked: bool) -> StyleAndTextTuples:
    """Return a row: its text cut to leave room for its note, the note at the right edge."""
    mark = "▶ " if is_marked else "  "
    note = show_controls(row.note)
    room = columns - len(mark)
    if note and room - measure_width(note) - len(_GAP) < room // 2:
        note = ""
    text_room = room - (measure_width(note) + len(_GAP) if note else 0)
    text = cut_to_width(show_controls(row.text), text_room)
    style = "class:you" if is_marked else ""
    if not note:
        return [(style, mark + text)]
    fill = " " * (text_room - measure_width(text))
    return [(style, f"{mark}{text}{fill}{_GAP}"), ("class:result", note)]
