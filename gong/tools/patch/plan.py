"""Hunks and existing files → the new content of each file, or all reasons why that fails.

Pure except for the `read` function that is passed in. Hunks see the changes of those before them;
nothing is planned if one of them fails.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Literal, NamedTuple, assert_never

from ...env.protocol import FileChange
from ..text_files import is_binary
from ..truncate import encode_text
from .hunks import AddFile, DeleteFile, UpdateFile
from .update import patch_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .hunks import Hunk


class FileOperation(NamedTuple):
    """What one hunk does, paths as the patch says them."""

    op: Literal["add", "update", "delete", "move"]
    path: str
    destination: str | None
    before: bytes
    after: bytes


class PatchPlan(NamedTuple):
    """What is to be done."""

    operations: tuple[FileOperation, ...]
    """One for each hunk."""
    changes: tuple[FileChange, ...]
    """One for each file that is not as before."""
    notes: tuple[str, ...]
    """What was overlooked to find the places."""


class PatchFailures(NamedTuple):
    """All reasons why a patch fails, one text each."""

    texts: tuple[str, ...]


def plan_patch(
    hunks: Sequence[Hunk],
    read: Callable[[str], bytes | None],
    place: Callable[[str], str] = posixpath.normpath,
) -> PatchPlan | PatchFailures:
    """Return what the hunks make of the files.

    `place` says where a path of the patch leads, one answer for all names of a file; `read` is
    asked with that answer, and returns None where no file is. An OSError of `read` is a failure.
    """
    draft = _PatchDraft(read, place)
    for hunk in hunks:
        try:
            draft.apply_hunk(hunk)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            draft.failures.append(f"Failed to {_VERBS[type(hunk)]} {hunk.path}: {reason}")
    return PatchFailures(tuple(draft.failures)) if draft.failures else draft.build_plan()


_VERBS: dict[type[Hunk], str] = {
    AddFile: "write file",
    DeleteFile: "delete file",
    UpdateFile: "read file to update",
}


class _PatchDraft:
    """The files as far as the hunks went."""

    def __init__(self, read: Callable[[str], bytes | None], place: Callable[[str], str]) -> None:
        self._read = read
        self._place = place
        self._before: dict[str, bytes | None] = {}
        self._now: dict[str, bytes | None] = {}
        self._like: dict[str, str] = {}
        self._operations: list[FileOperation] = []
        self._notes: list[str] = []
        self.failures: list[str] = []

    def build_plan(self) -> PatchPlan:
        """Return what is to be done so far."""
        changes = (
            FileChange(path, before, self._now[path], self._like.get(path))
            for path, before in self._before.items()
            if self._now[path] != before
        )
        return PatchPlan(tuple(self._operations), tuple(changes), tuple(self._notes))

    def apply_hunk(self, hunk: Hunk) -> None:
        """Apply one hunk."""
        match hunk:
            case AddFile(path, content):
                place = self._place(path)
                before, after = self._read_content(place) or b"", encode_text(content)
                self._now[place] = after
                self._operations.append(FileOperation("add", path, None, before, after))
            case DeleteFile(path):
                place = self._place(path)
                before = self._require_content(place)
                self._now[place] = None
                self._operations.append(FileOperation("delete", path, None, before, b""))
            case UpdateFile():
                self._apply_update(hunk)
            case _:
                assert_never(hunk)

    def _apply_update(self, hunk: UpdateFile) -> None:
        place = self._place(hunk.path)
        before = self._require_content(place)
        after = self._apply_chunks(before, hunk)
        if hunk.move_to is None:
            self._now[place] = after
            self._operations.append(FileOperation("update", hunk.path, None, before, after))
            return
        destination = self._place(hunk.move_to)
        self._read_content(destination)
        if destination != place:
            self._now[place] = None
            self._like[destination] = self._like.get(place, place)
        self._now[destination] = after
        self._operations.append(FileOperation("move", hunk.path, hunk.move_to, before, after))

    def _apply_chunks(self, before: bytes, hunk: UpdateFile) -> bytes:
        """Return the file with the chunks put in; without those that fail, which are noted."""
        if not hunk.chunks:
            return before
        failed = f"Failed to read file to update {hunk.path}: it is"
        try:
            result = None if is_binary(before) else patch_file(before, hunk)
        except UnicodeDecodeError:
            self.failures.append(f"{failed} not UTF-8 text. Use edit, or a command, to change it.")
            return before
        if result is None:
            self.failures.append(f"{failed} a binary file. Use a command to change it.")
            return before
        self.failures += result.failures
        self._notes += result.notes
        return result.data

    def _require_content(self, place: str) -> bytes:
        data = self._read_content(place)
        if data is None:
            raise FileNotFoundError("no such file")
        return data

    def _read_content(self, place: str) -> bytes | None:
        if place not in self._before:
            self._before[place] = self._now[place] = self._read(place)
        return self._now[place]
