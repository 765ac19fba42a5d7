"""Which files a call of a file tool may mean by a path: every place where the tool would look.

A tool takes the name as it is written, then plain blanks for odd ones, then the only name that
reads the same (`tools.paths`). Each of them that is there is judged, so that no spelling reaches a
file, or a link, that was not looked at. Asks the disk which names there are.
"""

from __future__ import annotations

import posixpath
from contextlib import suppress

from ...env.protocol import resolve_path
from ...tools.paths import build_mixed_spelling, find_alike, list_spellings, may_look_alike
from .real_paths import is_there, list_folder


def list_meant_paths(path: str, start: str, home: str) -> list[str]:
    """Return the absolute paths that a tool may take a path for, the plain one first."""
    exact, plain = resolve_path(path, start, home, exact=True), resolve_path(path, start, home)
    others = [*list_spellings(exact, plain), build_mixed_spelling(exact)]
    if not any(map(is_there, others)):
        others += filter(None, (_find_by_look(exact), _find_by_look(plain)))
    folder = posixpath.dirname(exact)
    new = {build_mixed_spelling(exact)} if is_there(folder) else set()
    return list(dict.fromkeys((plain, *(name for name in others if name in new or is_there(name)))))


def _find_by_look(path: str) -> str | None:
    """Return the only path whose names read like these; None where there is none."""
    at = "/"
    for name in path.strip("/").split("/"):
        candidate = posixpath.join(at, name)
        if not is_there(candidate):
            alike = None
            with suppress(OSError, ValueError):
                alike = find_alike(name, list_folder(at)) if may_look_alike(name) else None
            if alike is None:
                return None
            candidate = posixpath.join(at, alike)
        at = candidate
    return at
