"""The terminal: the prompt, the live region above it, the scrollback above that; only draws.

Nothing is drawn while nothing happens. What moves into the scrollback and what is drawn below it
is one frame. The cursor stays at the caret, where input methods show their candidates.
A finished line stays in the live region until it is in the scrollback, so that none flickers.
"""

from __future__ import annotations

import asyncio
import base64
import subprocess
import tempfile
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app, run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, to_filter
from prompt_toolkit.layout import (
    BufferControl,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenu, MultiColumnCompletionsMenu
from prompt_toolkit.renderer import print_formatted_text
from prompt_toolkit.styles import DynamicStyle, Style

from tape.text import clean_words, show_controls

from ..mention_grammar import is_menu_begin
from .frames import FramedStream
from .styles import DEFAULT_THEME, build_style

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.completion import Completion
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.layout import Layout

    from .lines import StyledLine

_FRAME_SECONDS = 0.03
_TICK_SECONDS = 1.0
_INDENT = "  "  # before every further line of the draft
_KEY_SECONDS = 0.1  # seconds to wait after Esc, which may start another key's sequence
_LIVE_SHARE = 2  # the live region takes at most 1/N of the rows
_PROMPT_ROWS = 4  # rows that an empty prompt and the status line may take


class _ReportedCompleter(Completer):
    """Another completer, of which is known when it has looked a text up."""

    def __init__(self, inner: Completer, ended: Callable[[str], None]) -> None:
        """Call `ended` with the text before the cursor, once the next lookup may begin."""
        self._inner, self._ended = inner, ended

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        return self._inner.get_completions(document, complete_event)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        try:
            async with aclosing(
                self._inner.get_completions_async(document, complete_event)
            ) as stream:
                async for completion in stream:
                    yield completion
        finally:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._ended, document.text_before_cursor)


class Terminal:
    """One prompt that is used for the whole conversation."""

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
    ) -> None:
        """While `ticks` returns true, the screen is drawn every second, for what shows time.

        `expand` returns what an entered text says; that is passed on, and in the history. `menu`
        returns the rows below the prompt for a width.
        """
        self.theme = DEFAULT_THEME
        """One of `THEMES`; what was printed before keeps its colours."""
        self._expand = expand
        self.is_asking: Callable[[], bool] = lambda: False
        """Whether a question stands above the prompt: it may take nearly all rows."""
        self._is_here = asyncio.Event()
        """Set unless another program has the terminal."""
        self._is_here.set()
        self._live, self._menu = live, menu
        self._ticks = ticks
        self._timer: asyncio.TimerHandle | None = None
        self._finished: list[StyledLine] = []
        self._changed = asyncio.Event()
        self._length = 0
        """Length of the draft before its newest change."""
        self._prompt: PromptSession[None] = PromptSession(
            [("class:you", "> ")],
            bottom_toolbar=lambda: self._style_lines([status()])[:-1],
            key_bindings=keys,
            history=history,
            search_ignore_case=True,
            completer=completer and _ReportedCompleter(completer, self._open_menu),
            complete_while_typing=Condition(self._is_menu_wanted),
            style=DynamicStyle(lambda: self.style),
            erase_when_done=True,
            prompt_continuation=_INDENT,
            enable_suspend=True,
            reserve_space_for_menu=0,
        )
        self._insert_menu(self._prompt.layout)
        self._arrange(self._prompt.layout)
        self._app = self._prompt.app
        self._app.after_render += lambda _: self._end_frame()
        self._app.ttimeoutlen = self._app.timeoutlen = _KEY_SECONDS

        def take(_: Buffer) -> bool:
            accept(self.expand_draft())
            return False  # clears the line

        self.draft.accept_handler = take
        self.draft.on_text_changed += lambda _: self._keep_menu()

    @property
    def style(self) -> Style:
        """How each kind of text looks now."""
        return build_style(self.theme)

    @property
    def columns(self) -> int:
        """The current width in columns."""
        return self._app.output.get_size().columns

    @property
    def rows(self) -> int:
        """The current height in rows."""
        return self._app.output.get_size().rows

    @property
    def draft(self) -> Buffer:
        """The text in the prompt."""
        return self._prompt.default_buffer

    def expand_draft(self) -> str:
        """Put what the draft says in its place, for the history, and return it.

        Bytes that are not UTF-8 stay, as surrogates: they may name a file. A zero byte never does.
        """
        text = self._expand(self.draft.text).replace("\0", "\ufffd")
        if text != self.draft.text:
            self.draft.document = Document(text)
        return text

    def _is_menu_wanted(self) -> bool:
        """Whether a menu of completions opens by itself, for a command or a file."""
        return is_menu_begin(self.draft.document.text_before_cursor)

    def _keep_menu(self) -> None:
        """Open the menu again after a deletion: prompt-toolkit does so after insertions only."""
        length, self._length = self._length, len(self.draft.text)
        if self._length < length and self._app.is_running and self._is_menu_wanted():
            self.draft.start_completion(complete_event=CompleteEvent(text_inserted=True))

    def _open_menu(self, text: str) -> None:
        """Look completions up again after those of `text`, if the draft is another by now.

        prompt-toolkit refuses a lookup while another runs, and forgets it.
        """
        is_closed = self._app.is_running and self.draft.complete_state is None
        is_other = self.draft.document.text_before_cursor != text
        if is_closed and is_other and self._is_menu_wanted():
            self.draft.start_completion(complete_event=CompleteEvent(text_inserted=True))

    def _insert_menu(self, layout: Layout) -> None:
        """Put the rows of the menu below the prompt, in place of a box at the cursor."""
        prompt = layout.container.get_children()[0]
        if isinstance(prompt, FloatContainer):
            menus = (CompletionsMenu, MultiColumnCompletionsMenu)
            prompt.floats = [item for item in prompt.floats if not isinstance(item.content, menus)]
        for window in layout.find_all_windows():
            if isinstance(window.content, BufferControl) and window.content.buffer is self.draft:
                window.dont_extend_height = to_filter(True)
        menu = Window(FormattedTextControl(self._render_menu), dont_extend_height=True)
        if isinstance(layout.container, HSplit):
            layout.container.children[1:1] = [menu, Window()]

    def _render_menu(self) -> StyleAndTextTuples:
        columns = self._app.output.get_size().columns
        return self._style_lines(self._menu(columns))[:-1]

    def _style_lines(self, lines: list[StyledLine]) -> StyleAndTextTuples:
        """Return lines below the transcript, to draw."""
        return style_lines(lines)

    async def edit_draft(self) -> None:
        """Write the draft in $VISUAL or $EDITOR.

        Raises OSError where that cannot be; the draft is as it was then.
        """
        self._is_here.clear()
        try:
            text = self.expand_draft()
            edited = await run_in_terminal(partial(_edit_text, text), in_executor=True)
            self.draft.document = Document(edited)
        finally:
            self._is_here.set()

    async def run_program(self, words: Sequence[str]) -> int:
        """Run a program that has the terminal until it ends; return its exit code."""
        self._is_here.clear()
        try:
            return await run_in_terminal(partial(subprocess.call, words), in_executor=True)
        finally:
            self._is_here.set()

    def suspend(self) -> None:
        """Suspend the program, as Ctrl+Z does."""
        self._app.suspend_to_background()

    def copy_text(self, text: str) -> None:
        """Put a text into the clipboard of the terminal, where it lets programs do so (OSC 52)."""
        data = base64.b64encode(text.encode("utf-8", "replace")).decode()
        self._app.output.write_raw(f"\x1b]52;c;{data}\x07")
        self._app.output.flush()

    async def read(
        self,
        draft: str = "",
        *,
        on_start: Callable[[], None] | None = None,
        on_paint: Callable[[], None] | None = None,
    ) -> None:
        """Pass on each entered text until `leave`; raises EOFError when the input ends.

        `draft` is in the prompt; `on_start` is called before the first frame is drawn,
        `on_paint` after each.
        """
        if on_paint is not None:
            self._app.after_render += lambda _: on_paint()
        try:
            await self._prompt.prompt_async(
                default=draft, pre_run=on_start, set_exception_handler=False
            )
        finally:
            self._end_frame()
            if self._timer is not None:
                self._timer.cancel()

    def run_before_keys(self, note: Callable[[], None]) -> None:
        """Call `note` before the action of each key."""
        self._app.key_processor.before_key_press += lambda _: note()

    def notify(self, text: str, how: str) -> None:
        """Let the terminal tell its user something: bell, osc9 (a message) or off."""
        if how != "off":
            self._app.output.write_raw("\a" if how == "bell" else f"\x1b]9;{text}\a")
            self._app.output.flush()

    def leave(self) -> None:
        """End `read`."""
        app = get_app()  # a terminal without cursor movement uses another output
        if app.is_running and not app.is_done:
            app.exit()

    @property
    def has_left(self) -> bool:
        """Whether `read` is ending, or has ended."""
        return self._app.is_done

    def end(self) -> None:
        """End `read` from outside the application."""
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    def print(self, lines: list[StyledLine]) -> None:
        """Print finished lines into the scrollback with the next frame."""
        self._finished += lines
        self._changed.set()

    def refresh(self) -> None:
        """Draw the live lines again with the next frame."""
        self._changed.set()

    async def draw(self) -> None:
        """Redraw changes, and move finished lines into the scrollback, until cancelled."""
        while True:
            await self._changed.wait()
            await self._is_here.wait()
            self._changed.clear()
            if not self._finished:
                self._app.invalidate()
            else:
                await self._app.renderer.wait_for_cpr_responses()
                app = get_app()
                # Like `run_in_terminal`, without its short switch to line mode, in which Enter
                # means Ctrl+J.
                if app.is_running and not app.is_done:
                    if app is self._app:
                        self._begin_frame()
                    app.renderer.erase()
                    self.flush()
                    app.renderer.request_absolute_cursor_position()
                    app.invalidate()
            await asyncio.sleep(_FRAME_SECONDS)

    def _begin_frame(self) -> None:
        """Let all that is written until the next drawing be one frame with it."""
        if isinstance(stream := self._app.output.stdout, FramedStream):
            stream.hold()

    def _end_frame(self) -> None:
        if isinstance(stream := self._app.output.stdout, FramedStream):
            stream.release()
        if self._ticks() and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._app.invalidate()

    def flush(self) -> None:
        """Write the finished lines at the cursor; no prompt may be drawn there."""
        lines, self._finished = self._finished, []
        text = style_lines(lines)
        print_formatted_text(self._app.output, text, self.style)
        self._app.output.flush()

    def close(self) -> None:
        """Let what is printed from now on go to the scrollback, where it goes anyway."""

    def _arrange(self, layout: Layout) -> None:
        """Put the live region above the prompt.

        It is no part of the prompt's own message, which prompt-toolkit reads ten times for a frame.
        """
        live = Window(FormattedTextControl(self._render_live), dont_extend_height=True)
        layout.container = HSplit([live, layout.container])

    def _count_live_rows(self) -> int:
        return max(self.rows - _PROMPT_ROWS, 1) if self.is_asking() else self.rows // _LIVE_SHARE

    def _render_live(self) -> StyleAndTextTuples:
        """Return the live lines, and an empty one after them."""
        return style_lines([*self._finished, *self._live()][-self._count_live_rows() :])


def _edit_text(text: str) -> str:
    """Return a text as an editor left it; U+FFFD replaces what is not text.

    Raises OSError where no editor could be started, or it failed.
    """
    import click  # few prompts are written there

    with tempfile.NamedTemporaryFile("w+b", prefix="gong-", suffix=".md") as file:
        file.write(clean_words(text).encode())
        file.flush()
        try:
            click.edit(filename=file.name)
        except (click.ClickException, ValueError) as error:
            raise OSError(f"the editor cannot be used: {error}") from error
        return clean_words(Path(file.name).read_bytes().decode("utf-8", "replace")).rstrip("\n")


def style_lines(lines: list[StyledLine]) -> StyleAndTextTuples:
    """Return styled lines to draw; escape sequences in them have no effect."""
    styled: StyleAndTextTuples = []
    for line in lines:
        for text, style in line.parts or ((line.text, ""),):
            names = f"{line.style} {style}".split()
            styled.append((" ".join(f"class:{name}" for name in names), show_controls(text)))
        styled.append(("", "\n"))
    return styled
