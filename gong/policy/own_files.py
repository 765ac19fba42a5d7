"""Which files and commands would give the session more rights, or change what it recorded.

These are gong's own settings, keys, answers about trust, and tapes: changing them asks in every
mode, and a rule allows it only where it names the very file. What a program writes is read from its
words: redirections, copies, `tee`, `sed -i` and the like; code of other languages may hide it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .checks import list_written_files
from .invocation import is_inside
from .matching import list_operands
from .real_paths import find_real_path
from .tables import has_pattern_match, load_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .invocation import Invocation
    from .modes import Action

OWN_REASON = "gong's own settings, keys or tapes"


def is_own_file(path: str, folders: Sequence[str]) -> bool:
    """Return whether a path is in one of gong's own folders, by its letters or through a link."""
    both = {path, find_real_path(path)}
    places = {place for one in folders for place in (one, find_real_path(one))}
    return any(is_inside(each, place) for each in both for place in places)


def list_changed_files(actions: Iterable[Action], uses: Iterable[Invocation]) -> Iterator[str]:
    """Yield the absolute paths that the parts of a command line write, replace or remove."""
    for action in actions:
        yield from (*action.paths, *action.edits)
    removers = load_tables().words.removers
    for use in uses:
        changed = list(list_written_files(use))
        if use.name in removers or use.name == "mv":
            changed += list_operands(use.arguments)
        for one in changed:
            yield from use.places.paths(one)


def find_own_command(uses: Iterable[Invocation]) -> str | None:
    """Return a command of gong or tape that changes what gong may do, or what it kept."""
    own = load_tables().own
    for use in uses:
        patterns = own.get(use.name)
        words = " ".join(one.text for one in use.arguments)
        if patterns is not None and has_pattern_match(words, patterns):
            return f"{use.name} {words}"
    return None
