"""What .gitignore files leave out, by the rules of gitignore(5); pure.

The last rule that matches decides, and those of a deeper folder come after those above it. What
stands in a folder that is left out is never asked about. As in git, a pattern is held against the
bytes of a name: here each byte is a character.
"""

from __future__ import annotations

import codecs
import os
import re
from typing import NamedTuple

from .globs import translated

_WILD = re.compile(r"[*?\[\\]")


class Rule(NamedTuple):
    """One line of a .gitignore file."""

    pattern: re.Pattern[str]
    """Matches the path below the folder of the file."""
    folders_only: bool
    keeps: bool
    """A line with "!": what it matches stays."""


class Ignored(NamedTuple):
    """The rules that hold in a folder, outermost first."""

    folder: str
    """Absolute."""
    rules: tuple[Rule, ...]
    outer: Ignored | None = None

    def leaves_out(self, path: str, *, is_dir: bool) -> bool:
        """Whether something absolute below the folder is left out."""
        below = _bytewise(path[len(self.folder.rstrip("/")) + 1 :])
        for rule in reversed(self.rules):
            if (is_dir or not rule.folders_only) and rule.pattern.fullmatch(below):
                return not rule.keeps
        return self.outer is not None and self.outer.leaves_out(path, is_dir=is_dir)


def rules_of(data: bytes) -> tuple[Rule, ...]:
    """Return the rules of a .gitignore file, in order."""
    lines = data.removeprefix(codecs.BOM_UTF8).decode("latin-1").split("\n")
    return tuple(rule for line in lines if (rule := _rule(line.removesuffix("\r"))) is not None)


def _bytewise(path: str) -> str:
    return path if path.isascii() else os.fsencode(path).decode("latin-1")


def _rule(line: str) -> Rule | None:
    if line.startswith("#"):
        return None
    keeps = line.startswith("!")
    glob = _without_blanks(line[keeps:])
    folders_only = glob.endswith("/")
    glob = glob.removesuffix("/")
    if not glob:
        return None
    source = _below(glob.removeprefix("/")) if "/" in glob else f"(?:.*/)?{translated(glob)}"
    return Rule(re.compile(source, re.DOTALL), folders_only, keeps)


def _below(glob: str) -> str:
    """Return the source for a path; as in git, two stars after plain text begin a pattern anew."""
    wild = _WILD.search(glob)
    start = wild.start() if wild else len(glob)
    return re.escape(glob[:start]) + translated(glob[start:])


def _without_blanks(glob: str) -> str:
    """Return the pattern without blanks at its end, but for one that is escaped."""
    bare = glob.rstrip(" ")
    escaped = (len(bare) - len(bare.rstrip("\\"))) % 2
    return f"{bare} " if escaped and len(bare) < len(glob) else bare
