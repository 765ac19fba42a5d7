"""Where a path that a tool writes to really is, or why nothing may be written there.

A path that names something in the working directory must end there, through all links; what is
written below it then follows no link, so that none put there meanwhile leads out.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, NamedTuple

from ..env.paths import is_escaping_path
from .locate import locate_new_path, locate_path
from .text_files import describe_os_error, describe_refused_path
from .tool import ToolResult

if TYPE_CHECKING:
    from ..env.protocol import ExecutionEnvironment


class WriteTarget(NamedTuple):
    """A file that may be written."""

    real: str
    """Where it is; no link is on the way."""
    root: str | None
    """The real working directory it is below; None for one that was named outside of it."""


async def find_write_target(
    env: ExecutionEnvironment, path: str, *, new: bool = False
) -> WriteTarget | str:
    """Return where `path` leads, or the words that refuse it; `new` of a file to be written."""
    named = await (locate_new_path if new else locate_path)(env, path)
    try:
        if is_escaping_path(path, named, env.working_directory):
            return describe_refused_path(path)
        real, root = await env.real_path(named), await env.real_path(env.working_directory)
    except ValueError:
        return f"Not a path: {path!r}."
    if _is_within_folder(real, root):
        return WriteTarget(real, root)
    if _is_within_folder(named, posixpath.normpath(env.working_directory)):
        return (
            f"Path leaves the working directory through a link: {path}."
            f" It leads to {real}: name that file, if it is meant."
        )
    return WriteTarget(real, None)


def build_write_error(error: OSError, path: str) -> ToolResult:
    """Return what is said when `path` cannot be written."""
    text = describe_os_error(error, path)
    if isinstance(error, PermissionError):
        return ToolResult.error(text, kind="PermissionDenied")
    return ToolResult.error(text)


def _is_within_folder(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
