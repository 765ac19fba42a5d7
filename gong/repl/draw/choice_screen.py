"""A question with a list of answers on a terminal that no conversation has: of trust, of a move."""

from __future__ import annotations

import sys
import termios
from contextlib import suppress
from typing import TYPE_CHECKING

from prompt_toolkit.application import Application
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import FormattedTextControl, Layout, Window

from .lines import INDENT, StyledPart, escape_text, join_parts, wrap_parts
from .styles import DEFAULT_THEME, build_style
from .terminal import style_lines

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyPressEvent

    from .choice_list import ChoiceList

_MOVES = {"up": -1, "left": -1, "down": 1, "right": 1}
_KEY_SECONDS = 0.1  # seconds to wait after Esc, which may start another key's sequence


async def ask_choice(question: str, choices: ChoiceList, cancelled: str) -> str:
    """Return the value of the answer that is chosen; `cancelled` for Esc, Ctrl+C and Ctrl+D.

    What was typed before the question is no answer. It is gone from the screen afterwards.
    """
    with suppress(OSError, ValueError, termios.error):  # not a terminal: it has no keys typed ahead
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    return await _build_screen(question, choices, cancelled).run_async()


def _build_screen(question: str, choices: ChoiceList, cancelled: str) -> Application[str]:
    def render() -> StyleAndTextTuples:
        columns = app.output.get_size().columns
        rows = wrap_parts(
            [StyledPart(escape_text(question))],
            columns,
            first=[StyledPart("? ")],
            rest=[StyledPart(INDENT)],
        )
        lines = [join_parts(row, "call") for row in rows] + choices.render(columns)
        return style_lines(lines)[:-1]

    def take_key(event: KeyPressEvent) -> None:
        choice = choices.find(event.data)
        if choice is not None:
            event.app.exit(result=choice.value)

    keys = KeyBindings()
    for key, by in _MOVES.items():
        keys.add(key)(lambda _, by=by: choices.move(by))
    for key in {*(choice.key for choice in choices.choices), *_list_letters(choices)}:
        keys.add(key)(take_key)
    keys.add("enter")(lambda event: event.app.exit(result=choices.current.value))
    for key in ("escape", "c-c", "c-d", "<sigint>"):
        keys.add(key)(lambda event: event.app.exit(result=cancelled))
    app: Application[str] = Application(
        Layout(Window(FormattedTextControl(render, show_cursor=False), dont_extend_height=True)),
        key_bindings=keys,
        style=build_style(DEFAULT_THEME),
        erase_when_done=True,
    )
    app.ttimeoutlen = app.timeoutlen = _KEY_SECONDS
    return app


def _list_letters(choices: ChoiceList) -> list[str]:
    return [choice.letter for choice in choices.choices if choice.letter]
