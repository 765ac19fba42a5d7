"""Paths and programs as values: `PathContext`, `Invocation`; pure.

Paths are judged by their letters, against folders given as values; what is removed also by where
its folder lies, if a function tells. An invocation is one
program with its arguments and what is around it: what every check looks at. It has its own paths
since a later command may ask for those of an earlier one: `$(pwd)`.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from functools import cache
from typing import TYPE_CHECKING

from .tables import PlaceTable, find_later_reason, has_pattern_match, load_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...shell.expansion import Argument, Arguments


_WILD = re.compile(r"[*?\[]")
_ONLY_WILD = re.compile(r"(?=[^*?]*[*?])(?:[*?.\]]|\[[^\]]*\])*")
_MAX_STARS = 16
_DRIVE = re.compile(r"[A-Za-z]:[\\/]*\*?")

_STREAMS = ("/dev/null", "/dev/stdin", "/dev/fd/[0-9]*")
"""Paths of already opened input, or of no input."""
_SHARED_MEMORY = "/dev/shm"
_HOMES = {"/home", "/Users"}


@dataclass(frozen=True, slots=True)
class PathContext:
    """The folders a command is judged against; all absolute."""

    start: str
    """Where the session works."""
    home: str
    roots: tuple[str, ...]
    """Folders whose files may be read unasked."""
    folders: tuple[str | None, ...]
    """Folders in which the command may run; None for an unknown one."""
    repository: str | None = None
    """The root of the git repository around `start`; None for none, or an unknown one."""
    resolve: Callable[[str], str] | None = None
    """Returns where a folder really lies, links followed; None judges by letters alone."""
    match: Callable[[str], Iterable[str]] | None = None
    """Returns what a path with wildcards stands for on the disk; None by letters alone."""
    exported: frozenset[str] = frozenset()
    """Names of the variables that commands inherit."""

    def paths(self, argument: Argument) -> tuple[str, ...]:
        """Return the absolute paths that an argument may mean; none if unknown."""
        text = argument.text
        if text.startswith("/"):
            return (_normalize_path(text),)
        return tuple(
            _normalize_path(f"{folder}/{text}") for folder in self.folders if folder is not None
        )

    def is_vital(self, argument: Argument) -> bool:
        """Whether losing what it names loses a system, a home or the whole workspace."""
        if not argument.text:
            return False
        if _DRIVE.fullmatch(argument.text):
            return True
        return any(self._is_vital_path(path, argument) for path in self._list_lost_paths(argument))

    def _is_vital_path(self, path: str, argument: Argument) -> bool:
        parts = path.split("/")
        wild = next(
            (i for i, part in enumerate(parts) if argument.glob and _WILD.search(part)), None
        )
        if wild is None:
            return self._is_precious_path(path, known=argument.known)
        own_folders = (self.start, self.home, *self._list_histories(path))
        if any(_can_match_folder(path, own) for own in own_folders):
            return True
        folder = "/".join(parts[:wild]) or "/"
        if self._is_system_path(folder) or folder == "/" or folder == self.home.rpartition("/")[0]:
            return True
        every = all(_ONLY_WILD.fullmatch(part) for part in parts[wild:])
        return every and self._is_precious_path(folder, known=argument.known)

    def _is_precious_path(self, path: str, *, known: bool) -> bool:
        if any(is_inside(own, path) for own in (self.start, self.home)):
            return True
        if any(fnmatchcase(path, f"{self.home}/{pattern}") for pattern in _load_place_table().home):
            return True
        if path in self._list_histories(path):
            return True
        if is_inside(path, self.start) and self._is_owned_folder(self.start):
            return False
        if path.rpartition("/")[0] in _HOMES:
            return True
        return self._is_system_path(path) or (known and path.count("/") == 1)

    def _list_histories(self, path: str) -> tuple[str, ...]:
        """Return the folders of git around the session whose loss loses what was committed."""
        if "/." not in path:  # `*` means no hidden file
            return ()
        folder, histories = self.start, []
        while folder not in {"", "/"}:
            histories += [f"{folder}/.git{end}" for end in ("", "/objects", "/refs")]
            folder = folder.rpartition("/")[0]
        return tuple(histories)

    def _is_system_path(self, path: str) -> bool:
        """Whether a path belongs to the system, and is not of the session or a home."""
        if any(
            is_inside(path, own) and self._is_owned_folder(own) for own in (self.start, self.home)
        ):
            return False
        if is_inside(path, _SHARED_MEMORY) and path != _SHARED_MEMORY:
            return False
        names = _load_place_table()
        return path in names.tops or any(is_inside(path, place) for place in names.system)

    def _is_owned_folder(self, folder: str) -> bool:
        """Whether the content of a folder is the user's, even if the folder is the system's."""
        return folder != "/" and (folder == self.home or folder not in _load_place_table().tops)

    def is_foreign(self, argument: Argument) -> bool:
        """Whether it names a whole system: the root folder or one of its parts."""
        lost = self._list_lost_paths(argument)
        return any(self._is_system_path(path) or path == "/" for path in lost)

    def _list_lost_paths(self, argument: Argument) -> tuple[str, ...]:
        """Return the paths, and where those behind a linked folder really lie.

        What is removed under the name of a link is the link, so the last name is not followed.
        """
        paths = self.paths(argument)
        if self.resolve is None:
            return paths
        text = argument.text
        starts = (
            ("",)
            if text[:1] == "/"
            else [f"{folder}/" for folder in self.folders if folder is not None]
        )
        split = (f"{start}{text}".rpartition("/") for start in starts)
        real = (
            _normalize_path(f"{self.resolve(each)}/{name}")
            for folder, _, name in split
            for each in self._match_folders(folder)
        )
        return tuple(dict.fromkeys((*paths, *real)))

    def match_paths(self, argument: Argument) -> tuple[str, ...]:
        """Return the paths that an argument may mean, a wildcard as what it matches."""
        paths = self.paths(argument)
        if self.match is None or not argument.glob:
            return paths
        return tuple(each for path in paths for each in self.match(path)) or paths

    def _match_folders(self, folder: str) -> Iterable[str]:
        if self.match is None or not _WILD.search(folder):
            return (folder,)
        return self.match(folder)

    def is_protected(self, argument: Argument) -> bool:
        """Whether writing there changes the system, a device or who may log in."""
        return any(self._is_protected_path(path) for path in self.paths(argument))

    def is_protected_behind_links(self, argument: Argument) -> bool:
        """Whether writing a file of that name changes these: by its letters, or through a link."""
        if self.is_protected(argument):
            return True
        paths = self.match_paths(argument)
        if self.resolve is None or not self._is_in_folders(paths):
            return False
        return any(self._is_protected_path(self.resolve(path)) for path in paths)

    def _is_in_folders(self, paths: Iterable[str]) -> bool:
        return all(any(is_inside(path, root) for root in self.roots) for path in paths)

    def _is_protected_path(self, path: str) -> bool:
        names = _load_place_table()
        if self.is_harmless_device(path):
            return False
        if any(is_inside(path, f"{self.home}/{key}") for key in names.keys):
            return True
        if is_inside(path, _SHARED_MEMORY):
            return False
        return self._is_system_path(path) and path not in names.shared

    def is_harmless_device(self, path: str) -> bool:
        """Whether what is written there goes nowhere, or to the terminal."""
        return has_pattern_match(path, _load_place_table().harmless_devices)

    def is_device(self, argument: Argument) -> bool:
        """Whether it names a disk or another device of the machine."""
        return any(
            is_inside(path, "/dev") and path != "/dev" and self._is_protected_path(path)
            for path in self.paths(argument)
        ) or bool(_DRIVE.fullmatch(argument.text))

    def is_secret(self, argument: Argument) -> bool:
        """Whether it names a private key or a store of passwords."""
        return self._is_named_by(argument, _load_place_table().secrets)

    def is_sensitive(self, argument: Argument) -> bool:
        """Whether it names a file that often holds credentials."""
        sample = argument.text.endswith(_load_place_table().samples)
        return not sample and self._is_named_by(argument, _load_place_table().sensitive)

    def _is_named_by(self, argument: Argument, patterns: tuple[str, ...]) -> bool:
        paths = self.paths(argument)
        if any(map(_compile_patterns(patterns).match, paths)):
            return True
        return argument.glob and any(
            _can_match_hidden(path, pattern) for path in paths for pattern in patterns
        )

    def find_later_reason(self, path: str) -> str | None:
        """Return why changing a file makes programs run at a later time; None where it does not."""
        own = path.removeprefix(self.start) if is_inside(path, self.start) else path
        return find_later_reason(own)

    def is_public(self, path: str) -> bool:
        """Whether a file only says what machine this is."""
        return has_pattern_match(path, _load_place_table().public)

    def is_readable(self, argument: Argument) -> bool:
        """Whether it is known and names nothing outside the folders that may be read."""
        paths = self.paths(argument)
        if argument.known and has_pattern_match(argument.text, _STREAMS):
            return True
        if argument.known and not argument.glob and len(paths) == 1 and self.is_public(paths[0]):
            return True
        if not argument.known or len(paths) != (
            1 if argument.text[:1] == "/" else len(self.folders)
        ):
            return False
        return self._is_in_folders(paths)


def resolve_cd_target(text: str, folder: str | None, home: str) -> str | None:
    """Return where `cd text` leads; None when the text does not tell."""
    if not text:
        return home
    if text.startswith("/"):
        return _normalize_path(text)
    return None if folder is None or text == "-" else _normalize_path(f"{folder}/{text}")


def _normalize_path(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))


@cache
def _compile_patterns(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return what fits a path that fits one of the patterns."""
    return re.compile("|".join(map(translate, patterns)))


def _can_match_hidden(path: str, pattern: str) -> bool:
    """Whether wildcards of a path may match a hidden file that a pattern names."""
    name, hidden = path.rpartition("/")[2], pattern.rpartition("/")[2]
    if name[:1] != "." or hidden[:1] != ".":
        return False
    return name.count("*") > _MAX_STARS or fnmatchcase(hidden, name)


def _can_match_folder(pattern: str, folder: str) -> bool:
    """Whether wildcards of a path may match a folder or one it is in."""
    pattern_parts, parts = pattern.split("/"), folder.split("/")
    fits = all(
        fnmatchcase(part, pattern_part)
        for part, pattern_part in zip(parts, pattern_parts, strict=False)
    )
    return len(pattern_parts) <= len(parts) and pattern.count("*") <= _MAX_STARS and fits


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path is a folder, or below it, by its letters."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


@cache
def _load_place_table() -> PlaceTable:
    return load_tables().places


@dataclass(frozen=True, slots=True)
class Invocation:
    """One program with its arguments, and what is around it."""

    name: str
    """In lower case, without its folder; empty when an expansion decides it."""
    arguments: Arguments
    places: PathContext
    before: tuple[Invocation, ...] = ()
    """What its pipeline runs before it."""
    inside: tuple[Invocation, ...] = ()
    """What the substitutions among its arguments run."""
    given: tuple[str, ...] = ()
    """Texts it may read from standard input, as far as they are known."""
    read: Arguments = ()
    """Files that are redirected into it."""
