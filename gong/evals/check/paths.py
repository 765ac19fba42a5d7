"""Paths as the tools of other agents were given them, on machines of other people; pure.

A path of Windows is `/c:/Users/…` here. Where no folder is known a relative path stays relative.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from ...policy.commands.invocation import is_inside

if TYPE_CHECKING:
    from collections.abc import Sequence

_DRIVE = re.compile(r"[A-Za-z]:(?=[\\/]|\Z)")
_HOME = re.compile(r"(?:/[a-z]:)?/(?:home|Users)/[^/]+")
_NO_HOME = "/root"
NULL_DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"})
"""What keeps nothing of what is written there."""


def resolve_path(path: str, folder: str) -> str:
    """Return a path from a folder, made plain by its letters; `folder` may be ""."""
    path, folder = _convert_drive(path), _convert_drive(folder)
    if path == "~" or path.startswith("~/"):
        path = find_home(folder) + path[1:]
    joined = posixpath.normpath(posixpath.join(folder, path))
    return joined[1:] if joined.startswith("//") else joined


def _convert_drive(path: str) -> str:
    if not _DRIVE.match(path):
        return path
    return f"/{path[0].lower()}{path[1:]}".replace("\\", "/")


def find_home(folder: str) -> str:
    """Return the home of who works in a folder: that of root where the path names none."""
    match = _HOME.match(_convert_drive(folder))
    return match[0] if match else _NO_HOME


def is_outside(path: str, roots: Sequence[str]) -> bool:
    """Return whether a resolved path is in none of the roots; of a relative one its dots tell.

    Without roots an absolute path is taken for one inside.
    """
    if path[:1] != "/":
        return path == ".." or path.startswith("../")
    return bool(roots) and not any(is_inside(path, root) for root in roots)
