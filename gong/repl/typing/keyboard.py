"""Bytes from the terminal → keys: also those of the kitty keyboard protocol, and its replies.

prompt-toolkit reads keys as terminals have always sent them, in which Shift+Enter is Enter. Where
the terminal says that it speaks the kitty keyboard protocol, that protocol is switched on while
single keys are read, and off for all other programs:

    asked at the start   reply       then
    -------------------  ----------  ---------------------------------------------------------
    CSI ? u              CSI ? n u   CSI > 1 u now, CSI < u when single keys are read no more
    CSI ? 2026 $ p       CSI ? 2026 ; 1 or 2 $ y   frames are drawn at once: see `frames`

A terminal that knows neither sends no reply. A reply is never typed into the prompt.
"""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from prompt_toolkit.application import create_app_session
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.utils import is_dumb_terminal

from ..draw.frames import FramedStream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from typing import TextIO

    from prompt_toolkit.key_binding.key_processor import KeyPress

Key = str | Keys | tuple[str | Keys, ...]

SHIFT_ENTER = "\ue00d"
"""The name of Shift+Enter in key bindings: prompt-toolkit has none. No keyboard types it."""

_QUERY = "\x1b[?u\x1b[?2026$p"
_PUSH, _POP = "\x1b[>1u", "\x1b[<u"
_KITTY_REPLIES = {f"\x1b[?{flags}u" for flags in range(32)}
_FRAME_REPLIES = {f"\x1b[?2026;{state}$y": state in {1, 2} for state in range(5)}
for _reply in (*_KITTY_REPLIES, *_FRAME_REPLIES):
    ANSI_SEQUENCES[_reply] = Keys.Ignore  # so that the parser waits for the whole reply

_KITTY_KEY = re.compile(r"\x1b\[(\d+)(?:;(\d+))?u\Z")
_LOCKED_KEY = re.compile(r"\x1b\[(\d+);(\d+)([A-HPQS~])\Z")
_XTERM_SHIFT_ENTER = "\x1b[27;2;13~"
_SHIFT, _ALT, _CTRL, _OTHERS = 1, 2, 4, 8 | 16 | 32
_LOCKS = 64 | 128  # caps lock and num lock, which change nothing for keys of commands
_NAMED_KEYS: dict[int, tuple[str | Keys, str | Keys]] = {
    9: (Keys.ControlI, Keys.BackTab),
    13: (Keys.ControlM, SHIFT_ENTER),
    27: (Keys.Escape, Keys.Escape),
    127: (Keys.ControlH, Keys.ControlH),
    57414: (Keys.ControlM, SHIFT_ENTER),
    **{57399 + at: (text, text) for at, text in enumerate("0123456789./*-+")},
    **{
        57417 + at: (key, key)
        for at, key in enumerate(
            (
                *(Keys.Left, Keys.Right, Keys.Up, Keys.Down, Keys.PageUp, Keys.PageDown),
                *(Keys.Home, Keys.End, Keys.Insert, Keys.Delete),
            )
        )
    },
}
"""Keys of the protocol that are no letter: code → key, and key with Shift. 57399 on: the keypad."""
_LATIN = dict(zip("йцукенгшщзфывапролдячсмить", "qwertyuiopasdfghjklzxcvbnm", strict=True))
"""Letters of a Cyrillic keyboard → those of the same keys, so that its Ctrl+C is Ctrl+C."""


def read_kitty_key(sequence: str) -> Key | None:
    """Return the key of a sequence of the kitty keyboard protocol; None if it is another sequence.

    `CSI 13;2 u` is Shift+Enter, `CSI 99;5 u` Ctrl+C, `CSI 97;3 u` Esc and a, `CSI 27 u` Esc. A key
    that means nothing here, such as the volume, is `Keys.Ignore`.
    """
    if (match := _KITTY_KEY.match(sequence)) is None:
        return None
    code, held = int(match[1]), (int(match[2] or 1) - 1) & ~_LOCKS
    key: str | Keys = Keys.Ignore
    if code in _NAMED_KEYS:
        key = _NAMED_KEYS[code][held & _SHIFT]
    elif code <= sys.maxunicode and chr(code).isprintable():
        key = _read_letter(chr(code), held)
    if key is Keys.Ignore or held & _OTHERS:
        return Keys.Ignore
    return (Keys.Escape, key) if held & _ALT else key


def _read_letter(letter: str, held: int) -> str | Keys:
    if not held & _CTRL:
        return letter.upper() if held & _SHIFT else letter
    letter = "@" if letter == " " else letter.lower()
    try:
        return Keys(f"c-{_LATIN.get(letter, letter)}")
    except ValueError:
        return Keys.Ignore


def _remove_locks(sequence: str) -> str:
    """Return the sequence of a key as it is without caps lock and num lock."""
    if (match := _LOCKED_KEY.match(sequence)) is None:
        return sequence
    number, held, last = match[1], int(match[2]) - 1, match[3]
    if not held & _LOCKS:
        return sequence
    if held := held & ~_LOCKS:
        return f"\x1b[{number};{held + 1}{last}"
    return f"\x1b[{number}~" if last == "~" else f"\x1b[{last}"


class KeyParser(Vt100Parser):
    """The parser of prompt-toolkit, with the keys that it does not know."""

    def _get_match(self, prefix: str) -> Key | None:  # type: ignore[override]
        if prefix == _XTERM_SHIFT_ENTER:
            return SHIFT_ENTER
        key = read_kitty_key(prefix)
        return super()._get_match(_remove_locks(prefix)) if key is None else key


class Keyboard(Vt100Input):
    """Standard input as keys. It is asked once what the terminal knows."""

    def __init__(self, stdin: TextIO, screen: FramedStream) -> None:
        super().__init__(stdin)
        self.vt100_parser = KeyParser(self.vt100_parser.feed_key_callback)
        self._screen = screen
        self._has_asked = False
        self._speaks_kitty = False
        self._depth = 0
        """How often single keys are being read: 0 while the terminal is for other programs."""

    def read_keys(self) -> list[KeyPress]:
        """Return the keys that were typed; replies of the terminal are taken out."""
        return [key for key in super().read_keys() if not self._take_reply(key.data)]

    def _take_reply(self, data: str) -> bool:
        if data in _FRAME_REPLIES:
            self._screen.is_synchronized = _FRAME_REPLIES[data]
        elif data in _KITTY_REPLIES:
            if not self._speaks_kitty and self._depth:
                self._screen.write_control(_PUSH)
            self._speaks_kitty = True
        else:
            return False
        return True

    @contextmanager
    def _read_single_keys(self, mode: AbstractContextManager[None]) -> Iterator[None]:
        with mode:
            if not self._has_asked:
                self._has_asked = True
                # A terminal that shows the query has that overwritten by the first frame.
                self._screen.write_control(f"{_QUERY}\r")
            self._change_depth(1)
            try:
                yield
            finally:
                self._change_depth(-1)

    @contextmanager
    def _read_lines(self, mode: AbstractContextManager[None]) -> Iterator[None]:
        with mode:
            depth = self._depth
            self._change_depth(-depth)
            try:
                yield
            finally:
                self._change_depth(depth)

    def _change_depth(self, by: int) -> None:
        before, self._depth = self._depth, self._depth + by
        if self._speaks_kitty and bool(before) != bool(self._depth):
            self._screen.write_control(_PUSH if self._depth else _POP)

    def raw_mode(self) -> AbstractContextManager[None]:
        """Read single keys inside."""
        return self._read_single_keys(super().raw_mode())

    def cooked_mode(self) -> AbstractContextManager[None]:
        """Leave the terminal to another program inside."""
        return self._read_lines(super().cooked_mode())


@contextmanager
def open_keyboard() -> Iterator[None]:
    """Have all prompts inside use one keyboard, and a screen that draws whole frames.

    Single keys are read between the prompts too: a line that is entered while one gives way to
    the next would arrive with Ctrl+J in place of Enter, and never be sent.

    Both standard streams must be a terminal. One that cannot move its cursor has no frames.
    """
    if is_dumb_terminal():
        yield
        return
    screen = FramedStream(sys.stdout)
    output = create_output(cast("TextIO", screen))
    keyboard = Keyboard(sys.stdin, screen)
    with create_app_session(input=keyboard, output=output), keyboard.raw_mode():
        yield
