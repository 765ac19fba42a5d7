"""Where the paths of a patch really lead: all of them below one folder, or the patch is refused."""

from __future__ import annotations

import os.path
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..text_files import refusal
from .hunks import Delete, Update
from .plan import Failures

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .hunks import Hunk


class Places(NamedTuple):
    """Real paths: no link is on the way to any of them."""

    root: str
    """The folder they are all below."""
    real: Mapping[str, str]
    """Path as the patch says it → where it leads."""


def places(
    hunks: Sequence[Hunk], root: str, folder: str, resolve: Callable[[str], str]
) -> Places | Failures:
    """Return where the paths of the hunks lead; all that lead out of `root` when some do.

    `resolve` makes a path absolute; relative ones start from `folder`, "" being the root itself.
    A link is followed where a file is written, and refused where it would be what goes.
    """
    real_root, real, refusals = os.path.realpath(root), {}, []
    going = {hunk.path for hunk in hunks if _goes(hunk)}
    for path in _paths(hunks):
        meant = posixpath.join(folder, path)
        named = resolve(meant)
        try:
            real[path] = os.path.realpath(named)
        except ValueError:
            refusals.append(f"Not a path: {path!r}.")
            continue
        if not real[path].startswith(real_root.rstrip("/") + "/"):
            refusals.append(refusal(meant))
        elif path in going and Path(named).is_symlink():
            refusals.append(f"{path} is a link. Name the file it leads to, or use a command.")
    return Failures(tuple(refusals)) if refusals else Places(real_root, real)


def _paths(hunks: Sequence[Hunk]) -> tuple[str, ...]:
    targets = (hunk.move_to for hunk in hunks if isinstance(hunk, Update))
    return tuple(dict.fromkeys((*(hunk.path for hunk in hunks), *filter(None, targets))))


def _goes(hunk: Hunk) -> bool:
    return isinstance(hunk, Delete) or (isinstance(hunk, Update) and hunk.move_to is not None)
