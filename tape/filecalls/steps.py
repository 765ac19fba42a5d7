"""What a tool call does to a file, whatever the tool was called."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Read(NamedTuple):
    """The file was looked at; `whole` when no part of it was asked for."""

    whole: bool = True


class Write(NamedTuple):
    """The file holds this text from now on; `created` when there surely was none before."""

    text: str
    created: bool = False


class Delete(NamedTuple):
    """The file is gone."""


class Replacement(NamedTuple):
    """A text that stood there once, or `every` time it stood there, gave way to another."""

    old: str
    new: str
    every: bool = False


class Hunk(NamedTuple):
    """Whole lines gave way to others, behind the lines in `contexts`; `at_end` of the file."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    contexts: tuple[str, ...] = ()
    at_end: bool = False


class Insertion(NamedTuple):
    """A text came in behind line `line`, counted from 1: 0 is the top, None the end."""

    line: int | None
    text: str


class Edit(NamedTuple):
    """Parts of the file changed, one after the other."""

    steps: tuple[Replacement | Hunk | Insertion, ...]


Work = Read | Write | Edit | Delete
"""What a call does to one file."""


class FileCall(NamedTuple):
    """One file that a call reads or changes."""

    op: Literal["read", "write", "edit", "patch"]
    path: str
    """As the model wrote it: absolute, or relative to the folder of the session."""
    work: Work
    source: str | None = None
    """The file whose content it takes over, when it was moved here."""
