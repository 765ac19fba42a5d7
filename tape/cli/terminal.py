"""Text output of a command: lines, warnings, tables; on a terminal with colour, pager and progress.

Invariant: what is written is never changed, only coloured, paged or followed by a progress line
that is erased before the next output. A pipe or a file gets no colour, no pager, no progress.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager, suppress
from io import BufferedIOBase
from time import monotonic
from typing import TYPE_CHECKING

from ..text import measure_width, replace_surrogates, show_controls, to_single_line
from .streams import VisibleStream, format_cell, mark_control, strip_controls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from subprocess import Popen
    from typing import Any, BinaryIO, TextIO


DEFAULT_COLUMNS = 100
"""Width in columns where no terminal gives one."""

_LESS_OPTIONS = "FRX"
DEFAULT_PAGER = f"less -{_LESS_OPTIONS}"
"""The pager without TAPE_PAGER and PAGER: it keeps colours, and leaves the text on the screen."""

_DEFAULT_ROWS = 24
_PROGRESS_DELAY = 1.0
"""Seconds of work before progress is shown."""
_PROGRESS_INTERVAL = 0.1
"""Seconds between updates of a progress line."""

_STYLE_PATTERN = "\x1b\\[[0-9;]*m"

_progress_streams: list[TextIO] = []
"""The streams that show a progress line now."""


def get_columns() -> int:
    """Return the width of a line in columns: of the terminal, or as COLUMNS says without one."""
    text = os.environ.get("COLUMNS", "")
    wide = int(text) if text.isascii() and text.isdigit() and len(text) < len("10000") else 0
    return _get_terminal_size()[0] or wide or DEFAULT_COLUMNS


def _get_terminal_size() -> tuple[int, int]:
    """Return columns and rows of the terminal; 0 where they are unknown."""
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return 0, 0
    return size.columns, size.lines


def can_colour() -> bool:
    """Return whether standard output takes colours (NO_COLOR, CLICOLOR_FORCE, or a terminal)."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("CLICOLOR_FORCE", "0") not in {"", "0"}:
        return True
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def style_text(text: str, **looks: Any) -> str:
    """Return a text in a colour or weight, as `click.style` names them, if colours are on."""
    if not text or not can_colour():
        return text
    from click import style as styled  # only where colours are shown

    begin, end = styled("\0", **looks).split("\0")
    return mark_control(begin) + show_controls(text) + mark_control(end)


_LOOKS: dict[str, dict[str, Any]] = {
    "command": {"bold": True},
    "call": {"bold": True},
    "header": {"bold": True},
    "hunk": {"fg": "cyan"},
    "added": {"fg": "green"},
    "removed": {"fg": "red"},
    "note": {"dim": True},
}
"""How each kind of line looks (`render.paint.Kind`)."""


def paint_line(kind: str, text: str) -> str:
    """Return a line of a call or of a diff in its colours, if colours are on."""
    return style_text(text, **_LOOKS[kind])


def strip_style(text: str) -> str:
    """Return a text without the sequences of `style`."""
    text = strip_controls(text)
    return re.sub(_STYLE_PATTERN, "", text) if "\x1b" in text else text


@contextmanager
def open_pager(*, at_end: bool = False) -> Iterator[None]:
    """Show what the block prints in a pager if it is taller than the terminal.

    TAPE_PAGER or PAGER names the pager; an empty value turns paging off. With `at_end` less opens
    at the end of the text; other pagers are not told so.
    """
    command = _find_pager() if sys.stdout.isatty() else []
    if at_end and command and os.path.basename(command[0]) == "less":
        command.append("+G")
    if not command:
        yield
        return
    out, err = sys.stdout, sys.stderr
    pages = _PagerStream(out, err, command)
    text = VisibleStream(pages, out.encoding, lines=False)
    sys.stdout = text
    if err.isatty():
        sys.stderr = text  # keeps a warning in its place between the lines
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err
        pages.finish_paging()


def _find_pager() -> list[str]:
    """Return the pager's command line; empty where paging is off or no pager exists."""
    from shlex import split  # only a terminal needs these
    from shutil import which

    named = [os.environ[key] for key in ("TAPE_PAGER", "PAGER") if key in os.environ]
    command = split(named[0] if named else DEFAULT_PAGER)
    return command if command and command != ["cat"] and which(command[0]) else []


class _PagerStream(BufferedIOBase):
    """A stream that buffers one screen of output, then starts a pager and streams to it.

    state      pager   a write                        at the end
    fits       None    is held; its rows are counted  what is held is printed
    too tall   Popen   goes to the pager              wait until the user leaves it
    """

    def __init__(self, out: TextIO, err: TextIO, command: list[str]) -> None:
        self.err = err
        self._out: BinaryIO = out.bare if isinstance(out, VisibleStream) else out.buffer
        self._command = command
        wide, high = _get_terminal_size()
        self._columns, self._room = wide or DEFAULT_COLUMNS, (high or _DEFAULT_ROWS) - 1
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
        """Buffer bytes while they fit the screen; raise BrokenPipeError once the pager has quit."""
        if self.pager is None:
            self._held.append(bytes(data))
            *lines, self._rest = (self._rest + bytes(data)).split(b"\n")
            for line in lines:
                wide = measure_width(strip_style(line.decode(errors="replace")))
                self._room -= max(1, -(-wide // self._columns))
            if self._room < 0:
                self._start_pager()
        else:
            self._send_bytes(data)
        return len(data)

    def _start_pager(self) -> None:
        from subprocess import PIPE, Popen  # only what is tall needs it

        erase_progress()
        # As git does: less shows colours where nothing says how it is to be.
        environ = {"LESS": _LESS_OPTIONS, **os.environ}
        self.pager = Popen(self._command, stdin=PIPE, env=environ)
        self._send_bytes(b"".join(self._held))
        self._held.clear()

    def _send_bytes(self, data: bytes) -> None:
        assert self.pager is not None
        assert self.pager.stdin is not None
        self.pager.stdin.write(data)
        self.pager.stdin.flush()

    def finish_paging(self) -> None:
        """Print the buffer if it fits the screen, else wait until the user leaves the pager."""
        if self.pager is None:
            erase_progress()
            self._out.write(b"".join(self._held))
            self._out.flush()
            return
        with suppress(BrokenPipeError):
            assert self.pager.stdin is not None
            self.pager.stdin.close()
        while self.pager.returncode is None:
            with suppress(KeyboardInterrupt):  # the pager may exit early
                self.pager.wait()


@contextmanager
def show_progress(what: str, *, outcome: str = "") -> Iterator[Callable[[int, int], None]]:
    """Yield a function of (done, total) that shows the progress of long work on a terminal.

    Nothing is shown in the first second; total 0 means unknown. Stopped by Ctrl+C, it says how far
    the work came, and `outcome`: what holds then.
    """
    pages = getattr(sys.stderr, "bare", None)
    stream = pages.err if isinstance(pages, _PagerStream) else sys.stderr
    is_terminal = stream.isatty()
    last = monotonic() + _PROGRESS_DELAY - _PROGRESS_INTERVAL
    reached = ""

    def show(done: int, total: int) -> None:
        nonlocal last, reached
        reached = f"{what} {done} of {total}" if total else f"{what} {done}"
        paging = isinstance(pages, _PagerStream) and pages.pager is not None
        if is_terminal and not paging and monotonic() - last >= _PROGRESS_INTERVAL:
            last = monotonic()
            erase_progress()
            _progress_streams.append(stream)  # first: Ctrl+C may come while it is written
            stream.write(reached[: DEFAULT_COLUMNS // 2])
            stream.flush()

    try:
        yield show
    except KeyboardInterrupt:
        if reached:
            print_warning(f"{reached}; stopped" + (f": {outcome}" if outcome else ""))
        raise
    finally:
        erase_progress()


def erase_progress() -> None:
    """Erase the progress line, if one is shown."""
    while _progress_streams:
        stream = _progress_streams.pop()
        stream.write(mark_control("\r\x1b[K"))
        stream.flush()


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text."""
    for line in lines:
        erase_progress()
        sys.stdout.write(f"{line}\n")


def print_shown(lines: Iterable[str]) -> None:
    """Print lines of text whose control characters `show_controls` has made visible, at once."""
    erase_progress()
    if isinstance(sys.stdout, VisibleStream):
        sys.stdout.write_shown(lines)
    else:
        sys.stdout.write("".join([f"{line}\n" for line in lines]))


def print_json_text(value: Any) -> None:
    """Print lists, dictionaries and plain values as one JSON document, without msgspec."""
    import json  # only where it is asked for

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    sys.stdout.buffer.write(replace_surrogates(text).encode() + b"\n")


def print_json_array(objects: Iterable[dict[str, Any]]) -> None:
    """Print plain objects as a JSON array, as `print_json_text` does, each when it is made."""
    import json  # only where it is asked for

    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    write, before = sys.stdout.buffer.write, "["
    for value in objects:
        write(replace_surrogates(before + encode(value)).encode())
        before = ","
    write(b"]\n" if before == "," else b"[]\n")


def print_warning(text: str, program: str = "tape") -> None:
    """Print a warning on standard error, in one line."""
    erase_progress()
    sys.stderr.write(f"{program}: {to_single_line(text)}\n")
    sys.stderr.flush()


def warn_of_left_out_part(text: str) -> None:
    """Warn of a damaged part of a tape that a reader skips."""
    print_warning(f"{text}; left out, `tape verify` says more")


NARROW_COLUMNS = 60
"""A terminal with fewer columns gets tables without their less important columns."""


def format_table(
    rows: Sequence[Sequence[str]],
    right: Iterable[int] = (),
    *,
    headings: Sequence[str] = (),
    optional: Iterable[str] = (),
) -> list[str]:
    """Return rows as aligned columns; those whose index is in `right` are right-aligned.

    `headings` stand above the columns. On a narrow terminal the columns whose headings are in
    `optional` are left out, in that order, until a row fits.
    """
    sided, whole = set(right), [headings, *rows] if headings else rows
    columns = [
        align_column(cells, right=at in sided) for at, cells in enumerate(zip(*whole, strict=True))
    ]
    if not headings:
        return join_columns(columns)
    named: dict[str, Sequence[str]] = dict(zip(headings, columns, strict=True))
    wide = get_columns()
    if wide < NARROW_COLUMNS:
        drop_columns(named, wide, optional)
    first, *rest = join_columns(named.values())
    return [style_text(first, dim=True), *rest]


def align_column(cells: Iterable[str], *, right: bool = False) -> list[str]:
    """Return the cells of a column, padded to the width of the widest; colours are not counted."""
    sized = []
    for cell in cells:
        if cell.isascii() and cell.isprintable():  # nearly all
            sized.append((cell, len(cell)))
        else:
            text = format_cell(cell)
            sized.append((text, measure_width(strip_style(text))))
    widest = max(width for _, width in sized)
    if right:
        return [" " * (widest - width) + cell for cell, width in sized]
    return [cell + " " * (widest - width) for cell, width in sized]


def drop_columns(columns: dict[str, Sequence[str]], wide: int, order: Iterable[str]) -> int:
    """Remove columns, in this order, until a row of aligned cells fits; return what is left over.

    `columns` holds the aligned cells of each by its heading.
    """
    widths = {name: measure_width(strip_style(cells[0])) + 2 for name, cells in columns.items()}
    room = wide + 2 - sum(widths.values())
    for name in order:
        if room >= 0:
            break
        room += widths.pop(name, 0)
        columns.pop(name, None)
    return max(room, 0)


def join_columns(columns: Iterable[Sequence[str]]) -> list[str]:
    """Return the rows of a table from its aligned columns."""
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
