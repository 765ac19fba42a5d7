"""Which files with credentials a repository tracks, and which uses of git show what they hold.

    git show HEAD, git diff REV, git log -p       every tracked file, or those of the paths given
    git grep                                      the same
    git diff, git diff HEAD                       those that changed since they were checked out
    git log, git show --stat, git diff --name-only    none: what they print holds no content

The index of the repository is read, and nothing is run. What was committed once and is tracked no
more is not looked for: it is in the history for whoever has the repository.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ..git_programs import locate_git_folder
from .matching import has_any_option, list_operands
from .tables import load_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .invocation import Invocation

_PATCH = re.compile(r"-[pu]|--cc|--patch.*|-U.*|--unified.*|--full-diff")
_NO_CONTENT = (
    *("--stat", "--name-only", "--name-status", "--numstat", "--shortstat", "--summary"),
    *("--raw", "-s", "--no-patch", "--dirstat", "--quiet"),
)
_ONLY_NAMES = ("-l", "-L", "-c", "--count", "--files-with-matches", "--files-without-match", "-q")
_SHOWING = {"show", "diff"}
_SHOWING_PATCHES = {"log", "whatchanged", "stash", "diff-tree", "diff-index", "reflog", "shortlog"}
_INDEX_HEAD = b"DIRC"
_FIXED_BYTES = 62
"""Of an entry before its path; the last two hold flags, and its length in the lower twelve bits."""
_LENGTH_BITS = 0xFFF
_MTIME, _SIZE = slice(8, 12), slice(36, 40)
"""Of an entry: the seconds of its time, and its size, when the file was last looked at."""


class TrackedFile(NamedTuple):
    """A file that a repository tracks."""

    path: str
    """Absolute."""
    mtime: int
    size: int

    @property
    def is_changed(self) -> bool:
        """Whether the file on the disk may differ from what was last recorded."""
        try:
            found = os.stat(self.path)  # noqa: PTH116 (a path as git has it)
        except OSError:
            return True
        same = found.st_size & 0xFFFFFFFF == self.size and int(found.st_mtime) == self.mtime
        return not same


def find_shown_files(use: Invocation) -> Iterator[str]:
    """Yield the tracked files with credentials whose content a use of git may show."""
    given = list_operands(use.arguments, load_tables().valued.get("git", ()))
    if use.name != "git" or not given:
        return
    command, texts = given[0].text, [one.text for one in use.arguments]
    if not _is_showing_content(command, use):
        return
    skip = 1 if command != "grep" or has_any_option(use.arguments, ("-e", "-f")) else 2
    named = [one.text for one in given[skip:]]
    if named and all(":" in one[1:] for one in named):
        return  # `git show REV:FILE` names the file
    for folder in filter(None, use.places.folders):
        paths = texts[texts.index("--") + 1 :] if "--" in texts else _list_paths(named, folder)
        revisions = {one for one in named if one not in paths}
        staged = has_any_option(use.arguments, ("--cached", "--staged"))
        only_changed = command == "diff" and revisions <= {"HEAD"} and not staged
        for file in list_tracked_credentials(folder):
            chosen = not paths or any(_is_chosen(file.path, one, folder) for one in paths)
            if chosen and not (only_changed and not file.is_changed):
                yield file.path


def _is_showing_content(command: str, use: Invocation) -> bool:
    if command == "grep":
        return not has_any_option(use.arguments, _ONLY_NAMES)
    asked = any(_PATCH.fullmatch(one.text) for one in use.arguments)
    if command in _SHOWING:
        return asked or not has_any_option(use.arguments, _NO_CONTENT)
    return command in _SHOWING_PATCHES and asked


def _list_paths(named: Sequence[str], folder: str) -> list[str]:
    return [one for one in named if os.path.lexists(f"{folder}/{one}")]


def _is_chosen(path: str, wanted: str, folder: str) -> bool:
    """Return whether a path of git's command line may choose a file; magic chooses all."""
    if wanted[:1] == ":":
        return True
    place = os.path.normpath(os.path.join(folder, wanted))  # noqa: PTH118
    return path == place or path.startswith(f"{place}/") or fnmatchcase(path, place)


def list_tracked_credentials(folder: str) -> Iterator[TrackedFile]:
    """Yield the files of the repository around a folder that may hold credentials, by their names.

    An index whose paths are compressed (version 4) tells none.
    """
    place = locate_git_folder(folder)
    if place is None:
        return
    top = folder
    while not os.path.lexists(f"{top}/.git"):
        top = os.path.dirname(top)  # noqa: PTH120
    try:
        with open(f"{place}/index", "rb") as file:  # noqa: PTH123
            data = file.read()
    except OSError:
        return
    if data[:4] != _INDEX_HEAD or int.from_bytes(data[4:8], "big") > 3:  # noqa: PLR2004
        return
    for match in _compile_names().finditer(data):
        end = match.end() - 1
        start = _find_path_start(data, match.start(), end)
        if start is None:
            continue
        entry = start - _FIXED_BYTES
        mtime, size = (
            int.from_bytes(data[entry + one.start : entry + one.stop], "big")
            for one in (_MTIME, _SIZE)
        )
        yield TrackedFile(f"{top}/{os.fsdecode(data[start:end])}", mtime, size)


def _find_path_start(data: bytes, name: int, end: int) -> int | None:
    """Return where the path that ends there begins: its length is in the two bytes before it."""
    for start in range(name, max(end - _LENGTH_BITS, _FIXED_BYTES) - 1, -1):
        length = int.from_bytes(data[start - 2 : start], "big") & _LENGTH_BITS
        if length == end - start:
            return start
        if data[start - 1 : start] == b"\0" and start < name - 2:
            return None
    return None


@cache
def _compile_names() -> re.Pattern[bytes]:
    """Return what fits the end of a path that may hold credentials, with the zero behind it."""
    places = load_tables().places
    ends = []
    for one in (*places.sensitive, *places.secrets):
        name = one.rpartition("/")[2]
        folder = one.removesuffix("/*").rpartition("/")[2]
        text = f"{folder}/*" if name == "*" else name
        parts = re.split(r"(\*|\?|\[[^\]]*\])", text)
        ends.append("".join(map(_to_pattern, parts)))
    return re.compile(f"(?:{'|'.join(dict.fromkeys(ends))})\0".encode())


def _to_pattern(part: str) -> str:
    if part == "*":
        return r"[^/\x00]*"
    if part == "?":
        return r"[^/\x00]"
    if part[:2] == "[!":
        return f"[^{part[2:-1]}/\\x00]"
    return part if part[:1] == "[" else re.escape(part)
