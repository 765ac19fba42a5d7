"""What programs inside the sandbox may not change in the folders that they may write.

These files make programs run later, outside of the sandbox, or give agents their rights:

    where                  fixed (read-only)                        pinned (cannot be moved)
    ---------------------  ---------------------------------------  ------------------------------
    a folder               `.gong`, `.claude`, `.mcp.json` and the  the folders on the way to it
                           like, a `.git` that is a file
    git's folder           `config`, `hooks`, `config.worktree`,    itself
                           and what its settings include
    its `modules`          itself                                   each repository in it
    its `worktrees/NAME`   `commondir`, `gitdir`                    itself

All else of git's folder can be written, so that commits work. Only what is there is protected: a
mount needs something to be mounted on, and a sandbox that leaves files behind is worse than one
that reports what appeared. That is what `watched` names. Files are looked at, nothing is started.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ...git_folders import GitFolder, is_git_folder, locate_git_folder, read_bytes
from ..protocol import is_inside_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROTECTED_NAMES = (
    ".gong", ".claude", ".mcp.json", "mcp.json", ".agents", ".envrc", ".vscode", ".idea", ".zed",
    ".husky", ".gitmodules", ".codex", ".cursor", ".gemini", ".opencode", "opencode.json",
    ".devcontainer", ".devcontainer.json",
)  # fmt: skip
"""Names at the top of a folder that agents, editors and shells obey."""
_NESTED_NAMES = frozenset((".git", ".gong", ".claude", ".mcp.json", ".envrc", ".vscode"))
_GIT_FILES = ("hooks", "config", "config.worktree")
_WORKTREE_FILES = ("commondir", "gitdir", "config.worktree")
_NO_REPOSITORY = frozenset((".git", "node_modules", ".venv", "venv", "__pycache__", ".tox"))
_MAX_DEPTH, _MAX_FOLDERS, _MAX_PROTECTED = 4, 3_000, 200
_NAMED_FILE = rb"(?im)^\s*(?:path|hookspath)\s*=\s*\"?([^\"\n]+?)\"?\s*$"


class Protection(NamedTuple):
    """What is protected of some folders; absolute paths, without links in them."""

    writable: tuple[str, ...] = ()
    """Folders of git outside of the folders, where commits write."""
    pinned: tuple[str, ...] = ()
    """Folders that stay where they are; what is in them can be written."""
    fixed: tuple[str, ...] = ()
    """Files and folders that cannot be changed."""
    watched: tuple[str, ...] = ()
    """Names that are not there: a command that makes one is reported."""
    remarks: tuple[str, ...] = ()
    """What could not be protected, in words for people."""


def find_protection(roots: Sequence[str], start: str, own_code: Sequence[str] = ()) -> Protection:
    """Return what is protected below `roots`, for programs that work in `start`; real paths.

    `own_code` are the folders of the Python that runs gong, and of its packages: what is changed
    there runs outside. The first is fixed; who works on gong itself changes the others.
    """
    search = _Search(tuple(roots))
    if own_code:
        search.add_own_code(*own_code)
    for root in roots:
        search.add_names(root, PROTECTED_NAMES)
        for folder in search.list_folders(root):
            search.add_nested(folder)
    repository = locate_git_folder(start)
    if repository is None:
        search.watched.append(f"{start}/.git")
    else:
        search.add_repository(repository)
    return search.build()


class _Search:
    """Collects what is protected; each path once, in the order in which it was found."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self.watched: list[str] = []
        self._roots = roots
        self._writable: dict[str, None] = {}
        self._pinned: dict[str, None] = {}
        self._fixed: dict[str, None] = {}
        self._remarks: list[str] = []
        self._places: set[str] = set()
        """Folders of git that were looked at."""

    def build(self) -> Protection:
        """Return what was found, up to the number of mounts that a start can bear."""
        fixed, pinned = [*self._fixed], [path for path in self._pinned if path not in self._fixed]
        left = len(fixed) + len(pinned) - _MAX_PROTECTED
        if left > 0:
            fixed = fixed[:_MAX_PROTECTED]
            pinned = pinned[: _MAX_PROTECTED - len(fixed)]
            self._remarks.append(
                f"{left} files and folders of nested repositories are not protected: at most"
                f" {_MAX_PROTECTED} are"
            )
        return Protection(
            tuple(self._writable),
            tuple(pinned),
            tuple(fixed),
            tuple(dict.fromkeys(self.watched)),
            tuple(self._remarks),
        )

    def list_folders(self, root: str) -> Iterator[str]:
        """Yield folders below a root, nearest first; links are not followed."""
        waiting, seen = [(root, 0)], 0
        while waiting:
            folder, depth = waiting.pop(0)
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name in _NO_REPOSITORY or not entry.is_dir(follow_symlinks=False):
                        continue
                    seen += 1
                    if seen > _MAX_FOLDERS:
                        return
                    yield entry.path
                    if depth + 1 < _MAX_DEPTH:
                        waiting.append((entry.path, depth + 1))

    def add_names(self, folder: str, names: Sequence[str]) -> None:
        """Fix what is there of some names, and watch the others."""
        for name in names:
            path = f"{folder}/{name}"
            if not self._fix(path):
                self.watched.append(path)

    def add_own_code(self, prefix: str, *packages: str) -> None:
        """Protect the programs that run gong, as in a virtual environment of the project."""
        if self._is_in_roots(prefix):
            self._fix(prefix)
        for package in packages:
            if self._is_in_roots(package) and not is_inside_folder(package, prefix):
                self._remarks.append(f"{package} is gong's own code, which commands can change")

    def add_nested(self, folder: str) -> None:
        """Protect what is in a folder below a root."""
        try:
            names = _NESTED_NAMES.intersection(os.listdir(folder))
        except OSError:
            return
        for name in sorted(names):
            path = f"{folder}/{name}"
            if name == ".git" and os.path.isdir(path):
                if not os.path.islink(path) and is_git_folder(path):
                    self._add_git_folder(path)
                    self._pin_ancestors(path)
            else:
                self._fix(path)
                if name == ".git" and (inner := locate_git_folder(folder)) is not None:
                    self._add_git_folder(inner.place)

    def add_repository(self, repository: GitFolder) -> None:
        """Protect the repository that programs work in; commits in it stay possible."""
        own = f"{repository.top}/.git"
        if os.path.islink(own):
            self._remarks.append(f"{own} is a link, which a command can replace")
        elif os.path.isfile(own):
            self._fix(own)
        place = os.path.realpath(repository.place)
        common = os.path.realpath(repository.common)
        if repository.stranger is not None:
            self._remarks.append(
                f"{own} leads to {repository.stranger}, which does not know this folder: commits"
                " in it are refused"
            )
            return
        for folder in dict.fromkeys((common, place)):
            if not self._is_in_roots(folder) and not is_inside_folder(folder, common):
                self._writable[folder] = None
        if not self._is_in_roots(common):
            self._writable[common] = None
        self._add_git_folder(common)
        if place != common:
            self._add_worktree(place)

    def _add_git_folder(self, place: str) -> None:
        """Protect a folder of git: what names programs is fixed, the rest can be written."""
        place = os.path.realpath(place)
        if place in self._places or not is_git_folder(place):
            return
        self._places.add(place)
        self._pin(place)
        if os.path.lexists(f"{place}/commondir"):
            self._add_worktree(place)
            return
        for name in (*_GIT_FILES, "commondir"):
            path = f"{place}/{name}"
            if not self._fix(path):
                self.watched.append(path)
        for match in re.finditer(_NAMED_FILE, read_bytes(f"{place}/config")):
            self._fix_named(place, os.fsdecode(match[1].strip()))
        self._add_modules(place)
        with suppress(OSError):
            for name in sorted(os.listdir(f"{place}/worktrees")):
                self._add_worktree(f"{place}/worktrees/{name}")

    def _add_modules(self, place: str) -> None:
        """Fix the folder of submodules, so that none appears in it; those in it can be written."""
        if not self._fix(f"{place}/modules"):
            return
        for folder, names, _ in os.walk(f"{place}/modules"):
            if is_git_folder(folder):
                names[:] = []  # its own are found from it
                self._add_git_folder(folder)

    def _add_worktree(self, place: str) -> None:
        """Protect git's folder of a linked worktree: what it names decides whose settings count."""
        self._pin(place)
        for name in _WORKTREE_FILES:
            path = f"{place}/{name}"
            if not self._fix(path):
                self.watched.append(path)

    def _fix_named(self, place: str, name: str) -> None:
        """Fix a file or folder that the settings of git name, where programs could change it."""
        if name.startswith("~"):
            return  # nobody writes there
        for base in (place, os.path.dirname(place)):
            path = os.path.normpath(os.path.join(base, name))
            if self._is_in_roots(path) and self._fix(path):
                self._pin_ancestors(path)

    def _fix(self, path: str) -> bool:
        """Fix what is at a path; False where nothing is, or a link, which no mount can hold."""
        if os.path.islink(path):
            self._remarks.append(f"{path} is a link, which a command can replace")
            return True
        if not os.path.exists(path):
            return False
        if path not in self._roots:
            self._fixed[path] = None
            self._pin_ancestors(path)
        return True

    def _pin(self, path: str) -> None:
        self._pinned[path] = None
        self._pin_ancestors(path)

    def _pin_ancestors(self, path: str) -> None:
        """Pin the folders between a root and a path: whoever moves one moves what is in it."""
        at = os.path.dirname(path)
        above = []
        while at not in self._roots and at != "/":
            above.append(at)
            at = os.path.dirname(at)
        if at in self._roots:
            self._pinned.update(dict.fromkeys(above))

    def _is_in_roots(self, path: str) -> bool:
        return any(is_inside_folder(path, root) for root in self._roots)
