"""The manners of a terminal: colour, pages, progress. A pipe or a file gets none of them.

Invariant: what is written is never changed, only coloured, paged or followed by a progress line
that is erased before the next word.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager, suppress
from io import BufferedIOBase
from time import monotonic

from ..text import visible, width
from .streams import Shown, control, without_controls

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from subprocess import Popen
    from typing import Any, BinaryIO, TextIO

PLAIN = 100
"""Columns of a line that is cut, where no terminal says how many there are."""

PAGER = "less -FRX"
"""What pages where neither TAPE_PAGER nor PAGER says: colours stay, and the text when it ends."""

_ROWS = 24
_PATIENCE = 1.0
"""Seconds that work may take before its progress is shown."""
_PAUSE = 0.1
"""Seconds between two looks at a progress line."""

_STYLE = "\x1b\\[[0-9;]*m"

_drawn: list[TextIO] = []
"""The streams on which a progress line stands now."""


def columns() -> int:
    """Return how many columns a line may take."""
    return _size()[0] or PLAIN


def _size() -> tuple[int, int]:
    """Return columns and rows of the terminal; 0 where there is none, or it does not say."""
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return 0, 0
    return found.columns, found.lines


def coloured() -> bool:
    """Tell whether standard output takes colours (NO_COLOR, CLICOLOR_FORCE, or a terminal)."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("CLICOLOR_FORCE", "0") not in {"", "0"}:
        return True
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def style(text: str, **looks: Any) -> str:
    """Return a text in a colour or weight, as `click.style` names them, where those are shown."""
    if not text or not coloured():
        return text
    from click import style as styled  # noqa: PLC0415 (only where colours are shown)

    begin, end = styled("\0", **looks).split("\0")
    return control(begin) + visible(text) + control(end)


def unstyled(text: str) -> str:
    """Return a text without what `style` put around it."""
    text = without_controls(text)
    return re.sub(_STYLE, "", text) if "\x1b" in text else text


@contextmanager
def paged() -> Iterator[None]:
    """Show what the block prints in a pager if it is taller than the terminal.

    TAPE_PAGER or PAGER names the pager; where the one that counts is empty, nothing is paged.
    """
    command = _pager() if sys.stdout.isatty() else []
    if not command:
        yield
        return
    out, err = sys.stdout, sys.stderr
    pages = _Pages(out, err, command)
    text = Shown(pages, out.encoding, lines=False)
    sys.stdout = text
    if err.isatty():
        sys.stderr = text  # a warning keeps its place between the lines
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err
        pages.end()


def _pager() -> list[str]:
    """Return the pager's command line, empty where none is wanted or there is none."""
    from shlex import split  # noqa: PLC0415 (only a terminal needs these)
    from shutil import which  # noqa: PLC0415

    named = [os.environ[key] for key in ("TAPE_PAGER", "PAGER") if key in os.environ]
    command = split(named[0] if named else PAGER)
    return command if command and command != ["cat"] and which(command[0]) else []


class _Pages(BufferedIOBase):
    """What stands behind standard output: held back for a screen, then streamed to a pager."""

    def __init__(self, out: TextIO, err: TextIO, command: list[str]) -> None:
        self.err = err
        self._out: BinaryIO = out.bare if isinstance(out, Shown) else out.buffer
        self._command = command
        wide, high = _size()
        self._columns, self._room = wide or PLAIN, (high or _ROWS) - 1
        self._held: list[bytes] = []
        self._rest = b""
        self.pager: Popen[bytes] | None = None

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._out.fileno()

    def write(self, data: Any) -> int:
        """Hold bytes back while they fit the screen; BrokenPipeError once nobody reads them."""
        if self.pager is None:
            self._held.append(bytes(data))
            self._count(bytes(data))
            if self._room < 0:
                self._begin()
        else:
            self._send(data)
        return len(data)

    def _count(self, data: bytes) -> None:
        """Take the rows of whole lines off the room that is left."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            wide = width(unstyled(line.decode(errors="replace")))
            self._room -= max(1, -(-wide // self._columns))

    def _begin(self) -> None:
        from subprocess import PIPE, Popen  # noqa: PLC0415 (only what is tall needs it)

        erase()
        self.pager = Popen(self._command, stdin=PIPE)  # noqa: S603 (the user's own pager)
        self._send(b"".join(self._held))
        self._held.clear()

    def _send(self, data: bytes) -> None:
        assert self.pager is not None
        assert self.pager.stdin is not None
        self.pager.stdin.write(data)
        self.pager.stdin.flush()

    def end(self) -> None:
        """Print what fits the screen, or return when the pager was left."""
        if self.pager is None:
            erase()
            self._out.write(b"".join(self._held))
            self._out.flush()
            return
        with suppress(BrokenPipeError):
            assert self.pager.stdin is not None
            self.pager.stdin.close()
        while self.pager.returncode is None:
            with suppress(KeyboardInterrupt):  # the pager's own business
                self.pager.wait()


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Hold a function of (done, total) that shows, on a terminal, how far long work has come.

    Nothing is shown in the first second; total 0 means that nobody knows.
    """
    pages = getattr(sys.stderr, "bare", None)
    stream = pages.err if isinstance(pages, _Pages) else sys.stderr
    if not stream.isatty():
        yield lambda _done, _total: None
        return
    last = monotonic() + _PATIENCE - _PAUSE

    def show(done: int, total: int) -> None:
        nonlocal last
        paging = isinstance(pages, _Pages) and pages.pager is not None
        if not paging and monotonic() - last >= _PAUSE:
            last = monotonic()
            _draw(stream, f"{what} {done} of {total}" if total else f"{what} {done}")

    try:
        yield show
    finally:
        erase()


def _draw(stream: TextIO, text: str) -> None:
    erase()
    stream.write(text[: PLAIN // 2])
    stream.flush()
    _drawn.append(stream)


def erase() -> None:
    """Take the progress line away, where one stands."""
    while _drawn:
        stream = _drawn.pop()
        stream.write(control("\r\x1b[K"))
        stream.flush()
