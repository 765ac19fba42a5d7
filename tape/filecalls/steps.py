"""What a tool call does to a file, whatever the tool was called."""

from __future__ import annotations

from typing import Literal, NamedTuple


class FileRead(NamedTuple):
    """The file was looked at; `whole` when no part of it was asked for."""

    whole: bool = True


class FileWrite(NamedTuple):
    """The file holds this text from now on; `created` when there surely was none before."""

    text: str
    created: bool = False


class FileDelete(NamedTuple):
    """The file is gone."""


class TextReplacement(NamedTuple):
    """A text that stood there once, or `every` time it stood there, gave way to another."""

    old: str
    new: str
    every: bool = False


class PatchHunk(NamedTuple):
    """Whole lines gave way to others, behind the lines in `contexts`; `at_end` of the file."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    contexts: tuple[str, ...] = ()
    at_end: bool = False


class TextInsertion(NamedTuple):
    """A text came in behind line `line`, counted from 1: 0 is the top, None the end."""

    line: int | None
    text: str


class FileEdit(NamedTuple):
    """Parts of the file changed, one after the other."""

    steps: tuple[TextReplacement | PatchHunk | TextInsertion, ...]


FileWork = FileRead | FileWrite | FileEdit | FileDelete
"""What a call does to one file."""


class FileCall(NamedTuple):
    """One file that a call reads or changes."""

    op: Literal["read", "write", "edit", "patch"]
    path: str
    """As the model wrote it: absolute, or relative to the folder of the session."""
    work: FileWork
    source: str | None = None
    """The file whose content it takes over, when it was moved here."""
