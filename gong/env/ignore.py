"""What .gitignore files leave out, by the rules of gitignore(5); pure.

The last rule that matches decides, and those of a deeper folder come after those above it. What
stands in a folder that is left out is never asked about. As in git, a pattern is held against the
bytes of a name: here each byte is a character.
"""

from __future__ import annotations

import codecs
import os
import re
from typing import TYPE_CHECKING, NamedTuple

from .globs import MAX_PATTERN_CHARACTERS, compile_ignore_glob

if TYPE_CHECKING:
    from .globs import Glob

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
        below = _to_bytewise(path[len(self.folder.rstrip("/")) + 1 :])
        name = below.rpartition("/")[2]
        for rule in reversed(self.rules):
            if (is_dir or not rule.folders_only) and rule.matches(below, name):
                return not rule.keeps
        return self.outer is not None and self.outer.is_ignored(path, is_dir=is_dir)


def parse_ignore_file(data: bytes) -> tuple[IgnoreRule, ...]:
    """Return the rules of a .gitignore file, in order."""
    lines = data.removeprefix(codecs.BOM_UTF8).decode("latin-1").split("\n")
    return tuple(
        rule for line in lines if (rule := _parse_ignore_line(line.removesuffix("\r"))) is not None
    )


def _to_bytewise(path: str) -> str:
    return path if path.isascii() else os.fsencode(path).decode("latin-1")


def _parse_ignore_line(line: str) -> IgnoreRule | None:
    if line.startswith("#"):
        return None
    keeps = line.startswith("!")
    glob = _strip_trailing_blanks(line[keeps:])
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


def _strip_trailing_blanks(glob: str) -> str:
    """Return the pattern without blanks at its end, but for one that is escaped."""
    bare = glob.rstrip(" ")
    escaped = (len(bare) - len(bare.rstrip("\\"))) % 2
    return f"{bare} " if escaped and len(bare) < len(glob) else bare
