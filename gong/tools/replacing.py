"""One text replacement in a file, for all tool variants: find, apply, show."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ..env.protocol import FileChange
from .diff import build_diff
from .locks import hold_locks
from .match import find_text, is_same_text, replace_spans
from .text_files import decode_text_file, strip_byte_order_mark
from .tool import ToolResult
from .whereabouts import build_write_error, find_write_target

if TYPE_CHECKING:
    from ..env.protocol import ExecutionEnvironment
    from .match import FileReplacement
    from .whereabouts import WriteTarget


class ReplaceRequest(NamedTuple):
    """What is to be replaced."""

    path: str
    old: str
    new: str
    every: bool
    """All places, not the only one."""
    old_name: str
    """Name of the argument with the old text, for messages."""


class EditDetails(Struct, frozen=True):
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


class TextChange(NamedTuple):
    """A change that can be made."""

    replacement: FileReplacement
    times: int
    exact: bool


async def replace_text(env: ExecutionEnvironment, wish: ReplaceRequest) -> EditDetails | ToolResult:
    """Apply the change, or change nothing and return the error."""
    place = await find_write_target(env, wish.path)
    if isinstance(place, str):
        return ToolResult.error(place, kind="PermissionDenied")
    try:
        async with hold_locks((place.real,)):
            change = await _apply_replacement(env, place, wish)
    except FileNotFoundError:
        return ToolResult.error(f"File not found: {wish.path}", kind="FileNotFound")
    except OSError as error:
        return build_write_error(error, wish.path)
    if isinstance(change, str):
        return ToolResult.error(change, kind="EditConflict")
    return await asyncio.to_thread(_build_edit_details, change, wish)


async def _apply_replacement(
    env: ExecutionEnvironment, place: WriteTarget, wish: ReplaceRequest
) -> TextChange | str:
    data = await env.read_file(place.real, place.root)
    change = await asyncio.to_thread(build_change, data, wish)
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


def build_change(data: bytes, wish: ReplaceRequest) -> TextChange | str:
    """Return the changed file, or why there is none (pure)."""
    path, file = wish.path, decode_text_file(data)
    if file is None:
        return f"Cannot edit {path}: it is a binary file. Use bash to change it."
    if not strip_byte_order_mark(wish.old):
        return (
            f"{wish.old_name} is empty: name the text to replace in {path},"
            " or use write for all of it."
        )
    found = find_text(file.text, wish.old)
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
    made = replace_spans(file, found.spans, wish.new)
    if is_same_text(wish.old, wish.new) or made.after == data:
        return f"No changes made to {path}. The replacement produced identical content."
    return TextChange(made, len(found.spans), found.exact)


def _build_edit_details(change: TextChange, wish: ReplaceRequest) -> EditDetails:
    diff = build_diff(change.replacement)
    return EditDetails(
        path=wish.path,
        old_text=wish.old,
        new_text=wish.new,
        diff_lines=diff.lines,
        diff="\n".join(diff.lines),
        first_changed_line=diff.first_changed_line,
        replacements=change.times,
        exact=change.exact,
    )
