"""Bytes to the terminal, one frame at a time, so that it never shows half of one.

A terminal that knows DEC mode 2026 draws what is between its two marks at once:

    CSI ? 2026 h   a frame: cursor movement, text, and the cursor at the caret   CSI ? 2026 l

Others get the frames without the marks. Nothing is written but whole frames.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

FRAME_BEGIN, FRAME_END = "\x1b[?2026h", "\x1b[?2026l"
_ERASE = "\x1b[J"
"""Erases all below the cursor. In the first row and column of a window tmux takes it for clearing
the screen, and moves what stands there into the scrollback: it is sent one column on."""


class FramedStream(io.TextIOBase):
    """A text stream of a terminal in which each write is a frame."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._parts: list[str] = []
        self._is_held = False
        self.is_synchronized = False
        """Whether the terminal said that it knows the marks of a frame."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream."""
        return self._stream.encoding

    def fileno(self) -> int:
        """Return the file descriptor of the terminal."""
        return self._stream.fileno()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream.isatty()

    def write(self, text: str) -> int:
        """Take a frame, or a part of the one that is held."""
        self._parts.append(text.replace(_ERASE, f" {_ERASE}\b"))
        return len(text)

    def flush(self) -> None:
        """Write the frame, unless it is held."""
        if self._is_held or not self._parts:
            return
        text, self._parts = "".join(self._parts), []
        if self.is_synchronized:
            text = f"{FRAME_BEGIN}{text}{FRAME_END}"
        self.write_control(text)

    def write_control(self, text: str) -> None:
        """Write what is no frame, such as a question to the terminal."""
        self._stream.buffer.write(text.encode(self._stream.encoding or "utf-8", "replace"))
        self._stream.flush()

    def hold(self) -> None:
        """Make one frame of all that is written until `release`."""
        self._is_held = True

    def release(self) -> None:
        """Write the frame that was held; does nothing if none is."""
        self._is_held = False
        self.flush()
