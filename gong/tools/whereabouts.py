"""Where a path that a tool writes to really is, or why nothing may be written there.

A path that names something in the working directory must end there, through all links; what is
written below it then follows no link, so that none put there meanwhile leads out.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, NamedTuple

from ..env.paths import climbs_out
from .locate import locate, locate_new
from .text_files import failure, refusal
from .tool import ToolResult

if TYPE_CHECKING:
    from ..env.protocol import ExecutionEnvironment


class Whereabouts(NamedTuple):
    """A file that may be written."""

    real: str
    """Where it is; no link is on the way."""
    root: str | None
    """The real working directory it is below; None for one that was named outside of it."""


async def whereabouts(
    env: ExecutionEnvironment, path: str, *, new: bool = False
) -> Whereabouts | str:
    """Return where `path` leads, or the words that refuse it; `new` of a file to be written."""
    named = await (locate_new if new else locate)(env, path)
    try:
        if climbs_out(path, named, env.working_directory):
            return refusal(path)
        real, root = await env.real_path(named), await env.real_path(env.working_directory)
    except ValueError:
        return f"Not a path: {path!r}."
    if _inside(real, root):
        return Whereabouts(real, root)
    if _inside(named, posixpath.normpath(env.working_directory)):
        return (
            f"Path leaves the working directory through a link: {path}."
            f" It leads to {real}: name that file, if it is meant."
        )
    return Whereabouts(real, None)


def failed(error: OSError, path: str) -> ToolResult:
    """Return what is said when `path` cannot be written."""
    text = failure(error, path)
    if isinstance(error, PermissionError):
        return ToolResult.error(text, kind="PermissionDenied")
    return ToolResult.error(text)


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
