"""The files of a call, as editors show them: absolute places, and what changes in each.

of a call                          shown
---------------------------------  --------------------------------------------------------------
that is asked about, or runs       what its arguments say: of an edit each old text and its new
                                   one, of a write the file as it is and as it will be
that has a result                  what was recorded of the files: all of it, before and after;
                                   where that is not stored, or long, what its arguments say
that failed                        nothing: it changed nothing
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any, NamedTuple

from acp import helpers, schema

from tape.errors import NotFound
from tape.files.calls import (
    FileDelete,
    FileEdit,
    FileRead,
    FileWrite,
    PatchHunk,
    TextInsertion,
    TextReplacement,
    parse_named_call,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tape.files.calls import FileCall
    from tape.model.entries import BlobRef, ChangedFile

_PATH_FIELDS = ("path", "file_path", "dir_path", "file")
_MAX_BYTES = 256 * 1024
"""Bytes of one version of a file that is shown whole."""
_MAX_FILES = 100
"""Files of a call that are shown."""


class CallFiles(NamedTuple):
    """The files of a session."""

    resolve: Callable[[str], str]
    """Returns the absolute path that a call means."""
    load: Callable[[BlobRef], bytes]
    """Returns stored bytes; raises NotFound."""
    is_live: bool = True
    """Whether calls are about to run, so that a file is on the disk as it was before them."""

    def find_locations(
        self, name: str, arguments: Mapping[str, Any]
    ) -> list[schema.ToolCallLocation]:
        """Return the places that a call names."""
        lines: dict[str, int | None] = {}
        for call in parse_named_call(name, arguments):
            line = arguments.get("offset") if isinstance(call.work, FileRead) else None
            known = line if isinstance(line, int) and line > 0 else None
            for path in (call.source, call.path):
                if path:
                    lines.setdefault(path, known)
        if not lines:
            named = next((arguments[key] for key in _PATH_FIELDS if arguments.get(key)), None)
            # what a tool of a server calls a path may be anything
            if isinstance(named, str) and (named.startswith("/") or "__" not in name):
                lines[named] = None
        paths = ((self._resolve_path(path), line) for path, line in lines.items())
        return [
            schema.ToolCallLocation(path=path, line=line)
            for path, line in [*paths][:_MAX_FILES]
            if path
        ]

    def build_diffs(self, name: str, arguments: Mapping[str, Any]) -> list[Any]:
        """Return what a call is going to change, by its arguments."""
        diffs: list[Any] = []
        for call in parse_named_call(name, arguments)[:_MAX_FILES]:
            path = self._resolve_path(call.path)
            if path:
                diffs += self._build_file_diffs(call, path)
        return diffs

    def build_result_diffs(
        self, name: str, arguments: Mapping[str, Any], files: Sequence[ChangedFile]
    ) -> list[Any]:
        """Return what a call has changed: nothing of a tool that is not one for changing files."""
        planned = CallFiles(self.resolve, self.load, is_live=False).build_diffs(name, arguments)
        if not planned:
            return []
        diffs = [self._build_recorded_diff(file) for file in files[:_MAX_FILES]]
        recorded = {diff.path: diff for diff in diffs if diff is not None}
        if not recorded:
            return planned
        return [*recorded.values(), *(diff for diff in planned if diff.path not in recorded)]

    def _resolve_path(self, path: str) -> str:
        try:
            return self.resolve(path)
        except (OSError, ValueError):
            return ""

    def _build_file_diffs(self, call: FileCall, path: str) -> Iterator[Any]:
        match call.work:
            case FileWrite(text, created):
                before = None if created else self._read_before(path)
                yield helpers.tool_diff_content(path, text, before)
            case FileDelete():
                before = self._read_before(path)
                if before is not None:
                    yield helpers.tool_diff_content(path, "", before)
            case FileEdit(steps):
                for step in steps:
                    old, new = _build_texts(step)
                    yield helpers.tool_diff_content(path, new, old)
            case FileRead():
                pass

    def _read_before(self, path: str) -> str | None:
        """Return the text of a file before a call; None where there is none, or it is long."""
        if not self.is_live:
            return None
        try:
            file_stat = os.stat(path)  # noqa: PTH116 (a path of a model)
            if not stat.S_ISREG(file_stat.st_mode) or file_stat.st_size > _MAX_BYTES:
                return None
            with open(path, "rb") as file:  # noqa: PTH123 (as above)
                return _decode_text(file.read())
        except (OSError, ValueError):
            return None

    def _build_recorded_diff(self, file: ChangedFile) -> Any:
        """Return the change of a file; None where its bytes are missing, long, or not text."""
        before, after = self._load_text(file.before_blob), self._load_text(file.after_blob)
        is_known = (before is None) is (file.before is None) and (after is None) is (
            file.after is None
        )
        path = self._resolve_path(file.path)
        if not is_known or file.why or not path or before == after:
            return None
        return helpers.tool_diff_content(path, after or "", before)

    def _load_text(self, blob: BlobRef | None) -> str | None:
        if blob is None or blob.bytes > _MAX_BYTES:
            return None
        try:
            return _decode_text(self.load(blob))
        except NotFound:
            return None


def _build_texts(step: TextReplacement | PatchHunk | TextInsertion) -> tuple[str, str]:
    """Return the old and the new text of one step of an edit."""
    match step:
        case TextReplacement(old, new):
            return old, new
        case PatchHunk(before, after):
            return _join_lines(before), _join_lines(after)
        case TextInsertion(_, text):
            return "", text


def _join_lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _decode_text(data: bytes) -> str | None:
    """Return a file's text; None for one that is not text."""
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None
