"""One text replacement in a file, for all tool variants: find, apply, show."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ..env.protocol import FileChange
from .diff import diff_of
from .locks import held
from .match import places, replaced, same
from .text_files import text_file, without_mark
from .tool import ToolResult
from .whereabouts import failed, whereabouts

if TYPE_CHECKING:
    from ..env.protocol import ExecutionEnvironment
    from .match import Replacement
    from .whereabouts import Whereabouts


class Wish(NamedTuple):
    """What is to be replaced."""

    path: str
    old: str
    new: str
    every: bool
    """All places, not the only one."""
    old_name: str
    """Name of the argument with the old text, for messages."""


class Details(Struct, frozen=True):
    """What changed, for people."""

    path: str
    old_text: str
    new_text: str
    diff_lines: tuple[str, ...]
    diff: str
    """The same lines as one text."""
    first_changed_line: int
    replacements: int = 1
    exact: bool = True
    """False if the match differed in spaces, quotes or dashes."""


class Change(NamedTuple):
    """A change that can be made."""

    replacement: Replacement
    times: int
    exact: bool


async def replace_text(env: ExecutionEnvironment, wish: Wish) -> Details | ToolResult:
    """Apply the change, or change nothing and return the error."""
    place = await whereabouts(env, wish.path)
    if isinstance(place, str):
        return ToolResult.error(place, kind="PermissionDenied")
    try:
        async with held((place.real,)):
            change = await _changed(env, place, wish)
    except FileNotFoundError:
        return ToolResult.error(f"File not found: {wish.path}", kind="FileNotFound")
    except OSError as error:
        return failed(error, wish.path)
    if isinstance(change, str):
        return ToolResult.error(change, kind="EditConflict")
    return await asyncio.to_thread(_details, change, wish)


async def _changed(env: ExecutionEnvironment, place: Whereabouts, wish: Wish) -> Change | str:
    data = await env.read_file(place.real, place.root)
    change = await asyncio.to_thread(change_of, data, wish)
    if isinstance(change, str):
        return change
    after = change.replacement.after
    if place.root is None:
        await env.write_file(place.real, after)
        return change
    refused = await env.change_files((FileChange(place.real, data, after),), place.root)
    if refused:
        raise refused.error
    return change


def change_of(data: bytes, wish: Wish) -> Change | str:
    """Return the changed file, or why there is none (pure)."""
    path, file = wish.path, text_file(data)
    if file is None:
        return f"Cannot edit {path}: it is a binary file. Use bash to change it."
    if not without_mark(wish.old):
        return (
            f"{wish.old_name} is empty: name the text to replace in {path},"
            " or use write for all of it."
        )
    found = places(file.text, wish.old)
    if not found.spans:
        return (
            f"Could not find the exact text in {path}."
            " The old text must match exactly including all whitespace and newlines."
        )
    if found.total > 1 and not wish.every:
        return (
            f"Found {found.total} occurrences of the text in {path}. The text must be unique."
            " Please provide more context to make it unique."
        )
    made = replaced(file, found.spans, wish.new)
    if same(wish.old, wish.new) or made.after == data:
        return f"No changes made to {path}. The replacement produced identical content."
    return Change(made, len(found.spans), found.exact)


def _details(change: Change, wish: Wish) -> Details:
    diff = diff_of(change.replacement)
    return Details(
        path=wish.path,
        old_text=wish.old,
        new_text=wish.new,
        diff_lines=diff.lines,
        diff="\n".join(diff.lines),
        first_changed_line=diff.first_changed_line,
        replacements=change.times,
        exact=change.exact,
    )
