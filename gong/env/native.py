"""Searching files without other programs: the walk, the names and the lines; blocking functions.

What a .gitignore file leaves out is not entered, nor is a folder .git; links are not followed.
Everything comes in the order of names, folder by folder.
"""

from __future__ import annotations

import codecs
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from .globs import path_pattern
from .ignore import Ignored, rules_of
from .protocol import Listed, Match, Matches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .protocol import Search

GIT = ".git"
_IGNORE_FILE = ".gitignore"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def glob_below(folder: str, pattern: str) -> tuple[Listed, ...]:
    """Return what below a folder matches a pattern; ValueError for one that is none."""
    matches = path_pattern(pattern).fullmatch
    return tuple(
        Listed(path, entry.is_dir(follow_symlinks=False), changed_ns(entry.path))
        for path, entry in _walk(folder)
        if matches(path)
    )


def grep_below(place: str, search: Search) -> Matches:
    """Return the lines that match, in the files below a folder or in one file."""
    pattern = expression(search)
    wanted = path_pattern(search.glob).fullmatch if search.glob else None
    found: list[Match] = []
    for path, name in _files(place):
        if wanted is not None and not wanted(name):
            continue
        for number in matching_lines(_content(path), pattern):
            found.append(Match(name, number))
            if len(found) == search.limit:
                return Matches(tuple(found), limited=True)
    return Matches(tuple(found), limited=False)


def changed_ns(path: str) -> int:
    """Return when a file changed, 0 where that is not known."""
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0


def _files(place: str) -> Iterator[tuple[str, str]]:
    if not Path(place).is_dir():
        Path(place).stat()
        yield place, Path(place).name
        return
    for path, entry in _walk(place):
        if entry.is_file(follow_symlinks=False):
            yield entry.path, path


def _walk(folder: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield what is below a folder, with its path from there."""
    yield from _entries(folder, "", _above(folder))


def _entries(
    folder: str, prefix: str, outer: Ignored | None
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    try:
        with os.scandir(folder) as listed:
            entries = sorted(listed, key=lambda entry: os.fsencode(entry.name))
    except OSError:
        if not prefix:
            raise
        # A folder that may not be opened is passed over, as other programs do.
        return
    ignored = _with_file(folder, outer)
    for entry in entries:
        is_dir = entry.is_dir(follow_symlinks=False)
        if entry.name == GIT or (ignored and ignored.leaves_out(entry.path, is_dir=is_dir)):
            continue
        yield prefix + entry.name, entry
        if is_dir:
            yield from _entries(entry.path, f"{prefix}{entry.name}/", ignored)


def _above(folder: str) -> Ignored | None:
    """Return the rules of the folders around this one, up to the top of its repository."""
    around = []
    at = Path(folder)
    while not (at / GIT).exists() and at.parent != at:
        at = at.parent
        around.append(str(at))
    ignored = None
    for one in reversed(around):
        ignored = _with_file(one, ignored)
    return ignored


def _with_file(folder: str, outer: Ignored | None) -> Ignored | None:
    try:
        text = Path(folder, _IGNORE_FILE).read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return outer
    rules = rules_of(text)
    return Ignored(folder, rules, outer) if rules else outer


def expression(search: Search) -> re.Pattern[bytes]:
    """Return what to look for; ValueError for a pattern that is no regular expression."""
    source = re.escape(search.pattern) if search.literal else search.pattern
    flags = re.IGNORECASE if search.ignore_case else re.NOFLAG
    try:
        # Checked as text, so that what is said of it names characters, not bytes.
        re.compile(source, flags)
        return re.compile(source.encode("utf-8", "surrogateescape"), flags)
    except re.error as error:
        raise ValueError(f"Invalid regular expression: {search.pattern}: {error}") from error


def matching_lines(data: bytes, pattern: re.Pattern[bytes]) -> Iterator[int]:
    """Yield the numbers of the lines that match; none of a binary file."""
    if data.startswith(_UTF_16):
        data = data.decode("utf-16", "replace").encode()
    if b"\0" in data:
        return
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        if pattern.search(line.removesuffix(b"\r")):
            yield number


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        # What cannot be read is passed over.
        return b""
