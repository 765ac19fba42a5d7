"""Tool calls → the files they read and change, as the index lists them."""

from __future__ import annotations

from posixpath import isabs, join, normpath
from typing import NamedTuple

from ..filecalls import calls_of


class Touched(NamedTuple):
    """One file that a call is about."""

    call: str
    """Id of the call."""
    path: str
    """As the model wrote it; `absolute` resolves it."""
    op: str
    """read, write, edit or patch."""


def touched(call: str, name: str, args: object) -> list[Touched]:
    """Return the files a call reads or changes, each once; of a long text its head is enough."""
    given = args if isinstance(args, dict) else {"input": args}
    heads = {key: _head(value) for key, value in given.items()}
    return list(dict.fromkeys(Touched(call, one.path, one.op) for one in calls_of(name, heads)))


def _head(value: object) -> object:
    return value.get("head") if isinstance(value, dict) and "$blob" in value else value


def absolute(path: str, cwd: str | None) -> str:
    """Return a path from the root, without `.` and `..`; as it stands where `cwd` is not known."""
    if path.startswith("~") or not (isabs(path) or cwd):
        return path
    return normpath(join(cwd or "/", path)).replace("//", "/", 1)
