"""The files below a folder whose reading may have to be asked about, found quickly.

    grep -r x .     every name counts
    rg x            not those that are hidden, or that .gitignore leaves out
    find -name '*'  those that fit a pattern

Of thousands of names few may be those of credentials: the names of a folder are looked through at
once, and only these, links, and with `every` all of them, are judged one by one. At most
`MAX_MATCHES` names are looked at, those near the top first. No file is opened but .gitignore.
"""

from __future__ import annotations

import os
import re
from collections import deque
from fnmatch import fnmatchcase, translate
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ...env.globs import compile_glob
from ...env.search import IGNORE_FILE, extend_ignore_rules, load_ignore_rules
from ..commands.tables import load_tables
from .place_names import PASSED_FOLDERS
from .real_paths import ELSEWHERE, MAX_MATCHES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...env.search import IgnoreRules
    from .place_names import PlaceNames

_CODE: tuple[str, ...] = (
    ".py", ".pyc", ".pyi", ".go", ".rs", ".ts", ".js", ".java", ".rb", ".cs", ".kt", ".swift",
    ".c", ".h", ".cpp", ".md", ".rst", ".html",
)  # fmt: skip
"""Endings of program text, as in `secrets.py`: code is searched all the time."""


class FileTree(NamedTuple):
    """A folder whose files are read."""

    folder: str
    """Absolute."""
    hidden: bool = True
    """Whether names that begin with a dot are read."""
    ignored: bool = True
    """Whether what .gitignore leaves out is read."""
    links: bool = True
    """Whether links below it are read."""
    only: tuple[str, ...] = ()
    """Patterns of which a name has to fit one; none for any."""
    without: tuple[str, ...] = ()
    """Patterns of names, of files and folders, that are left out."""
    glob: str | None = None
    """A pattern that the path from the folder has to fit, as a tool that searches knows it."""


def list_tree(tree: FileTree, *, every: bool) -> Iterator[str]:
    """Yield the files of a tree that may matter; what cannot be listed is passed over.

    With `every` each of them may: there are rules about reading.
    """
    try:
        fits = compile_glob(tree.glob).matches if tree.glob else None
        # In a place all is looked at: what .gitignore says there is not read for a judgement.
        ignored = tree.ignored or ELSEWHERE.get() is not None
        rules = None if ignored else load_ignore_rules(tree.folder)
    except (OSError, ValueError):  # no glob, or no path: the tool will say so
        return
    waiting: deque[tuple[str, IgnoreRules | None]] = deque([(tree.folder, rules)])
    looked_at = 0
    while waiting and looked_at < MAX_MATCHES:
        folder, outer = waiting.popleft()
        listing = _list_folder(folder, hidden=tree.hidden)
        looked_at += len(listing.files) + len(listing.links) + len(listing.folders)
        rules = extend_ignore_rules(folder, listing.special, outer) if not ignored else None
        names = listing.files if every else choose_names(folder, listing.files)
        for name in sorted((*names, *(listing.links if tree.links else ()))):
            path = f"{folder}/{name}"
            if _is_left_out(tree, name, path, rules, is_dir=False):
                continue
            if fits is None or fits(path[len(tree.folder) + 1 :]):
                yield path
        waiting += (
            (f"{folder}/{name}", rules)
            for name in sorted(listing.folders)
            if not _is_left_out(tree, name, f"{folder}/{name}", rules, is_dir=True)
        )


class _Listed(NamedTuple):
    """What a folder holds, by name."""

    files: list[str]
    links: list[str]
    folders: list[str]
    special: set[str]
    """Names that say what git ignores, hidden or not."""


def _list_folder(folder: str, *, hidden: bool) -> _Listed:
    if (place := ELSEWHERE.get()) is not None:
        return _list_there(place, folder, hidden=hidden)
    listing = _Listed([], [], [], set())
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name in {".git", IGNORE_FILE}:
                    listing.special.add(name)
                if name[:1] == "." and not hidden:
                    continue
                if entry.is_symlink():
                    listing.links.append(name)
                elif not entry.is_dir(follow_symlinks=False):
                    listing.files.append(name)
                elif name not in PASSED_FOLDERS:
                    listing.folders.append(name)
    except (OSError, ValueError):
        pass
    return listing


def _list_there(place: PlaceNames, folder: str, *, hidden: bool) -> _Listed:
    listing = _Listed([], [], [], set())
    for name, file in place.list_folder(place.find_real(folder)).items():
        if name[:1] != "." or hidden:
            rows = listing.folders if file.is_folder else listing.files
            (listing.links if file.is_link else rows).append(name)
    return listing


def _is_left_out(
    tree: FileTree, name: str, path: str, rules: IgnoreRules | None, *, is_dir: bool
) -> bool:
    if _has_match(name, tree.without):
        return True
    if rules is not None and rules.is_ignored(path, is_dir=is_dir):
        return True
    return not is_dir and bool(tree.only) and not _has_match(name, tree.only)


def _has_match(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


def choose_names(folder: str, names: Iterable[str]) -> list[str]:
    """Return which names of a folder may be those of credentials."""
    names = [*names]
    if _compile_hints()[1].search(f"{folder}/"):
        return names
    if _compile_endings().search("\0".join(names) + "\0") is None:
        return []
    return [name for name in names if may_hold_credentials(f"{folder}/{name}")]


def may_hold_credentials(path: str) -> bool:
    """Whether a path may be that of a sensitive file: a quick look, before it is judged.

    A file of code is none, unless it is hidden.
    """
    name = path.rpartition("/")[2]
    if name.endswith(_CODE) and name[:1] != ".":
        return False
    names, folders = _compile_hints()
    return names.fullmatch(name) is not None or folders.search(path) is not None


@cache
def _compile_hints() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what fits the names of sensitive files, and the folders of which all are."""
    places = load_tables().places
    split = [place.rpartition("/") for place in (*places.sensitive, *places.secrets)]
    names = [translate(end) for _, _, end in split if end.strip("*[]!")]
    folders = [
        re.escape(start.rpartition("/")[2]) for start, _, end in split if not end.strip("*[]")
    ]
    return re.compile("|".join(names)), re.compile(f"/(?:{'|'.join(folders)})/")


@cache
def _compile_endings() -> re.Pattern[str]:
    """Return what is found in names, each with a zero behind it, where one of them may fit."""
    places = load_tables().places
    fixed = set()
    for place in (*places.sensitive, *places.secrets):
        name = place.rpartition("/")[2]
        parts = re.split(r"\*|\?|\[[^\]]*\]", name)
        longest = max(parts, key=len)
        if longest:
            fixed.add(longest + "\0" if name.endswith(longest) else longest)
    return re.compile("|".join(map(re.escape, sorted(fixed))))
