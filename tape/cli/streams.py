"""Standard output and error of a command: what foreign text would do to a terminal is shown.

Text is shown wherever it goes, since it is for people. Bytes are data: exact in a pipe or a file;
on a terminal they are JSON, and get escapes of JSON. Invariant: a terminal obeys nothing but what
`control` returned.

Nothing is imported that takes time: a list of tapes needs no more than this.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager, suppress
from io import BufferedIOBase, TextIOWrapper

from ..text import visible, visible_json

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TextIO

_MARK = f"\x1b{os.urandom(8).hex()}"
"""Stands before a sequence of ours; no text from elsewhere can know it."""
_END = "\x07"  # no blank: the end of a line may be stripped
_BLANKS = str.maketrans("\n\t\u2028\u2029", "    ")
_OURS = re.compile(f"{_MARK}([^{_END}]*){_END}")


def control(sequence: str) -> str:
    """Return an escape sequence of ours, so that the streams of this process let it pass."""
    return f"{_MARK}{sequence}{_END}" if isinstance(sys.stdout, Shown) else sequence


def without_controls(text: str) -> str:
    """Return a text without what `control` put into it."""
    return _OURS.sub("", text) if _MARK in text else text


def _visible(text: str) -> str:
    """Return a text as a terminal may get it: `control`'s sequences bare, all others shown."""
    if _MARK not in text:
        return f"{visible(text[:-1])}\n" if text.endswith("\n") else visible(text)
    parts = _OURS.split(text)  # a text, a sequence, a text, …
    parts[::2] = map(visible, parts[::2])
    return "".join(parts)


def in_cell(text: str) -> str:
    """Return a text as it may stand in a row of a table: visible, without an end of a line."""
    if text.isascii() and text.isprintable():
        return text
    parts = _OURS.split(text)
    parts[::2] = (visible(part.translate(_BLANKS)) for part in parts[::2])
    parts[1::2] = map(control, parts[1::2])
    return "".join(parts)


class _ShownBytes(BufferedIOBase):
    """JSON on its way to a terminal."""

    def __init__(self, buffer: Any, encoding: str) -> None:
        self._buffer, self._encoding = buffer, encoding

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        found: int = self._buffer.fileno()
        return found

    def write(self, data: Any) -> int:
        text = visible_json(bytes(data).decode("utf-8", "replace"))
        self._buffer.write(text.encode(self._encoding, "backslashreplace"))
        return len(data)

    def flush(self) -> None:
        self._buffer.flush()


class Shown(TextIOWrapper):
    """A text stream in which control characters are visible, except those of `control`."""

    def __init__(self, bare: Any, encoding: str, *, lines: bool, forgives: bool = False) -> None:
        super().__init__(
            bare, encoding, "replace", newline="\n", line_buffering=lines, write_through=True
        )
        self.bare = bare
        """What is behind it, which shows nothing."""
        self._forgives = forgives
        self._bytes = _ShownBytes(bare, encoding) if bare.isatty() else bare

    @property
    def buffer(self) -> Any:
        """Where bytes go."""
        return self._bytes

    def write(self, text: str) -> int:
        """Write a text; where nobody could read of a failure, it is not raised."""
        try:
            super().write(_visible(text))
        except OSError:
            self._give_up()
        return len(text)

    def flush(self) -> None:
        """Hand on what was written."""
        try:
            super().flush()
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        """Raise again what happened; where that is forgiven, drop what nobody can read."""
        if not self._forgives:
            raise  # noqa: PLE0704 (called where an error is being handled)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


@contextmanager
def shown_streams() -> Iterator[None]:
    """Make the streams of this process `Shown` for as long as the block runs.

    A stream that was closed before the process began reads nothing and keeps nothing.
    """
    _open_closed()
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _shown(out), _shown(err, forgives=True)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, Shown):
                with suppress(OSError, ValueError):
                    stream.detach()
        sys.stdout, sys.stderr = out, err


def _shown(stream: TextIO, *, forgives: bool = False) -> TextIO:
    if isinstance(stream, Shown) or not hasattr(stream, "buffer"):
        return stream
    with suppress(OSError):
        stream.flush()
    lines = getattr(stream, "line_buffering", False)
    return Shown(stream.buffer, stream.encoding, lines=lines, forgives=forgives)


def _open_closed() -> None:
    """Give closed streams the null device, so that no file of ours is opened in their place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115 (as long as the process)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 (as above)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115 (as above)


@contextmanager
def bare_streams() -> Iterator[None]:
    """Hold the streams as they were, for a screen library that shows what it draws by itself."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _bare(out), _bare(err)
    try:
        yield
    finally:
        bare = [stream for stream in (sys.stdout, sys.stderr) if stream not in (out, err)]
        sys.stdout, sys.stderr = out, err
        for stream in bare:
            with suppress(OSError, ValueError):
                stream.detach()  # type: ignore[attr-defined]


def _bare(stream: TextIO) -> TextIO:
    if not isinstance(stream, Shown):
        return stream
    return TextIOWrapper(stream.bare, stream.encoding, "replace", newline="\n", line_buffering=True)
