"""The text of a patch → its hunks, or the first line that makes no sense (pure).

A hunk is what a patch asks for in one file. Strict where codex is: its words for what is wrong are
kept. Besides, `@@` lines that follow each other are contexts of one chunk, a file may be moved
without a change, and a fence or any heredoc around the patch is taken off.

    *** Begin Patch                 1   the envelope; line numbers of errors start here
    *** Update File: src/a.py       2   hunk: UpdateFile("src/a.py", move_to="b.py", …)
    *** Move to: b.py               3
    @@ class Greeter                4   chunk: contexts ("class Greeter",)
     name = "you"                   5       " " before and after
    -print(name)                    6       "-" goes
    +print("Hello", name)           7       "+" comes
    *** Add File: new.txt           8   hunk: AddFile("new.txt", "text")
    +text                           9
    *** End Patch                   10

Models also send a patch to a shell when they mean the tool. Only a command that does nothing else
is taken for a patch; anything more stays with the shell.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


Sign = Literal[" ", "-", "+"]


class ChunkLine(NamedTuple):
    """One line of a chunk: " " stands before and after, "-" goes, "+" comes."""

    sign: Sign
    text: str


class PatchChunk(NamedTuple):
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
    chunks: tuple[PatchChunk, ...]


Hunk = AddFile | DeleteFile | UpdateFile


class InvalidPatch(NamedTuple):
    """Why a text is no patch."""

    message: str
    line: int | None = None
    """Number of the line at fault, the begin marker being 1; None when it is the envelope."""

    def __str__(self) -> str:
        where = "" if self.line is None else f" hunk on line {self.line}"
        return f"Invalid patch{where}: {self.message}"


BEGIN_MARKER, END_MARKER = "*** Begin Patch", "*** End Patch"
ADD_MARKER, DELETE_MARKER, UPDATE_MARKER = (
    "*** Add File: ",
    "*** Delete File: ",
    "*** Update File: ",
)
MOVE_MARKER, END_OF_FILE_MARKER = "*** Move to: ", "*** End of File"
ENVIRONMENT_MARKER = "*** Environment ID:"

_FENCE = re.compile(r"`{3,}\s*[\w.-]*|~{3,}\s*[\w.-]*")
_FENCE_ENDS = {"```", "~~~"}
_STARS = " ***"
"""What some models write behind a marker, too."""
_HEREDOC = re.compile(r"(?:(?:cat|apply_patch|applypatch)\s*)?<<\s*(['\"]?)(\w+)\1\s*")


class _PatchError(Exception):
    """Ends the reading of a patch."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.invalid = InvalidPatch(message, line)


class _PatchLines:
    """The lines between the markers, and how far they are read."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._read = 0

    @property
    def number(self) -> int:
        """The number of the next line; the begin marker is 1."""
        return self._read + 2

    @property
    def next(self) -> str | None:
        """The next line; None at the end."""
        return self._lines[self._read] if self._read < len(self._lines) else None

    def take(self) -> str:
        """Return the next line and go past it."""
        self._read += 1
        return self._lines[self._read - 1]


def parse_patch(text: str) -> tuple[Hunk, ...] | InvalidPatch:
    """Return the hunks of a patch in its order, or why it is none; no hunk at all is fine."""
    try:
        lines = _PatchLines(_cut_body(text))
        named = (lines.next or "").startswith(ENVIRONMENT_MARKER)
        if named and not _cut_path(lines.take(), ENVIRONMENT_MARKER):
            return InvalidPatch("apply_patch environment_id cannot be empty")
        return tuple(_parse_hunks(lines))
    except _PatchError as wrong:
        return wrong.invalid


def cut_words_around(text: str) -> str:
    """Return the one fenced patch of an answer in words; the text as it is where it has not one.

    No line of a patch is a fence: each begins with a sign or with stars.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    patches, start = list[str](), None
    for number, line in enumerate(map(str.rstrip, lines)):
        if start is None and _FENCE.fullmatch(line):
            start = number
        elif start is not None and line in _FENCE_ENDS:
            fenced = "\n".join(lines[start : number + 1])
            start = None
            with suppress(_PatchError):
                _cut_body(fenced)
                patches.append(fenced)
    return patches[0] if len(patches) == 1 else text


def _cut_body(text: str) -> list[str]:
    lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").strip().split("\n")]
    if len(lines) > 2 and _FENCE.fullmatch(lines[0]) and lines[-1] in _FENCE_ENDS:  # noqa: PLR2004 - two fences
        lines = "\n".join(lines[1:-1]).strip().split("\n")
    heredoc = _HEREDOC.fullmatch(lines[0])
    if heredoc and len(lines) > 3 and lines[-1].endswith(heredoc[2]):  # noqa: PLR2004 - two markers, two of the shell
        lines = lines[1:-1]
    if _cut_stars(lines[0]) != BEGIN_MARKER:
        raise _PatchError(f"The first line of the patch must be '{BEGIN_MARKER}'")
    if _cut_stars(lines[-1]) != END_MARKER:
        raise _PatchError(f"The last line of the patch must be '{END_MARKER}'")
    return lines[1:-1]


def _parse_hunks(lines: _PatchLines) -> Iterator[Hunk]:
    while lines.next is not None:
        number, header = lines.number, lines.take().strip()
        if header.startswith(ADD_MARKER):
            content = []
            while (lines.next or "").startswith("+"):
                content.append(lines.take()[1:] + "\n")
            yield AddFile(_cut_path(header, ADD_MARKER), "".join(content))
        elif header.startswith(DELETE_MARKER):
            yield DeleteFile(_cut_path(header, DELETE_MARKER))
        elif header.startswith(UPDATE_MARKER):
            yield _parse_update(_cut_path(header, UPDATE_MARKER), number, lines)
        else:
            raise _PatchError(
                f"'{header}' is not a valid hunk header. Valid hunk headers:"
                f" '{ADD_MARKER}{{path}}', '{DELETE_MARKER}{{path}}', '{UPDATE_MARKER}{{path}}'",
                number,
            )


def _cut_path(header: str, marker: str) -> str:
    return _cut_stars(header.removeprefix(marker))


def _cut_stars(line: str) -> str:
    return line.strip().removesuffix(_STARS).strip()


def _parse_update(path: str, number: int, lines: _PatchLines) -> UpdateFile:
    moves = (lines.next or "").startswith(MOVE_MARKER)
    move_to = _cut_path(lines.take(), MOVE_MARKER) if moves else None
    chunks: list[PatchChunk] = []
    while lines.next is not None and not lines.next.startswith("***"):
        if lines.next.strip():
            chunks.append(_parse_chunk(lines, is_first=not chunks))
        else:
            lines.take()
    if not chunks and not move_to:
        raise _PatchError(f"Update file hunk for path '{path}' is empty", number)
    return UpdateFile(path, move_to, tuple(chunks))


def _parse_chunk(lines: _PatchLines, *, is_first: bool) -> PatchChunk:
    number = lines.number
    contexts = []
    while lines.next == "@@" or (lines.next or "").startswith("@@ "):
        contexts.append(lines.take()[3:])
    if lines.number == number and not is_first:
        raise _PatchError(
            "Expected update hunk to start with a @@ context marker, got:"
            f" '{lines.next}'. After a chunk comes another one, '@@' first, or the next file",
            number,
        )
    changed = []
    while lines.next is not None and lines.next[:1] in {"", " ", "-", "+"}:
        line = lines.take() or " "
        changed.append(ChunkLine(cast("Sign", line[0]), line[1:]))
    if not changed:
        why = (
            f"Unexpected line found in update hunk: '{lines.next}'. Every line should start with"
            " ' ' (context line), '+' (added line), or '-' (removed line)"
        )
        if lines.next in {None, END_OF_FILE_MARKER}:
            why = "Update hunk does not contain any lines"
        raise _PatchError(why, lines.number)
    at_end = (lines.next or "").rstrip() == END_OF_FILE_MARKER
    if at_end:
        lines.take()
    return PatchChunk(tuple(filter(str.strip, contexts)), tuple(changed), at_end, number)


PATCH_COMMAND_NAMES = ("apply_patch", "applypatch")
IMPLICIT_PATCH_TEXT = (
    'patch detected without explicit call to apply_patch. Rerun as ["apply_patch", "<patch>"]'
)
_SHELLS = {"bash", "sh", "zsh"}
_SHELL_RUN_FLAGS = {"-c", "-lc"}
_FIRST_LINE = re.compile(
    r"""
    \s* (?: cd \s+ (?: '(?P<single>[^'\n]+)' | "(?P<double>[^"$`\\\n]+)"
                     | (?P<word>[^\s'"$`\\;&|<>()*?\[\]{}~\#!-][^\s'"$`\\;&|<>()*?\[\]{}!]*) )
        \s* && \s* )?
    (?: apply_patch | applypatch ) \s* << \s* (?P<quote>['"]?) (?P<end>\w+) (?P=quote) [ \t\r]*
    """,
    re.VERBOSE,
)


class PatchCommand(NamedTuple):
    """A patch that a command hands to apply_patch."""

    patch: str
    folder: str | None
    """The folder it names first, with `cd`."""


def find_patch_in_command(command: str | Sequence[str]) -> PatchCommand | InvalidPatch | None:
    """Return the patch that a script or an argv is, None when it is something else.

    A patch that nobody is asked to apply is Invalid, with what to say instead.
    """
    if not isinstance(command, str):
        match list(command):
            case [name, patch] if name in PATCH_COMMAND_NAMES:
                return PatchCommand(patch, None)
            case [shell, flag, script] if (
                PurePosixPath(shell).name in _SHELLS and flag in _SHELL_RUN_FLAGS
            ):
                command = script
            case [script]:
                command = script
            case _:
                return None
    script = command
    first, _, rest = script.lstrip().partition("\n")
    called = _FIRST_LINE.fullmatch(first)
    if called is None:
        is_patch = not isinstance(parse_patch(script), InvalidPatch)
        return InvalidPatch(IMPLICIT_PATCH_TEXT) if is_patch else None
    lines = rest.split("\n")
    ends = [number for number, line in enumerate(lines) if line.rstrip("\r") == called["end"]]
    if not ends or any(line.strip() for line in lines[ends[0] + 1 :]):
        return None
    folder = called["single"] or called["double"] or called["word"]
    return PatchCommand("\n".join(lines[: ends[0]]), folder)
