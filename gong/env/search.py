"""Searching files without other programs: the walk, the ignore rules, the names and the lines.

The functions block: `run_search` runs one in a thread, and stops it. What a .gitignore file leaves
out is not entered, nor is a folder .git; links are not followed. Everything comes in the order of
names, folder by folder.

Ignore rules are those of gitignore(5). The last rule that matches decides, and those of a deeper
folder come after those above it; what is in a folder that is left out is never asked about:

    .gitignore   *.log  !keep.log  build/     d/.gitignore   !*.log
    a.log → left out    keep.log → stays      d/a.log → stays    build/keep.log → left out

As in git, a pattern is held against the bytes of a name: here each byte is a character. pathspec
was measured and not taken: of the 25 cases that git was asked about it answers 3 otherwise (a tab
at the end of a line, a file put back below `abc/**`), it has no classes such as [[:alpha:]], and it
backtracks: `a*a*a*a*a*a*a*a*b` on sixty letters takes longer than 5 s, here 0.4 ms.

A pattern of lines that is more than plain text is for `scanner`, a process that can be ended.
"""

from __future__ import annotations

import asyncio
import codecs
import errno
import os
import re
import stat
import threading
import warnings
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

from .files import open_folder, read_regular_file, stat_below
from .globs import MAX_PATTERN_CHARACTERS, compile_glob, compile_ignore_glob
from .protocol import LineMatch, LineMatches, ListedPath
from .scanner import find_lines, find_matches, read_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from .globs import Glob
    from .protocol import Search
    from .scanner import LineBatch

    _Found = tuple[str, bool, os.DirEntry[str]]
    """Path below the folder, whether it is a folder itself, and what the system said of it."""


_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")
_STOP: ContextVar[threading.Event | None] = ContextVar("search_stop", default=None)
"""Set where the search of this thread is no longer wanted."""


class SearchStopped(Exception):
    """Nobody waits for this search any more."""


async def run_search(
    search: Callable[_Given, _Made], *arguments: _Given.args, **named: _Given.kwargs
) -> _Made:
    """Return what a search of this module returns; it ends at its next folder once cancelled."""
    stop, context = threading.Event(), copy_context()
    context.run(_STOP.set, stop)
    try:
        return await asyncio.to_thread(context.run, lambda: search(*arguments, **named))
    finally:
        stop.set()


_WILD = re.compile(r"[*?\[\\]")


class IgnoreRule(NamedTuple):
    """One line of a .gitignore file."""

    text: str
    """What the path begins with, or all of it where there is no pattern."""
    pattern: Glob | None
    """Matches what comes after `text`."""
    by_name: bool
    """Only the last name of the path is looked at, not the path below the folder of the file."""
    folders_only: bool
    keeps: bool
    """A line with "!": what it matches stays."""

    def matches(self, path: str, name: str) -> bool:
        """Whether it matches a path, of which `name` is the last part."""
        subject = name if self.by_name else path
        if self.pattern is None:
            return subject == self.text
        return subject.startswith(self.text) and self.pattern.matches(subject[len(self.text) :])


class IgnoreRules(NamedTuple):
    """The rules that hold in a folder, outermost first."""

    folder: str
    """Absolute."""
    rules: tuple[IgnoreRule, ...]
    outer: IgnoreRules | None = None

    def is_ignored(self, path: str, *, is_dir: bool) -> bool:
        """Whether something absolute below the folder is left out."""
        below = path[len(self.folder.rstrip("/")) + 1 :]
        if not below.isascii():
            below = os.fsencode(below).decode("latin-1")
        name = below.rpartition("/")[2]
        for rule in reversed(self.rules):
            if (is_dir or not rule.folders_only) and rule.matches(below, name):
                return not rule.keeps
        return self.outer is not None and self.outer.is_ignored(path, is_dir=is_dir)


def parse_ignore_file(data: bytes) -> tuple[IgnoreRule, ...]:
    """Return the rules of a .gitignore file, in order."""
    lines = data.removeprefix(codecs.BOM_UTF8).decode("latin-1").split("\n")
    rules = (_parse_ignore_line(line.removesuffix("\r")) for line in lines)
    return tuple(rule for rule in rules if rule is not None)


def _parse_ignore_line(line: str) -> IgnoreRule | None:
    if line.startswith("#"):
        return None
    keeps = line.startswith("!")
    line = line[keeps:]
    glob = line.rstrip(" ")
    if (len(glob) - len(glob.rstrip("\\"))) % 2 and len(glob) < len(line):
        glob += " "  # the first blank of the end is escaped
    folders_only = glob.endswith("/")
    glob = glob.removesuffix("/")
    if not glob or len(glob) > MAX_PATTERN_CHARACTERS:
        # One that long names no path a system takes.
        return None
    by_name = "/" not in glob
    glob = glob.removeprefix("/")
    wild = _WILD.search(glob)
    if wild is None:
        return IgnoreRule(glob, None, by_name, folders_only, keeps)
    # As in git, two stars after plain text begin a pattern of their own.
    start = wild.start()
    return IgnoreRule(glob[:start], compile_ignore_glob(glob[start:]), by_name, folders_only, keeps)


GIT = ".git"
IGNORE_FILE = ".gitignore"
EXCLUDE_FILE = ".git/info/exclude"
"""The rules of a repository, beside the files it holds."""
_PLAIN = re.compile(r"[^\\.^$*+?{}\[\]|()]*")


def find_below(folder: str, pattern: str, root: str | None = None) -> tuple[ListedPath, ...]:
    """Return what below a folder matches a pattern; ValueError for one that is none."""
    matches = compile_glob(pattern).matches
    return tuple(
        ListedPath(path, is_dir, read_changed_ns(f"{folder}/{path}", root))
        for path, is_dir, _ in _walk_folder(folder, root)
        if matches(path)
    )


def search_below(place: str, search: Search, root: str | None = None) -> LineMatches:
    """Return the lines that match, in the files below a folder or in one file."""
    find, needle = partial(find_lines, compile_expression(search)), build_needle(search)
    matches: list[LineMatch] = []
    binary: list[str] = []
    for path, name in list_files_below(place, search.glob, root):
        batches = _stop_between(read_batches(path, root))
        lines, is_binary = find_matches(batches, find, search.limit - len(matches), needle)
        if is_binary:
            binary += [name] if lines else []
            continue
        matches += [LineMatch(name, number, at) for number, at in lines]
        if len(matches) == search.limit:
            return LineMatches(tuple(matches), limited=True, binary=tuple(binary))
    return LineMatches(tuple(matches), limited=False, binary=tuple(binary))


def _stop_between(batches: Iterator[LineBatch]) -> Iterator[LineBatch]:
    """Yield batches as long as the search is wanted."""
    stop = _STOP.get()
    for batch in batches:
        if stop is not None and stop.is_set():
            raise SearchStopped
        yield batch


def list_files_below(
    place: str, glob: str | None, root: str | None = None
) -> Iterator[tuple[str, str]]:
    """Yield path and name of each file to be searched; the name starts from the folder."""
    accepts = compile_glob(glob).matches if glob else None
    mode = (stat_below(root, place) if root else Path(place).stat()).st_mode
    if stat.S_ISDIR(mode):
        for path, is_dir, entry in _walk_folder(place, root):
            if (
                not is_dir
                and entry.is_file(follow_symlinks=False)
                and (not accepts or accepts(path))
            ):
                yield f"{place}/{path}", path
    elif not stat.S_ISREG(mode):
        # A pipe or a device may have no end.
        raise OSError(errno.EINVAL, "Not a regular file", place)
    elif accepts is None or accepts(Path(place).name):
        yield place, Path(place).name


def read_changed_ns(path: str, root: str | None = None) -> int:
    """Return when a file changed, 0 where that is not known."""
    try:
        return (stat_below(root, path) if root else os.lstat(path)).st_mtime_ns
    except OSError:
        return 0


def _walk_folder(folder: str, root: str | None) -> Iterator[_Found]:
    """Yield what is below a folder, with its path from there; no link below `root` is followed."""
    yield from _walk_entries(folder, "", load_ignore_rules(folder), root)


def load_ignore_rules(folder: str) -> IgnoreRules | None:
    """Return the rules of the folders around a folder, up to the top of its repository."""
    around: list[str] = []
    at = Path(folder)
    while not (at / GIT).exists() and at.parent != at:
        at = at.parent
        around.append(str(at))
    ignored = _load_rules(str(at), EXCLUDE_FILE, None)
    for parent in reversed(around):
        ignored = _load_rules(parent, IGNORE_FILE, ignored)
    return ignored


def extend_ignore_rules(
    folder: str, names: Collection[str], outer: IgnoreRules | None
) -> IgnoreRules | None:
    """Return the rules that hold in a folder of these names, with those of the folders above."""
    rules = _load_rules(folder, EXCLUDE_FILE, None) if GIT in names else outer
    return _load_rules(folder, IGNORE_FILE, rules) if IGNORE_FILE in names else rules


def _walk_entries(
    folder: str, prefix: str, outer: IgnoreRules | None, root: str | None
) -> Iterator[_Found]:
    try:
        with open_folder(folder, root) as listed:
            # Asked now: later the folder may be closed, and the answer is kept.
            entries = [(entry.name, entry.is_dir(follow_symlinks=False), entry) for entry in listed]
    except OSError:
        if not prefix:
            raise
        # A folder that may not be opened is passed over, as other programs do.
        return
    entries.sort(key=lambda entry: os.fsencode(entry[0]))
    names = {name for name, _, _ in entries}
    ignored = extend_ignore_rules(folder, names, outer)
    if (stop := _STOP.get()) is not None and stop.is_set():
        raise SearchStopped
    for name, is_dir, entry in entries:
        if name == GIT or (ignored and ignored.is_ignored(f"{folder}/{name}", is_dir=is_dir)):
            continue
        yield prefix + name, is_dir, entry
        if is_dir:
            yield from _walk_entries(f"{folder}/{name}", f"{prefix}{name}/", ignored, root)


def _load_rules(folder: str, name: str, outer: IgnoreRules | None) -> IgnoreRules | None:
    try:
        rules = parse_ignore_file(read_regular_file(f"{folder}/{name}"))
    except OSError:
        # Not there, closed, or a pipe that would be waited for.
        return outer
    return IgnoreRules(folder, rules, outer) if rules else outer


def is_plain_search(search: Search) -> bool:
    """Whether a text is looked for: then no line takes long."""
    return search.literal or _PLAIN.fullmatch(search.pattern) is not None


def build_needle(search: Search) -> bytes:
    """Return bytes that every line that matches holds; nothing where that is not known."""
    with suppress(UnicodeEncodeError):
        if is_plain_search(search) and not search.ignore_case:
            return search.pattern.encode("utf-8", "surrogateescape")
    return b""


def compile_expression(search: Search) -> re.Pattern[str]:
    """Return what to look for; ValueError for a pattern that is not a regular expression."""
    source = re.escape(search.pattern) if search.literal else search.pattern
    try:
        with warnings.catch_warnings(action="ignore"):
            return re.compile(source, re.IGNORECASE if search.ignore_case else re.NOFLAG)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"Invalid regular expression: {search.pattern}: {error}") from error
