"""The prompt that stands while the session is opened: what is typed into it is kept.

Painting needs prompt-toolkit alone; tools, models and git come meanwhile. Then the conversation's
own prompt takes its place on the screen, with the draft in it and the entered lines in order:

    typed before the session is open   afterwards
    ---------------------------------  ----------------------------------------------
    text without Enter                 is in the prompt
    lines with Enter                   are handled as if entered now, one by one
    Ctrl+C, Ctrl+C again within 2 s    the line is cleared; the program ends
    Ctrl+D on an empty line            the program ends
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.utils import is_dumb_terminal

from ..draw.lines import StyledLine
from ..draw.terminal import Terminal
from ..typing.keyboard import SHIFT_ENTER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

TWICE_SECONDS = 2.0
"""A second Ctrl+C within this time quits."""


@dataclass
class TypedAhead:
    """What was typed before the session was open."""

    lines: list[str] = field(default_factory=list)
    draft: str = ""
    """The text that was not entered."""
    has_left: bool = False
    """Whether the user quit."""


@asynccontextmanager
async def hold_prompt(lines: Sequence[str] = (), draft: str = "") -> AsyncIterator[TypedAhead]:
    """Show a prompt while the block runs; afterwards the value holds what was typed.

    The `lines` come first, as if they had been entered; `draft` is in the prompt.

    Single keys are read inside of `open_keyboard`, so that Enter is never read as Ctrl+J. On a
    terminal that cannot move its cursor nothing is shown, and what is typed waits there.
    """
    typed, interrupted = TypedAhead([*lines], draft), -TWICE_SECONDS
    if is_dumb_terminal():  # it cannot draw a prompt anew
        yield typed
        return
    keys = KeyBindings()

    def accept(text: str) -> None:
        if text.strip():
            typed.lines.append(text)

    def render_status() -> StyledLine:
        queue = f" · queue {len(typed.lines)}" if typed.lines else ""
        return StyledLine(f"starting{queue}")

    terminal = Terminal(list, render_status, accept, keys)

    @keys.add("c-c")
    @keys.add("<sigint>")
    def interrupt(_: object) -> None:
        nonlocal interrupted
        before, interrupted = interrupted, monotonic()
        if interrupted - before < TWICE_SECONDS:
            typed.has_left = True
            terminal.leave()
        else:
            terminal.draft.reset()

    for key in ("c-j", SHIFT_ENTER):
        keys.add(key)(lambda _: terminal.draft.insert_text("\n"))
    painted = asyncio.Event()

    async def read() -> None:
        try:
            await terminal.read(draft, on_paint=painted.set)
        except EOFError:
            typed.has_left = True
        finally:
            painted.set()

    with patch_stdout(raw=True):
        reading = asyncio.create_task(read())
        try:
            await painted.wait()
            yield typed
        finally:
            typed.draft = terminal.draft.text
            terminal.end()
            await reading
