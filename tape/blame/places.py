"""Where the file that a call names may be now."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class FileLocation(NamedTuple):
    """The paths a file may have, resolved but for links."""

    paths: tuple[str, ...]
    """Absolute: where it was, and where the tape says that its project went."""
    tail: str | None = None
    """Last parts of its path, from the project's folder on, where that is gone and nothing says
    where to."""


def find_file_location(path: str, cwd: str, newest: Callable[[], str | None]) -> FileLocation:
    """Return where a file is that was named in `cwd`; `newest` tells where its tape works now."""
    was = os.path.normpath(os.path.join(cwd, path))  # noqa: PTH118 (text, and not looked at)
    inside = f"{cwd.rstrip('/')}/"
    if os.path.isdir(cwd) or not was.startswith(inside):  # noqa: PTH112
        return FileLocation((was,))
    rest, now = was.removeprefix(inside), newest()
    if now is not None and os.path.isdir(now):  # noqa: PTH112
        return FileLocation((was, os.path.join(now, rest)))  # noqa: PTH118
    return FileLocation((was,), f"/{os.path.basename(inside[:-1])}/{rest}")  # noqa: PTH119
