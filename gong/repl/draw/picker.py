"""A list to choose from, with a search line: for sessions, prompts and branches.

It takes the place of the prompt until a row is chosen or Esc is pressed. What is chosen becomes a
command line, so that whatever the list does can also be typed:

    list       chosen with            is the command
    ---------  ---------------------  ---------------------------
    /resume    Enter on a session     /resume 3f2a9c1e:main
    /switch    Enter on a branch      /switch try-2
    /rewind    Enter on a prompt      /rewind 4be81c20

A list may also have a wider one behind it (Ctrl+A), show more of the marked row (Space, →), give it
another title (Ctrl+R), and move it to the trash (Ctrl+X) after a question.
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

from tape.text import cut_to_width

from .lines import StyledLine
from .picker_rows import (
    KeyNote,
    PickerRow,
    format_keys,
    number_rows,
    put_beside,
    render_preview,
    render_rows,
)
from .row_actions import ROW_ERRORS, RowActions
from .terminal import style_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyPressEvent
    from prompt_toolkit.styles import BaseStyle


_MAX_ROWS = 12
_MAX_PREVIEW_ROWS = 10
_PREVIEW_COLUMNS = 120
"""A screen of so many columns shows more of the marked row beside the list, without being asked."""


class Picker(NamedTuple):
    """A list that a person chooses from."""

    title: str
    find: Callable[[str], Sequence[PickerRow]]
    """Return the rows for what is typed, best first; it may block, so it runs in a thread.

    So do the functions below.
    """
    commands: Mapping[str, tuple[str, str]]
    """By key, what it does in a word or two, and the command with `{}` for the value."""
    is_question: bool = False
    """Whether it has a few answers, each with a number, which chooses it where nothing is typed."""
    find_everywhere: Callable[[str], Sequence[PickerRow]] | None = None
    """The same for a wider list; where the narrow one is empty at first, this one is shown."""
    preview: Callable[[str], Sequence[StyledLine]] | None = None
    """Return more about the row of a value."""
    rename: Callable[[str, str], str] | None = None
    """Give the row of a value a title; return what was done."""
    remove: Callable[[str], str] | None = None
    """Move the row of a value to the trash; return what was done, and what brings it back."""


class Chosen(NamedTuple):
    """What came of a list."""

    command: str
    """Empty where no row was chosen."""
    done: Sequence[str] = ()
    """What was done to rows meanwhile, and how to undo it."""


async def choose_command(
    picker: Picker,
    style: BaseStyle | None = None,
    *,
    words: str = "",
    full_screen: bool = False,
) -> Chosen:
    """Show a list until a row is chosen, or the list is left.

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
        self.is_wide = False
        """Whether the rows are those of `find_everywhere`."""
        self.may_widen = picker.find_everywhere is not None
        """Whether that begins by itself: nobody chose yet."""
        self.does_preview: bool | None = None
        """Whether more of the marked row is shown; None leaves it to the width of the screen."""
        self.previews: dict[str, Sequence[StyledLine]] = {}
        self.to_mark = ""
        """The value to mark after the next search."""
        self.changed = asyncio.Event()
        self.moved = asyncio.Event()
        self.words = Buffer(
            document=Document(words),
            multiline=False,
            on_text_changed=lambda _: self._note_words(),
        )
        line = BufferControl(self.words)
        self.actions = RowActions(
            picker.rename, picker.remove, line, self._get_marked, self._note_changed_row
        )
        layout = HSplit(
            [
                Window(line, height=1, get_line_prefix=lambda *_: self._render_title()),
                Window(FormattedTextControl(self._render_body), dont_extend_height=True),
                Window(FormattedTextControl(self._render_foot), dont_extend_height=True),
            ]
        )
        self.app: Application[Chosen] = Application(
            Layout(layout),
            key_bindings=self._build_keys(),
            style=style,
            full_screen=full_screen,
            erase_when_done=True,
        )
        self.app.ttimeoutlen = self.app.timeoutlen = 0.1

    async def run(self) -> Chosen:
        self.changed.set()
        working = [asyncio.create_task(self._search()), asyncio.create_task(self._preview())]
        try:
            return await self.app.run_async()
        except (EOFError, KeyboardInterrupt):
            return Chosen("", self.actions.done)
        finally:
            self.actions.stop()
            for task in working:
                task.cancel()

    async def _search(self) -> None:
        """Find the rows each time something else is typed."""
        while True:
            await self.changed.wait()
            self.changed.clear()
            words = self.words.text.strip()
            try:
                rows = await self._find_rows(words)
            except ROW_ERRORS as error:
                rows, self.actions.remark = (), str(error)
            to_mark, self.to_mark = self.to_mark, ""
            matches = (
                place
                for place, row in enumerate(rows)
                if (row.value == to_mark if to_mark else row.is_current and not words)
            )
            self.rows, self.is_searching = rows, False
            self.marked = next(matches, 0)
            self.moved.set()
            self.app.invalidate()

    async def _find_rows(self, words: str) -> Sequence[PickerRow]:
        rows = await asyncio.to_thread(self.picker.find, words)
        if self.picker.is_question and not words:
            rows = number_rows(rows)
        if self.may_widen and not rows:
            self.is_wide = True
        self.may_widen = False
        if self.is_wide and self.picker.find_everywhere is not None:
            rows = await asyncio.to_thread(self.picker.find_everywhere, words)
        return rows

    async def _preview(self) -> None:
        """Read more about the marked row, where that is shown."""
        while self.picker.preview is not None:
            await self.moved.wait()
            self.moved.clear()
            row = self._get_marked()
            if row is None or row.value in self.previews or not self._is_previewing():
                continue
            try:
                self.previews[row.value] = await asyncio.to_thread(self.picker.preview, row.value)
            except ROW_ERRORS as error:
                self.actions.remark = str(error)
            self.app.invalidate()

    def _get_marked(self) -> PickerRow | None:
        return self.rows[self.marked] if self.rows else None

    def _is_previewing(self) -> bool:
        if self.picker.preview is None:
            return False
        if self.does_preview is None:
            return self.app.output.get_size().columns >= _PREVIEW_COLUMNS
        return self.does_preview

    def _build_keys(self) -> KeyBindings:
        keys = KeyBindings()
        is_searching = Condition(lambda: self.actions.mode == "search")
        has_row = is_searching & Condition(lambda: bool(self.rows))
        for key, by in {"up": -1, "c-p": -1, "down": 1, "c-n": 1}.items():
            keys.add(key, filter=is_searching)(lambda _, by=by: self._move(by))
        keys.add("pageup", filter=is_searching)(lambda _: self._move(-_MAX_ROWS))
        keys.add("pagedown", filter=is_searching)(lambda _: self._move(_MAX_ROWS))
        for key in ("escape", "c-c", "c-d", "<sigint>"):
            keys.add(key)(lambda _: self._leave())
        for key, (_, command) in self.picker.commands.items():
            keys.add(key, filter=has_row)(lambda _, command=command: self._choose(command))
        if self.picker.is_question:
            is_unanswered = has_row & Condition(lambda: not self.words.text)
            for key in "123456789":
                keys.add(key, filter=is_unanswered)(self._choose_number)
        if self.picker.find_everywhere is not None:
            keys.add("c-a", filter=is_searching)(lambda _: self._switch_width())
        if self.picker.preview is not None:
            is_empty = Condition(lambda: not self.words.text)
            keys.add(" ", filter=has_row & is_empty)(lambda _: self._switch_preview())
            is_at_end = Condition(lambda: self.words.document.is_cursor_at_the_end)
            keys.add("right", filter=has_row & is_at_end)(lambda _: self._switch_preview())
        self.actions.add_keys(keys, has_row)
        return keys

    def _note_words(self) -> None:
        self.actions.remark = ""
        self.changed.set()

    def _note_changed_row(self, value: str, is_removed: bool) -> None:
        """Look for the rows again after something was done to one; mark it, or the next one."""
        others = [row.value for row in (*self.rows[self.marked :], *self.rows[: self.marked])]
        beside = next((other for other in others if other != value), "")
        self.to_mark = beside if is_removed else value
        self.previews.clear()
        self.changed.set()
        self.app.invalidate()

    def _choose(self, command: str) -> None:
        value = self.rows[self.marked].value
        self.app.exit(result=Chosen(command.format(value), self.actions.done))

    def _choose_number(self, event: KeyPressEvent) -> None:
        place = int(event.data) - 1
        if place < len(self.rows):
            self.marked = place
            self._choose(self.picker.commands["enter"][1])

    def _leave(self) -> None:
        """Leave the question, the title, or else the list."""
        if self.actions.mode == "search":
            self.app.exit(result=Chosen("", self.actions.done))
        else:
            self.actions.leave()

    def _move(self, by: int) -> None:
        self.actions.remark = ""
        self.marked = max(min(self.marked + by, len(self.rows) - 1), 0)
        self.moved.set()

    def _switch_width(self) -> None:
        self.is_wide, self.actions.remark = not self.is_wide, ""
        self.to_mark = row.value if (row := self._get_marked()) else ""
        self.changed.set()

    def _switch_preview(self) -> None:
        self.does_preview = not self._is_previewing()
        self.moved.set()

    def _render_title(self) -> StyleAndTextTuples:
        title = "new title" if self.actions.mode == "title" else self.picker.title
        return [("class:you", f"{title}: ")]

    def _render_body(self) -> StyleAndTextTuples:
        size = self.app.output.get_size()
        columns = size.columns - 1
        room = max(size.rows - 2 - len(self._render_foot_lines(columns)), 1)
        if not self.rows:
            return [("class:note", cut_to_width(self._explain_nothing(), columns))]
        row = self._get_marked()
        about = self.previews.get(row.value, ()) if row and self._is_previewing() else None
        if about is None:
            limit = min(_MAX_ROWS, room)
            return style_lines(render_rows(self.rows, self.marked, limit, columns))[:-1]
        if size.columns >= _PREVIEW_COLUMNS:
            limit = min(_MAX_ROWS, room)
            left = columns * 3 // 5
            return style_lines(
                put_beside(
                    render_rows(self.rows, self.marked, limit, left),
                    render_preview(about, limit, columns - left - 3),
                    left,
                )
            )[:-1]
        limit = max(min(_MAX_ROWS, room - _MAX_PREVIEW_ROWS), min(3, room))
        lines = render_rows(self.rows, self.marked, limit, columns)
        below = min(_MAX_PREVIEW_ROWS, room - len(lines))
        return style_lines(lines + render_preview(about, below, columns))[:-1]

    def _explain_nothing(self) -> str:
        if self.is_searching:
            return "  searching…"
        is_narrow = self.picker.find_everywhere is not None and not self.is_wide
        return "  nothing found" + " here; Ctrl+A searches all projects" * is_narrow

    def _render_foot(self) -> StyleAndTextTuples:
        return style_lines(self._render_foot_lines(self.app.output.get_size().columns - 1))[:-1]

    def _render_foot_lines(self, columns: int) -> list[StyledLine]:
        """Return what is asked or said, else the keys."""
        count = f"{self.marked + 1}/{len(self.rows)}" if self.rows else ""
        keys = StyledLine(format_keys(self._list_keys(), count, columns), "result")
        return self.actions.render_foot(columns) or [keys]

    def _list_keys(self) -> list[KeyNote]:
        """Return what the keys do besides moving and leaving."""
        wider = ("this project", "here") if self.is_wide else ("all projects", "all")
        picker = self.picker
        more = [
            (picker.find_everywhere, KeyNote("c-a", *wider)),
            (picker.preview, KeyNote("space", "preview", "view")),
            (picker.rename, KeyNote("c-r", "rename", "name")),
            (picker.remove, KeyNote("c-x", "trash", "trash")),
        ]
        chosen = [KeyNote(key, what) for key, (what, _) in picker.commands.items()]
        return [*chosen, *(note for action, note in more if action is not None)]
