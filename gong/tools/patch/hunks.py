"""What a patch asks for: one hunk for each file it names; values only."""

from __future__ import annotations

from typing import Literal, NamedTuple

Sign = Literal[" ", "-", "+"]


class ChunkLine(NamedTuple):
    """One line of a chunk: " " stands before and after, "-" goes, "+" comes."""

    sign: Sign
    text: str


class Chunk(NamedTuple):
    """Lines of a file that give way to others."""

    contexts: tuple[str, ...]
    """Lines that stand somewhere above, the outermost first."""
    lines: tuple[ChunkLine, ...]
    at_end: bool
    """Whether the lines are the last of the file."""
    number: int
    """Number of its first line in the patch, the begin marker being 1."""

    @property
    def old(self) -> tuple[str, ...]:
        """The lines before."""
        return tuple(line.text for line in self.lines if line.sign != "+")

    @property
    def new(self) -> tuple[str, ...]:
        """The lines after."""
        return tuple(line.text for line in self.lines if line.sign != "-")


class AddFile(NamedTuple):
    """A file with this content, whether one is there or not."""

    path: str
    content: str


class DeleteFile(NamedTuple):
    """No file any more."""

    path: str


class UpdateFile(NamedTuple):
    """Chunks of a file replaced in their order, and the file moved when `move_to` is said."""

    path: str
    move_to: str | None
    chunks: tuple[Chunk, ...]


Hunk = AddFile | DeleteFile | UpdateFile


class InvalidPatch(NamedTuple):
    """Why a text is no patch."""

    message: str
    line: int | None = None
    """Number of the line at fault, the begin marker being 1; None when it is the envelope."""

    def __str__(self) -> str:
        where = "" if self.line is None else f" hunk on line {self.line}"
        return f"Invalid patch{where}: {self.message}"
