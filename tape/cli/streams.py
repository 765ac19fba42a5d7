"""Standard output and error of a command: control characters in foreign text are made visible.

Text is made visible everywhere, since it is for people. Bytes are data: unchanged in a pipe or a
file; on a terminal they are JSON, and get JSON escapes. Invariant: a terminal receives no control
sequences except those from `mark_control`.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager, suppress
from io import BufferedIOBase, TextIOWrapper
from typing import TYPE_CHECKING

from ..text import escape_json_controls, show_controls

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TextIO

INTERRUPTED_CODE = 130
"""Exit code after Ctrl+C."""

_CONTROL_MARK = f"\x1b{os.urandom(8).hex()}"
"""Marks a sequence of ours; it is random, so foreign text cannot contain it."""
_CONTROL_END = "\x07"  # not a space: the end of a line may be stripped
_BLANKS = "[\n\t\u2028\u2029]"
_CONTROL_PATTERN = f"{_CONTROL_MARK}([^{_CONTROL_END}]*){_CONTROL_END}"


def mark_control(sequence: str) -> str:
    """Return an escape sequence marked so that the streams of this process let it pass."""
    return (
        f"{_CONTROL_MARK}{sequence}{_CONTROL_END}"
        if isinstance(sys.stdout, VisibleStream)
        else sequence
    )


def strip_controls(text: str) -> str:
    """Return a text without the sequences that `mark_control` marked."""
    return re.sub(_CONTROL_PATTERN, "", text) if _CONTROL_MARK in text else text


def _encode_controls(text: str) -> str:
    """Return a text safe for a terminal: our own sequences unmarked, all others visible."""
    if _CONTROL_MARK not in text:
        return f"{show_controls(text[:-1])}\n" if text.endswith("\n") else show_controls(text)
    parts = re.split(_CONTROL_PATTERN, text)  # a text, a sequence, a text, …
    parts[::2] = map(show_controls, parts[::2])
    return "".join(parts)


def format_cell(text: str) -> str:
    """Return a text as a table cell: control characters visible, without line ends."""
    if text.isascii() and text.isprintable():
        return text
    parts = re.split(_CONTROL_PATTERN, text) if _CONTROL_MARK in text else [text]
    parts[::2] = (show_controls(re.sub(_BLANKS, " ", part)) for part in parts[::2])
    parts[1::2] = map(mark_control, parts[1::2])
    return "".join(parts)


class _VisibleJsonBytes(BufferedIOBase):
    """A byte stream of JSON to a terminal; control characters become JSON escapes."""

    def __init__(self, buffer: Any, encoding: str) -> None:
        self._buffer, self._encoding = buffer, encoding

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        number: int = self._buffer.fileno()
        return number

    def write(self, data: Any) -> int:
        text = escape_json_controls(bytes(data).decode("utf-8", "replace"))
        self._buffer.write(text.encode(self._encoding, "backslashreplace"))
        return len(data)

    def flush(self) -> None:
        self._buffer.flush()


class VisibleStream(TextIOWrapper):
    """A text stream that makes control characters visible, except those of `mark_control`."""

    def __init__(
        self, bare: Any, encoding: str, *, lines: bool, ignores_errors: bool = False
    ) -> None:
        super().__init__(
            bare, encoding, "replace", newline="\n", line_buffering=lines, write_through=True
        )
        self.bare = bare
        """The underlying stream, which changes nothing."""
        self._forgives = ignores_errors
        self._bytes = _VisibleJsonBytes(bare, encoding) if bare.isatty() else bare

    @property
    def buffer(self) -> Any:
        """The stream for bytes."""
        return self._bytes

    def write(self, text: str) -> int:
        """Write a text; on standard error a failure is not raised."""
        try:
            super().write(_encode_controls(text))
        except OSError:
            self._handle_write_error()
        return len(text)

    def write_shown(self, lines: Iterable[str]) -> None:
        """Write lines that `show_controls` returned, without looking through them again.

        Each is encoded by itself: joined, one that is not ASCII would make all of them slow.
        """
        encoded = [line.encode(self.encoding, "replace") for line in lines]
        self.bare.write(b"\n".join((*encoded, b"")))

    def flush(self) -> None:
        """Flush the underlying stream."""
        try:
            super().flush()
        except OSError:
            self._handle_write_error()

    def _handle_write_error(self) -> None:
        """Re-raise the error; on standard error drop the text instead."""
        if not self._forgives:
            raise  # noqa: PLE0704 (called where an error is being handled)
        silence_stream(self)


def silence_stream(stream: TextIO) -> None:
    """Redirect a stream that cannot be written to the null device: no error is raised at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def use_visible_streams() -> Iterator[None]:
    """Make the streams of this process `VisibleStream` for as long as the block runs.

    A stream that was closed before the process started becomes the null device.
    """
    for number in range(3):  # else the next file that is opened gets the descriptor
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (as long as the process)
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _wrap_stream(out), _wrap_stream(err, ignores_errors=True)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, VisibleStream):
                with suppress(OSError, ValueError):
                    stream.detach()
        sys.stdout, sys.stderr = out, err


def _wrap_stream(stream: TextIO, *, ignores_errors: bool = False) -> TextIO:
    if isinstance(stream, VisibleStream) or not hasattr(stream, "buffer"):
        return stream
    with suppress(OSError):
        stream.flush()
    lines = getattr(stream, "line_buffering", False)
    return VisibleStream(stream.buffer, stream.encoding, lines=lines, ignores_errors=ignores_errors)


@contextmanager
def use_bare_streams() -> Iterator[None]:
    """Restore the original streams for the block: a screen library escapes its own output."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _unwrap_stream(out), _unwrap_stream(err)
    try:
        yield
    finally:
        bare = [stream for stream in (sys.stdout, sys.stderr) if stream not in (out, err)]
        sys.stdout, sys.stderr = out, err
        for stream in bare:
            with suppress(OSError, ValueError):
                stream.detach()  # type: ignore[attr-defined]


def _unwrap_stream(stream: TextIO) -> TextIO:
    if not isinstance(stream, VisibleStream):
        return stream
    return TextIOWrapper(stream.bare, stream.encoding, "replace", newline="\n", line_buffering=True)
