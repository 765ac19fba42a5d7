"""`@path` in a prompt of a session whose tools act in another place: the files are those there.

What a prompt names is copied into a folder of its own while it is read, as on this machine; no
path of the place is opened here. A name is looked up over there as the tools look it up.
"""

from __future__ import annotations

import stat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ...env.places.environment import PlaceEnvironment, find_place
from ...errors import PlaceLost
from .mentions import MAX_NAMES, MentionedFiles, build_denial, list_mentioned_names, read_mentions

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...env.protocol import ExecutionEnvironment
    from .pictures import PictureRules

_MAX_FILE_BYTES = 20 << 20
"""Larger files are not fetched for a prompt."""
_MAX_FILES = 100


async def read_place_mentions(
    text: str,
    env: ExecutionEnvironment,
    rules: PictureRules,
    find_denied: Callable[[str], str] | None = None,
) -> MentionedFiles:
    """Return the documents that a prompt names with `@`, from the place; see `read_mentions`."""
    env = find_place(env)
    names = list_mentioned_names(text)[:_MAX_FILES]
    if not names:
        return MentionedFiles([], [])
    remarks: list[str] = []
    with TemporaryDirectory(prefix="gong-mentions-") as copies:
        try:
            for name in names:
                rule = "" if find_denied is None else await _find_denial(env, name, find_denied)
                remark = build_denial(name, rule) if rule else await _copy_file(env, name, copies)
                remarks += filter(None, (remark,))
        except PlaceLost as error:
            return MentionedFiles([], [f"@ gives no files: {error}"])
        mentions = read_mentions(
            text, env.working_directory, rules, lambda name: _locate_copy(env, name, copies)
        )
    mentions.remarks.extend(remarks)
    return mentions


async def _find_denial(env: PlaceEnvironment, name: str, find_denied: Callable[[str], str]) -> str:
    """Return the rule that denies to read what a name leads to, "" if none, or if it is no file."""
    try:
        path = env.resolve(name, exact=True)
        if not await env.file_exists(path):
            return ""
        return find_denied(path) or find_denied(await env.real_path(path))
    except (OSError, ValueError):
        return ""  # copying it says why


def _locate_copy(env: PlaceEnvironment, name: str, copies: str) -> Path:
    return Path(copies + env.resolve(name, exact=True))


async def _copy_file(env: PlaceEnvironment, name: str, copies: str) -> str:
    """Copy a file, or the names in a folder; return why it is not, "" where it is or is not there.

    A name that is none of the place is no mention.
    """
    try:
        path = env.resolve(name, exact=True)
        state = (await env.find_states([path], follow=True))[path]
        copy = _locate_copy(env, name, copies)
        if isinstance(state, OSError):
            return ""
        if stat.S_ISDIR(state.mode):
            copy.mkdir(parents=True, exist_ok=True)
            for entry in (await env.list_directory(path))[: MAX_NAMES * 10]:
                child = copy / entry.name
                if entry.is_dir:
                    child.mkdir(exist_ok=True)
                elif not child.exists():
                    child.touch()
            return ""
        if state.size > _MAX_FILE_BYTES:
            return f"@{name} is not attached: it is larger than {_MAX_FILE_BYTES} bytes"
        data = await env.read_file(path)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(data)
    except (OSError, ValueError) as error:
        return f"@{name} cannot be read: {getattr(error, 'strerror', None) or error}"
    return ""
