"""Tool calls → the files they read and change, as the index lists them."""

from __future__ import annotations

from posixpath import isabs, join, normpath
from typing import NamedTuple

from ..filecalls import parse_named_call


class TouchedFile(NamedTuple):
    """One file that a call is about."""

    call: str
    """Id of the call."""
    path: str
    """As the model wrote it; `absolute` resolves it."""
    op: str
    """read, write, edit or patch."""


def list_touched_files(call: str, name: str, args: object) -> list[TouchedFile]:
    """Return the files a call reads or changes, each once; of a long text its head is enough."""
    given = args if isinstance(args, dict) else {"input": args}
    heads = {key: _get_blob_head(value) for key, value in given.items()}
    return list(
        dict.fromkeys(TouchedFile(call, one.path, one.op) for one in parse_named_call(name, heads))
    )


def _get_blob_head(value: object) -> object:
    return value.get("head") if isinstance(value, dict) and "$blob" in value else value


def resolve_path(path: str, cwd: str | None) -> str:
    """Return a path from the root, without `.` and `..`; as it stands where `cwd` is not known."""
    if path.startswith("~") or not (isabs(path) or cwd):
        return path
    return normpath(join(cwd or "/", path)).replace("//", "/", 1)
