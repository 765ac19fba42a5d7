"""The bytes of a text file ⇄ its lines (pure); what is not touched comes back as it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..text_files import BOM

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class FileLines:
    """A file in lines."""

    bom: bytes
    """The mark before the text, mostly none."""
    texts: Sequence[str]
    """The lines without their ends; a lone carriage return is text."""
    ends: Sequence[str]
    """The end of each; the last one has one here even where the file leaves it out."""
    line_end: str
    """How the first line ends, and so do lines that come in."""

    @property
    def whole(self) -> list[str]:
        """The lines with their ends."""
        return [text + end for text, end in zip(self.texts, self.ends, strict=True)]

    def join_lines(self, lines: Sequence[str]) -> bytes:
        """Return the file with these lines, each with its end, in place of its own."""
        return self.bom + "".join(lines).encode()


def split_file_lines(data: bytes) -> FileLines:
    """Return the lines of a file; UnicodeDecodeError when it is not UTF-8."""
    bom = BOM if data.startswith(BOM) else b""
    *pieces, last = data.removeprefix(bom).decode("utf-8").split("\n")
    ends = ["\r\n" if piece.endswith("\r") else "\n" for piece in pieces]
    texts = [piece.removesuffix("\r") for piece in pieces]
    line_end = ends[0] if ends else "\n"
    if last:
        texts.append(last)
        ends.append(line_end)
    return FileLines(bom, texts, ends, line_end)
