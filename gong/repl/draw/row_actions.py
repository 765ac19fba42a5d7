"""What may be done to a row of a list besides choosing it: another title, or the trash.

mode     begins with   the search line is          ends with
-------  ------------  --------------------------  ------------------------
search   the list      the words that are typed
title    Ctrl+R        the new title               Enter, or Esc
trash    Ctrl+X        as it was; answers below    an answer, or Esc for no
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition

from tape.errors import TapeError
from tape.text import cut_to_width, show_controls

from ...errors import GongError
from .choice_list import Choice, ChoiceList
from .lines import StyledLine, wrap_row
from .picker_rows import PickerRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from prompt_toolkit.filters import Filter
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.layout import BufferControl

ROW_ERRORS = (GongError, TapeError, OSError)
"""What a list says instead of failing."""
_QUESTION_COLUMNS = 25
"""Those of the question around the title."""


class RowActions:
    """What is being done to a row, and what was said of it."""

    def __init__(
        self,
        rename: Callable[[str, str], str] | None,
        remove: Callable[[str], str] | None,
        line: BufferControl,
        get_row: Callable[[], PickerRow | None],
        note_change: Callable[[str, bool], None],
    ) -> None:
        """`line` is where words are typed, and titles; `get_row` returns the marked row.

        `note_change` gets the value of a row that something was done to, and whether it went.
        """
        self._rename, self._remove = rename, remove
        self._line, self._words, self._title = line, line.buffer, Buffer(multiline=False)
        self._get_row, self._note_change = get_row, note_change
        self.mode: Literal["search", "title", "trash"] = "search"
        self.remark = ""
        """What was done, or why not; until the next key."""
        self.done: list[str] = []
        """What was done that has to be known afterwards."""
        self._subject = PickerRow("", "")
        """The row that the title or the question is about, whichever is marked meanwhile."""
        self._question = ChoiceList(())
        self._tasks: set[asyncio.Task[None]] = set()

    def add_keys(self, keys: KeyBindings, has_row: Filter) -> None:
        """Bind the keys that begin and answer; `has_row` says when they may begin."""
        if self._rename is not None:
            keys.add("c-r", filter=has_row)(lambda _: self._ask_title())
            keys.add("enter", filter=Condition(lambda: self.mode == "title"))(self._save_title)
        if self._remove is not None:
            keys.add("c-x", filter=has_row, eager=True)(lambda _: self._ask_removal())
            is_asking = Condition(lambda: self.mode == "trash")
            keys.add("<any>", filter=is_asking)(self._take_answer)
            keys.add("enter", filter=is_asking)(lambda _: self._answer(self._question.current))
            for key, by in {"up": -1, "left": -1, "down": 1, "right": 1}.items():
                keys.add(key, filter=is_asking)(lambda _, by=by: self._question.move(by))

    def leave(self) -> None:
        """Leave the question, or the title as it was."""
        self.mode, self._line.buffer = "search", self._words

    def stop(self) -> None:
        """Wait for nothing that is being done."""
        for task in self._tasks:
            task.cancel()

    def render_foot(self, columns: int) -> list[StyledLine]:
        """Return the question, or what is said; nothing where there is neither."""
        if self.mode == "trash":
            title = cut_to_width(self._subject.text, max(columns - _QUESTION_COLUMNS, 1))
            question = StyledLine(show_controls(f'Move "{title}" to the trash?'), "call")
            return [question, *self._question.render(columns)]
        if self.remark:
            text = show_controls(" ".join(self.remark.split()))
            return [StyledLine(row, "note") for row in wrap_row(text, columns)]
        if self.mode == "title":
            return [StyledLine("Enter saves it · Esc leaves it", "result")]
        return []

    def _begin(self, mode: Literal["title", "trash"]) -> bool:
        row = self._get_row()
        if row is not None:
            self.mode, self.remark, self._subject = mode, "", row
        return row is not None

    def _ask_title(self) -> None:
        if self._begin("title"):
            self._title.set_document(Document(self._subject.text))
            self._line.buffer = self._title

    def _save_title(self, _: KeyPressEvent) -> None:
        value, title, rename = self._subject.value, self._title.text.strip(), self._rename
        self.leave()
        if rename is not None and title:
            self._do(lambda: rename(value, title), removes=False)

    def _ask_removal(self) -> None:
        if self._begin("trash"):
            self._question = ChoiceList(
                (Choice("trash", "move it to the trash", "1", "y"), Choice("keep", "no", "2", "n")),
                cursor=1,
            )

    def _take_answer(self, event: KeyPressEvent) -> None:
        if (choice := self._question.find(event.data.lower())) is not None:
            self._answer(choice)

    def _answer(self, choice: Choice) -> None:
        value, remove = self._subject.value, self._remove
        self.leave()
        if choice.value == "trash" and remove is not None:
            self._do(lambda: remove(value), removes=True)

    def _do(self, work: Callable[[], str], *, removes: bool) -> None:
        """Do something to the row in a thread, and say what; `removes` if it is gone then."""
        value = self._subject.value

        async def run() -> None:
            is_removed = False
            try:
                self.remark = await asyncio.to_thread(work)
            except ROW_ERRORS as error:
                self.remark = str(error)
            else:
                is_removed = removes
                if removes:
                    self.done.append(self.remark)
            self._note_change(value, is_removed)

        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
